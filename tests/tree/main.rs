//! The tree: outside governed directories workfs is a file system like any other.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod attributes;
mod beside;
mod big_files;
mod coherence;
mod computed;
mod content;
mod ended;
mod links;
mod listing;
mod metrics;
mod names;
mod opened;
mod programs;
mod silence;
