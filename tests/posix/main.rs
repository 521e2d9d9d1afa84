//! POSIX at its limits and under load: what the public suites (`scripts/posix`) do not ask.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod cached;
mod crowded;
mod limits;
mod locks;
mod random;
