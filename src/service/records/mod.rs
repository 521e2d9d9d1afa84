//! What is done with records: taken, finished, kept; listed and shown.
//!
//! What must stay true: whatever changes here is the change that a file operation would make, by the same rules.
//! Deliberately not here: what somebody means by a name (`find`), and rules.

pub(super) mod claim;
pub(super) mod finish;
pub(super) mod heartbeat;
mod lane;
pub(super) mod list;
pub(super) mod ready;
pub(super) mod show;
