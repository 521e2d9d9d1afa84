//! What a kernel knows of a tree, and how it is made to forget.
//!
//! What must stay true: no notice leaves from a request's own thread while it could wait for a lock.

pub(super) mod absent;
pub(super) mod gate;
pub(super) mod invalidation;
pub(super) mod line;
mod lookups;
pub(super) mod notifier;
mod stale;
