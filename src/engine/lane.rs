//! A command that needs a state's directory, such as an agent's lane, which may be missing.
//!
//! What must stay true: the directory is made in the turn of the command that needs it, so that a
//! refusal leaves none behind. Deliberately not here: what a lane is called (`Kind::directory`).

use crate::names::FileName;
use crate::numbers::Ino;
use crate::store::Durability;

use super::{About, Command, Create, NewContent, Rename, SaveAndMove, Stop, Take, Turn};

/// A command that brings something to a directory.
pub trait BringsTo: Command {
    /// The same command with this directory.
    #[must_use]
    fn to(self, dir: Ino) -> Self;
}

/// A command together with the directory that it is to bring something to.
#[derive(Clone, Debug)]
pub struct IntoLane<C> {
    /// Where the names begin: a workspace's directory.
    pub above: Ino,
    /// Those on the way; what is missing is made, with the permissions of what is above it.
    pub names: Vec<FileName>,
    /// The command.
    pub command: C,
}

impl<C: BringsTo> Command for IntoLane<C> {
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

    fn run(self, turn: &mut Turn<'_>) -> Result<C::Out, Stop> {
        let mut at = self.above;
        for name in self.names {
            at = match turn.txn.lookup(at, &name)? {
                Some(node) => node.ino,
                None => {
                    let mode = turn.directory(at)?.mode & 0o777;
                    let content = NewContent::Directory;
                    Create { parent: at, name, mode, content, on_draft: None }.run(turn)?.ino
                }
            };
        }
        self.command.to(at).run(turn)
    }
}

impl BringsTo for Rename {
    fn to(self, dir: Ino) -> Self {
        Rename { new_parent: dir, ..self }
    }
}

impl BringsTo for Take {
    fn to(self, dir: Ino) -> Self {
        Take { to: dir, ..self }
    }
}

impl BringsTo for SaveAndMove {
    fn to(self, dir: Ino) -> Self {
        SaveAndMove { new_parent: dir, ..self }
    }
}
