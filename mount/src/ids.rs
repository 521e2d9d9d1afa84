//! The numbers by which a tree and a kernel mean the same: inodes, handles, mounts.

/// An inode number: the kernel's node id and `st_ino` at once. Never reused by a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ino(pub u64);

/// The root directory's inode, fixed by the FUSE protocol.
pub const ROOT: Ino = Ino(1);

/// An open file or directory, chosen by the tree at `open`, `create` and `opendir`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// One of the mounts of this process; stable while the mount lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MountId(pub u32);
