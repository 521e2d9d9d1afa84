//! Names and what they stand for: looking them up, listing them, their attributes, and the changes of them, which
//! become commands of the engine.
//!
//! What must stay true: what one reply says comes from one snapshot; no rule is decided here. Deliberately not here:
//! names that are not stored (`computed`, `ready`), and what is read and written (`handles`, `saves`).

pub(super) mod attr;
pub(super) mod change;
pub(super) mod cleanups;
pub(super) mod cursor;
pub(super) mod ghosts;
pub(super) mod kept_listing;
mod listing;
mod lookup;
pub(super) mod set_attr;
mod statfs;
