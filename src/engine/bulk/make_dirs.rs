//! Making several directories as one change.

use crate::engine::{About, Command, Create, NewContent, Stop, Terms, Turn};
use crate::names::TreePath;
use crate::numbers::ROOT;
use crate::refusal::{Refusal, Rule};
use crate::store::NodeType;

/// Makes directories, and those above them that are not there, each where the caller may: all or none.
#[derive(Clone, Debug)]
pub struct MakeDirs {
    /// Those of which none must be there: who makes them has them.
    pub new: Vec<TreePath>,
    /// What is made in them.
    pub inner: Vec<TreePath>,
}

impl Command for MakeDirs {
    /// Those that were made, without those above them.
    type Out = Vec<TreePath>;

    fn operation(&self) -> &'static str {
        "mkdir"
    }

    fn about(&self) -> About {
        self.new.first().map_or(About::Nothing, |first| About::Path(first.clone()))
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Vec<TreePath>, Stop> {
        for path in &self.new {
            if is_there(turn, path)? {
                let reason = format!("`{path}` is there already");
                return Err(Refusal::new(Rule::Taken, reason, "choose another name").into());
            }
        }
        let paths: Vec<TreePath> = self.new.into_iter().chain(self.inner).collect();
        for path in &paths {
            make(turn, path)?;
        }
        Ok(paths)
    }
}

/// Whether something lies at a path.
fn is_there(turn: &Turn<'_>, path: &TreePath) -> Result<bool, Stop> {
    let mut at = ROOT;
    for name in path.names() {
        match turn.txn.lookup(at, name)? {
            Some(node) => at = node.ino,
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Makes a directory and those above it.
fn make(turn: &mut Turn<'_>, path: &TreePath) -> Result<(), Stop> {
    let mut at = turn.directory(ROOT)?;
    for name in path.names() {
        turn.require_mode(&at, 0o1)?;
        at = match turn.txn.lookup(at.ino, name)? {
            Some(node) if node.node_type == NodeType::Directory => node,
            Some(_) => {
                let reason = format!("`{name}` in `{path}` is not a directory");
                return Err(Refusal::new(Rule::NotDirectory, reason, "move it away").into());
            }
            None => {
                turn.require_mode(&at, 0o3)?;
                let (parent, name) = (at.ino, name.clone());
                let content = NewContent::Directory;
                Create::new(parent, name, 0o755, content).run(turn)?
            }
        };
    }
    Ok(())
}
