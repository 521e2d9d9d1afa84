//! Holes of plain files whose pages kernels have filled: in these a mapping may have written what no request has
//! told of yet, and what asks for holes (`cp`, `tar -S`) must not pass over it.
//!
//! What must stay true: a page is written by a mapping only where a kernel has filled it, by a read that came here; no
//! more is kept for a file than a few ranges, which may say too much and never too little.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;

use crate::limits::{FILLED_FILES_MAX, FILLED_RANGES_MAX};
use crate::numbers::Ino;

/// See the module.
#[derive(Default)]
pub(super) struct Filled(Mutex<HashMap<Ino, Vec<Range<u32>>>>);

impl Filled {
    /// These chunks of a file were read, of which some may be missing; `knows` says of which files kernels have any
    /// pages.
    pub fn note(&self, ino: Ino, chunks: Range<u32>, knows: impl Fn(Ino) -> bool) {
        let files = &mut *self.0.lock();
        if files.len() >= FILLED_FILES_MAX && !files.contains_key(&ino) {
            files.retain(|ino, _| knows(*ino));
        }
        add(files.entry(ino).or_default(), chunks);
    }

    /// What was read of a file, in order.
    pub fn of(&self, ino: Ino) -> Vec<Range<u32>> {
        self.0.lock().get(&ino).cloned().unwrap_or_default()
    }
}

/// Adds a range to others that are in order and do not touch.
fn add(ranges: &mut Vec<Range<u32>>, new: Range<u32>) {
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

/// The first chunk that was read, at `index` or behind it.
pub(super) fn next_in(ranges: &[Range<u32>], index: u32) -> Option<u32> {
    let behind = ranges.partition_point(|range| range.end <= index);
    ranges.get(behind).map(|range| range.start.max(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one_and_of_too_many_the_nearest() {
        let mut ranges = Vec::new();
        for at in [10, 2, 6, 30] {
            add(&mut ranges, at..at + 2);
        }
        assert_eq!(ranges, [2..4, 6..8, 10..12, 30..32]);
        add(&mut ranges, 4..6);
        add(&mut ranges, 11..13);
        assert_eq!(ranges, [2..8, 10..13, 30..32]);
        let next = [0, 2, 7, 8, 12, 13, 31, 32].map(|index| next_in(&ranges, index));
        assert_eq!(next, [Some(2), Some(2), Some(7), Some(10), Some(12), Some(30), Some(31), None]);
        let far = |nth: usize| 1000 * (nth as u32 + 1);
        (0..2 * FILLED_RANGES_MAX).for_each(|nth| add(&mut ranges, far(nth)..far(nth) + 1));
        assert_eq!((ranges.len(), ranges[0].start), (FILLED_RANGES_MAX, 2));
        let all = |nth| next_in(&ranges, far(nth)) == Some(far(nth));
        assert!((0..2 * FILLED_RANGES_MAX).all(all), "it may say too much, and never too little");
        let last = far(2 * FILLED_RANGES_MAX - 1);
        assert_eq!(next_in(&ranges, last - 500), Some(last), "they were not the nearest");
    }
}
