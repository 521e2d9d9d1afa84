//! A file of its own for a record's new version, where somebody has mapped the version before.
//!
//! A kernel keeps one set of pages for an inode: two that have mapped it at different versions would be
//! shown pages of both. What must stay true: the name, the attributes and the record are what they were;
//! who has the old file open keeps it. Deliberately not here: who has mapped what (the audience knows).

use crate::numbers::{Ino, RecordKey};
use crate::store::{NewNode, Node, Standing, StoreError};

use super::save::home_of;
use super::{About, Command, Effect, Fate, Stop, Turn};

/// Gives a record another file, as a save by rename does.
#[derive(Clone, Copy, Debug)]
pub struct SetApart {
    /// The record.
    pub record: RecordKey,
}

impl Command for SetApart {
    type Out = ();

    fn operation(&self) -> &'static str {
        "save"
    }

    fn about(&self) -> About {
        About::Record(self.record)
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let Some(mut record) = turn.txn.record(self.record)? else { return Ok(()) };
        let Standing::Live { ino: old, dir, name, valid } = record.standing.clone() else {
            return Ok(());
        };
        // What it follows from may have given it another one.
        let Some(before) = turn.txn.node(old)?.filter(|_| turn.audience.is_mapped(old)) else {
            return Ok(());
        };
        let ino = turn.copy_of(&before)?;
        let home = home_of(turn, &record)?;
        let expected = record.expected();
        record.standing = Standing::Live { ino, dir, name: name.clone(), valid };
        turn.write_back(&mut record, &expected, home.kind(), None)?;
        turn.txn.replace_entry(dir, &name, ino)?;
        turn.unname(&before, dir, &name)?;
        let (parent, ino, fate) = (dir, old, Fate::Replaced);
        turn.effect(Effect::Name { parent, name, ino, also_origin: true, fate });
        Ok(())
    }
}

impl Turn<'_> {
    /// A new inode with the attributes of another one.
    fn copy_of(&mut self, node: &Node) -> Result<Ino, StoreError> {
        let ino = self.txn.insert_node(&NewNode {
            node_type: node.node_type,
            class: node.class,
            mode: node.mode,
            uid: node.uid,
            gid: node.gid,
            rdev: node.rdev,
            nlink: node.nlink,
            size: node.size,
            at: self.now,
            parent: node.parent,
            quota: node.quota,
        })?;
        self.txn.update_node(&Node { ino, ..node.clone() })?;
        self.copy_xattrs(node.ino, ino)?;
        Ok(ino)
    }

    /// Gives an inode the extended attributes of another one.
    pub(super) fn copy_xattrs(&mut self, from: Ino, to: Ino) -> Result<(), StoreError> {
        for name in self.txn.xattr_names(from)? {
            if let Some(value) = self.txn.xattr(from, &name)? {
                self.txn.put_xattr(to, &name, &value)?;
            }
        }
        Ok(())
    }
}
