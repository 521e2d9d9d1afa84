//! What a kind is made of: states and their directories, transitions, rights, the order of work, commands and chores.
//!
//! What must stay true: these are known to make sense (`load` has seen to that), and each question about them is
//! answered here and nowhere else. Deliberately not here: texts of definitions, and what a record's content must be.

pub(super) mod chores;
pub(super) mod commands;
pub(super) mod order;
pub(super) mod pattern;
pub(super) mod place;
pub(super) mod rights;
pub(super) mod role;
pub(super) mod state;
pub(super) mod transition;

#[cfg(test)]
mod transition_test;
