//! The last event of each of many things.
//!
//! Why not a map: of a million things that has 36 MB, and while it grows half of that more; this has 18.

use std::collections::HashMap;

use crate::numbers::G;

/// New ones are sorted in with so many others.
const UNSORTED_MAX: usize = 1 << 16;

/// See the module. A thing is known by a hash.
#[derive(Default)]
pub(super) struct Lasts {
    sorted: Vec<(u64, G)>,
    /// Others, not many.
    new: HashMap<u64, G>,
}

impl Lasts {
    /// The last event of a thing.
    pub fn get(&self, thing: u64) -> Option<G> {
        let of_old = || self.place(thing).map(|place| self.sorted[place].1);
        self.new.get(&thing).copied().or_else(of_old)
    }

    /// Notes the last event of a thing; gives the one that was noted before.
    pub fn note(&mut self, thing: u64, last: G) -> Option<G> {
        if let Some(place) = self.place(thing) {
            return Some(std::mem::replace(&mut self.sorted[place].1, last));
        }
        let before = self.new.insert(thing, last);
        if self.new.len() >= UNSORTED_MAX {
            self.sort_in();
        }
        before
    }

    fn place(&self, thing: u64) -> Option<usize> {
        self.sorted.binary_search_by_key(&thing, |(thing, _)| *thing).ok()
    }

    /// Merges from the end on, so that nothing is copied elsewhere.
    fn sort_in(&mut self) {
        let mut new: Vec<(u64, G)> = self.new.drain().collect();
        new.sort_unstable();
        let mut old = self.sorted.len();
        let mut place = old + new.len();
        self.sorted.reserve_exact(new.len());
        self.sorted.resize(place, (0, G(0)));
        while let Some(next) = new.last().copied() {
            place -= 1;
            if old > 0 && self.sorted[old - 1] > next {
                old -= 1;
                self.sorted[place] = self.sorted[old];
            } else {
                self.sorted[place] = next;
                new.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_has_the_event_that_was_noted_last() {
        let (mut lasts, mut known) = (Lasts::default(), HashMap::new());
        // Numbers all over, each of them twice and more.
        let things = (0..3 * UNSORTED_MAX as u64).map(|nth| (nth * nth) % 199_999);
        for (nth, thing) in things.map(|nth| nth.wrapping_mul(0x9e37_79b9_7f4a_7c15)).enumerate() {
            let g = G(nth as u64 + 1);
            assert_eq!(lasts.note(thing, g), known.insert(thing, g));
        }
        assert!(lasts.sorted.is_sorted() && lasts.sorted.len() >= UNSORTED_MAX);
        assert!(known.iter().all(|(thing, g)| lasts.get(*thing) == Some(*g)));
        assert_eq!((lasts.get(1), lasts.sorted.len() + lasts.new.len()), (None, known.len()));
    }
}
