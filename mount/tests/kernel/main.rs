//! The adapter against a real kernel: a small tree in memory, mounted in a temporary directory.
//!
//! This process serves the mounts and uses them. If it is killed within a call, that call waits for
//! ever: `umount -f` the directory then.

#![allow(clippy::unwrap_used)]

mod behind;
mod calls;
mod ends;
mod long;
mod memory_tree;
mod place;
mod slow;
mod support;
