//! The system calls that raise events, each made through the mount whose watchers are to hear.
//!
//! What must stay true: only the thread that the stage knows makes them, and its table of open files
//! is empty between two. Deliberately not here: what they are answered with (`tree/told.rs`).

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
    mkdirat, mknodat, open, renameat, statx, symlinkat, unlinkat, utimensat,
};
use rustix::io::Result;
use workfs_mount::MountId;

use crate::numbers::Ino;
use crate::store::NodeType;
use crate::tree::{At, Scene, Stage, StandIn};

/// One call to be made.
pub(super) struct Call {
    pub mount: MountId,
    pub path: PathBuf,
    pub what: What,
}

/// Which.
pub(super) enum What {
    /// IN_MODIFY.
    Content,
    /// IN_ATTRIB.
    Attributes,
    /// IN_CLOSE_WRITE.
    Closed(Ino),
    /// IN_CREATE.
    Made(At, NodeType),
    /// IN_DELETE.
    Removed(At, NodeType, StandIn),
    /// IN_MOVED_FROM, and IN_MOVED_TO of the new name at this path.
    Moved {
        from: At,
        to: At,
        to_path: PathBuf,
        stand_in: StandIn,
        over: Option<StandIn>,
        is_dir: bool,
    },
}

impl What {
    /// Whether a directory comes, which its watchers will watch next.
    pub fn brings_dir(&self) -> bool {
        match self {
            What::Made(_, node_type) => *node_type == NodeType::Directory,
            What::Moved { is_dir, .. } => *is_dir,
            _ => false,
        }
    }
}

impl Call {
    /// Raises the event. What is gone again, and what may not be touched, has none; where a name
    /// cannot be shown to come or go, its directory changes.
    pub fn make(self, stage: &Stage) {
        let Call { mount, path, what } = self;
        match what {
            What::Content => set_times(&path, true),
            What::Attributes => set_times(&path, false),
            What::Closed(ino) => {
                let _ = stage.play(mount, Scene::Closed(ino), || close(&path, ino));
            }
            What::Made(at, node_type) => {
                let made = stage.play(mount, Scene::Made(at, node_type), || make(&path, node_type));
                if made.is_err() {
                    set_times(&path, true);
                } else if node_type == NodeType::Directory {
                    // Who is in it already (by another way) has lost its path for this moment.
                    look(&path);
                }
            }
            What::Removed(at, node_type, stand_in) => {
                let flags = match node_type {
                    NodeType::Directory => AtFlags::REMOVEDIR,
                    _ => AtFlags::empty(),
                };
                let scene = Scene::Removed(at, stand_in);
                if stage.play(mount, scene, || unlinkat(CWD, &path, flags)).is_err() {
                    set_times(parent(&path), true);
                }
            }
            What::Moved { from, to, to_path, stand_in, over, is_dir } => {
                let scene = Scene::Moved { from, to, stand_in, over };
                if stage.play(mount, scene, || renameat(CWD, &path, CWD, &to_path)).is_err() {
                    set_times(parent(&path), true);
                    set_times(&to_path, true);
                } else if is_dir {
                    look(&to_path);
                }
            }
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// The tree knows the thread that asks for this, and does nothing.
fn set_times(path: &Path, content: bool) {
    let time = |nsec| Timespec { tv_sec: 0, tv_nsec: nsec };
    let access = if content { UTIME_OMIT } else { UTIME_NOW };
    let times = Timestamps { last_access: time(access), last_modification: time(UTIME_NOW) };
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

fn make(path: &Path, node_type: NodeType) -> Result<()> {
    let mode = Mode::RWXU;
    let special = match node_type {
        NodeType::Directory => return mkdirat(CWD, path, mode),
        NodeType::Symlink => return symlinkat(".", CWD, path),
        NodeType::File => FileType::RegularFile,
        NodeType::Fifo => FileType::Fifo,
        NodeType::Socket => FileType::Socket,
        NodeType::CharDevice => FileType::CharacterDevice,
        NodeType::BlockDevice => FileType::BlockDevice,
    };
    mknodat(CWD, path, special, mode, 0)
}

/// Has the kernel find what is really there.
fn look(path: &Path) {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    let _ = statx(CWD, path, flags, StatxFlags::TYPE);
}

/// Opens the file for writing, and closes it. By its descriptor, so that it is the one that is
/// meant: to open a pipe or a device could mean something.
fn close(path: &Path, ino: Ino) -> Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = open(path, flags, Mode::empty())?;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = statx(&found, "", flags, StatxFlags::TYPE | StatxFlags::INO)?;
    let is_file = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
    if !is_file || stat.stx_ino != ino.0 {
        return Err(rustix::io::Errno::STALE);
    }
    // The process's own directory there shows the table of its first thread.
    let itself = format!("/proc/thread-self/fd/{}", found.as_raw_fd());
    open(itself, OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty()).map(drop)
}
