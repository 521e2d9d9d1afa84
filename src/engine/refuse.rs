//! A refusal that was decided before the writer: it only goes to `why`.

use crate::names::FileName;
use crate::numbers::Ino;
use crate::refusal::Refusal;
use crate::store::Durability;

use super::governed::path_of;
use super::{Command, Stop, Turn};

/// Puts a refusal into `why`, and gives it back as the answer.
#[derive(Clone, Debug)]
pub struct Refuse {
    /// The call that was refused.
    pub operation: &'static str,
    /// The directory of the name that it was about.
    pub dir: Ino,
    /// The name.
    pub name: FileName,
    /// Why.
    pub refusal: Refusal,
}

impl Command for Refuse {
    type Out = ();

    fn operation(&self) -> &'static str {
        self.operation
    }

    fn durability(&self) -> Durability {
        Durability::Process
    }

    fn is_change(&self) -> bool {
        false
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let path = path_of(turn.txn, self.dir, &self.name)?;
        Err(Stop::kept(self.refusal, path))
    }
}
