//! Claiming: `mv` into a lane makes one winner, whoever else tries and however.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod being_written;
mod claim;
mod copy;
mod copy_refused;
mod copy_rm;
mod lanes;
mod leaving;
mod moves;
mod race;
mod race_copy;
mod race_save;
