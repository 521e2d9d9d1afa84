//! Holes of plain files whose pages kernels have filled: in these a mapping may have written what no request has
//! told of yet, and what asks for holes (`cp`, `tar -S`) must not pass over it.
//!
//! What must stay true: a page is written by a mapping only where a kernel has filled it, by a read that came here; no
//! more is kept for a file than a few ranges, which may say too much and never too little, for as long as a kernel knows
//! the file.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;

use crate::limits::{CHUNK_BYTES, FILLED_LOOKED_AT_MIN, FILLED_RANGES_MAX};
use crate::numbers::Ino;
use crate::store::Node;

/// Chunks of a file that were read, in order; no two ranges touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<Range<u32>>);

/// See the module.
#[derive(Default)]
pub(super) struct Filled(Mutex<Files>);

#[derive(Default)]
struct Files {
    read: HashMap<Ino, Ranges>,
    /// How many were left when it was looked at them last.
    left: usize,
}

impl Filled {
    /// A kernel reads so many bytes of a plain file at an offset, to fill pages; `knows` says of which files any kernel
    /// may have some.
    pub fn note(&self, node: &Node, (offset, size): (u64, usize), knows: impl Fn(Ino) -> bool) {
        let chunk = CHUNK_BYTES as u64;
        let end = node.size.min(offset.saturating_add(size as u64));
        if node.chunks >= node.size.div_ceil(chunk) || offset >= end {
            // It has no holes, or nothing of it is read.
            return;
        }
        // FILE_BYTES_MAX keeps them within 24 bits.
        self.add(node.ino, (offset / chunk) as u32..end.div_ceil(chunk) as u32, knows);
    }

    fn add(&self, ino: Ino, chunks: Range<u32>, knows: impl Fn(Ino) -> bool) {
        let Files { read, left } = &mut *self.0.lock();
        // So each is looked at as often as one is added, on average.
        if read.len() >= FILLED_LOOKED_AT_MIN.max(2 * *left) && !read.contains_key(&ino) {
            read.retain(|ino, _| knows(*ino));
            *left = read.len();
            read.shrink_to(2 * *left);
        }
        read.entry(ino).or_default().add(chunks);
    }

    /// What was read of a file.
    pub fn of(&self, ino: Ino) -> Ranges {
        self.0.lock().read.get(&ino).cloned().unwrap_or_default()
    }
}

impl Ranges {
    fn add(&mut self, new: Range<u32>) {
        let ranges = &mut self.0;
        let from = ranges.partition_point(|range| range.end < new.start);
        let to = ranges.partition_point(|range| range.start <= new.end);
        let touched = &ranges[from..to];
        let start = touched.first().map_or(new.start, |first| first.start.min(new.start));
        let end = touched.last().map_or(new.end, |last| last.end.max(new.end));
        ranges.splice(from..to, std::iter::once(start..end));
        if ranges.len() > FILLED_RANGES_MAX {
            // The two that are nearest to each other become one.
            let gap = |nth: &usize| ranges[nth + 1].start - ranges[*nth].end;
            let nearest = (0..ranges.len() - 1).min_by_key(gap).unwrap_or(0);
            let joined = ranges[nearest].start..ranges[nearest + 1].end;
            ranges.splice(nearest..nearest + 2, std::iter::once(joined));
        }
    }

    /// The part of a range that begins at `index`, or else the first one behind it.
    pub fn from(&self, index: u32) -> Option<Range<u32>> {
        let behind = self.0.partition_point(|range| range.end <= index);
        self.0.get(behind).map(|range| range.start.max(index)..range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one_and_of_too_many_the_nearest() {
        let mut ranges = Ranges::default();
        for at in [10, 2, 6, 30] {
            ranges.add(at..at + 2);
        }
        assert_eq!(ranges.0, [2..4, 6..8, 10..12, 30..32]);
        ranges.add(4..6);
        ranges.add(11..13);
        assert_eq!(ranges.0, [2..8, 10..13, 30..32]);
        let next = [0, 7, 8, 12, 31, 32].map(|index| ranges.from(index));
        assert_eq!(next, [Some(2..8), Some(7..8), Some(10..13), Some(12..13), Some(31..32), None]);
        let far = |nth: usize| 1000 * (nth as u32 + 1);
        (0..2 * FILLED_RANGES_MAX).for_each(|nth| ranges.add(far(nth)..far(nth) + 1));
        assert_eq!((ranges.0.len(), ranges.0[0].start), (FILLED_RANGES_MAX, 2));
        let has = |nth| ranges.from(far(nth)).is_some_and(|found| found.start == far(nth));
        assert!((0..2 * FILLED_RANGES_MAX).all(has), "it may say too much, and never too little");
        let last = far(2 * FILLED_RANGES_MAX - 1);
        assert_eq!(ranges.from(last - 500), Some(last..last + 1), "they were not the nearest");
    }

    #[test]
    fn what_no_kernel_knows_is_forgotten_and_all_are_not_looked_at_each_time() {
        let (filled, looks) = (Filled::default(), std::cell::Cell::new(0));
        let all = 10 * FILLED_LOOKED_AT_MIN as u64;
        let knows = |_| {
            looks.set(looks.get() + 1);
            true
        };
        (0..all).for_each(|ino| filled.add(Ino(ino), 0..1, knows));
        assert!((0..all).all(|ino| filled.of(Ino(ino)).from(0).is_some()));
        assert!(looks.get() <= 2 * all, "{}", looks.get());
        (all..3 * all).for_each(|ino| filled.add(Ino(ino), 0..1, |ino| ino.0 < 7));
        assert!(filled.of(Ino(6)).from(0).is_some() && filled.of(Ino(7)).from(0).is_none());
    }
}
