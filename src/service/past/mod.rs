//! The past: what the ledger says of a path, and what it was at a moment.
//!
//! What must stay true: nothing of the past is changed; what is restored is a change of now.

pub(super) mod log;
pub(super) mod pasts;
pub(super) mod places;
pub(super) mod rewind;
mod whence;
