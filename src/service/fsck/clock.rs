//! Where the wall clock was set back, as far as the times of events show it.
//!
//! What comes after that may have an earlier time than what was before it.

use crate::numbers::{G, UnixNanos};

/// See the module.
#[derive(Default)]
pub(super) struct SetBacks {
    last: Option<UnixNanos>,
    /// The first event after each, and its time; only those that none after them goes behind, so that both rise.
    all: Vec<(G, UnixNanos)>,
}

impl SetBacks {
    /// The next event has this time.
    pub fn note(&mut self, g: G, at: UnixNanos) {
        if self.last.replace(at).is_some_and(|last| at < last) {
            while self.all.last().is_some_and(|(_, before)| *before >= at) {
                self.all.pop();
            }
            self.all.push((g, at));
        }
    }

    /// Whether after event `g` there was a time that is not after `at` once more.
    pub fn is_any_since(&self, g: G, at: UnixNanos) -> bool {
        // The first one after it has the earliest time of those after it.
        let first = self.all.partition_point(|(back, _)| *back <= g);
        self.all.get(first).is_some_and(|(_, back)| *back <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_known_to_have_come_again() {
        let times = [10, 20, 20, 15, 30, 12, 18, 40];
        let mut backs = SetBacks::default();
        let all = || (1..).map(G).zip(times.map(UnixNanos));
        all().for_each(|(g, at)| backs.note(g, at));
        for (g, at) in all() {
            let comes_again = |other: &(G, UnixNanos)| other.0 > g && other.1 < at;
            assert_eq!(
                backs.is_any_since(g, at),
                all().take(times.len()).any(|o| comes_again(&o)),
                "{g}"
            );
        }
        assert_eq!(backs.all.len(), 1, "the second one went behind the first");
    }
}
