//! workfs: a team's work as plain files. See `docs/ARCHITECTURE.md`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cli;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod kind;
pub mod ledger;
pub mod limits;
pub mod names;
pub mod numbers;
pub mod record;
pub mod refusal;
pub mod service;
pub mod store;
pub mod tree;
pub mod units;
