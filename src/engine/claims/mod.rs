//! When a record's turn comes, and who takes it: what is ready, who waits for that, and the claim itself.
//!
//! What must stay true: one predicate says what is ready, to whoever asks; two who take at once get different
//! records. Deliberately not here: how a record moves (`nodes/rename`, `records/record`), and how long its owner
//! may keep it (`lease`).

mod age;
pub(super) mod circle;
pub(super) mod line;
pub(super) mod links;
pub(super) mod outlook;
pub(super) mod ranks;
pub(super) mod ready;
pub(super) mod take;
