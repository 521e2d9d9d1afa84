//! Where the nodes of a transaction lie, as far as it has met them: what paths and ways up go by.
//!
//! What must stay true: every way up ends; a program may look at a million names, and they are not kept.
//! What the transaction has neither made nor moved lies where the store has it, and can be forgotten.

use std::collections::HashSet;

use crate::engine::{Stop, TxnName, TxnNode};
use crate::limits::TXN_PLACES_MAX;
use crate::names::TreePath;
use crate::store::StoreError;

use super::{Below, View};

impl View {
    /// Notes where a node was found.
    pub(super) fn note_place(
        &mut self,
        below: &Below<'_>,
        node: TxnNode,
        at: TxnName,
    ) -> Result<(), Stop> {
        if self.places.len() >= TXN_PLACES_MAX {
            self.forget_places();
        }
        self.recall(below, at.dir)?;
        self.place(node, at);
        Ok(())
    }

    /// The same where the directory's own place is known. Outside, a directory may have come to lie below one
    /// that lay in it: where that one lay is what is known for longer, and is forgotten.
    pub(super) fn place(&mut self, node: TxnNode, at: TxnName) {
        let old = self.way_up(at.dir).find(|dir| self.parent_of(*dir) == Some(node));
        if let Some(old) = old {
            self.places.remove(&old);
        }
        self.places.insert(node, at);
    }

    /// Forgets where those lie of which the transaction has nothing of its own, but for the directories on the
    /// way to what it has: its path is told.
    fn forget_places(&mut self) {
        let named = self.names.values().flat_map(|names| names.values().flatten().copied());
        let own = named.chain(self.nodes.keys().copied());
        let kept: HashSet<TxnNode> = own.flat_map(|node| self.way_up(node)).collect();
        self.places.retain(|node, _| kept.contains(node));
    }

    /// A directory whose place is not known lies where the store has it: a program may be in it since before
    /// that was forgotten.
    pub(super) fn recall(&mut self, below: &Below<'_>, dir: TxnNode) -> Result<(), StoreError> {
        let (mut found, mut at) = (Vec::new(), dir);
        while let TxnNode::Stored(ino) = at
            && at != self.root
            && !self.places.contains_key(&at)
        {
            let above = below.read.node(ino)?.map(|node| TxnNode::Stored(node.parent));
            let (Some(above), Some(name)) = (above, below.read.dir_name(ino)?) else { break };
            found.push((at, TxnName { dir: above, name }));
            at = above;
        }
        for (node, at) in found.into_iter().rev() {
            self.place(node, at);
        }
        Ok(())
    }

    /// A directory and those that it lies in, as far as is known.
    pub(super) fn way_up(&self, dir: TxnNode) -> impl Iterator<Item = TxnNode> {
        std::iter::successors(Some(dir), |at| self.parent_of(*at))
    }

    fn parent_of(&self, node: TxnNode) -> Option<TxnNode> {
        Some(self.places.get(&node).filter(|_| node != self.root)?.dir)
    }

    /// The directory that a directory lies in.
    pub fn parent(&self, dir: TxnNode) -> TxnNode {
        self.parent_of(dir).unwrap_or(self.root)
    }

    /// The path of a node in the tree, as far as the transaction knows it.
    pub(super) fn path_of(&self, node: TxnNode) -> TreePath {
        let (mut names, mut at) = (Vec::new(), node);
        while let Some(TxnName { dir, name }) = self.places.get(&at).filter(|_| at != self.root) {
            names.push(name.clone());
            at = *dir;
        }
        self.path.names().iter().cloned().chain(names.into_iter().rev()).collect()
    }
}
