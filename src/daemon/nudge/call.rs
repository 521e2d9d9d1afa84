//! The system calls that raise events, each made through the mount whose watchers are to hear.
//!
//! What must stay true: only the thread that the stage knows makes them, and its table of open
//! files is empty between two. Each is made in a directory that was opened and found to be of the
//! mount: by then its path may lead through somebody's symbolic link, or the mount may be gone, and
//! what lies there would be removed in earnest. Deliberately not here: what they are answered with
//! (`tree/kernels/told.rs`).

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, StatxFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
    mkdirat, mknodat, open, openat, renameat, statx, symlinkat, unlinkat, utimensat,
};
use rustix::io::{Errno, Result};
use workfs_mount::MountId;

use crate::names::Dentry;
use crate::numbers::Ino;
use crate::store::NodeType;
use crate::tree::{Going, Scene, Stage, StandIn};

/// One call to be made.
pub(super) struct Call {
    pub mount: MountId,
    /// The device number of the mount's files.
    pub device: u64,
    pub path: PathBuf,
    pub what: What,
    /// For the time until it was made, if a name goes.
    pub going: Option<Going>,
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
    Made(Dentry, NodeType),
    /// IN_DELETE.
    Removed(Dentry, NodeType, StandIn),
    /// IN_MOVED_FROM, and IN_MOVED_TO of the new name at this path.
    Moved {
        from: Dentry,
        to: Dentry,
        to_path: PathBuf,
        stand_in: StandIn,
        over: Option<StandIn>,
        is_dir: bool,
    },
}

impl What {
    /// The name that goes.
    pub fn goes(&self) -> Option<&Dentry> {
        match self {
            What::Removed(at, ..) | What::Moved { from: at, .. } => Some(at),
            _ => None,
        }
    }

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
        let Call { mount, device, path, what, going: _going } = self;
        let Ok(at) = Place::find(&path, device) else { return };
        match what {
            What::Content => at.set_times(true),
            What::Attributes => at.set_times(false),
            What::Closed(ino) => {
                let _ = stage.play(mount, Scene::Closed(ino), || close(&at, ino));
            }
            What::Made(name, node_type) => {
                let made = stage.play(mount, Scene::Made(name, node_type), || at.make(node_type));
                if made.is_err() {
                    at.set_times(true);
                } else if node_type == NodeType::Directory {
                    // Who is in it already (by another way) has lost its path for this moment.
                    at.look();
                }
            }
            What::Removed(name, node_type, stand_in) => {
                let flags = match node_type {
                    NodeType::Directory => AtFlags::REMOVEDIR,
                    _ => AtFlags::empty(),
                };
                let scene = Scene::Removed(name, stand_in);
                if stage.play(mount, scene, || unlinkat(at.dir(), at.name, flags)).is_err() {
                    at.set_times_of_dir();
                }
            }
            What::Moved { from, to, to_path, stand_in, over, is_dir } => {
                let Ok(new) = Place::find(&to_path, device) else { return at.set_times_of_dir() };
                let scene = Scene::Moved { from, to, stand_in, over };
                let rename = || renameat(at.dir(), at.name, new.dir(), new.name);
                if stage.play(mount, scene, rename).is_err() {
                    at.set_times_of_dir();
                    new.set_times(true);
                } else if is_dir {
                    new.look();
                }
            }
        }
    }
}

/// A name in a directory of the mount.
struct Place<'p> {
    dir: OwnedFd,
    name: &'p OsStr,
}

impl<'p> Place<'p> {
    /// Opens the directory in which the path's last name lies, if it is of this device.
    fn find(path: &'p Path, device: u64) -> Result<Place<'p>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL);
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = open(parent, flags, Mode::empty())?;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = statx(&dir, "", flags, StatxFlags::TYPE)?;
        let found = workfs_mount::device_number(stat.stx_dev_major, stat.stx_dev_minor);
        if found == device { Ok(Place { dir, name }) } else { Err(Errno::XDEV) }
    }

    fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The tree knows the thread that asks for this, and does nothing.
    fn set_times(&self, content: bool) {
        let access = if content { UTIME_OMIT } else { UTIME_NOW };
        let _ = utimensat(&self.dir, self.name, &times(access), AtFlags::SYMLINK_NOFOLLOW);
    }

    /// The same of the directory.
    fn set_times_of_dir(&self) {
        let _ = utimensat(&self.dir, ".", &times(UTIME_OMIT), AtFlags::empty());
    }

    fn make(&self, node_type: NodeType) -> Result<()> {
        let mode = Mode::RWXU;
        let special = match node_type {
            NodeType::Directory => return mkdirat(&self.dir, self.name, mode),
            NodeType::Symlink => return symlinkat(".", &self.dir, self.name),
            NodeType::File => FileType::RegularFile,
            NodeType::Fifo => FileType::Fifo,
            NodeType::Socket => FileType::Socket,
            NodeType::CharDevice => FileType::CharacterDevice,
            NodeType::BlockDevice => FileType::BlockDevice,
        };
        mknodat(&self.dir, self.name, special, mode, 0)
    }

    /// Has the kernel find what is really there.
    fn look(&self) {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
        let _ = statx(&self.dir, self.name, flags, StatxFlags::TYPE);
    }
}

fn times(access: i64) -> Timestamps {
    let time = |nsec| Timespec { tv_sec: 0, tv_nsec: nsec };
    Timestamps { last_access: time(access), last_modification: time(UTIME_NOW) }
}

/// Opens the file for writing, and closes it. By its descriptor, so that it is the one that is
/// meant: to open a pipe or a device could mean something.
fn close(at: &Place<'_>, ino: Ino) -> Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(&at.dir, at.name, flags, Mode::empty())?;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = statx(&found, "", flags, StatxFlags::TYPE | StatxFlags::INO)?;
    let is_file = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
    if !is_file || stat.stx_ino != ino.0 {
        return Err(Errno::STALE);
    }
    // The process's own directory there shows the table of its first thread.
    let itself = format!("/proc/thread-self/fd/{}", found.as_raw_fd());
    open(itself, OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_done_where_a_path_leads_out_of_the_mount() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let number = std::fs::metadata(dir.path()).unwrap().dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let device = workfs_mount::device_number(major, minor);
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/a"), "kept").unwrap();
        assert!(Place::find(&dir.path().join("d/a"), device).is_ok());
        let inside = dir.path().join("d/a");
        let elsewhere = Place::find(&inside, device + 1);
        assert_eq!(elsewhere.map(|_| ()), Err(Errno::XDEV));
        // A link in place of the directory is not followed, wherever it leads.
        std::os::unix::fs::symlink("d", dir.path().join("link")).unwrap();
        let through_link = dir.path().join("link/a");
        let linked = Place::find(&through_link, device);
        assert_eq!(linked.map(|_| ()), Err(Errno::NOTDIR));
    }
}
