//! What a file with several names goes by: its first name, until that is gone.
//!
//! What must stay true: a node's `parent` is where its first name lies, and there it is charged; the
//! others are the store's further names; when the first goes, one of these takes its place. Of a file
//! with one name nothing is read or written here.

use crate::engine::Turn;
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::store::{Node, NodeType, StoreError};

impl Turn<'_> {
    /// A node is at `to` now, and no longer at `from`; the caller stores the node.
    pub(super) fn shift_name(
        &mut self,
        node: &mut Node,
        from: Dentry<&FileName>,
        to: Dentry<&FileName>,
    ) -> Result<(), StoreError> {
        if has_further_names(node) && self.txn.delete_further_name(node.ino, from.dir, from.name)? {
            return self.txn.insert_further_name(node.ino, to.dir, to.name);
        }
        self.lies_in(node, to.dir)
    }

    /// The name `name` in `dir` of a file that keeps others is gone; the caller stores the node.
    /// Tells of the name that has become the first one by this.
    pub(in crate::engine) fn lose_name(
        &mut self,
        node: &mut Node,
        dir: Ino,
        name: &FileName,
    ) -> Result<Option<Dentry>, StoreError> {
        if self.txn.delete_further_name(node.ino, dir, name)? {
            return Ok(None);
        }
        let next = self.txn.further_name(node.ino)?;
        if let Some(Dentry { dir, name }) = &next {
            self.txn.delete_further_name(node.ino, *dir, name)?;
            self.lies_in(node, *dir)?;
        }
        Ok(next)
    }

    fn lies_in(&mut self, node: &mut Node, dir: Ino) -> Result<(), StoreError> {
        node.parent = dir;
        if node.node_type != NodeType::Directory {
            node.quota = self.txn.node(dir)?.and_then(|dir| dir.quota);
        }
        Ok(())
    }

    /// The names of a file by which rules may count.
    pub(in crate::engine) fn names_of_file(
        &mut self,
        node: &Node,
    ) -> Result<Vec<Dentry>, StoreError> {
        let counts = self.name_of_file(node)?;
        if !has_further_names(node) {
            return Ok(Vec::from_iter(counts));
        }
        let mut all = self.txn.further_names(node.ino)?;
        if let Some(first) = counts.filter(|name| !all.contains(name)) {
            all.push(first);
        } else if self.scope(node.parent)?.is_some()
            && let Some(name) = self.txn.name_in(node.parent, node.ino)?
        {
            all.push(Dentry::of(node.parent, name));
        }
        Ok(all)
    }
}

fn has_further_names(node: &Node) -> bool {
    node.nlink > 1 && node.node_type != NodeType::Directory
}
