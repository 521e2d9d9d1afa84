//! Plain files whose changes count: events, versions, checks, locks, quotas, watching.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod appends;
mod at;
mod beginnings;
mod checks;
mod events;
mod gc;
mod history;
mod inotify;
mod links;
mod listener;
mod locks;
mod many_versions;
mod moved;
mod new_files;
mod overtaken;
mod projects;
mod quotas;
mod renames;
mod restored;
mod watch;
mod watchers;
mod ways;
