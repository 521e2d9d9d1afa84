//! Files of which a kernel may hold old pages, until they are opened there.
//!
//! What must stay true: a pair of mount and file is noted for as long as that kernel may hold the
//! pages: until the file was opened there, and a moment more. The pages go when the thread that
//! opened it runs, and another thread may open and read before that. When there are many pairs,
//! those go of which their kernel knows nothing any more: removed files are never opened again.

use std::collections::HashMap;
use std::time::Instant;

use workfs_mount::MountId;

use crate::limits::{OLD_PAGES_GO_WITHIN, OLD_PAGES_LOOKED_AT_MIN};
use crate::numbers::Ino;

/// See the module.
#[derive(Default)]
pub(super) struct OldPages {
    /// Each with when it was opened first.
    pairs: HashMap<(MountId, Ino), Option<Instant>>,
    /// How many were left when they were looked at last.
    left: usize,
}

impl OldPages {
    /// Adds one; `knows` says of which inodes a mount's kernel may hold anything.
    pub fn add(&mut self, mount: MountId, ino: Ino, knows: impl Fn(MountId, Ino) -> bool) {
        self.pairs.insert((mount, ino), None);
        // So each is looked at as often as one is added, on average.
        if self.pairs.len() >= OLD_PAGES_LOOKED_AT_MIN.max(2 * self.left) {
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
        if now.duration_since(first) < OLD_PAGES_GO_WITHIN {
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
        let mut old = OldPages::default();
        let known = |_, ino: Ino| ino.0.is_multiple_of(1_000);
        for ino in 0..20_000 {
            old.add(MountId(1), Ino(ino), known);
            assert!(old.pairs.len() <= OLD_PAGES_LOOKED_AT_MIN, "{ino}");
        }
        let now = Instant::now();
        let mut take = |ino, at| old.take(MountId(1), Ino(ino), || at);
        for ino in (0..20_000).step_by(1_000) {
            assert!(take(ino, now), "{ino}");
            assert!(
                take(ino, now + OLD_PAGES_GO_WITHIN / 2),
                "{ino}: the first may not have run yet"
            );
            assert!(!take(ino, now + OLD_PAGES_GO_WITHIN), "{ino}");
        }
        let went = (0..20_000).step_by(1_000).map(|ino| (MountId(1), Ino(ino)));
        assert!(went.into_iter().all(|pair| !old.pairs.contains_key(&pair)), "it takes no room");
        // Of those that stay each is not looked at again for each that comes.
        let (all, asked) = (10 * OLD_PAGES_LOOKED_AT_MIN as u64, std::cell::Cell::new(0));
        for ino in 0..all {
            old.add(MountId(2), Ino(ino), |_, _| {
                asked.set(asked.get() + 1);
                true
            });
        }
        assert!(asked.get() <= 2 * all, "{}", asked.get());
    }
}
