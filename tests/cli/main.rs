//! The command line: what it prints, how it ends, and what import, export, backup and restore keep.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod asks;
mod backup;
mod commands;
mod corpus;
mod damage;
mod doctor;
mod exits;
mod govern;
mod import;
mod interrupt;
mod other_kind;
mod own_kind;
mod part;
mod paths;
mod printing;
mod readme;
