//! The command line: what it prints, how it ends, and what import, export, backup and restore keep.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod asks;
mod backup;
mod commands;
mod content;
mod corpus;
mod damage;
mod definitions;
mod doctor;
mod environment;
mod exits;
mod govern;
mod import;
mod interrupt;
mod noticed;
mod other_kind;
mod outside;
mod own_kind;
mod part;
mod paths;
mod printing;
mod readme;
mod trying;
mod why;

use std::fs::File;

use harness::Fixture;

/// What is stored of big files beside the tables is lost, as if it had not been on the disk when power failed. No
/// daemon has the store.
fn lose_big_files(fixture: &Fixture) {
    let beside = format!("{}-extents", fixture.store().display());
    // Its head survives.
    File::options().write(true).open(beside).unwrap().set_len(65_536).unwrap();
}
