//! What was done at the desk since the process began, counted for whoever watches over it.
//!
//! What must stay true: no count falls, and counting costs a lock for each transaction, not for each change. Deliberately
//! not here: how it is shown, and what the store itself knows.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::ledger::EventName;
use crate::numbers::Times;
use crate::refusal::Rule;

/// How a change ended: its operation, and the rule that said no.
pub(super) type Outcome = (&'static str, Option<Rule>);

/// The counts of one process.
#[derive(Default)]
pub(in crate::engine) struct Tally {
    counts: Mutex<Counts>,
    /// How long transactions took that were committed, from their begin to their end on the disk.
    commits: Times,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Counts {
    /// Changes by operation: how many were made, and how many a rule refused.
    pub changes: BTreeMap<&'static str, Outcomes>,
    /// Refusals by the rule's code, before the writer or there.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Events that were written, by name.
    pub events: BTreeMap<EventName, u64>,
    /// Transactions that the store failed.
    pub failed: u64,
}

/// See [`Counts::changes`].
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Outcomes {
    /// They were made.
    pub made: u64,
    /// A rule said no.
    pub refused: u64,
}

impl Tally {
    /// A transaction was committed, and the ledger says this of it.
    pub fn note(&self, outcomes: &[Outcome], happened: &[EventName], took: Duration) {
        let counts = &mut *self.counts.lock();
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
        for name in happened {
            // No copy of a name that is known.
            match counts.events.get_mut(name) {
                Some(count) => *count += 1,
                None => _ = counts.events.insert(name.clone(), 1),
            }
        }
        self.commits.note(took);
    }

    /// The store failed one.
    pub fn note_failed(&self) {
        self.counts.lock().failed += 1;
    }

    /// How long those took that were committed.
    pub fn commits(&self) -> &Times {
        &self.commits
    }

    /// As of now.
    pub fn counts(&self) -> Counts {
        self.counts.lock().clone()
    }
}
