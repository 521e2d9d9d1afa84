//! Makes the directory below a mount point read-only, so that what is written there while nothing
//! is mounted (after a crash, say) is refused instead of lost to everyone.
//!
//! What must stay true: a [`Cover`] says all that is needed to undo it, also after a crash, so it
//! can be stored before it is put on ([`Underlay::cover`] tells it without changing anything);
//! undoing acts on the very directory that was covered or on none. Permission bits do not stop
//! root, so the immutable flag is set too where the file system and our rights allow it; where
//! not, quietly the bits alone. Deliberately not here: when to cover.
//!
//! Root covers before mounting (a mount on an immutable directory works). `fusermount3`, which
//! mounts for others, wants to be able to write the directory: they open the [`Underlay`] first,
//! mount, and then put the cover on through it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::heal::resolved;
use crate::mountinfo::mount_at;

/// `FS_IMMUTABLE_FL` of `linux/fs.h`: nothing can be made in or removed from the directory.
const IMMUTABLE: libc::c_int = 0x10;

/// The permission bits that allow writing.
const WRITE_BITS: u32 = 0o222;

/// What a covered directory was like before: plain fields, to be stored and read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The directory.
    pub dir: PathBuf,
    /// The device it is on.
    pub device: u64,
    /// Its inode number there.
    pub ino: u64,
    /// Its permission bits before.
    pub mode: u32,
    /// Whether it was immutable before.
    pub immutable: bool,
}

/// A directory held open, so that it can be covered also when something is mounted on it.
#[derive(Debug)]
pub struct Underlay {
    directory: File,
    cover: Cover,
}

impl Underlay {
    /// Opens the directory; changes nothing.
    ///
    /// # Errors
    /// If it cannot be opened or is no directory.
    pub fn open(dir: &Path) -> io::Result<Underlay> {
        Underlay::of(resolved(dir)?, open(dir)?)
    }

    /// Opens the directory below whatever is mounted on `dir`; changes nothing.
    ///
    /// # Errors
    /// As [`Underlay::open`]; and EPERM to those who may not mount.
    pub fn below(dir: &Path) -> io::Result<Underlay> {
        let dir = resolved(dir)?;
        let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        };
        // A copy of what the parent lies in, without what is mounted there.
        let without = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let parent = open_tree(CWD, parent, without)?;
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(parent, name, how, Mode::empty())?;
        Underlay::of(dir, directory.into())
    }

    fn of(dir: PathBuf, directory: File) -> io::Result<Underlay> {
        let metadata = directory.metadata()?;
        let cover = Cover {
            dir,
            device: metadata.dev(),
            ino: metadata.ino(),
            mode: metadata.mode() & 0o7777,
            immutable: is_immutable(&directory),
        };
        Ok(Underlay { directory, cover })
    }

    /// With what is known of the directory from before it was covered, if it is the same.
    #[must_use]
    pub fn covered_by(self, known: Cover) -> Underlay {
        let Cover { device, ino, .. } = self.cover;
        if (known.device, known.ino) != (device, ino) {
            return self;
        }
        Underlay { cover: known, ..self }
    }

    /// Names of what lies in it, at most so many.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn names(&self, most: usize) -> io::Result<Vec<OsString>> {
        let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| {
            let name = entry?.file_name().to_bytes().to_vec();
            Ok((name != b"." && name != b"..").then(|| OsString::from_vec(name)))
        };
        let found = Dir::read_from(&self.directory)?;
        found.filter_map(|entry| name(entry).transpose()).take(most).collect()
    }

    /// What must be kept to undo the cover.
    #[must_use]
    pub fn cover(&self) -> &Cover {
        &self.cover
    }

    /// Whether it looks as a cover leaves it: immutable, and writable by nobody. Whoever knows of no cover can
    /// only tell.
    #[must_use]
    pub fn looks_covered(&self) -> bool {
        let is_bare = |found: std::fs::Metadata| found.mode() & WRITE_BITS == 0;
        is_immutable(&self.directory) && self.directory.metadata().is_ok_and(is_bare)
    }

    /// Puts the cover on. Idempotent.
    ///
    /// # Errors
    /// If the permission bits cannot be changed; a refused immutable flag is no error.
    pub fn apply(&self) -> io::Result<()> {
        let is_on =
            is_immutable(&self.directory) && self.directory.metadata()?.mode() & WRITE_BITS == 0;
        if self.cover.immutable || is_on {
            return Ok(());
        }
        set_immutable(&self.directory, false);
        set_mode(&self.directory, self.cover.mode & !WRITE_BITS)?;
        set_immutable(&self.directory, true);
        Ok(())
    }
}

/// Covers a directory before something is mounted on it; what is returned undoes it.
///
/// # Errors
/// As [`Underlay::open`] and [`Underlay::apply`].
pub fn cover(dir: &Path) -> io::Result<Cover> {
    let underlay = Underlay::open(dir)?;
    underlay.apply()?;
    Ok(underlay.cover)
}

/// Gives a covered directory its permission bits and flags back, once nothing is mounted on it.
/// Idempotent; a directory that is gone is none to uncover.
///
/// # Errors
/// If something is mounted on it or another directory is in its place (EBUSY), or the bits cannot
/// be changed.
pub fn uncover(cover: &Cover) -> io::Result<()> {
    let directory = match open(&cover.dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let metadata = directory.metadata()?;
    if (metadata.dev(), metadata.ino()) != (cover.device, cover.ino) {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    if cover.immutable {
        return Ok(());
    }
    set_immutable(&directory, false);
    set_mode(&directory, cover.mode)
}

/// Whether a directory on which nothing is mounted looks as a cover leaves it.
#[must_use]
pub fn looks_covered(dir: &Path) -> bool {
    Underlay::open(dir).is_ok_and(|underlay| underlay.looks_covered())
}

/// Refuses to open what a process serves: that is not the directory below, and it may hang.
fn open(dir: &Path) -> io::Result<File> {
    if mount_at(&resolved(dir)?)?.is_some_and(|line| line.is_fuse()) {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(dir)
}

fn set_mode(directory: &File, mode: u32) -> io::Result<()> {
    directory.set_permissions(std::fs::Permissions::from_mode(mode))
}

fn is_immutable(directory: &File) -> bool {
    flags(directory).is_some_and(|flags| flags & IMMUTABLE != 0)
}

/// The directory's flags, where its file system has any.
fn flags(directory: &File) -> Option<libc::c_int> {
    let mut flags: libc::c_int = 0;
    // SAFETY: in spite of its name's type this call writes one `int`, to a place that is one.
    let done = unsafe { libc::ioctl(directory.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) };
    (done == 0).then_some(flags)
}

/// Sets or clears the immutable flag, if file system and rights allow it.
fn set_immutable(directory: &File, immutable: bool) {
    let Some(old) = flags(directory) else { return };
    let new = if immutable { old | IMMUTABLE } else { old & !IMMUTABLE };
    if new == old {
        return;
    }
    // SAFETY: in spite of its name's type this call reads one `int`, from a place that is one.
    let done = unsafe { libc::ioctl(directory.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const new) };
    if done != 0 {
        let error = io::Error::last_os_error();
        tracing::debug!(%error, "the directory below the mount keeps its flags");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Undoes the cover also when an assertion fails: an immutable directory cannot be removed.
    struct Undo<'a>(&'a Cover);

    impl Drop for Undo<'_> {
        fn drop(&mut self) {
            let _ = uncover(self.0);
        }
    }

    fn mode_of(dir: &Path) -> u32 {
        std::fs::metadata(dir).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_cover_goes_on_and_off_twice() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o2755)).unwrap();
        let cover = cover(dir.path()).unwrap();
        let _undo = Undo(&cover);
        assert_eq!(mode_of(dir.path()), 0o2555);
        let again = Underlay::open(dir.path()).unwrap();
        assert_eq!(again.cover().ino, cover.ino);
        assert_eq!(looks_covered(dir.path()), again.cover().immutable);
        if again.cover().immutable {
            assert!(std::fs::write(dir.path().join("lost"), "x").is_err());
        }
        uncover(&cover).unwrap();
        uncover(&cover).unwrap();
        assert_eq!(mode_of(dir.path()), 0o2755);
        assert!(!looks_covered(dir.path()));
        std::fs::write(dir.path().join("kept"), "x").unwrap();
    }

    #[test]
    fn another_directory_in_its_place_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("place");
        std::fs::create_dir(&place).unwrap();
        let mut other = Underlay::open(&place).unwrap().cover().clone();
        other.ino += 1;
        assert_eq!(uncover(&other).unwrap_err().raw_os_error(), Some(libc::EBUSY));
        other.dir.push("gone");
        uncover(&other).unwrap();
    }

    #[test]
    fn file_systems_without_the_flag_are_covered_by_bits() {
        let shm = Path::new("/dev/shm");
        if !shm.is_dir() {
            return;
        }
        let dir = tempfile::tempdir_in(shm).unwrap();
        let before = mode_of(dir.path());
        let cover = cover(dir.path()).unwrap();
        let _undo = Undo(&cover);
        assert_eq!(mode_of(dir.path()), before & !WRITE_BITS);
        uncover(&cover).unwrap();
        assert_eq!(mode_of(dir.path()), before);
    }
}
