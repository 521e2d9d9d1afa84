//! Files of which a kernel may hold old pages, until they are opened there.
//!
//! What must stay true: a pair is there for as long as that kernel may hold the pages: until it has been opened,
//! and a moment more, since the pages go when the thread that opened it runs, and another may open and read
//! before that. Those of which a kernel knows nothing any more go when there are many: removed files are never
//! opened again.

use std::collections::HashMap;
use std::time::Instant;

use workfs_mount::MountId;

use crate::limits::{STALE_LOOKED_AT_MIN, STALE_PAGES_GO_WITHIN};
use crate::numbers::Ino;

/// See the module.
#[derive(Default)]
pub(super) struct Stale {
    /// Each with when it was opened first.
    pairs: HashMap<(MountId, Ino), Option<Instant>>,
    /// How many were left when they were looked at last.
    left: usize,
}

impl Stale {
    /// Adds one; `knows` says of which inodes a mount's kernel may hold anything.
    pub fn add(&mut self, mount: MountId, ino: Ino, knows: impl Fn(MountId, Ino) -> bool) {
        self.pairs.insert((mount, ino), None);
        // So each is looked at as often as one is added, on average.
        if self.pairs.len() >= STALE_LOOKED_AT_MIN.max(2 * self.left) {
            self.pairs.retain(|(mount, ino), _| knows(*mount, *ino));
            self.left = self.pairs.len();
        }
    }

    /// Whether it is there, for who opens it now; it goes by that, soon.
    pub fn take(&mut self, mount: MountId, ino: Ino, now: impl FnOnce() -> Instant) -> bool {
        if self.pairs.is_empty() {
            return false;
        }
        let Some(opened) = self.pairs.get_mut(&(mount, ino)) else { return false };
        let now = now();
        let first = *opened.get_or_insert(now);
        if now.duration_since(first) < STALE_PAGES_GO_WITHIN {
            return true;
        }
        self.pairs.remove(&(mount, ino));
        false
    }

    pub fn remove_mount(&mut self, id: MountId) {
        self.pairs.retain(|(mount, _), _| *mount != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_kernel_knows_any_more_goes_and_the_rest_stays() {
        let mut stale = Stale::default();
        let known = |_, ino: Ino| ino.0.is_multiple_of(1_000);
        for ino in 0..20_000 {
            stale.add(MountId(1), Ino(ino), known);
            assert!(stale.pairs.len() <= STALE_LOOKED_AT_MIN, "{ino}");
        }
        let now = Instant::now();
        let mut take = |ino, at| stale.take(MountId(1), Ino(ino), || at);
        for ino in (0..20_000).step_by(1_000) {
            assert!(take(ino, now), "{ino}");
            assert!(
                take(ino, now + STALE_PAGES_GO_WITHIN / 2),
                "{ino}: the first may not have run yet"
            );
            assert!(!take(ino, now + STALE_PAGES_GO_WITHIN), "{ino}");
        }
        let went = (0..20_000).step_by(1_000).map(|ino| (MountId(1), Ino(ino)));
        assert!(went.into_iter().all(|pair| !stale.pairs.contains_key(&pair)), "it takes no room");
        // Of those that stay each is not looked at again for each that comes.
        let (all, asked) = (10 * STALE_LOOKED_AT_MIN as u64, std::cell::Cell::new(0));
        for ino in 0..all {
            stale.add(MountId(2), Ino(ino), |_, _| {
                asked.set(asked.get() + 1);
                true
            });
        }
        assert!(asked.get() <= 2 * all, "{}", asked.get());
    }
}
