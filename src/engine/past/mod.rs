//! The past: what the ledger and the versions that are kept tell of a path at a moment.
//!
//! What must stay true: nothing of the past is changed here, and what lay at a path then is told only where
//! the ledger tells it: what was saved there before is not taken for what a directory above has brought there since.
//! Deliberately not here: how a version comes to be kept, and for how long (`plain_files`, `records`).

pub(super) mod event;
pub(super) mod names;
pub(super) mod then;
pub(super) mod versions;
pub(super) mod when;
pub(super) mod whence;
