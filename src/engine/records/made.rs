//! What a command made of a record, as its maker is told.

use crate::engine::lease::Fence;
use crate::names::FileName;
use crate::numbers::{Ino, RecordKey, Version};
use crate::store::{Node, Record};

/// A version of a record that a command made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The record.
    pub record: RecordKey,
    /// Its version now.
    pub version: Version,
    /// The version that was moved as it was, where this is a move.
    pub moved: Option<Version>,
    /// Its file when the command ended.
    pub ino: Option<Ino>,
    /// The claim that it is under since.
    pub fence: Option<Fence>,
    /// The name that a claim by copy took away, which its maker will unlink next.
    pub left: Option<Left>,
}

/// A name that a claim by copy took away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The directory.
    pub parent: Ino,
    /// The name.
    pub name: FileName,
    /// What it stood for.
    pub node: Node,
}

impl Made {
    pub(in crate::engine) fn of(record: &Record) -> Self {
        let Record { key, version, .. } = *record;
        let (ino, fence) = (record.ino(), Fence::of(record));
        Made { record: key, version, moved: None, ino, fence, left: None }
    }
}
