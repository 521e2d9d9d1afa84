//! Directories that a move would make governed: files come under the rules one by one, each judged.

use crate::config::Config;
use crate::engine::places::governed::path_of;
use crate::engine::{Stop, Turn, would_be_governed};
use crate::limits::MOVED_NAMES_MAX;
use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Node, NodeType, Read, StoreError};

use super::remove::require_empty;

/// A directory that becomes a governed one must be empty: its files were never judged.
pub(super) fn require_not_filling(
    turn: &Turn<'_>,
    dir: &Node,
    name: &FileName,
    to: Ino,
    new_name: &FileName,
) -> Result<(), Stop> {
    let path = path_of(turn.txn, to, new_name)?;
    if !would_be_governed(turn.txn, turn.config, to, &path)? {
        return require_none_below(turn, dir, path);
    }
    match require_empty(turn.txn, dir, name) {
        Err(Stop::Refused(_)) => {
            let refusal = Refusal::new(
                Rule::Governed,
                format!("`{path}` would be a governed directory, and `{name}` holds files"),
                "make the directory with mkdir and move the files into it one by one",
            );
            Err(Stop::kept(refusal, path))
        }
        asked => asked,
    }
}

/// Nor may a directory bring along one that would be governed: a workspace comes into being by `mkdir`.
fn require_none_below(turn: &Turn<'_>, dir: &Node, path: TreePath) -> Result<(), Stop> {
    let reason = match governed_below(turn.txn, turn.config, dir.ino, &path)? {
        Below::Nothing => return Ok(()),
        Below::Governed(below) => format!("`{below}` would be a governed directory"),
        Below::TooMany => format!(
            "what would lie below `{path}` may be a workspace, and is over {MOVED_NAMES_MAX} names"
        ),
    };
    let remedy =
        format!("make it with mkdir -p, and move into `{path}` one by one what is not there");
    Err(Stop::kept(Refusal::new(Rule::Governed, reason, remedy), path))
}

/// What below a directory would be governed under another path.
enum Below {
    Nothing,
    /// The directory at this path.
    Governed(TreePath),
    /// Nobody knows: there are over [`MOVED_NAMES_MAX`] names.
    TooMany,
}

/// What below `dir` would be governed if that lay at `path`. It looks only where the configuration can
/// have workspaces.
fn governed_below(
    read: &dyn Read,
    config: &Config,
    dir: Ino,
    path: &TreePath,
) -> Result<Below, StoreError> {
    let mut left = MOVED_NAMES_MAX + 1;
    let mut open = vec![(dir, path.clone())];
    while let Some((dir, path)) = open.pop() {
        if config.bind(&path).is_some() {
            return Ok(Below::Governed(path));
        }
        if !config.may_lie_below(&path) {
            continue;
        }
        read.list_names(dir, None, &mut |(name, kind)| {
            if kind.node_type == NodeType::Directory {
                open.push((kind.ino, path.join(name)));
            }
            // One more than may be says that there are too many.
            left = left.saturating_sub(1);
            left > 0
        })?;
        if left == 0 {
            return Ok(Below::TooMany);
        }
    }
    Ok(Below::Nothing)
}
