//! Changes of names and nodes: making, linking, moving and removing them, and their attributes.
//!
//! What must stay true: of what no rule governs they do what POSIX says; where a rule does, the change of a name
//! is that of the record or of the draft (`records`), in the same turn. Deliberately not here: what files say.

mod as_draft;
pub(super) mod create;
mod exchange;
mod filling;
pub(super) mod lane;
pub(super) mod link;
mod names;
pub(super) mod remove;
pub(super) mod rename;
pub(super) mod setattr;
pub(super) mod while_named;
pub(super) mod xattr;
