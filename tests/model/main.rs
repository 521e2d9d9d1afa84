//! The program against a reference model, without a kernel: engine, store and tree are called as
//! the mount calls them, and a model in memory, written from the design, says what must come out.
//!
//! | module | |
//! |---|---|
//! | `harness` | a store, its engine and its tree, with clock and randomness under control |
//! | `client` | a process on a mount: paths, open files, answers as names of errnos |
//! | `text` | the texts that are written, and a reader of them that is not the program's |
//! | `lifecycle` | the task's lifecycle, written down a second time |
//! | `reference`, `renames`, `records`, `copies`, `opens` | the model: POSIX, records, open files |
//! | `world` | both side by side |
//! | `compare` | the whole tree against the model's; what must hold in the store |
//! | `ops`, `walk` | operations over a tiny alphabet, and random walks of them |
//! | `found` | what walks found |
//! | `apart`, `race` | what walks leave out; many threads at once |
//! | `behind` | what another mount has changed since a kernel asked |
//!
//! Deliberately not here: the kernel's caches, mounts, crashes, real processes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod apart;
mod behind;
mod client;
mod compare;
mod copies;
mod found;
mod harness;
mod lifecycle;
mod opens;
mod ops;
mod race;
mod records;
mod reference;
mod renames;
mod text;
mod walk;
mod world;
