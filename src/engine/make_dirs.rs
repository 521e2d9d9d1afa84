//! Making several directories as one change.

use crate::names::TreePath;
use crate::refusal::{Refusal, Rule};
use crate::store::{Durability, NodeType};

use super::quota::ROOT;
use super::{About, Command, Create, NewContent, Stop, Turn};

/// Makes directories, and those above them that are not there: all or none.
#[derive(Clone, Debug)]
pub struct MakeDirs {
    /// The one that must not be there: who makes it has it.
    pub new: TreePath,
    /// The others.
    pub others: Vec<TreePath>,
}

impl Command for MakeDirs {
    /// Those that were made, without those above them.
    type Out = Vec<TreePath>;

    fn operation(&self) -> &'static str {
        "mkdir"
    }

    fn about(&self) -> About {
        About::Path(self.new.clone())
    }

    fn durability(&self) -> Durability {
        Durability::Process
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Vec<TreePath>, Stop> {
        if !make(turn, &self.new)? {
            let reason = format!("`{}` is there already", self.new);
            return Err(Refusal::new(Rule::Taken, reason, "choose another name").into());
        }
        let mut made = vec![self.new];
        for path in self.others {
            if make(turn, &path)? {
                made.push(path);
            }
        }
        Ok(made)
    }
}

/// Whether the directory was not there before.
fn make(turn: &mut Turn<'_>, path: &TreePath) -> Result<bool, Stop> {
    let (mut at, mut is_new) = (ROOT, false);
    for name in path.names() {
        let found = turn.txn.lookup(at, name)?;
        is_new = found.is_none();
        at = match found {
            Some(node) if node.node_type == NodeType::Directory => node.ino,
            Some(_) => {
                let reason = format!("`{name}` in `{path}` is not a directory");
                return Err(Refusal::new(Rule::NotDirectory, reason, "move it away").into());
            }
            None => {
                let content = NewContent::Directory;
                let name = name.clone();
                Create { parent: at, name, mode: 0o755, content, on_draft: None }.run(turn)?.ino
            }
        };
    }
    Ok(is_new)
}
