//! Faults around the daemon: a full disk, a store gone read-only, clients that stop or die.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod clients;
mod disk;
mod disk_commands;
mod disk_told;
mod length;
mod little_room;
mod locked;
mod log;
mod many_files;
mod read_only;
mod socket;
mod squatter;
