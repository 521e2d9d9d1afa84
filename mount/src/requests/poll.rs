//! `poll` of an open file: what it can do now, and who is to be told when it can do more.
//!
//! Deliberately not here: when that is, which the tree knows.

use std::sync::Arc;

/// What a handle can do without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollReady {
    /// Something can be read.
    pub read: bool,
    /// Something can be written.
    pub write: bool,
}

impl PollReady {
    /// As an ordinary file always is.
    pub const BOTH: PollReady = PollReady { read: true, write: true };
}

/// Makes the kernel ask again what a handle can do, any number of times. Takes no lock in the kernel.
#[derive(Clone)]
pub struct PollWake(Arc<dyn Fn() + Send + Sync>);

impl PollWake {
    /// What calls `wake` when it is time.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        PollWake(Arc::new(wake))
    }

    /// It is time.
    pub fn now(&self) {
        (self.0)();
    }
}
