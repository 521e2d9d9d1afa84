//! Which inodes a kernel holds, and by how many lookups.
//!
//! Numbers of inodes are given one after the other, so that a kernel that has listed a large directory
//! holds whole runs of them: they are counted in pages, at some 6 bytes an inode. In a map of single
//! inodes a million of them took 36 MB, and half as much again while it grew.

use std::collections::HashMap;

use crate::ids::Ino;

/// Inodes of a page.
const PAGE: u64 = 32;

/// Set beside the count of an inode that the kernel itself changed.
const CHANGED: u32 = 1 << 31;

/// The highest count.
const FULL: u32 = CHANGED - 1;

/// Counts of lookups by inode.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    pages: HashMap<u64, Box<[u32; PAGE as usize]>>,
}

impl Lookups {
    /// One more of an inode. What cannot be counted any more is held for good, which is only a notice
    /// too many.
    pub fn add(&mut self, ino: Ino) {
        let (page, at) = place(ino);
        let count = &mut self.pages.entry(page).or_default()[at];
        *count += u32::from(*count & FULL != FULL);
    }

    /// The kernel changed an inode.
    pub fn note_changed(&mut self, ino: Ino) {
        let (page, at) = place(ino);
        self.pages.entry(page).or_default()[at] |= CHANGED;
    }

    /// All inodes that are held.
    pub fn all(&self) -> impl Iterator<Item = Ino> {
        self.pages.iter().flat_map(|(page, counts)| {
            let held = counts.iter().zip(page * PAGE..).filter(|(count, _)| **count & FULL != 0);
            held.map(|(_, ino)| Ino(ino))
        })
    }

    /// Whether the kernel changed an inode since it holds it.
    pub fn is_changed(&self, ino: Ino) -> bool {
        let (page, at) = place(ino);
        self.pages.get(&page).is_some_and(|page| page[at] & CHANGED != 0)
    }

    /// So many less.
    pub fn remove(&mut self, ino: Ino, lookups: u64) {
        let (number, at) = place(ino);
        let Some(page) = self.pages.get_mut(&number) else { return };
        let count = page[at] & FULL;
        if count == FULL {
            return;
        }
        let left = count.saturating_sub(u32::try_from(lookups).unwrap_or(u32::MAX));
        page[at] = if left == 0 { 0 } else { page[at] & CHANGED | left };
        if left == 0 && page.iter().all(|count| *count == 0) {
            self.pages.remove(&number);
        }
    }

    /// Whether an inode is held.
    pub fn contains(&self, ino: Ino) -> bool {
        let (page, at) = place(ino);
        self.pages.get(&page).is_some_and(|page| page[at] & FULL > 0)
    }
}

fn place(ino: Ino) -> (u64, usize) {
    (ino.0 / PAGE, (ino.0 % PAGE) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_is_held_until_all_its_lookups_are_forgotten() {
        let mut lookups = Lookups::default();
        for ino in [1, 2, 31, 32, u64::MAX] {
            lookups.add(Ino(ino));
            lookups.add(Ino(ino));
        }
        lookups.remove(Ino(2), 1);
        lookups.remove(Ino(31), 2);
        lookups.remove(Ino(32), 7);
        lookups.remove(Ino(500), 1);
        let held = [1, 2, 31, 32, 33, 500, u64::MAX].map(|ino| lookups.contains(Ino(ino)));
        assert_eq!(held, [true, true, false, false, false, false, true]);
    }

    #[test]
    fn what_is_forgotten_takes_no_room() {
        let mut lookups = Lookups::default();
        (0..10_000).for_each(|ino| lookups.add(Ino(ino)));
        assert_eq!(lookups.pages.len(), 10_000_usize.div_ceil(PAGE as usize));
        (0..10_000).for_each(|ino| lookups.remove(Ino(ino), 1));
        assert!(lookups.pages.is_empty());
    }

    #[test]
    fn a_change_is_remembered_as_long_as_the_inode_is_held() {
        let mut lookups = Lookups::default();
        lookups.add(Ino(3));
        lookups.note_changed(Ino(3));
        lookups.add(Ino(3));
        lookups.remove(Ino(3), 1);
        assert!(lookups.contains(Ino(3)) && lookups.is_changed(Ino(3)));
        assert!(!lookups.contains(Ino(4)) && !lookups.is_changed(Ino(4)));
        lookups.remove(Ino(3), 1);
        assert!(!lookups.contains(Ino(3)) && !lookups.is_changed(Ino(3)));
        assert!(lookups.pages.is_empty());
    }

    #[test]
    fn a_count_that_is_full_stays() {
        let mut lookups = Lookups::default();
        lookups.add(Ino(3));
        lookups.pages.get_mut(&0).unwrap()[3] = FULL;
        lookups.add(Ino(3));
        lookups.remove(Ino(3), u64::MAX);
        assert!(lookups.contains(Ino(3)));
    }
}
