//! A file of its own for a record's new version, where somebody has mapped the version before, or
//! may have.
//!
//! A kernel keeps one set of pages, and one size, for an inode. Two programs that have mapped it at
//! different versions would be shown pages of both, and one that touches a page beyond the size
//! would be killed. What must stay true: the name, the attributes and the record are what they
//! were; whoever has the old file open keeps it, and its size. Deliberately not here: who has
//! mapped what (the audience knows).

use crate::engine::{About, Command, Effect, Fate, Stop, Terms, Turn};
use crate::numbers::{Ino, RecordKey};
use crate::store::{NewNode, Node, Record, Standing, StoreError};

use super::save::home_of;

/// Gives a record another file, as a save by rename does.
#[derive(Clone, Copy, Debug)]
pub struct SetApart {
    /// The record.
    pub record: RecordKey,
    /// The file that it leaves, if it is still there.
    pub ino: Ino,
    /// Of what size that file is from then on, if not as it is.
    pub had_bytes: Option<u64>,
}

impl Command for SetApart {
    type Out = ();

    fn operation(&self) -> &'static str {
        "save"
    }

    fn about(&self) -> About {
        About::Record(self.record)
    }

    /// No promise names the inode; what it follows from says what that needs.
    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let Some(mut record) = turn.txn.record(self.record)? else { return Ok(()) };
        let Standing::Live { ino: old, dir, name, valid } = record.standing.clone() else {
            return Ok(());
        };
        // What it follows from may have given it another one.
        let Some(before) = turn.txn.node(old)?.filter(|_| old == self.ino) else {
            return Ok(());
        };
        let ino = turn.copy_of(&before)?;
        let home = home_of(turn, &record)?;
        let expected = record.expected();
        record.standing = Standing::Live { ino, dir, name: name.clone(), valid };
        turn.write_back(&mut record, &expected, home.kind(), None)?;
        turn.txn.replace_entry(dir, &name, ino)?;
        let left = Node { size: self.had_bytes.unwrap_or(before.size), ..before };
        turn.unname(&left, dir, &name)?;
        let (parent, ino, fate) = (dir, old, Fate::Replaced);
        turn.effect(Effect::Name { parent, name, ino, also_origin: true, fate });
        Ok(())
    }
}

impl Turn<'_> {
    /// Gives a record another file after this step, where its new version must not come to be this one's:
    /// who has mapped the one before must see nothing of it, and whoever may have must not see it cut.
    pub(super) fn set_apart(&mut self, record: &Record, ino: Ino, (had, has): (u64, u64)) {
        let audience = self.audience;
        if audience.is_mapped(ino) || has < had && audience.may_be_mapped(ino) {
            self.follow(SetApart { record: record.key, ino, had_bytes: Some(had) });
        }
    }

    /// A new inode with the attributes of another one.
    fn copy_of(&mut self, node: &Node) -> Result<Ino, StoreError> {
        let &Node { node_type, class, parent, quota, .. } = node;
        let new = NewNode::empty(node_type, class, parent, quota, self.now);
        let copy = self.txn.insert_node(&new)?;
        self.txn.update_node(&Node { ino: copy.ino, ..node.clone() })?;
        self.copy_xattrs(node.ino, copy.ino)?;
        Ok(copy.ino)
    }

    /// Gives an inode the extended attributes of another one.
    pub(in crate::engine) fn copy_xattrs(&mut self, from: Ino, to: Ino) -> Result<(), StoreError> {
        for name in self.txn.xattr_names(from)? {
            if let Some(value) = self.txn.xattr(from, &name)? {
                self.txn.put_xattr(to, &name, &value)?;
            }
        }
        Ok(())
    }
}
