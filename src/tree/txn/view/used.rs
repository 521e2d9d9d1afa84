//! What a transaction rests on: how it found what it used, for the commit to compare.
//!
//! What must stay true: all that it used is noted, since a commit must not overwrite what it did not see.
//! So what finds no room is refused, before it is read.

use crate::engine::{Stop, TxnNode, Used, UsedWhat};
use crate::limits::TXN_USED_MAX;
use crate::names::{Dentry, FileName, TreePath};
use crate::refusal::{Refusal, Rule};
use crate::store::NodeType;

use super::below::gone;
use super::{Below, View};

impl View {
    /// Notes what a name of the store stands for, if nothing was noted yet.
    pub(super) fn use_name(
        &mut self,
        below: &Below<'_>,
        dir: TxnNode,
        name: &FileName,
    ) -> Result<(), Stop> {
        let TxnNode::Stored(ino) = dir else { return Ok(()) };
        let path = self.path_of(dir).join(name.clone());
        self.note(below, UsedWhat::Name(Dentry::of(ino, name.clone())), path)
    }

    /// Notes how a file of the store is, if nothing was noted yet.
    pub(super) fn use_file(&mut self, below: &Below<'_>, node: TxnNode) -> Result<(), Stop> {
        match node {
            TxnNode::Stored(ino) if below.named(ino)?.node_type != NodeType::Directory => {
                self.note(below, UsedWhat::File(ino), self.path_of(node))
            }
            _ => Ok(()),
        }
    }

    /// Notes that a node of the store, whose attributes are set, is there.
    pub(super) fn use_attributes(&mut self, below: &Below<'_>, node: TxnNode) -> Result<(), Stop> {
        match node {
            TxnNode::Stored(ino) if below.named(ino)?.node_type == NodeType::Directory => {
                self.note(below, UsedWhat::Directory(ino), self.path_of(node))
            }
            _ => self.use_file(below, node),
        }
    }

    fn note(&mut self, below: &Below<'_>, what: UsedWhat, path: TreePath) -> Result<(), Stop> {
        if !self.used.contains_key(&what) {
            if self.used.len() >= TXN_USED_MAX {
                return Err(too_much_used().into());
            }
            let found = what.find(below.read)?.0.ok_or_else(gone)?;
            self.used.insert(what.clone(), Used { path, what, found, read: false });
        }
        Ok(())
    }
}

fn too_much_used() -> Refusal {
    let reason = format!(
        "a transaction opens or changes at most {TXN_USED_MAX} files and names of the store, to read, too"
    );
    let remedy = "read what may change meanwhile outside of it, by its path in the mount, or do the work \
                  in several transactions";
    Refusal::new(Rule::TooLarge, reason, remedy)
}
