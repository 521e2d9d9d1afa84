//! The reading connections that nobody uses just now.
//!
//! What must stay true: whoever wants one has it as long as there is any, even where no further one can be opened:
//! who waits at the socket may have all of the daemon's descriptors, and files are read all the same.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Conn;
use crate::limits::REQUEST_DEADLINE;
use crate::store::{Result, StoreError};

/// See the head of this file.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<Conn>>,
    /// Notified when there is one more of them.
    given_back: Condvar,
}

impl Pool {
    /// One that nobody has, else a new one; where there is no descriptor for that, one that somebody has by now is
    /// waited for, though not without end.
    pub fn take(&self, open: impl FnOnce() -> Result<Conn>) -> Result<Conn> {
        if let Some(connection) = self.idle.lock().pop() {
            return Ok(connection);
        }
        open().or_else(|error| match error {
            StoreError::NoDescriptors(_) => self.await_one(REQUEST_DEADLINE).ok_or(error),
            error => Err(error),
        })
    }

    pub fn give_back(&self, connection: Conn) {
        self.idle.lock().push(connection);
        self.given_back.notify_one();
    }

    fn await_one(&self, patience: Duration) -> Option<Conn> {
        let until = Instant::now() + patience;
        let mut idle = self.idle.lock();
        while idle.is_empty() && !self.given_back.wait_until(&mut idle, until).timed_out() {}
        idle.pop()
    }
}
