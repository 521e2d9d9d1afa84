//! Whether the store has room, for those who do not sit at the desk.
//!
//! What must stay true: it is the desk's own answer (`reclaim`), so that a write is refused for
//! what its save would be refused for. Deliberately not here: whether the disk is full (the store
//! knows).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::{Command, Stop, Terms, Turn};
use crate::refusal::Refusal;
use crate::store::StoreError;

/// Whether the desk found no room when it was last left.
#[derive(Debug, Default)]
pub(super) struct NoRoom(AtomicBool);

impl NoRoom {
    pub fn note(&self, is_tight: bool) {
        self.0.store(is_tight, Ordering::Relaxed);
    }

    pub fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
