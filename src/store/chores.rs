//! What the daemon's chores need to find and to remember.
//!
//! What must stay true: a follow-up is noted in the transaction that makes it, so that there is one;
//! of all daemons of a store at most one leads at a time, and each new leader has a higher number.
//! Deliberately not here: what is done about what is found.

use crate::names::{AgentName, RecordId, StateName};
use crate::numbers::{G, Ino, LeaderFence, LeaseTime, UnixNanos, WorkspaceKey};

use super::{Record, Result, Visit};

/// What can be asked for the chores.
pub trait ReadChores {
    /// Whether somebody's record goes on where this one ended.
    fn is_followed_up(
        &self,
        workspace: WorkspaceKey,
        previous: &RecordId,
        agent: &AgentName,
    ) -> Result<bool>;
    /// Records of a state to which nothing has happened after the event `last`, by key.
    fn idle(
        &self,
        workspace: WorkspaceKey,
        state: &StateName,
        last: G,
        visit: Visit<'_, Record>,
    ) -> Result<()>;
    /// Drafts that nobody has written to since `at`.
    fn old_drafts(&self, at: UnixNanos, visit: Visit<'_, Ino>) -> Result<()>;
}

/// The operations that the chores need.
pub trait TxnChores {
    /// Notes that a record of `agent` goes on where `previous` ended.
    fn put_follow_up(
        &mut self,
        workspace: WorkspaceKey,
        previous: &RecordId,
        agent: &AgentName,
    ) -> Result<()>;
    /// Takes or renews the lead until `until`; `None` while somebody else leads. The number is
    /// another one, and higher, whenever the leader is another one.
    /// An engine that one process at a time can have open is opened without a leader: whoever led
    /// had it open, and is gone.
    fn lead(
        &mut self,
        holder: &str,
        now: LeaseTime,
        until: LeaseTime,
    ) -> Result<Option<LeaderFence>>;
    /// Ends the lead of `holder`, if it leads.
    fn resign(&mut self, holder: &str) -> Result<()>;
}
