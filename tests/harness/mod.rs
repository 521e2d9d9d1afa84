//! What the tests on a real mount stand on: a store and mounts of each test's own, programs that
//! are run with a deadline, worker processes, and judges of files and of the ledger.
//!
//! What must stay true: a [`Fixture`] leaves no mount, no process and no file, also when its test
//! fails; nothing here sleeps, all waits are for an event and have a deadline; tests do not share
//! anything. Deliberately not here: what is tested.
//!
//! It is a module that each theme includes by its path, and no crate of its own: only an
//! integration test knows where Cargo has put the binary `workfs`.
#![allow(dead_code, unused_imports, reason = "each theme uses a part of it")]

mod beside;
mod desk;
mod disk;
mod fixture;
mod judge;
mod ledger;
mod posix;
mod proc;
mod prompt;
mod random;
mod run;
mod socket;
mod sweep;
mod task;
mod teardown;
mod tools;
mod wait;
mod worker;

pub use beside::over_and_over;
pub use desk::{Desk, SECOND, agent};
pub use disk::Space;
pub use fixture::{Fixture, Setup};
pub use judge::{Pile, lies, pile};
pub use ledger::{Event, Ledger};
pub use posix::{Errno, Mapped, close, rename_with, save, save_synced, set_soft_open_files};
pub use proc::{pid_alive, state_of, ticks_of};
pub use prompt::{Echo, prompt};
pub use random::Random;
pub use run::{Ran, Shell, run, run_within};
pub use socket::{ask_line, asked};
pub use task::{Task, number_of, whole};
pub use teardown::{cut_off, mounted_below, processes_of};
pub use tools::{is_ignored, left_out, long, needs, program, python, shared};
pub use wait::{DEADLINE, await_end, await_exit, send_signal, until_polled};
pub use worker::{Said, Work, Worker, Workers, work};
