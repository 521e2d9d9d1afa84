//! The write-ahead log: how it is written, moved into the main file, and kept from running out of room.

pub(super) mod checkpoint;
pub(super) mod gather;
pub(super) mod index;
pub(super) mod read_mark;
pub(super) mod room;

/// A page in the log, with its header.
const FRAME_BYTES: u64 = 4096 + 24;
