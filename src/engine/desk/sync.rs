//! `fsync`: makes everything that was committed before it survive power loss.

use crate::engine::{Command, Stop, Terms, Turn};
use crate::store::Durability;

/// An empty change whose commit is flushed.
#[derive(Clone, Copy, Debug)]
pub struct Sync;

impl Command for Sync {
    type Out = ();

    fn operation(&self) -> &'static str {
        "fsync"
    }

    fn terms(&self) -> Terms {
        Terms {
            durability: Durability::Flush,
            is_change: false,
            needs_no_room: true,
            ..Terms::USUAL
        }
    }

    fn run(self, _: &mut Turn<'_>) -> Result<(), Stop> {
        Ok(())
    }
}
