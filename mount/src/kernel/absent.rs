//! Which names a kernel was told to be absent, so that it can be made to forget that when one comes.
//!
//! Names are known by their hashes: if two have the same, a kernel is told once too often.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::ids::Ino;

/// How long the kernel may remember that a name is absent.
pub(crate) const TTL: Duration = Duration::from_secs(600);

/// Names that are remembered in the time of one lifetime; what is over is asked for each time. At
/// most twice as many are held, of 16 bytes each.
const MAX: usize = 1 << 16;

/// Names that one kernel remembers to be absent.
#[derive(Debug)]
pub(crate) struct Absent {
    /// Whether the kernel can be made to forget them.
    is_allowed: bool,
    hasher: RandomState,
    /// Those since `turned`, and those of the time before: older ones the kernel has forgotten.
    now: HashSet<u64>,
    before: HashSet<u64>,
    turned: Instant,
}

impl Absent {
    /// None, and none may be.
    pub(crate) fn new() -> Absent {
        let (now, before) = (HashSet::new(), HashSet::new());
        let hasher = RandomState::new();
        Absent { is_allowed: false, hasher, now, before, turned: Instant::now() }
    }

    /// Whether the kernel can be made to forget absent names, and may therefore remember them.
    pub(crate) fn allow(&mut self, is_allowed: bool) {
        self.is_allowed = is_allowed;
    }

    /// The kernel is about to be told that a name is absent; whether it may remember that.
    pub(crate) fn note(&mut self, parent: Ino, name: &[u8]) -> bool {
        if !self.is_allowed {
            return false;
        }
        if self.turned.elapsed() >= TTL {
            self.before = std::mem::take(&mut self.now);
            self.turned = Instant::now();
        }
        let hash = self.hash(parent, name);
        if self.now.len() >= MAX {
            return self.now.contains(&hash);
        }
        self.now.insert(hash);
        true
    }

    /// Whether the kernel may remember that a name is absent. If so, it is about to forget all of
    /// them.
    pub(crate) fn take(&mut self, parent: Ino, name: &[u8]) -> bool {
        if self.now.is_empty() && self.before.is_empty() {
            return false;
        }
        let hash = self.hash(parent, name);
        let is_told = self.now.contains(&hash) || self.before.contains(&hash);
        if is_told {
            self.now.clear();
            self.before.clear();
        }
        is_told
    }

    fn hash(&self, parent: Ino, name: &[u8]) -> u64 {
        self.hasher.hash_one((parent, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_remembered_once_it_may_be_and_all_are_forgotten_at_once() {
        let mut absent = Absent::new();
        let dir = Ino(7);
        assert!(!absent.note(dir, b"name") && !absent.take(dir, b"name"));
        absent.allow(true);
        assert!(absent.note(dir, b"name") && absent.note(dir, b"other"));
        assert!(!absent.take(Ino(8), b"name"));
        assert!(absent.take(dir, b"name"));
        assert!(!absent.take(dir, b"name") && !absent.take(dir, b"other"));
    }

    #[test]
    fn no_more_are_remembered_than_fit() {
        let mut absent = Absent::new();
        absent.allow(true);
        for nth in 0..MAX {
            assert!(absent.note(Ino(7), nth.to_string().as_bytes()));
        }
        assert!(!absent.note(Ino(7), b"one more"));
        assert!(absent.note(Ino(7), b"0"));
    }
}
