//! [`ReadQuotas`] and [`TxnQuotas`] in SQL. The sums of a transaction are held beside its inodes
//! and written with them; see `nodes`.

use std::collections::HashMap;

use rusqlite::{Row, params};

use super::columns::{int, number};
use crate::numbers::Ino;
use crate::store::sqlite::Conn;
use crate::store::{Charged, Growth, Node, ReadQuotas, Result, TxnQuotas};

/// By how much sums have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Change {
    bytes: i64,
    inodes: i64,
}

/// What a transaction has done to the sums.
#[derive(Default)]
pub(super) struct Charges {
    changes: HashMap<Ino, Change>,
    /// The same at the last savepoint.
    at_mark: HashMap<Ino, Change>,
}

impl Charges {
    /// A node was `before` and is `after`; none: it was not, or is no more.
    pub fn replace(&mut self, before: Option<&Node>, after: Option<&Node>) {
        for (node, sign) in [(before, -1), (after, 1)] {
            let Some((node, dir)) = node.and_then(|node| Some((node, node.quota?))) else {
                continue;
            };
            let charged = Charged::of(node);
            let change = self.changes.entry(dir).or_default();
            change.bytes += sign * int(charged.bytes);
            change.inodes += sign * int(charged.inodes);
        }
    }

    fn of(&self, dir: Ino) -> Change {
        self.changes.get(&dir).copied().unwrap_or_default()
    }

    /// Begins what [`back_to_mark`](Self::back_to_mark) undoes.
    pub fn mark(&mut self) {
        self.at_mark.clone_from(&self.changes);
    }

    /// Undoes all changes since the mark.
    pub fn back_to_mark(&mut self) {
        self.changes.clone_from(&self.at_mark);
    }
}

/// A sum as it is stored. One that was opened in this transaction may be below zero until the
/// transaction's changes are added.
fn stored(row: &Row<'_>) -> rusqlite::Result<(Ino, Change)> {
    Ok((Ino(number(row, 0)?), Change { bytes: row.get(1)?, inodes: row.get(2)? }))
}

fn charged(stored: Change, more: Change) -> Charged {
    let sum = |stored: i64, more: i64| stored.saturating_add(more).max(0).cast_unsigned();
    Charged { bytes: sum(stored.bytes, more.bytes), inodes: sum(stored.inodes, more.inodes) }
}

impl Conn {
    /// Writes the sums that the transaction changed.
    pub(super) fn write_charges(&self, charges: &Charges) -> Result<()> {
        for (dir, change) in charges.changes.iter().filter(|(_, c)| **c != Change::default()) {
            self.change(
                "UPDATE quotas SET bytes = bytes + ?2, inodes = inodes + ?3 WHERE dir = ?1",
                params![int(dir.0), change.bytes, change.inodes],
            )?;
        }
        Ok(())
    }
}

impl ReadQuotas for Conn {
    fn quotas(&self) -> Result<Vec<(Ino, Charged)>> {
        let mut all = Vec::new();
        let sql = "SELECT dir, bytes, inodes FROM quotas ORDER BY dir";
        self.each(sql, [], stored, &mut |(dir, sum)| {
            all.push((dir, charged(sum, Change::default())));
            true
        })?;
        Ok(all)
    }

    fn quota(&self, dir: Ino) -> Result<Option<Charged>> {
        let sql = "SELECT dir, bytes, inodes FROM quotas WHERE dir = ?1";
        let Some((_, stored)) = self.one(sql, [int(dir.0)], stored)? else { return Ok(None) };
        Ok(Some(charged(stored, self.nodes.borrow().charges.of(dir))))
    }
}

impl TxnQuotas for Conn {
    fn open_quota(&mut self, dir: Ino) -> Result<()> {
        // Nothing is charged to it. What the transaction did to an earlier sum of the directory, which
        // it closed, is added in the end all the same: it is taken off here.
        let before = self.nodes.borrow().charges.of(dir);
        self.change(
            "INSERT OR REPLACE INTO quotas (dir, bytes, inodes) VALUES (?1, ?2, ?3)",
            params![int(dir.0), -before.bytes, -before.inodes],
        )?;
        Ok(())
    }

    fn close_quota(&mut self, dir: Ino) -> Result<()> {
        self.change("DELETE FROM quotas WHERE dir = ?1", [int(dir.0)])?;
        Ok(())
    }

    fn grown(&self) -> Result<Vec<Growth>> {
        let grown: Vec<(Ino, bool, bool)> = {
            let charges = &self.nodes.borrow().charges;
            let since_mark = |(dir, change): (&Ino, &Change)| {
                let before = charges.at_mark.get(dir).copied().unwrap_or_default();
                (*dir, change.bytes > before.bytes, change.inodes > before.inodes)
            };
            charges.changes.iter().map(since_mark).filter(|(_, b, i)| *b || *i).collect()
        };
        let mut all = Vec::new();
        for (dir, bytes, inodes) in grown {
            if let Some(now) = self.quota(dir)? {
                all.push(Growth { dir, now, bytes, inodes });
            }
        }
        Ok(all)
    }
}
