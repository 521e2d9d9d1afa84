//! The inodes that a transaction of the writer has read and changed.
//!
//! One claim reads and changes three inodes, and a batch of claims the same two directories over and
//! over. Here each is read once and written once a transaction. Nothing is held from one transaction
//! to the next: what decides is read in the transaction.
//!
//! What must stay true: every change of the table `nodes` goes through here or removes the inode
//! from here; what is undone to a savepoint is undone here, too.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::quotas::Charges;
use crate::numbers::Ino;
use crate::store::Node;

#[derive(Clone)]
struct Held {
    node: Node,
    changed: bool,
}

/// Inodes of one transaction.
#[derive(Default)]
pub(in crate::store::sqlite) struct Nodes {
    /// Whether a transaction of the writer is under way.
    active: bool,
    held: HashMap<Ino, Held>,
    /// What was held before each change since the last savepoint, oldest first.
    undo: Vec<(Ino, Option<Held>)>,
    /// What the changes mean to quotas.
    pub(super) charges: Charges,
}

impl Nodes {
    /// Nothing yet, for a transaction that begins.
    pub fn of_transaction() -> Self {
        Nodes { active: true, ..Nodes::default() }
    }

    /// The inode as the transaction sees it, if it read or changed it.
    pub fn get(&self, ino: Ino) -> Option<&Node> {
        self.held.get(&ino).map(|held| &held.node)
    }

    /// Holds what was read from the table, unless it was changed since; gives what is true.
    pub fn hold(&mut self, read: Node) -> Node {
        if !self.active {
            return read;
        }
        match self.held.entry(read.ino) {
            Entry::Occupied(held) => held.get().node.clone(),
            Entry::Vacant(free) => {
                // Its row may have been made since the mark, and go with it.
                self.undo.push((read.ino, None));
                free.insert(Held { node: read, changed: false }).node.clone()
            }
        }
    }

    /// Changes an inode.
    pub fn change(&mut self, node: &Node) {
        let held = Held { node: node.clone(), changed: true };
        let before = self.held.insert(node.ino, held);
        self.undo.push((node.ino, before));
    }

    /// Forgets an inode that is deleted.
    pub fn remove(&mut self, ino: Ino) {
        let before = self.held.remove(&ino);
        self.undo.push((ino, before));
    }

    /// Begins what [`back_to_mark`](Self::back_to_mark) undoes.
    pub fn mark(&mut self) {
        self.undo.clear();
        self.charges.mark();
    }

    /// Undoes all changes since the mark.
    pub fn back_to_mark(&mut self) {
        self.charges.back_to_mark();
        while let Some((ino, before)) = self.undo.pop() {
            match before {
                Some(held) => self.held.insert(ino, held),
                None => self.held.remove(&ino),
            };
        }
    }

    /// What must be written.
    pub fn changed(&self) -> impl Iterator<Item = &Node> {
        self.held.values().filter(|held| held.changed).map(|held| &held.node)
    }
}

impl crate::store::sqlite::Conn {
    /// A row of `nodes` as the transaction under way has left it.
    pub(super) fn as_changed(&self, node: Node) -> Node {
        self.nodes.borrow_mut().hold(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::UnixNanos;
    use crate::store::{Class, NodeType};

    fn node(ino: u64, nlink: u32) -> Node {
        Node {
            ino: Ino(ino),
            node_type: NodeType::File,
            class: Class::Plain,
            mode: 0o644,
            uid: 0,
            gid: 0,
            rdev: 0,
            nlink,
            size: 0,
            atime: UnixNanos(0),
            mtime: UnixNanos(0),
            ctime: UnixNanos(0),
            parent: Ino(1),
            chunks: 0,
            quota: None,
        }
    }

    #[test]
    fn what_was_changed_wins_over_what_is_read_again() {
        let mut nodes = Nodes::of_transaction();
        nodes.change(&node(2, 7));
        assert_eq!(nodes.hold(node(2, 1)).nlink, 7);
        assert_eq!(nodes.changed().count(), 1);
    }

    #[test]
    fn what_was_only_read_is_not_written() {
        let mut nodes = Nodes::of_transaction();
        nodes.hold(node(2, 1));
        assert_eq!(nodes.changed().count(), 0);
        assert_eq!(nodes.get(Ino(2)).map(|node| node.nlink), Some(1));
    }

    #[test]
    fn a_row_that_is_undone_is_not_held_although_it_was_read() {
        let mut nodes = Nodes::of_transaction();
        nodes.mark();
        nodes.hold(node(2, 1));
        nodes.back_to_mark();
        assert!(nodes.get(Ino(2)).is_none());
    }

    #[test]
    fn an_undone_change_leaves_what_was_before_the_mark() {
        let mut nodes = Nodes::of_transaction();
        nodes.change(&node(2, 3));
        nodes.mark();
        nodes.change(&node(2, 4));
        nodes.change(&node(2, 5));
        nodes.change(&node(3, 1));
        nodes.remove(Ino(2));
        nodes.back_to_mark();
        assert_eq!(nodes.get(Ino(2)).map(|node| node.nlink), Some(3));
        assert!(nodes.get(Ino(3)).is_none());
    }
}
