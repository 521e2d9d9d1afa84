//! workfs: a team's work as plain files. See `docs/ARCHITECTURE.md`.

pub mod limits;
pub mod names;
pub mod numbers;
pub mod refusal;
