//! Changes of several files as one: `.workfs/txn`, `.workfs/commit` and `workfs txn`.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod conflicts;
mod inside;
mod killed;
mod mounts;
mod random;
mod rights;
mod steps;
mod whole;
