//! Who asks, and what they have seen: the caller of a request, the processes that it comes from, and which version
//! of a record these have read.
//!
//! What must stay true: mount and user decide; what `/proc` says of a process decides no right, and where it says
//! nothing, whoever asks must do without. Deliberately not here: what anybody may do (the engine's `actors`).

pub(super) mod caller;
pub(super) mod identity;
pub(super) mod inherited;
pub(super) mod lineage;
pub(super) mod seen;
