//! Leases: how long each owner keeps what it has.

use crate::names::AgentName;
use crate::numbers::{Attempt, LeaseTime, RecordKey};

use super::{Record, Result, Visit};

/// What was told of a lease since its owner was last heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseTold {
    /// Nothing.
    Nothing,
    /// That it will end soon.
    Warning,
    /// That it has ended: its kind asks for no more, and the owner goes on.
    End,
}

/// The lease of a record. There is one exactly as long as it runs; or, where its kind only tells of its
/// end, as long as its owner has the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRow {
    /// The record.
    pub record: RecordKey,
    /// The claim that it belongs to.
    pub attempt: Attempt,
    /// How long it runs from each sign of its owner's life, in nanoseconds.
    pub ttl_ns: u64,
    /// Until when. It may run longer: signs of life are written in batches.
    pub until: LeaseTime,
    /// What was told of it.
    pub told: LeaseTold,
}

impl LeaseRow {
    /// Whether it runs, as far as anybody was told.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.told != LeaseTold::End
    }
}

/// What can be asked of leases.
pub trait ReadLeases {
    /// The record with this key.
    fn record(&self, key: RecordKey) -> Result<Option<Record>>;
    /// The lease of a record.
    fn lease(&self, record: RecordKey) -> Result<Option<LeaseRow>>;
    /// All leases with their owners, by record.
    fn leases(&self, visit: Visit<'_, (LeaseRow, AgentName)>) -> Result<()>;
    /// Records whose lease is over and that could not go back yet.
    fn returns(&self) -> Result<Vec<RecordKey>>;
    /// What is in the way of a record, if it is one of those; empty if nobody looked yet.
    fn in_the_way(&self, record: RecordKey) -> Result<Option<String>>;
}

/// The operations that change leases.
pub trait TxnLeases {
    /// Makes or replaces a record's lease.
    fn put_record_lease(&mut self, lease: &LeaseRow) -> Result<()>;
    /// Ends a record's lease.
    fn delete_record_lease(&mut self, record: RecordKey) -> Result<()>;
    /// Notes that a record is to go back as soon as it can, and what is in its way.
    fn put_return(&mut self, record: RecordKey, why: &str) -> Result<()>;
    /// It went, or need not any more.
    fn delete_return(&mut self, record: RecordKey) -> Result<()>;
}
