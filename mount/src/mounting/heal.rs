//! What is found on a mount point before a mount, and the removal of dead mounts.
//!
//! What must stay true: looking never hangs, also when the process behind a mount is gone or
//! stopped. Deliberately not here: deciding what to do about what is found.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::as_user::become_user;
use super::attach::{self, Unmounting};
use super::deadline::within;
use crate::whereabouts::mountinfo::{MountLine, mount_at, stack_at};

/// How many names of what lies in a directory are told.
const ENTRIES_MAX: usize = 20;

/// How long a served mount may take to answer a `stat`. A dead one answers at once, so that one
/// that takes longer is alive, or at least not to be taken away by us.
pub(crate) const STAT_WAIT: Duration = Duration::from_secs(1);

/// How many dead mounts may lie on each other.
const DEAD_MAX: usize = 32;

/// What is at the place of a mount point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirState {
    /// Nothing.
    Absent,
    /// Something that is no directory.
    NotADirectory,
    /// A directory that nothing is mounted on.
    Plain {
        /// Nothing is in it.
        empty: bool,
        /// Names of what is in it, sorted, at most 20.
        entries: Vec<OsString>,
    },
    /// A mount that answers, or whose process is merely slow or stopped.
    Mounted {
        /// For example `fuse.workfs`.
        fs_type: String,
        /// For example `workfs`.
        source: OsString,
    },
    /// A mount whose process is gone: every use of it fails with ENOTCONN.
    Dead,
    /// It cannot be looked at; the error's text.
    Unreadable(String),
}

/// Looks at a mount point.
#[must_use]
pub fn state_of(dir: &Path) -> DirState {
    match look(dir) {
        Ok(state) => state,
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT) => DirState::Absent,
            Some(libc::ENOTDIR) => DirState::NotADirectory,
            Some(libc::ENOTCONN | libc::ESTALE | libc::ECONNABORTED) => DirState::Dead,
            _ => DirState::Unreadable(error.to_string()),
        },
    }
}

/// Detaches the dead mounts that lie on `dir`; others are left alone.
///
/// # Errors
/// If the kernel and `fusermount3` refuse.
pub fn detach_dead(dir: &Path) -> io::Result<()> {
    for _ in 0..DEAD_MAX {
        if state_of(dir) != DirState::Dead {
            return Ok(());
        }
        let place = resolved(dir)?;
        tracing::info!(dir = ?place, "detaching a dead mount");
        match attach::unmount(&place, Unmounting::Lazily) {
            // In another dead mount: whoever looks for it there makes the kernel take it away.
            Err(_) if mount_at(&place)?.is_none() => return Ok(()),
            detached => detached?,
        }
    }
    Err(io::Error::other(format!("more than {DEAD_MAX} dead mounts lie on {dir:?}")))
}

/// The same, but leaves one on which another may take its place: that lies on nothing but a directory.
/// Says whether one is left.
///
/// # Errors
/// As [`detach_dead`].
pub fn detach_dead_but_one(dir: &Path) -> io::Result<bool> {
    for _ in 0..DEAD_MAX {
        if state_of(dir) != DirState::Dead {
            return Ok(false);
        }
        let place = resolved(dir)?;
        if stack_at(&place)?.len() == 1 {
            return Ok(true);
        }
        attach::unmount(&place, Unmounting::Lazily)?;
    }
    detach_dead(dir).map(|()| false)
}

fn look(dir: &Path) -> io::Result<DirState> {
    let place = resolved(dir)?;
    match mount_at(&place)? {
        Some(line) if line.is_fuse() => Ok(served(&place, line)),
        Some(line) => Ok(DirState::Mounted { fs_type: line.fs_type, source: line.source }),
        None if !std::fs::symlink_metadata(&place)?.is_dir() => Ok(DirState::NotADirectory),
        None => plain(&place),
    }
}

fn plain(dir: &Path) -> io::Result<DirState> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir)?.take(ENTRIES_MAX) {
        entries.push(entry?.file_name());
    }
    entries.sort();
    Ok(DirState::Plain { empty: entries.is_empty(), entries })
}

/// Asks a mount that a process serves whether the process is there: a stopped one would not answer.
fn served(dir: &Path, line: MountLine) -> DirState {
    let (place, whose) = (dir.to_owned(), line.user.zip(line.group));
    let error = within(STAT_WAIT, move || asked(&place, whose)).ok().flatten().flatten();
    match error {
        Some(error) if is_gone(&error) => DirState::Dead,
        _ => DirState::Mounted { fs_type: line.fs_type, source: line.source },
    }
}

/// Whether a mount's process is gone.
#[must_use]
pub fn is_dead(mount: &MountLine) -> bool {
    served(&mount.dir, mount.clone()) == DirState::Dead
}

/// Whether an error says that the process is gone.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED))
}

/// What `statfs` fails with: not a `stat`, which the kernel would answer from its cache for a process long
/// gone. It asks the process for none but the user whose mount it is, where that lets no others in, and answers
/// root with noughts; so it is asked as that user, in this thread, which ends then.
fn asked(place: &Path, whose: Option<(u32, u32)>) -> Option<io::Error> {
    let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let ask = || {
        // Opened before: the user may not be let in on the way there.
        let place = rustix::fs::open(place, how, Mode::empty())?;
        if let Some((user, group)) = whose.filter(|(user, _)| attach::is_root() && *user != 0) {
            become_user(user, group)?;
        }
        rustix::fs::fstatfs(place)?;
        io::Result::Ok(())
    };
    ask().err()
}

/// The absolute path without symbolic links, without asking a mount on the path's end anything.
pub(crate) fn resolved(dir: &Path) -> io::Result<PathBuf> {
    let given = absolute(dir)?;
    let (Some(parent), Some(name)) = (given.parent(), given.file_name()) else {
        return Ok(given);
    };
    let place = parent.canonicalize()?.join(name);
    if mount_at(&place)?.is_none() && std::fs::symlink_metadata(&place)?.is_symlink() {
        let target = parent.join(std::fs::read_link(&place)?);
        if mount_at(&target)?.is_some() {
            return Ok(target);
        }
        return place.canonicalize();
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_plain_and_other_things_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(state_of(&dir.path().join("none")), DirState::Absent);
        assert_eq!(state_of(dir.path()), DirState::Plain { empty: true, entries: Vec::new() });
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert_eq!(state_of(&dir.path().join("file")), DirState::NotADirectory);
        let entries = vec![OsString::from("file")];
        assert_eq!(state_of(dir.path()), DirState::Plain { empty: false, entries });
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        assert!(matches!(state_of(&dir.path().join("link")), DirState::Plain { .. }));
    }

    #[test]
    fn at_most_twenty_names_are_told() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..30 {
            std::fs::write(dir.path().join(format!("{number}")), "").unwrap();
        }
        match state_of(dir.path()) {
            DirState::Plain { empty: false, entries } => assert_eq!(entries.len(), ENTRIES_MAX),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn other_mounts_are_named() {
        assert!(matches!(state_of(Path::new("/proc")), DirState::Mounted { fs_type, .. }
            if fs_type == "proc"));
        assert!(detach_dead(Path::new("/proc")).is_ok());
        assert!(matches!(state_of(Path::new("/proc")), DirState::Mounted { .. }));
    }
}
