//! Whether the store has room and can be written, for those who do not sit at the desk.
//!
//! What must stay true: it is the desk's own answer (`reclaim`), so that a write is refused for
//! what its save would be refused for. Deliberately not here: whether the disk is full, or fails (the
//! store knows).

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::engine::{Command, Stop, Terms, Turn};
use crate::refusal::Refusal;
use crate::store::StoreError;

/// What the desk found when it was last left.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// No room.
    is_tight: AtomicBool,
    /// A store that took nothing.
    failed: Mutex<Option<Refusal>>,
}

impl Trouble {
    pub fn note_tight(&self, is_tight: bool) {
        self.is_tight.store(is_tight, Ordering::Relaxed);
    }

    pub fn is_tight(&self) -> bool {
        self.is_tight.load(Ordering::Relaxed)
    }

    /// A transaction was committed.
    pub fn note_written(&self) {
        *self.failed.lock() = None;
    }

    /// A transaction failed. Want of room is told by `is_tight`, and another process that writes ends.
    pub fn note_failed(&self, error: StoreError) -> Refusal {
        let passes = matches!(error, StoreError::Full(_) | StoreError::Busy(_));
        let refusal = Refusal::from(error);
        if !passes {
            *self.failed.lock() = Some(refusal.clone());
        }
        refusal
    }

    /// Why the last transaction failed, if it did.
    pub fn failed(&self) -> Option<Refusal> {
        self.failed.lock().clone()
    }
}

/// Why a change is not made while there is no room.
pub(super) fn no_room() -> Refusal {
    let full = "what is left is kept for what makes space, such as `rm`";
    StoreError::Full(full.to_owned()).into()
}

/// Asks whether there is room for a change, and makes none.
#[derive(Clone, Copy, Debug)]
pub struct AskRoom;

impl Command for AskRoom {
    type Out = ();

    fn operation(&self) -> &'static str {
        "write"
    }

    fn terms(&self) -> Terms {
        Terms::NO_CHANGE
    }

    fn run(self, _: &mut Turn<'_>) -> Result<(), Stop> {
        Ok(())
    }
}
