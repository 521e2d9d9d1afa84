//! The order of work as rows: what each record's turn depends on, and who waits for whom.
//!
//! What must stay true: a record's [`Readiness`] lies in its own row, so that a claim pays for it
//! with one page of one index; an edge stands once, whoever of its two ends declares it.
//! Deliberately not here: when a record is ready (the engine decides that, and writes it here).

use super::{Record, Result, Visit};
use crate::names::RecordId;
use crate::numbers::{RecordKey, UnixNanos, WorkspaceKey};

/// When a record's turn comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Not by itself: something must happen first.
    #[default]
    Waits,
    /// At this time, if nothing else happens.
    At(UnixNanos),
    /// Now: it is ready.
    Now,
}

/// How a record stands in the order of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Those that wait for it need wait no longer.
    pub done: bool,
    /// Its content allows a claim.
    pub fit: bool,
    /// How many that must be done first are not.
    pub open: u64,
    /// The least comes first.
    pub priority: i64,
    /// Among equals the oldest comes first.
    pub since: UnixNanos,
    /// From when on.
    pub not_before: Option<UnixNanos>,
    /// When its turn comes.
    pub when: When,
}

/// A place in the order of what is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderKey {
    /// As in [`Readiness`].
    pub priority: i64,
    /// As in [`Readiness`].
    pub since: UnixNanos,
    /// Among equals the first made comes first.
    pub record: RecordKey,
}

impl Record {
    /// Its place in the order of what is ready.
    #[must_use]
    pub fn order_key(&self) -> OrderKey {
        let Readiness { priority, since, .. } = self.readiness;
        OrderKey { priority, since, record: self.key }
    }
}

/// Which of an edge's two records declares it: either, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The one that waits says that it does.
    pub dependant: bool,
    /// The one that is waited for says that it is.
    pub dependency: bool,
}

/// An end of an edge, seen from the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The other record's id. There need not be such a record.
    pub other: RecordId,
    /// Who declares it.
    pub sides: Sides,
}

/// What can be asked of the order of work.
pub trait ReadReady {
    /// Ready records of a workspace after `after`, the best first.
    fn ready(
        &self,
        workspace: WorkspaceKey,
        after: Option<OrderKey>,
        visit: Visit<'_, Record>,
    ) -> Result<()>;
    /// The earliest time at which a record becomes ready by itself.
    fn next_turn(&self) -> Result<Option<UnixNanos>>;
    /// Records whose time has come at `now`, the earliest first.
    fn due(&self, now: UnixNanos, visit: Visit<'_, Record>) -> Result<()>;
    /// Records that are ready, and whose time has not come at `now`.
    fn early(&self, now: UnixNanos, visit: Visit<'_, Record>) -> Result<()>;
    /// Who waits for this id, by id.
    fn dependants(&self, workspace: WorkspaceKey, id: &RecordId) -> Result<Vec<Edge>>;
    /// What this id waits for, by id.
    fn dependencies(&self, workspace: WorkspaceKey, id: &RecordId) -> Result<Vec<Edge>>;
    /// All edges of a workspace: what is waited for, and who waits.
    fn edges(&self, workspace: WorkspaceKey, visit: Visit<'_, (RecordId, RecordId)>) -> Result<()>;
    /// How many records that this id waits for are not done, or not there.
    fn open_dependencies(&self, workspace: WorkspaceKey, id: &RecordId) -> Result<u64>;
}

/// The operations that change the order of work, beside `update_record`.
pub trait TxnReady {
    /// Writes how a record stands; nothing else of its row changes.
    fn update_readiness(&mut self, record: RecordKey, readiness: &Readiness) -> Result<()>;
    /// Says who declares that `dependant` waits for `dependency`; nobody: the edge is gone.
    fn put_edge(
        &mut self,
        workspace: WorkspaceKey,
        dependency: &RecordId,
        dependant: &RecordId,
        sides: Sides,
    ) -> Result<()>;
}
