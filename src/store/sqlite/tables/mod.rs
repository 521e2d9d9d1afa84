//! The tables, and all SQL that asks and changes them.
//!
//! What must stay true: each statement finds its rows by a key, and a method of the store's traits stands once.

// The columns of what is read by row stand in `read`, as macros: SQL that names them follows.
#[macro_use]
mod read;

mod agents;
mod checks;
pub(super) mod chores;
pub(super) mod chunks;
mod columns;
mod files;
mod leases;
mod links;
mod migrations;
pub(super) mod nodes;
pub(super) mod places;
mod quotas;
mod ready;
pub(super) mod schema;
mod why;
mod write;

#[cfg(test)]
mod plans_test;
