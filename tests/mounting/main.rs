//! Mounting: a mount answers when the command returns, and nothing is left when it ends.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod again;
mod below;
mod dead;
mod end;
mod exec;
mod in_front;
mod in_use;
mod moved;
mod nested;
mod options;
mod plain_user;
mod ready;
mod refused;
mod removed;
mod standing;
