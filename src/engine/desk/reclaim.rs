//! Space: when inodes without a name give theirs back, and which changes are made while there is
//! none.
//!
//! What must stay true: an inode without a name stays for a moment, for whoever is about to open
//! it, unless a change would be refused for want of its space; one that somebody has open stays in
//! any case. Deliberately not here: whether the disk is full (the store knows).

use std::time::Duration;

use crate::engine::change::queued::Queued;
use crate::kind::Role;
use crate::limits::{NAMELESS_AGAIN, RECLAIMED_CHUNKS_AT_ONCE};
use crate::store::{Durability, Node, StoreError};

use super::Desk;
use super::trouble::no_room;

impl Desk {
    /// Writes ends of leases one by one, until one finds no space; says whether all are written.
    pub(super) fn end_apart(&mut self, ends: Vec<Queued>) -> bool {
        let (mut is_full, mut all) = (false, true);
        for end in ends {
            if is_full {
                refuse_tightly(end);
                continue;
            }
            let is_written = self.commit(vec![end]);
            is_full = self.writer.is_tight() && !self.writer.find_room() && !is_written;
            all &= is_written;
        }
        all
    }

    /// On a full disk: what makes space or needs none is made, one by one, and the rest is refused, unless
    /// what was removed before has made some; so is everything to who has lost something of which the end
    /// could not be written.
    pub(super) fn commit_tightly(&mut self, jobs: Vec<Queued>) {
        for queued in jobs {
            let by = &queued.context;
            let is_late = by.role != Role::Operator && self.leases.has_lost(&by.actor.name);
            if !is_late && (queued.terms.needs_no_room || self.make_room()) {
                self.commit(vec![queued]);
                self.writer.find_room();
            } else {
                refuse_tightly(queued);
            }
        }
    }

    /// Lets go at once of what was removed and not reclaimed yet, until there is room again; says whether
    /// there is.
    pub(super) fn make_room(&mut self) -> bool {
        if !self.writer.is_tight() {
            return true;
        }
        // The first look finds those that have rested, the second those that came since.
        let mut has_looked = false;
        while self.nameless.due().is_some() {
            let is_more = self.reclaim();
            if self.writer.find_room() {
                return true;
            }
            if has_looked && !is_more {
                break;
            }
            has_looked = true;
        }
        false
    }

    /// Removes the nameless inodes that have rested and that nobody has open; of large files a part,
    /// since callers wait meanwhile. True if there is more to be done at once.
    pub(super) fn reclaim(&mut self) -> bool {
        let closed = self.nameless.take(&*self.audience);
        if closed.is_empty() {
            return false;
        }
        let mut rest = Vec::new();
        let reclaimed = self.writer.transaction(&mut |txn| {
            let mut left = RECLAIMED_CHUNKS_AT_ONCE;
            for ino in &closed {
                if left == 0 {
                    rest.push(*ino);
                    continue;
                }
                left -= txn.delete_some_chunks(*ino, left)?;
                if left == 0 {
                    // Whoever was overtaken may still come upon it: it is empty by now.
                    if let Some(node) = txn.node(*ino)? {
                        txn.update_node(&Node { size: 0, ..node })?;
                    }
                    rest.push(*ino);
                } else {
                    txn.delete_node(*ino)?;
                }
            }
            Ok(Durability::Process)
        });
        match reclaimed {
            Err(StoreError::Full(_)) => {
                self.writer.find_room();
                self.nameless.keep(closed, NAMELESS_AGAIN);
                return false;
            }
            Err(error) => tracing::warn!(%error, "nameless inodes stay until the next start"),
            Ok(()) if !rest.is_empty() => {
                self.nameless.keep(rest, Duration::ZERO);
                return true;
            }
            Ok(()) => {}
        }
        false
    }
}

/// On a full disk: what would take space is not made.
fn refuse_tightly(queued: Queued) {
    queued.answer(no_room());
}
