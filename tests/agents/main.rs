//! Agents: whoever works through an agent's mount is that agent, and does what its role may do.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod clock;
mod ended;
mod expiry;
mod forging;
mod guide;
mod history;
mod hold;
mod hostile;
mod identity;
mod late;
mod leases;
mod linear;
mod making;
mod owner;
mod parked;
mod random;
mod random_model;
mod random_ops;
mod rights;
mod root;
mod stuck;
mod team;
mod unread;
mod users;
