//! The past: what the ledger says of a path, and what it was at a moment.
//!
//! What must stay true: nothing of the past is changed; what is restored is a change of now.

pub(super) mod log;
pub(super) mod pasts;
pub(super) mod places;
pub(super) mod rewind;

/// Events that are read from one snapshot: bounds how long it holds the log of the store.
pub(in crate::service) const PAGE: u64 = 512;
