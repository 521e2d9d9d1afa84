//! Saving: every way in which programs write a file is one validated save, or refused as one.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod bad_input;
mod cleanups;
mod drafts;
mod editors;
mod ends;
mod family;
mod flagged;
mod git;
mod kept;
mod locked;
mod policy;
mod programs;
mod readers;
mod shells;
mod sizes;
mod stale;
mod traces;
mod way;
