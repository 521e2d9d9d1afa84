//! Leases that are over although the store does not say so yet: on a full disk not even the end of
//! a lease can be written.
//!
//! What must stay true: whoever tells of leases, or lets somebody hold a record, asks here, too.
//! Deliberately not here: when a lease is over (the book's).

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::numbers::{Attempt, RecordKey};
use crate::store::{LeaseRow, Record};

/// See the module.
#[derive(Default)]
pub struct Ends(Mutex<BTreeMap<RecordKey, Attempt>>);

impl Ends {
    pub(super) fn add(&self, record: RecordKey, attempt: Attempt) {
        self.0.lock().insert(record, attempt);
    }

    pub(super) fn remove(&self, record: RecordKey) {
        self.0.lock().remove(&record);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    pub(super) fn records(&self) -> Vec<RecordKey> {
        self.0.lock().keys().copied().collect()
    }

    /// Whether this lease is one of them.
    #[must_use]
    pub fn has(&self, row: &LeaseRow) -> bool {
        self.0.lock().get(&row.record) == Some(&row.attempt)
    }

    /// What is told of a record whose lease is one of them; `None` of any other.
    #[must_use]
    pub fn told(&self, record: &Record) -> Option<&'static str> {
        let has = record.owner.is_some() && !record.is_lapsed();
        let has = has && self.0.lock().get(&record.key) == Some(&record.attempt);
        has.then_some("it goes back as soon as that is written, on a full disk when there is room")
    }
}
