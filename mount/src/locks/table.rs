//! The locks of one file: which there are, and which a new one would meet.
//!
//! What must stay true: an owner's POSIX locks never overlap each other (a new one replaces what it
//! covers), and no two owners' locks of one family conflict. Deliberately not here: waiting.

use std::time::Instant;

use crate::ids::{Handle, MountId};

/// Locks of two families never meet each other, as on other file systems of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `fcntl`, `lockf`: of a process, by ranges. Those of an open file (`F_OFD_SETLK`), too.
    Posix,
    /// `flock`: of an open file, always the whole of it.
    Flock,
}

/// How much a lock keeps away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Exclusive locks only.
    Shared,
    /// All others.
    Exclusive,
}

/// Whose a lock is: the kernel's number, which means something within its mount only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) mount: MountId,
    pub(crate) number: u64,
}

/// A lock that is held, or wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) family: Family,
    pub(crate) owner: Owner,
    /// The open file it was taken through: with it goes what is left of it.
    pub(crate) handle: Handle,
    pub(crate) kind: Kind,
    /// First byte.
    pub(crate) start: u64,
    /// Last byte.
    pub(crate) end: u64,
    /// The process, for `F_GETLK`.
    pub(crate) pid: u32,
    /// Its user.
    pub(crate) user: u32,
    /// When a descriptor of its open file was closed last. If that was the last one, the lock goes at once.
    pub(crate) closed: Option<Instant>,
}

impl Lock {
    fn overlaps(&self, other: &Lock) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    fn is_same_owners(&self, other: &Lock) -> bool {
        self.family == other.family && self.owner == other.owner
    }
}

/// The locks that are held on one file.
#[derive(Debug, Default)]
pub(crate) struct Table {
    held: Vec<Lock>,
}

impl Table {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// How many are of users that count.
    pub(crate) fn count_of(&self, counts: &dyn Fn(u32) -> bool) -> usize {
        self.held.iter().filter(|held| counts(held.user)).count()
    }

    /// The first lock that stands in the way of `wanted`, from the file's beginning.
    pub(crate) fn conflict(&self, wanted: &Lock) -> Option<&Lock> {
        self.conflicts(wanted).min_by_key(|held| held.start)
    }

    /// The first that `asked`'s owner itself holds in its range.
    pub(crate) fn own(&self, asked: &Lock) -> Option<&Lock> {
        let own = |held: &&Lock| held.is_same_owners(asked) && held.overlaps(asked);
        self.held.iter().filter(own).min_by_key(|held| held.start)
    }

    /// All locks that stand in the way of `wanted`.
    pub(crate) fn conflicts(&self, wanted: &Lock) -> impl Iterator<Item = &Lock> {
        self.held.iter().filter(move |held| {
            held.family == wanted.family
                && held.owner != wanted.owner
                && held.overlaps(wanted)
                && (held.kind == Kind::Exclusive || wanted.kind == Kind::Exclusive)
        })
    }

    /// Whether its owner has a lock of another kind anywhere in the range.
    pub(crate) fn changes_kind(&self, wanted: &Lock) -> bool {
        self.held.iter().any(|held| {
            held.is_same_owners(wanted) && held.overlaps(wanted) && held.kind != wanted.kind
        })
    }

    /// Holds `lock`, instead of what its owner held in that range.
    pub(crate) fn put(&mut self, mut lock: Lock) {
        self.take(&lock);
        // What touches it and is alike becomes one with it.
        self.held.retain(|held| {
            let joins = held.is_same_owners(&lock)
                && held.kind == lock.kind
                && held.handle == lock.handle
                && (held.end.checked_add(1) == Some(lock.start)
                    || lock.end.checked_add(1) == Some(held.start));
            if joins {
                lock.start = lock.start.min(held.start);
                lock.end = lock.end.max(held.end);
            }
            !joins
        });
        self.held.push(lock);
    }

    /// Lets go of what the owner of `range` holds in it; what sticks out on either side stays.
    pub(crate) fn take(&mut self, range: &Lock) {
        let mut left = Vec::new();
        self.held.retain(|held| {
            let hit = held.is_same_owners(range) && held.overlaps(range);
            if hit && held.start < range.start {
                left.push(Lock { end: range.start - 1, ..*held });
            }
            if hit && held.end > range.end {
                left.push(Lock { start: range.end + 1, ..*held });
            }
            !hit
        });
        self.held.append(&mut left);
    }

    /// A descriptor of the open file `handle` is closed at `now`.
    pub(crate) fn note_closed(&mut self, handle: Handle, now: Instant) {
        for held in self.held.iter_mut().filter(|held| held.handle == handle) {
            held.closed = Some(now);
        }
    }

    /// Lets go of every lock that `goes` says; were there any?
    pub(crate) fn drop_all(&mut self, goes: impl Fn(&Lock) -> bool) -> bool {
        let before = self.held.len();
        self.held.retain(|held| !goes(held));
        self.held.len() < before
    }
}

#[cfg(test)]
#[path = "table_test.rs"]
mod table_test;
