//! What must happen outside after a commit: returned as data, performed by the audience.

use crate::names::FileName;
use crate::numbers::{G, Ino};

use super::Origin;

/// One consequence of a committed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An inode's attributes changed in a way that the caller's kernel may not expect.
    Attr(Ino),
    /// A plain file's content changed.
    Data(Ino),
    /// A name appeared, vanished, or stands for another inode.
    Name {
        /// The directory.
        parent: Ino,
        /// The name.
        name: FileName,
        /// Whether the caller's own kernel has to be told, too.
        also_origin: bool,
    },
    /// A new event.
    Event(G),
    /// A claim by copy took the name away from under its maker, who will unlink it next.
    Ghost {
        /// The directory of the old name.
        parent: Ino,
        /// The old name.
        name: FileName,
    },
    /// A record has a new version, made by this caller.
    Version {
        /// The record's file.
        ino: Ino,
        /// The version.
        version: crate::numbers::Version,
    },
}

/// Who performs effects: the mounts, the waiters, the readers of the event stream.
pub trait Audience: Send + Sync {
    /// Before the caller is answered: what must be true when its call returns. Must not block.
    fn before_reply(&self, effects: &[(Origin, Effect)]);
    /// After all callers of the batch were answered. Must not block.
    fn after_reply(&self, effects: &[(Origin, Effect)]);
    /// Whether an inode has open handles; if not, a nameless one is reclaimed.
    fn is_open(&self, ino: Ino) -> bool;
}
