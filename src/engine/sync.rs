//! `fsync`: makes everything that was committed before it survive power loss.

use super::{Command, Stop, Turn};
use crate::store::Durability;

/// An empty change whose commit is flushed.
#[derive(Clone, Copy, Debug)]
pub struct Sync;

impl Command for Sync {
    type Out = ();

    fn operation(&self) -> &'static str {
        "fsync"
    }

    fn durability(&self) -> Durability {
        Durability::Flush
    }

    fn is_change(&self) -> bool {
        false
    }

    fn needs_no_room(&self) -> bool {
        true
    }

    fn run(self, _: &mut Turn<'_>) -> Result<(), Stop> {
        Ok(())
    }
}
