//! A change of a name that holds only as long as that is the name of what the caller means.

use crate::engine::{About, Command, Stop, Terms, Turn, absent};
use crate::names::FileName;
use crate::numbers::Ino;

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

    fn about(&self) -> About {
        self.command.about()
    }

    fn terms(&self) -> Terms {
        self.command.terms()
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<C::Out, Stop> {
        if turn.existing(self.parent, &self.name)?.ino != self.ino {
            return Err(absent(&self.name).into());
        }
        self.command.run(turn)
    }
}
