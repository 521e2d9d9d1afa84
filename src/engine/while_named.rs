//! A change of a name that holds only as long as that is the name of what the caller means.

use crate::names::FileName;
use crate::numbers::Ino;
use crate::store::Durability;

use super::{About, Command, Stop, Turn, absent};

/// A command that is about `parent/name`, if that is still the name of `ino` in its own turn.
#[derive(Clone, Debug)]
pub struct WhileNamed<C> {
    /// The directory.
    pub parent: Ino,
    /// The name.
    pub name: FileName,
    /// What has it.
    pub ino: Ino,
    /// What is done then.
    pub command: C,
}

impl<C: Command> Command for WhileNamed<C> {
    type Out = C::Out;

    fn operation(&self) -> &'static str {
        self.command.operation()
    }

    fn durability(&self) -> Durability {
        self.command.durability()
    }

    fn about(&self) -> About {
        self.command.about()
    }

    fn is_change(&self) -> bool {
        self.command.is_change()
    }

    fn is_seen_whole(&self) -> bool {
        self.command.is_seen_whole()
    }

    fn needs_no_room(&self) -> bool {
        self.command.needs_no_room()
    }

    fn keeps_quotas(&self) -> bool {
        self.command.keeps_quotas()
    }

    fn is_told_apart(&self) -> bool {
        self.command.is_told_apart()
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<C::Out, Stop> {
        if turn.existing(self.parent, &self.name)?.ino != self.ino {
            return Err(absent(&self.name).into());
        }
        self.command.run(turn)
    }
}
