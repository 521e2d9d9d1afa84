//! When somebody last asked for something through a mount, and which users did.
//!
//! What must stay true: noting it costs a few nanoseconds for the mount's own user, who asks most; no
//! more users are remembered than fit. Deliberately not here: what follows from it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

/// Other users of a mount that are remembered. A mount has few; of more those who asked last are.
const USERS_MAX: usize = 1024;

/// When somebody last asked for something through a mount.
#[derive(Debug)]
pub(crate) struct LastSeen {
    anybody: AtomicU64,
    /// The user that the mount is served for.
    own: u32,
    others: RwLock<HashMap<u32, AtomicU64>>,
}

impl LastSeen {
    /// Nobody was seen yet.
    pub(crate) fn new() -> LastSeen {
        // SAFETY: it only returns a number and cannot fail.
        let own = unsafe { libc::geteuid() };
        LastSeen { anybody: AtomicU64::new(0), own, others: RwLock::default() }
    }

    /// This user asks now. The coarse clock costs a few nanoseconds.
    pub(crate) fn note(&self, uid: u32) {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes into the place it is given, and this clock is always there.
        let told = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
        if told != 0 {
            return;
        }
        let now = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
        self.anybody.store(now, Ordering::Relaxed);
        if uid != self.own {
            self.note_other(uid, now);
        }
    }

    fn note_other(&self, uid: u32, now: u64) {
        if let Some(seen) = self.others.read().get(&uid) {
            seen.store(now, Ordering::Relaxed);
            return;
        }
        let mut others = self.others.write();
        if others.len() >= USERS_MAX && !others.contains_key(&uid) {
            let longest_ago = others.iter().min_by_key(|(_, seen)| seen.load(Ordering::Relaxed));
            if let Some(uid) = longest_ago.map(|(uid, _)| *uid) {
                others.remove(&uid);
            }
        }
        others.entry(uid).or_default().store(now, Ordering::Relaxed);
    }

    /// When anybody was seen, in nanoseconds of the monotonic clock; 0 for never.
    pub(crate) fn anybody(&self) -> u64 {
        self.anybody.load(Ordering::Relaxed)
    }

    /// When each user was seen who is not the one that the mount is served for.
    pub(crate) fn others(&self) -> Vec<(u32, u64)> {
        let others = self.others.read();
        others.iter().map(|(uid, seen)| (*uid, seen.load(Ordering::Relaxed))).collect()
    }

    /// When a user was seen who is not the one that the mount is served for.
    pub(crate) fn other(&self, uid: u32) -> Option<u64> {
        self.others.read().get(&uid).map(|seen| seen.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_told_apart_and_are_not_too_many() {
        let seen = LastSeen::new();
        assert_eq!((seen.anybody(), seen.other(7)), (0, None));
        seen.note(seen.own);
        assert!(seen.anybody() > 0 && seen.other(seen.own).is_none());
        seen.others.write().insert(1_000_000, AtomicU64::new(1));
        for uid in 1..=2 * USERS_MAX as u32 {
            seen.note(1_000_000 + uid);
            assert!(seen.other(1_000_000 + uid).is_some_and(|at| at > 0));
        }
        assert_eq!(seen.others.read().len(), USERS_MAX);
        assert_eq!(seen.other(1_000_000), None, "who asked longest ago goes first");
    }
}
