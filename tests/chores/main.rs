//! The coordinator's chores: what the daemon does by itself where the configuration says so.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod assign;
mod cost;
mod handoff;
mod rounds;
mod waiting;

use harness::{Fixture, Setup};

/// A workspace with these chores and lanes for bob and ann.
#[track_caller]
fn with_chores(chores: &str, setup: Setup) -> Fixture {
    let layout =
        format!("workspaces:\n  - path: work\n    kind: task\n    chores: {{ {chores} }}\n");
    let fixture = setup.layout(&layout).start();
    fixture.sh("mkdir -p work/inbox work/{assigned,done}/{bob,ann}").success();
    fixture
}

/// The names in a directory of the workspace, in order.
#[track_caller]
fn names(fixture: &Fixture, dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(fixture.work().join(dir)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
