//! The daemon is killed, at random moments and at the worst ones, while eight processes work.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod flushes;
mod load;
mod making;
mod plain;
mod points;
mod truth;
