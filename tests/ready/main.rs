//! Ready: what can be claimed now, in which order, and who is told.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod chance;
mod circles;
mod claim;
mod cost;
mod desk;
mod dir;
mod ended;
mod next;
mod order;
mod passed_on;
mod wait;
