//! What was done at the desk since the process began, counted for whoever watches over it.
//!
//! What must stay true: no count falls, and counting costs a lock for each transaction, not for each change. Deliberately
//! not here: how it is shown, and what the store itself knows.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::refusal::Rule;

/// How a change ended: its operation, and the rule that said no.
pub(super) type Outcome = (&'static str, Option<Rule>);

/// The counts of one process.
#[derive(Default)]
pub(super) struct Tally(Mutex<Counts>);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Changes by operation: how many were made, and how many a rule refused.
    pub changes: BTreeMap<&'static str, Outcomes>,
    /// Refusals by the rule's code, before the writer or there.
    pub refusals: BTreeMap<&'static str, u64>,
    /// How long transactions took that were committed, from their begin to their end on the disk.
    pub commits: Times,
    /// Transactions that the store failed.
    pub failed: u64,
}

/// See [`Counts::changes`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcomes {
    /// They were made.
    pub made: u64,
    /// A rule said no.
    pub refused: u64,
}

/// Durations, by how many were no longer than each of some bounds.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// How many were no longer than the bound of the same place in [`BOUNDS`](Self::BOUNDS), and longer than the one before.
    pub within: [u64; Times::BOUNDS.len()],
    /// All of them.
    pub count: u64,
    /// Their sum.
    pub sum: Duration,
}

impl Times {
    /// From what a commit takes without a flush to the deadline of a request.
    pub const BOUNDS: [Duration; 12] = [
        Duration::from_micros(50),
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2_500),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(100),
        Duration::from_millis(500),
        Duration::from_millis(2_000),
    ];

    fn note(&mut self, time: Duration) {
        if let Some(at) = Self::BOUNDS.iter().position(|bound| time <= *bound) {
            self.within[at] += 1;
        }
        self.count += 1;
        self.sum += time;
    }
}

impl Tally {
    /// A transaction was committed.
    pub fn note(&self, outcomes: &[Outcome], took: Duration) {
        let counts = &mut *self.0.lock();
        for (operation, rule) in outcomes {
            let of = counts.changes.entry(operation).or_default();
            match rule {
                None => of.made += 1,
                Some(rule) => {
                    of.refused += 1;
                    *counts.refusals.entry(rule.code()).or_default() += 1;
                }
            }
        }
        counts.commits.note(took);
    }

    /// The store failed one.
    pub fn note_failed(&self) {
        self.0.lock().failed += 1;
    }

    /// As of now.
    pub fn counts(&self) -> Counts {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_where_it_belongs() {
        let mut times = Times::default();
        for micros in [10, 50, 51, 1_000, 3_000_000] {
            times.note(Duration::from_micros(micros));
        }
        assert_eq!(times.within[..2], [2, 1]);
        assert_eq!(times.within[4], 1);
        assert_eq!(
            (times.within.iter().sum::<u64>(), times.count),
            (4, 5),
            "one was longer than all bounds"
        );
        assert_eq!(times.sum, Duration::from_micros(3_001_111));
    }
}
