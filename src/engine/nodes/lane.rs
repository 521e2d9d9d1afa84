//! A command that needs a state's directory, such as an agent's lane, which may be missing.
//!
//! What must stay true: the directory is made in the turn of the command that needs it, so that a
//! refusal leaves none behind; what forbids the directory is told of what was to go there, as where it
//! is there. Deliberately not here: what a lane is called (`Kind::directory`).

use crate::engine::places::governed::{governed, path_of_dir};
use crate::engine::{
    About, Command, Create, NewContent, Rename, SaveAndMove, Stop, Take, Terms, Turn, Wanted,
};
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::store::NodeType;

/// A command that brings something to a directory.
pub trait BringsTo: Command {
    /// The same command with this directory.
    #[must_use]
    fn to(self, dir: Ino) -> Self;

    /// The name that it will have there, where that is known before.
    fn name_there(&self) -> Option<&FileName>;
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

    fn about(&self) -> About {
        self.command.about()
    }

    /// Those who go by a directory that it makes must have heard of it first.
    fn terms(&self) -> Terms {
        Terms { is_told_apart: false, ..self.command.terms() }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<C::Out, Stop> {
        let mut at = self.above;
        for (nth, name) in self.names.iter().enumerate() {
            at = match turn.txn.lookup(at, name)? {
                Some(node) => node.ino,
                None => match make(turn, at, name.clone()) {
                    Err(Stop::Refused(mut refused)) => {
                        let there = self.names[nth..].iter().chain(self.command.name_there());
                        let above = path_of_dir(turn.txn, at)?;
                        refused.path = there.cloned().fold(above, |path, name| path.join(name));
                        return Err(Stop::Refused(refused));
                    }
                    made => made?,
                },
            };
        }
        // What is no directory at all is told of by the command itself.
        if let Some(above) = governed(turn.txn, turn.config, self.above)?
            && turn.txn.node(at)?.is_some_and(|node| node.node_type == NodeType::Directory)
        {
            turn.require_state_dir(above.workspace, at).map_err(|stop| match stop {
                Stop::Refused(why) => self.command.about().kept(turn.txn, why.refusal),
                stop => stop,
            })?;
        }
        self.command.to(at).run(turn)
    }
}

/// Makes a directory with the permissions of the one above it.
fn make(turn: &mut Turn<'_>, parent: Ino, name: FileName) -> Result<Ino, Stop> {
    let mode = turn.directory(parent)?.mode & 0o777;
    let content = NewContent::Directory;
    Ok(Create::new(parent, name, mode, content).run(turn)?.ino)
}

impl BringsTo for Rename {
    fn to(self, dir: Ino) -> Self {
        Rename { to: Dentry { dir, ..self.to }, ..self }
    }

    fn name_there(&self) -> Option<&FileName> {
        Some(&self.to.name)
    }
}

impl BringsTo for Take {
    fn to(self, dir: Ino) -> Self {
        Take { to: dir, ..self }
    }

    fn name_there(&self) -> Option<&FileName> {
        match &self.wanted {
            Wanted::Best(_) => None,
            Wanted::Named(_, new_name) => Some(new_name),
        }
    }
}

impl BringsTo for SaveAndMove {
    fn to(self, dir: Ino) -> Self {
        SaveAndMove { new_parent: dir, ..self }
    }

    fn name_there(&self) -> Option<&FileName> {
        Some(&self.name)
    }
}
