//! What lies at a path, name by name from the root of the tree.

use crate::names::TreePath;
use crate::numbers::ROOT;
use crate::store::{Node, NodeType, Read, StoreError};

/// The node at `path`.
///
/// # Errors
/// A failure of the store.
pub fn node_at(read: &dyn Read, path: &TreePath) -> Result<Option<Node>, StoreError> {
    let (last, names) = as_far_as_there(read, path)?;
    Ok(last.filter(|_| names == path.names().len()))
}

/// The last node on the way to `path` that is there, and how many names lead to it.
///
/// # Errors
/// A failure of the store.
pub fn as_far_as_there(
    read: &dyn Read,
    path: &TreePath,
) -> Result<(Option<Node>, usize), StoreError> {
    let mut at = read.node(ROOT)?;
    for (nth, name) in path.names().iter().enumerate() {
        let dir = at.as_ref().filter(|node| node.node_type == NodeType::Directory);
        let next = dir.map(|dir| read.lookup(dir.ino, name)).transpose()?.flatten();
        if next.is_none() {
            return Ok((at, nth));
        }
        at = next;
    }
    Ok((at, path.names().len()))
}
