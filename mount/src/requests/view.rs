//! How a tree's attributes are shown through one mount, and the translation between this crate's
//! types and the FUSE library's.
//!
//! What must stay true: every attribute that leaves for the kernel goes through [`View::shown`],
//! so that `uid=`, `gid=` and `umask=` hold in every reply or in none. Deliberately not here:
//! requests and replies (see `adapter` and `answer`).

use std::time::SystemTime;

use fuser::{FileAttr, FileType, FopenFlags, INodeNo, PollFlags, PollNotifier, RenameFlags};

use super::poll::PollWake;
use crate::errno::Errno;
use crate::ids::{Ino, ROOT};
use crate::tree::{
    Attr, Caching, NewNode, NodeType, OpenFlags, RenameMode, SeekHole, TimeOrNow, UnixNanos,
    XattrMode, system_time,
};

/// What `uid=`, `gid=` and `umask=` show for all owners, groups and permission bits.
#[derive(Clone, Copy, Debug)]
pub struct Shows {
    /// Owner shown for everything.
    pub uid: Option<u32>,
    /// Group shown for everything.
    pub gid: Option<u32>,
    /// Permission bits shown as off; all others are shown as on, as libfuse does.
    pub umask: Option<u32>,
}

impl Shows {
    /// These attributes as a kernel is shown them.
    #[must_use]
    pub fn shown(self, attr: &Attr) -> Attr {
        let asked = |option: Option<u32>| option.filter(|_| !attr.is_fixed);
        let mode = match asked(self.umask) {
            Some(umask) => 0o777 & !umask,
            None => attr.mode & 0o7777,
        };
        let (uid, gid) = (asked(self.uid), asked(self.gid));
        Attr { uid: uid.unwrap_or(attr.uid), gid: gid.unwrap_or(attr.gid), mode, ..*attr }
    }
}

/// What the options and another root change in what is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Owners, groups and permission bits.
    pub(crate) shows: Shows,
    /// The directory of the tree that the kernel sees as the root.
    pub(crate) root: Ino,
}

impl View {
    /// The tree's number of an inode that the kernel names.
    pub(crate) fn of_kernel(self, number: INodeNo) -> Ino {
        let ino = Ino(number.0);
        if ino == ROOT { self.root } else { ino }
    }

    /// The number by which the kernel knows an inode.
    pub(crate) fn number(self, ino: Ino) -> INodeNo {
        INodeNo(if ino == self.root { ROOT.0 } else { ino.0 })
    }

    /// The attributes as this mount shows them.
    pub(crate) fn shown(self, attr: &Attr) -> FileAttr {
        let attr = self.shows.shown(attr);
        FileAttr {
            ino: self.number(attr.ino),
            size: attr.size,
            blocks: attr.blocks,
            atime: system_time(attr.atime_ns),
            mtime: system_time(attr.mtime_ns),
            ctime: system_time(attr.ctime_ns),
            crtime: SystemTime::UNIX_EPOCH,
            kind: file_type(attr.node_type),
            perm: attr.mode as u16,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            rdev: attr.rdev,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Whether root may run, or search, what has these attributes: capabilities(7) asks for one
    /// permission at least.
    pub(crate) fn may_run(self, attr: &Attr) -> bool {
        attr.node_type == NodeType::Directory || self.shown(attr).perm & 0o111 != 0
    }
}

impl Attr {
    /// Of something empty that is its maker's alone and has no times.
    #[must_use]
    pub fn bare(ino: Ino, node_type: NodeType) -> Attr {
        Attr {
            ino,
            node_type,
            mode: 0o700,
            nlink: if node_type == NodeType::Directory { 2 } else { 1 },
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            blocks: 0,
            atime_ns: 0,
            mtime_ns: 0,
            ctime_ns: 0,
            is_fixed: false,
        }
    }
}

/// What `mknod` is to make.
pub(crate) fn new_node(mode: u32, rdev: u32) -> Result<NewNode, Errno> {
    Ok(match node_type(mode)? {
        NodeType::File => NewNode::File,
        special => NewNode::Special(special, rdev),
    })
}

/// What `lseek` looks for, and from where.
pub(crate) fn seek_hole(offset: i64, whence: i32) -> Result<(SeekHole, u64), Errno> {
    let seek = match whence {
        libc::SEEK_DATA => SeekHole::Data,
        libc::SEEK_HOLE => SeekHole::Hole,
        _ => return Err(Errno::EINVAL),
    };
    Ok((seek, u64::try_from(offset).map_err(|_| Errno::ENXIO)?))
}

/// What wakes a poll, where the kernel says that somebody waits.
pub(crate) fn poll_wake(notifier: PollNotifier, flags: PollFlags) -> Option<PollWake> {
    flags.contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY).then(|| {
        PollWake::new(move || {
            // A session that has ended has nobody who polls.
            if let Err(error) = notifier.clone().notify() {
                tracing::debug!(%error, "the kernel took no wake-up");
            }
        })
    })
}

/// The library's name for a node type.
pub(crate) fn file_type(node_type: NodeType) -> FileType {
    match node_type {
        NodeType::File => FileType::RegularFile,
        NodeType::Directory => FileType::Directory,
        NodeType::Symlink => FileType::Symlink,
        NodeType::Fifo => FileType::NamedPipe,
        NodeType::Socket => FileType::Socket,
        NodeType::CharDevice => FileType::CharDevice,
        NodeType::BlockDevice => FileType::BlockDevice,
    }
}

/// What `mknod` asks for by the type bits of its mode.
pub(crate) fn node_type(mode: u32) -> Result<NodeType, Errno> {
    match mode & libc::S_IFMT {
        0 | libc::S_IFREG => Ok(NodeType::File),
        libc::S_IFIFO => Ok(NodeType::Fifo),
        libc::S_IFSOCK => Ok(NodeType::Socket),
        libc::S_IFCHR => Ok(NodeType::CharDevice),
        libc::S_IFBLK => Ok(NodeType::BlockDevice),
        _ => Err(Errno::EINVAL),
    }
}

/// The kernel's own flag in an OPEN that comes from `execve`; no header for programs names it.
const FMODE_EXEC: i32 = 0x20;

/// The flags of `open(2)` and `O_CREAT` that a tree must know.
pub(crate) fn open_flags(flags: i32) -> OpenFlags {
    let access = flags & libc::O_ACCMODE;
    OpenFlags {
        read: access == libc::O_RDONLY || access == libc::O_RDWR,
        write: access == libc::O_WRONLY || access == libc::O_RDWR,
        truncate: flags & libc::O_TRUNC != 0,
        append: flags & libc::O_APPEND != 0,
        exclusive: flags & libc::O_EXCL != 0,
        execute: flags & FMODE_EXEC != 0,
    }
}

/// How the kernel is told to treat an open file.
pub(crate) fn fopen_flags(caching: Caching) -> FopenFlags {
    match caching {
        Caching::Direct => FopenFlags::FOPEN_DIRECT_IO,
        // Not FOPEN_STREAM: that would have the kernel send offset 0 with every read, and the
        // tree could not tell what the reader has had.
        Caching::Stream => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NONSEEKABLE,
        Caching::Cached => FopenFlags::empty(),
        Caching::KeepCache => FopenFlags::FOPEN_KEEP_CACHE,
        Caching::KeepCacheUnflushed => FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH,
    }
}

/// How the kernel is told to treat an open directory.
pub(crate) fn directory_flags(caching: Caching) -> FopenFlags {
    match caching {
        Caching::Direct | Caching::Stream => FopenFlags::empty(),
        Caching::Cached => FopenFlags::FOPEN_CACHE_DIR,
        Caching::KeepCache | Caching::KeepCacheUnflushed => {
            FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE
        }
    }
}

/// What `renameat2` was asked. A whiteout is for overlay file systems and is refused; so is a
/// flag nobody knows yet, because carrying on without it would do something else.
pub(crate) fn rename_mode(flags: RenameFlags) -> Result<RenameMode, Errno> {
    match flags.bits() {
        0 => Ok(RenameMode::Replace),
        libc::RENAME_NOREPLACE => Ok(RenameMode::NoReplace),
        libc::RENAME_EXCHANGE => Ok(RenameMode::Exchange),
        _ => Err(Errno::EINVAL),
    }
}

/// What `setxattr` was asked.
pub(crate) fn xattr_mode(flags: i32) -> Result<XattrMode, Errno> {
    match flags {
        0 => Ok(XattrMode::Set),
        libc::XATTR_CREATE => Ok(XattrMode::Create),
        libc::XATTR_REPLACE => Ok(XattrMode::Replace),
        _ => Err(Errno::EINVAL),
    }
}

/// A time to set, from the library's form.
pub(crate) fn time_or_now(time: fuser::TimeOrNow) -> TimeOrNow {
    match time {
        fuser::TimeOrNow::Now => TimeOrNow::Now,
        fuser::TimeOrNow::SpecificTime(at) => TimeOrNow::At(nanos_of_request(at)),
    }
}

/// Nanoseconds since the epoch of a time that the library read from a request.
///
/// The kernel sends −1.2 s as −2 s + 800,000,000 ns; fuser 0.18 reads that as −(2 s + 0.8 s).
/// Before 1970 its parts are therefore put together again here. Beyond ±292 years: the limit.
fn nanos_of_request(at: SystemTime) -> UnixNanos {
    let nanos = match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i128::from(after.as_secs()) * 1_000_000_000 + i128::from(after.subsec_nanos()),
        Err(before) => {
            let parts = before.duration();
            i128::from(parts.subsec_nanos()) - i128::from(parts.as_secs()) * 1_000_000_000
        }
    };
    UnixNanos::try_from(nanos).unwrap_or(if nanos < 0 { UnixNanos::MIN } else { UnixNanos::MAX })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_before_1970_are_put_together_as_the_kernel_meant_them() {
        // What fuser makes of tv_sec = -2, tv_nsec = 800_000_000, which is -1.2 s.
        let as_read = SystemTime::UNIX_EPOCH - Duration::new(2, 800_000_000);
        assert_eq!(nanos_of_request(as_read), -1_200_000_000);
        let after = SystemTime::UNIX_EPOCH + Duration::new(3, 7);
        assert_eq!(nanos_of_request(after), 3_000_000_007);
    }

    #[test]
    fn times_out_of_range_become_the_limit() {
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(nanos_of_request(far), i64::MAX);
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 40);
        assert_eq!(nanos_of_request(early), i64::MIN);
    }

    #[test]
    fn rename_flags_that_nobody_serves_are_refused() {
        assert_eq!(rename_mode(RenameFlags::empty()), Ok(RenameMode::Replace));
        assert_eq!(rename_mode(RenameFlags::RENAME_NOREPLACE), Ok(RenameMode::NoReplace));
        assert_eq!(rename_mode(RenameFlags::RENAME_EXCHANGE), Ok(RenameMode::Exchange));
        assert_eq!(rename_mode(RenameFlags::RENAME_WHITEOUT), Err(Errno::EINVAL));
        let both = RenameFlags::RENAME_NOREPLACE | RenameFlags::RENAME_EXCHANGE;
        assert_eq!(rename_mode(both), Err(Errno::EINVAL));
    }
}
