//! The adapter against a real kernel: a small tree in memory, mounted in a temporary directory.

mod behind;
mod calls;
mod ends;
mod memory_tree;
mod place;
mod support;
