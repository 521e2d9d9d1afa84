//! [`ReadQuotas`] and [`TxnQuotas`] in SQL. The sums of a transaction are held beside its inodes
//! and written with them; see `nodes`.

use std::collections::HashMap;

use rusqlite::{Row, params};

use super::Conn;
use super::columns::{int, number};
use crate::numbers::Ino;
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

    /// Begins what [`back_to_mark`](Self::back_to_mark) undoes.
    pub fn mark(&mut self) {
        self.at_mark.clone_from(&self.changes);
    }

    /// Undoes all changes since the mark.
    pub fn back_to_mark(&mut self) {
        self.changes.clone_from(&self.at_mark);
    }
}

fn charged(row: &Row<'_>) -> rusqlite::Result<(Ino, Charged)> {
    let charged = Charged { bytes: number(row, 1)?, inodes: number(row, 2)? };
    Ok((Ino(number(row, 0)?), charged))
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
        self.each(sql, [], charged, &mut |row| {
            all.push(row);
            true
        })?;
        Ok(all)
    }

    fn quota(&self, dir: Ino) -> Result<Option<Charged>> {
        let sql = "SELECT dir, bytes, inodes FROM quotas WHERE dir = ?1";
        let Some((_, stored)) = self.one(sql, [int(dir.0)], charged)? else { return Ok(None) };
        let nodes = self.nodes.borrow();
        let change = nodes.charges.changes.get(&dir).copied().unwrap_or_default();
        Ok(Some(Charged {
            bytes: stored.bytes.saturating_add_signed(change.bytes),
            inodes: stored.inodes.saturating_add_signed(change.inodes),
        }))
    }
}

impl TxnQuotas for Conn {
    fn open_quota(&mut self, dir: Ino) -> Result<()> {
        self.change(
            "INSERT OR REPLACE INTO quotas (dir, bytes, inodes) VALUES (?1, 0, 0)",
            [int(dir.0)],
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
