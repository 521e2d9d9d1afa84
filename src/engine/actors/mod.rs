//! Who acts, and what they may do: a caller's name and role, what those allow by the kind, and what the bits of a
//! file allow its user.
//!
//! What must stay true: rights are asked here only, in the change's own turn, and no right depends on a
//! process id. Deliberately not here: how a refusal is told of (`change/refuse`), and what the kernel has
//! asked before.

pub(super) mod agents;
pub(super) mod context;
pub(super) mod modes;
pub(super) mod privileges;
pub(super) mod rights;
pub(super) mod users;
