//! What a kernel must forget.

use crate::ids::Ino;

/// What the kernel must forget because it changed behind its back. Pages of a file need none: a
/// reader that sees a new size or modification time drops them, so that a change of content is
/// told as a change of attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// Cached attributes of an inode.
    Attr(Ino),
    /// An inode has another owner or group, or other ones of the bits set-user-id, set-group-id and sticky. What
    /// these allow the kernel sees by what it was told last, void or not, unless it asks for the name
    /// (`setattr_prepare`, `check_sticky` and `xattr_permission` in its `fs`).
    Rights(Ino),
    /// Names of a directory came or went: what its listings tell is to be asked for again, for a while.
    Restless(Ino),
    /// A name came: a kernel that was told that it is absent must ask again.
    Appeared {
        /// The directory.
        parent: Ino,
        /// The name.
        name: Vec<u8>,
    },
    /// A name in a directory vanished, or stands for something else.
    Entry {
        /// The directory.
        parent: Ino,
        /// The name.
        name: Vec<u8>,
        /// What the kernel may believe it to stand for; if it never heard of that, nothing is to do.
        child: Ino,
    },
}
