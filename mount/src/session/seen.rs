//! When somebody asked for something through a mount, and which users did.
//!
//! What must stay true: noting it costs a few nanoseconds for the mount's own user, who asks most; no
//! more users are remembered than fit; who was seen at a moment that is past can be told later, also of who
//! was seen again since. Deliberately not here: what follows from it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

/// Other users of a mount that are remembered. A mount has few; of more those who asked last are.
const USERS_MAX: usize = 1024;

/// Whoever is seen again within this was there all the while, in nanoseconds.
const GAP_NS: u64 = 1_000_000_000;

/// How many times of being there are remembered. Whoever asks looks long before the fourth, if nothing holds him up.
const STAYS_MAX: usize = 4;

/// When somebody was there, from one sign to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stay {
    first: u64,
    /// 0 for never.
    last: u64,
}

/// When somebody was seen, in nanoseconds of one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// The last first; those that are none at the end.
    stays: [Stay; STAYS_MAX],
}

impl Presence {
    /// Somebody is seen now.
    pub fn note(&mut self, now: u64) {
        let latest = &mut self.stays[0];
        if latest.last != 0 && now <= latest.last.saturating_add(GAP_NS) {
            latest.last = latest.last.max(now);
        } else {
            self.stays.rotate_right(1);
            self.stays[0] = Stay { first: now, last: now };
        }
    }

    /// What somebody else has noted of the same.
    pub fn join(&mut self, other: &Presence) {
        let both = [self.stays, other.stays].concat();
        let mut both: Vec<_> = both.into_iter().filter(|stay| stay.last != 0).collect();
        both.sort_unstable_by_key(|stay| stay.first);
        *self = Presence::default();
        for stay in both {
            self.note(stay.first);
            self.stays[0].last = self.stays[0].last.max(stay.last);
        }
    }

    /// When last; 0 for never.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.stays[0].last
    }

    /// When last, of what was not later than `at`.
    #[must_use]
    pub fn last_by(&self, at: u64) -> Option<u64> {
        let known = self.stays.iter().filter(|stay| stay.last != 0);
        let mut before = known.filter(|stay| stay.first <= at);
        before.next().map(|stay| stay.last.min(at))
    }
}

/// When one user, or anybody, was seen.
#[derive(Debug, Default)]
struct Signs {
    /// The last sign, so that of those within a tick of the clock only the first costs more.
    last: AtomicU64,
    seen: Mutex<Presence>,
}

impl Signs {
    fn note(&self, now: u64) {
        if self.last() != now {
            let mut seen = self.seen.lock();
            seen.note(now);
            self.last.store(seen.last(), Ordering::Relaxed);
        }
    }

    fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    fn seen(&self) -> Presence {
        *self.seen.lock()
    }
}

/// When somebody asked for something through a mount.
#[derive(Debug)]
pub(crate) struct LastSeen {
    anybody: Signs,
    /// The user that the mount is served for.
    own: u32,
    others: RwLock<HashMap<u32, Signs>>,
}

impl LastSeen {
    /// Nobody was seen yet.
    pub(crate) fn new() -> LastSeen {
        // SAFETY: it only returns a number and cannot fail.
        let own = unsafe { libc::geteuid() };
        LastSeen { anybody: Signs::default(), own, others: RwLock::default() }
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
        self.anybody.note(now);
        if uid != self.own {
            self.note_other(uid, now);
        }
    }

    fn note_other(&self, uid: u32, now: u64) {
        if let Some(signs) = self.others.read().get(&uid) {
            signs.note(now);
            return;
        }
        let mut others = self.others.write();
        if others.len() >= USERS_MAX && !others.contains_key(&uid) {
            let longest_ago = others.iter().min_by_key(|(_, signs)| signs.last());
            if let Some(uid) = longest_ago.map(|(uid, _)| *uid) {
                others.remove(&uid);
            }
        }
        others.entry(uid).or_default().note(now);
    }

    /// When anybody was seen last, in nanoseconds of the monotonic clock; 0 for never.
    pub(crate) fn last(&self) -> u64 {
        self.anybody.last()
    }

    /// When anybody was seen.
    pub(crate) fn anybody(&self) -> Presence {
        self.anybody.seen()
    }

    /// When each user was seen who is not the one that the mount is served for.
    pub(crate) fn others(&self) -> Vec<(u32, Presence)> {
        self.others.read().iter().map(|(uid, signs)| (*uid, signs.seen())).collect()
    }

    /// When a user was seen who is not the one that the mount is served for.
    pub(crate) fn other(&self, uid: u32) -> Option<Presence> {
        self.others.read().get(&uid).map(Signs::seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn who_was_seen_by_a_moment_that_is_past_is_told_also_of_who_was_seen_since() {
        let mut seen = Presence::default();
        assert_eq!((seen.last(), seen.last_by(u64::MAX)), (0, None));
        // Without a pause from 10 to 14 s, then at 20 and 30 s.
        (20..=28).map(|half| half * S / 2).chain([20 * S, 30 * S]).for_each(|at| seen.note(at));
        // A thread that took the time and stood still.
        seen.note(12 * S);
        let by = |at| seen.last_by(at * S).map(|at| at / S);
        assert_eq!([9, 10, 12, 19].map(by), [None, Some(10), Some(12), Some(14)]);
        assert_eq!([20, 29, 99].map(by), [Some(20), Some(20), Some(30)]);
        assert_eq!(seen.last(), 30 * S);
    }

    #[test]
    fn what_two_have_noted_is_as_if_one_had() {
        let noted = |times: &[u64]| {
            let mut seen = Presence::default();
            times.iter().for_each(|at| seen.note(at * S));
            seen
        };
        let mut joined = noted(&[1, 2, 3, 10, 11, 30]);
        joined.join(&noted(&[4, 5, 10, 20, 50, 51]));
        assert_eq!(joined, noted(&[1, 2, 3, 4, 5, 10, 11, 20, 30, 50, 51]));
        joined.join(&Presence::default());
        assert_eq!(joined.last(), 51 * S);
    }

    #[test]
    fn others_are_told_apart_and_are_not_too_many() {
        let seen = LastSeen::new();
        assert_eq!((seen.last(), seen.other(7)), (0, None));
        seen.note(seen.own);
        assert!(seen.last() > 0 && seen.other(seen.own).is_none());
        assert_eq!(seen.anybody().last_by(u64::MAX), Some(seen.last()));
        seen.others.write().entry(1_000_000).or_default().note(1);
        for uid in 1..=2 * USERS_MAX as u32 {
            seen.note(1_000_000 + uid);
            assert!(seen.other(1_000_000 + uid).is_some_and(|seen| seen.last() > 0));
        }
        assert_eq!(seen.others.read().len(), USERS_MAX);
        assert_eq!(seen.other(1_000_000), None, "who asked longest ago goes first");
    }
}
