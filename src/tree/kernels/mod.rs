//! What kernels remember that others change, and what they are told of it: which mounts hear of a commit (`hub`),
//! who watches through them (`touched`, `told`), and what is noted where a notice alone would not do.
//!
//! What must stay true: nothing here blocks the writer; what is noted is bounded; a kernel remembers only what it
//! is told of when it changes. Deliberately not here: the notices themselves (`mount/src/kernel/notifier`), and the
//! listings that kernels keep (`nodes/kept_listing`).

mod absent;
mod changed;
pub(super) mod hub;
mod moved_away;
mod old_pages;
mod parted;
mod settling;
pub(super) mod taken;
mod taken_in;
pub(super) mod told;
pub(super) mod touched;
