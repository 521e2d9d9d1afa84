//! The contract between a file tree and the kernel: what [`serve`](crate::serve) needs of a tree,
//! in this crate's own words, so that no type of the FUSE library leaves it.
//!
//! What must stay true: reads answer at once from committed state and may be called from several
//! threads; changes take a [`Reply`] that may be answered later, from any thread, exactly once.
//! Deliberately not here: paths (the kernel speaks of inodes and names), permissions by mode bits
//! (the kernel checks them wherever anybody but root comes in), and anything about tasks.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::errno::Errno;
use crate::ids::{Handle, Ino, MountId};
use crate::locks::Locks;
use crate::requests::poll::{PollReady, PollWake};
use crate::requests::reply::Reply;
use crate::requests::times::Requests;

/// Set in the numbers of threads that are counted in another name space: they tell the requests of one mount
/// apart, and are no thread's here.
pub const ELSEWHERE: u32 = 1 << 31;

/// The thread of this number ([`Caller::pid`]) as `/proc` here has it, if it is one of here.
#[must_use]
pub fn thread_here(pid: u32) -> Option<u32> {
    (pid != 0 && pid & ELSEWHERE == 0).then_some(pid)
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The mount the request came through.
    pub mount: MountId,
    /// The caller's file-system user id.
    pub uid: u32,
    /// The caller's file-system group id.
    pub gid: u32,
    /// The caller's thread id: in the daemon's name space, or with [`ELSEWHERE`] set; 0 where there is none, as for
    /// what the kernel does of itself. A label, never a right.
    pub pid: u32,
    /// The table of open files, where `read`, `write` and `flush` say it: tells who closes what it wrote
    /// from a child that has the descriptor, too. A `read` that does not fills a page for a mapping.
    pub files: Option<u64>,
    /// Of a `read`: its descriptor is one that never waits (`O_NONBLOCK`).
    pub nonblocking: bool,
}

/// What a request looks at.
#[derive(Clone, Copy, Debug)]
pub enum Look<'n> {
    /// An inode: its attributes, or to open it.
    At(Ino),
    /// What has this name in a directory.
    For(Ino, &'n OsStr),
    /// All that a directory has.
    Through(Ino),
}

/// What kind of thing an inode is. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeType {
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Named pipe.
    Fifo,
    /// Unix-domain socket.
    Socket,
    /// Character device.
    CharDevice,
    /// Block device.
    BlockDevice,
}

/// Nanoseconds since the Unix epoch, UTC; negative before 1970.
pub type UnixNanos = i64;

/// An inode's attributes, as `stat` shows them.
#[derive(Clone, Copy, Debug)]
pub struct Attr {
    /// Inode number.
    pub ino: Ino,
    /// Type.
    pub node_type: NodeType,
    /// Permission bits, with set-uid, set-gid and sticky (0o7777).
    pub mode: u32,
    /// Number of names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device node.
    pub rdev: u32,
    /// Bytes.
    pub size: u64,
    /// Space used, in units of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub atime_ns: UnixNanos,
    /// Last change of content.
    pub mtime_ns: UnixNanos,
    /// Last change of anything.
    pub ctime_ns: UnixNanos,
    /// Owner and permission bits are shown as they are, whatever `uid=`, `gid=` and `umask=` say.
    pub is_fixed: bool,
}

/// A name that was found (or made): attributes, and how long the kernel may keep both.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The attributes.
    pub attr: Attr,
    /// How long the attributes may be cached unless invalidated.
    pub ttl: Duration,
    /// How long the name may be.
    pub name_ttl: Duration,
}

impl Entry {
    /// Name and attributes may be cached for as long.
    #[must_use]
    pub fn new(attr: Attr, ttl: Duration) -> Entry {
        Entry { attr, ttl, name_ttl: ttl }
    }
}

/// How the kernel is to treat an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Every read and write is a request (record files, computed files).
    Direct,
    /// As `Direct`, and not seekable: a stream that grows.
    Stream,
    /// The page cache is used and dropped at `open`.
    Cached,
    /// The page cache is used and kept from the last `open`.
    KeepCache,
    /// As `KeepCache`, and the tree need not hear that a descriptor is closed (`flush`).
    KeepCacheUnflushed,
}

/// An opened file or directory.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// The handle that later requests carry.
    pub handle: Handle,
    /// Caching mode.
    pub caching: Caching,
}

/// Attributes to set; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// New permission bits.
    pub mode: Option<u32>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New size in bytes.
    pub size: Option<u64>,
    /// New access time.
    pub atime: Option<TimeOrNow>,
    /// New modification time.
    pub mtime: Option<TimeOrNow>,
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOrNow {
    /// This time.
    At(UnixNanos),
    /// The daemon's clock.
    Now,
}

/// What `rename` was asked beyond the plain form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// Replace what is there.
    Replace,
    /// Fail with EEXIST if the name is taken.
    NoReplace,
    /// Swap the two.
    Exchange,
}

/// What a new node is to be.
#[derive(Clone, Debug)]
pub enum NewNode {
    /// A directory (mkdir).
    Directory,
    /// A regular file (mknod; `create` has its own call).
    File,
    /// A symbolic link to this target.
    Symlink(Vec<u8>),
    /// A pipe, socket or device node with this device number.
    Special(NodeType, u32),
}

/// The flags of `open(2)` that a tree must know.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenFlags {
    /// Reads are allowed.
    pub read: bool,
    /// Writes are allowed.
    pub write: bool,
    /// O_TRUNC: content is dropped as part of this open.
    pub truncate: bool,
    /// O_APPEND: every write goes to the end.
    pub append: bool,
    /// O_EXCL, on `create`.
    pub exclusive: bool,
    /// The kernel opens the file to run it, and holds it open for as long as it runs.
    pub execute: bool,
}

impl OpenFlags {
    /// Whether whoever opens the file so may change it.
    #[must_use]
    pub fn changes(self) -> bool {
        self.write || self.truncate
    }
}

/// A directory entry to list.
#[derive(Clone, Debug)]
pub struct DirEntry {
    /// Name, without `/`.
    pub name: Vec<u8>,
    /// Attributes of what it names.
    pub attr: Attr,
    /// Where a listing goes on after this entry: greater than 2, stable while the entry lives.
    pub cookie: u64,
    /// As [`Entry::ttl`].
    pub ttl: Duration,
}

/// What of a listing's entries is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Name, inode and type.
    Names,
    /// All attributes.
    Attributes,
}

/// Sizes of the file system, for `statfs`.
#[derive(Clone, Copy, Debug)]
pub struct FsStat {
    /// Unit of the block counts, in bytes.
    pub block_size: u32,
    /// All blocks.
    pub blocks: u64,
    /// Free blocks.
    pub blocks_free: u64,
    /// Blocks free to unprivileged users.
    pub blocks_available: u64,
    /// All inodes.
    pub files: u64,
    /// Free inodes.
    pub files_free: u64,
    /// Longest name, in bytes.
    pub name_max: u32,
}

/// How `setxattr` treats an attribute that is or is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XattrMode {
    /// Make or replace.
    Set,
    /// EEXIST if it is there.
    Create,
    /// ENODATA if it is not.
    Replace,
}

/// `lseek` for holes and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekHole {
    /// SEEK_DATA.
    Data,
    /// SEEK_HOLE.
    Hole,
}

/// A file tree that can be served to the kernel.
///
/// Reads return; changes get a [`Reply`]. A tree must never touch the mount that serves it, and
/// never send an invalidation of an entry from inside a call (see [`Invalidation`](crate::Invalidation)).
///
/// The kernel leaves it to the tree to clear the set-user-id bit (and the set-group-id bit of what
/// a group may run) when a file is written, truncated or given another owner: that is the price of
/// HANDLE_KILLPRIV_V2, without which each write would ask for an extended attribute first.
pub trait Tree: Send + Sync + 'static {
    /// Finds `name` in directory `parent`. `None`: there is none, and the kernel may remember that
    /// until it is told ([`Appeared`](crate::Invalidation::Appeared)); ENOENT: it is to ask again.
    fn lookup(&self, caller: &Caller, parent: Ino, name: &OsStr) -> Result<Option<Entry>, Errno>;
    /// Attributes of an inode; with a handle, as that handle sees it (staged size).
    fn getattr(&self, caller: &Caller, ino: Ino, handle: Option<Handle>) -> Result<Entry, Errno>;
    /// The target of a symbolic link.
    fn readlink(&self, caller: &Caller, ino: Ino) -> Result<Vec<u8>, Errno>;
    /// Opens a file. The reply may come later (a truncating open of a plain file is a change).
    fn open(&self, caller: &Caller, ino: Ino, flags: OpenFlags, reply: Reply<Opened>);
    /// Reads up to `size` bytes at `offset`; fewer only at the end.
    fn read(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        offset: u64,
        size: u32,
        reply: Reply<Vec<u8>>,
    );
    /// What a handle can do without waiting. Where `wake` is given and it can do nothing now, it
    /// is kept, and called when that may have changed; a later one of the handle replaces it.
    fn poll(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        wake: Option<PollWake>,
    ) -> Result<PollReady, Errno> {
        let (_, _, _, _) = (caller, ino, handle, wake);
        Ok(PollReady::BOTH)
    }
    /// Opens a directory. Where the kernel may keep its listing (any caching but `Direct`), an
    /// entry's cookie is the same in all handles, and the listing is in the order of the cookies.
    fn opendir(&self, caller: &Caller, ino: Ino) -> Result<Opened, Errno>;
    /// Lists a directory after `cookie` (0: from the start), in cookie order: calls `emit` for
    /// each entry until it returns false. `.` and `..` are added by the caller.
    fn readdir(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        cookie: u64,
        detail: Detail,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), Errno>;
    /// Whether this look may take long, at what no kernel keeps (no [`Invalidation`](crate::Invalidation) ever
    /// takes back what is told of it). A thread of its own then looks, and neither the mount's other requests nor what its kernel is to forget
    /// wait for it.
    fn takes_long(&self, look: Look<'_>) -> bool;
    /// The directory that holds directory `ino` (for `..`).
    fn parent(&self, ino: Ino) -> Result<Ino, Errno>;
    /// Forgets a directory handle.
    fn releasedir(&self, handle: Handle);
    /// Sizes.
    fn statfs(&self, ino: Ino) -> Result<FsStat, Errno>;
    /// One extended attribute's value.
    fn getxattr(&self, caller: &Caller, ino: Ino, name: &OsStr) -> Result<Vec<u8>, Errno>;
    /// Names of the extended attributes.
    fn listxattr(&self, caller: &Caller, ino: Ino) -> Result<Vec<Vec<u8>>, Errno>;
    /// Finds the next data or hole at or after `offset`.
    fn seek(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        offset: u64,
        seek: SeekHole,
    ) -> Result<u64, Errno>;
    /// The locks of all mounts of this tree. They are kept here; a tree only has them.
    fn locks(&self) -> &Arc<Locks>;
    /// Where the requests of all its mounts are counted.
    fn requests(&self) -> Arc<Requests> {
        Arc::default()
    }
    /// A thread has got a lock through a handle, and is told so by `reply`. What others let go of is handed
    /// on by the thread that does so: it must not wait for another request.
    fn locked(&self, _by: (MountId, u32), _ino: Ino, _handle: Handle, reply: Reply<()>) {
        reply.send(Ok(()));
    }
    /// A thread is about to let go of a lock.
    fn unlocks(&self, _by: (MountId, u32), _ino: Ino) {}
    /// Whether this thread is of the tree's own process and uses a mount for the tree's own ends:
    /// no sign of anybody's life.
    fn is_own_thread(&self, _thread: u32) -> bool {
        false
    }
    /// The last reference to an unnamed inode may be gone: the kernel forgot it.
    fn forget(&self, ino: Ino, lookups: u64);

    /// Makes a directory, link or special node.
    fn make(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &OsStr,
        mode: u32,
        node: NewNode,
        reply: Reply<Entry>,
    );
    /// Makes and opens a file.
    fn create(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &OsStr,
        mode: u32,
        flags: OpenFlags,
        reply: Reply<(Entry, Opened)>,
    );
    /// Sets attributes; a size with a handle is staged in that handle.
    fn setattr(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Option<Handle>,
        set: SetAttr,
        reply: Reply<Entry>,
    );
    /// Removes a name that is not a directory.
    fn unlink(&self, caller: &Caller, parent: Ino, name: &OsStr, reply: Reply<()>);
    /// Removes an empty directory.
    fn rmdir(&self, caller: &Caller, parent: Ino, name: &OsStr, reply: Reply<()>);
    /// Renames one name of a directory to one of another directory, or the same.
    fn rename(
        &self,
        caller: &Caller,
        from: (Ino, &OsStr),
        to: (Ino, &OsStr),
        mode: RenameMode,
        reply: Reply<()>,
    );
    /// Gives a file another name.
    fn link(&self, caller: &Caller, ino: Ino, parent: Ino, name: &OsStr, reply: Reply<Entry>);
    /// Writes.
    fn write(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        at: crate::WriteAt,
        data: &[u8],
        reply: Reply<u32>,
    );
    /// A descriptor of the handle was closed. May come several times, also before any write.
    fn flush(&self, caller: &Caller, ino: Ino, handle: Handle, reply: Reply<()>);
    /// `fsync` or `fdatasync`.
    fn fsync(&self, caller: &Caller, ino: Ino, handle: Handle, reply: Reply<()>);
    /// `fsync` of a directory.
    fn fsyncdir(&self, caller: &Caller, ino: Ino, reply: Reply<()>);
    /// The last reference to the handle is gone. Reports to nobody: decide nothing here.
    fn release(&self, ino: Ino, handle: Handle);
    /// Reserves or frees a range, an offset and a length; `mode` are the bits of `fallocate(2)`.
    fn fallocate(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        range: (u64, u64),
        mode: i32,
        reply: Reply<()>,
    );
    /// Sets an extended attribute.
    fn setxattr(
        &self,
        caller: &Caller,
        ino: Ino,
        name: &OsStr,
        value: &[u8],
        mode: XattrMode,
        reply: Reply<()>,
    );
    /// Removes an extended attribute.
    fn removexattr(&self, caller: &Caller, ino: Ino, name: &OsStr, reply: Reply<()>);
}

/// Converts nanoseconds since the epoch to the standard library's type.
#[must_use]
pub fn system_time(at: UnixNanos) -> SystemTime {
    let magnitude = Duration::from_nanos(at.unsigned_abs());
    if at >= 0 { SystemTime::UNIX_EPOCH + magnitude } else { SystemTime::UNIX_EPOCH - magnitude }
}
