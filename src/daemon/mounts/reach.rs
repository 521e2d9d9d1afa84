//! The way to a mount in a name space that the daemon is not in: by the process that made it there.
//!
//! What must stay true: it keeps neither the mount nor its name space alive, which end with their
//! last process, and it leads nowhere once that process has ended, whoever has its number then.
//! There is one only where the mount's kernel knows the daemon's threads by the same numbers: by
//! them the tree knows who tells watchers. Deliberately not here: what is done by it (`nudge`).

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use workfs_mount::{MountLine, mounts_of};

/// Such a way.
pub(super) struct Reach {
    /// The directory of the process in `/proc`.
    process: OwnedFd,
    dir: PathBuf,
    device: u64,
}

impl Reach {
    /// To the mount that the process made on this directory; `None` if there is none that this one may go.
    pub fn by(process: u32, dir: &Path) -> Option<Reach> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let process = openat(CWD, format!("/proc/{process}"), flags, Mode::empty()).ok()?;
        let itself = own_name(&process);
        let same = space_of(&itself)? == space_of(Path::new("/proc/self"))?;
        let is_it = |line: &MountLine| line.dir == dir && line.is_workfs();
        let line = mounts_of(&itself).ok()?.into_iter().rfind(is_it)?;
        same.then(|| Reach { process, dir: dir.to_owned(), device: line.device })
    }

    /// The mount's directory as this process finds it, and the device number of its files.
    pub fn place(&self) -> (PathBuf, u64) {
        let mut place = own_name(&self.process).join("root").into_os_string();
        place.push(&self.dir);
        (place.into(), self.device)
    }
}

/// Whether processes have other numbers for a process than for this one, and for the kernel of what it mounts.
pub(super) fn numbers_otherwise(process: u32) -> bool {
    let of = Path::new("/proc").join(process.to_string());
    // Of one that is further out nothing is told, not even its number.
    process == 0
        || space_of(&of).is_some_and(|space| space_of(Path::new("/proc/self")) != Some(space))
}

/// The name space of processes of the one that has this directory in `/proc`.
fn space_of(process: &Path) -> Option<PathBuf> {
    std::fs::read_link(process.join("ns/pid")).ok()
}

/// What an open file is to each thread of this process, also to one with a table of open files of its own:
/// `/proc/self` has that of the first thread.
fn own_name(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}
