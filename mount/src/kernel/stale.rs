//! What a kernel was told to forget and has been told nothing of since: to tell it once more would
//! change nothing.
//!
//! Where many mounts look on while others change one directory, nearly all notices are of this sort: who
//! heard that the directory's attributes are void, and has not asked for them, need not hear it at the
//! next change.
//!
//! What a listing tells, with attributes, counts by the time at which the kernel reads it, which is
//! after it was answered (`fuse_direntplus_link` in the kernel's `fs/fuse/readdir.c` asks for the
//! epoch). So until the same handle is asked for more, or closed, names may still come in; and if
//! an epoch began meanwhile, another one must follow. Until then such a name leads to the inode that has left
//! it, for whoever opens it; so these are remembered for a while, and another epoch follows in that time, also
//! where nobody reads the listing on. And a directory of which names came or went by other mounts is restless for
//! a while: what its listings tell counts for nothing until it is asked for.
//!
//! What must stay true: it is noted here *before* the kernel is told, and what an answer brings
//! back is noted before the answer leaves. An answer to what was asked before the notice finds a
//! kernel that takes it for old; so whichever of the two is noted first, at worst a notice too many
//! is sent. A kernel that does not have the inode yet cannot tell that: see `line`.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::ids::{Handle, Ino};

/// Inodes whose attributes are remembered to be void; from there on all are told once more.
const MAX: usize = 256;

/// How long an inode is remembered to have left a name that a listing may bring, and a directory to be restless:
/// far longer than it takes until the kernel has read an answer, and the next epoch begins.
const RECENT: Duration = Duration::from_secs(3);

/// What is not recent any more is looked for when there is so much more of it.
const RECENT_MANY: usize = 256;

/// Inodes of which something was so a moment ago.
#[derive(Debug, Default)]
struct Recent {
    since: HashMap<Ino, Instant>,
    /// Of how many of them those are forgotten that are not recent any more.
    most: usize,
}

impl Recent {
    fn note(&mut self, ino: Ino) {
        if self.since.len() >= self.most {
            self.since.retain(|_, since| since.elapsed() < RECENT);
            self.most = self.since.len() + RECENT_MANY;
        }
        self.since.insert(ino, Instant::now());
    }

    fn has(&self, ino: Ino) -> bool {
        self.since.get(&ino).is_some_and(|since| since.elapsed() < RECENT)
    }
}

/// What one kernel has forgotten.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    attributes: HashSet<Ino>,
    names: bool,
    /// Listings that the kernel may not have read to their end, and whether it was made to forget names
    /// meanwhile.
    listings: HashMap<Handle, bool>,
    /// Inodes that left a name while there were such listings.
    left: Recent,
    /// Directories of which names came or went by others.
    restless: Recent,
}

impl Stale {
    /// The kernel is about to be told an inode's attributes.
    pub fn told_attributes(&mut self, ino: Ino) {
        self.attributes.remove(&ino);
    }

    /// The kernel is about to be told what a name stands for, or that it is absent.
    pub fn told_name(&mut self) {
        self.names = false;
    }

    /// The kernel is about to forget an inode's attributes; whether it must be told to.
    pub fn forget_attributes(&mut self, ino: Ino) -> bool {
        if self.attributes.len() >= MAX {
            self.attributes.clear();
        }
        self.attributes.insert(ino)
    }

    /// The kernel is about to be told a part of a listing.
    pub fn told_listing(&mut self, handle: Handle) {
        self.names = false;
        self.listings.insert(handle, false);
    }

    /// The kernel has read what it was told of a listing; whether it must forget names once more.
    pub fn read_listing(&mut self, handle: Handle) -> bool {
        self.listings.remove(&handle).unwrap_or_default()
    }

    /// An inode has left a name; whether a listing may bring that still.
    pub fn leave(&mut self, ino: Ino) -> bool {
        if self.listings.is_empty() {
            return false;
        }
        self.left.note(ino);
        true
    }

    /// Whether a name that the kernel has of an inode may be one that this has left.
    pub fn has_left(&self, ino: Ino) -> bool {
        self.left.has(ino)
    }

    /// A name of this directory came or went by another mount, or by none.
    pub fn stir(&mut self, dir: Ino) {
        self.restless.note(dir);
    }

    /// Whether that was a moment ago.
    pub fn is_restless(&self, dir: Ino) -> bool {
        self.restless.has(dir)
    }

    /// The kernel is about to forget all names; whether it must be told to.
    pub fn forget_names(&mut self) -> bool {
        self.listings.values_mut().for_each(|forgets| *forgets = true);
        !std::mem::replace(&mut self.names, self.listings.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forgotten_is_told_again_only_when_the_kernel_heard_of_it_since() {
        let mut stale = Stale::default();
        assert!(stale.forget_attributes(Ino(2)) && !stale.forget_attributes(Ino(2)));
        assert!(stale.forget_attributes(Ino(3)), "of another inode nothing was said");
        stale.told_attributes(Ino(2));
        assert!(stale.forget_attributes(Ino(2)) && !stale.forget_attributes(Ino(3)));

        assert!(stale.forget_names() && !stale.forget_names());
        stale.told_attributes(Ino(2));
        assert!(!stale.forget_names(), "attributes are no names");
        stale.told_name();
        assert!(stale.forget_names());
    }

    #[test]
    fn names_of_a_listing_may_come_until_it_was_read() {
        let mut stale = Stale::default();
        stale.told_listing(Handle(7));
        assert!(stale.forget_names() && stale.forget_names());
        assert!(stale.read_listing(Handle(7)), "what came meanwhile must go");
        assert!(stale.forget_names() && !stale.forget_names());
        stale.told_listing(Handle(7));
        assert!(!stale.read_listing(Handle(7)) && !stale.read_listing(Handle(8)));
        assert!(stale.forget_names() && !stale.forget_names());
    }

    #[test]
    fn what_left_a_name_while_somebody_lists_is_remembered() {
        let mut stale = Stale::default();
        assert!(!stale.leave(Ino(2)) && !stale.has_left(Ino(2)), "no listing may bring the name");
        stale.told_listing(Handle(7));
        assert!(stale.leave(Ino(2)) && stale.has_left(Ino(2)) && !stale.has_left(Ino(3)));
        // Who opens what the listing brought may be on the way still.
        assert!(!stale.read_listing(Handle(7)) && stale.has_left(Ino(2)));
        stale.told_listing(Handle(7));
        assert!(!stale.is_restless(Ino(2)));
        stale.stir(Ino(2));
        assert!(stale.is_restless(Ino(2)) && !stale.is_restless(Ino(3)));
    }

    #[test]
    fn what_is_recent_is_remembered_however_many_there_are_and_then_forgotten() {
        let mut recent = Recent::default();
        (0..3 * RECENT_MANY as u64).for_each(|nth| recent.note(Ino(nth)));
        assert!(recent.has(Ino(0)));
        recent.since.values_mut().for_each(|since| *since -= RECENT);
        assert!(!recent.has(Ino(0)));
        (0..=RECENT_MANY as u64).for_each(|nth| recent.note(Ino(nth)));
        assert!(recent.since.len() <= 2 * RECENT_MANY, "{}", recent.since.len());
    }

    #[test]
    fn only_so_many_are_remembered_and_the_others_are_told_once_more() {
        let mut stale = Stale::default();
        for nth in 0..3 * MAX as u64 {
            assert!(stale.forget_attributes(Ino(nth)));
            assert!(stale.attributes.len() <= MAX);
        }
        assert!(stale.forget_attributes(Ino(0)));
    }
}
