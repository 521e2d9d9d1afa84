//! The care of a store: whether all is well, what may go, copies, and what another layout asks for.
//!
//! Deliberately not here: `fsck`, which judges the tables by themselves.

pub(super) mod anew;
pub(super) mod backup;
pub(super) mod doctor;
mod environment;
pub(super) mod gc;
pub(super) mod govern;
pub(super) mod misfits;
pub(super) mod misnamed;
pub(super) mod restore;
