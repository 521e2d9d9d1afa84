//! Of which inodes kernels must hear, and who knows already.
//!
//! A batch changes one inode many times, often by many mounts: each hears of it once. Deliberately not here: what they
//! hear (`hub`).

use std::collections::HashMap;

use workfs_mount::Invalidation;

use crate::engine::Origin;
use crate::numbers::Ino;

/// Inodes that a batch changed, and who did: where only one mount did, that one may know it already.
#[derive(Default)]
pub(super) struct Changed(HashMap<Ino, Option<Origin>>);

impl Changed {
    /// An inode was changed by this origin, which knows it; `None`: nobody knows it.
    pub(super) fn note(&mut self, ino: Ino, knows: Option<Origin>) {
        let known = self.0.entry(ino).or_insert(knows);
        if *known != knows {
            *known = None;
        }
    }

    pub(super) fn each(
        self,
        say: fn(Ino) -> Invalidation,
    ) -> impl Iterator<Item = (Option<Origin>, Invalidation)> {
        self.0.into_iter().map(move |(ino, knows)| (knows, say(ino)))
    }
}
