//! Makes the directory below a mount point read-only, so that what is written there while nothing
//! is mounted (after a crash, say) is refused instead of lost to everyone.
//!
//! What must stay true: a [`Cover`] says all that is needed to undo it, also after a crash, so it
//! can be stored before it is put on ([`Underlay::cover`] tells it without changing anything);
//! undoing acts on the very directory that was covered or on none, whatever that is called by now, and not
//! as long as a mount of ours lies on it. Permission bits do not stop
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
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};

use super::heal::resolved;
use super::hold;
use crate::whereabouts::mountinfo::{
    MountLine, device_number, is_reached, lies_in_fuse, may_lie_on, mount_at, mounts,
};
use crate::whereabouts::standing::mount_of;

/// `FS_IMMUTABLE_FL` of `linux/fs.h`: nothing can be made in or removed from the directory.
const IMMUTABLE: libc::c_int = 0x10;

/// The permission bits that allow writing.
const WRITE_BITS: u32 = 0o222;

/// What a covered directory was like before: plain fields, to be stored and read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The directory, as it was called then.
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

impl Cover {
    /// Whether both are of the same directory, whatever that is called.
    #[must_use]
    pub fn is_of_same(&self, other: &Cover) -> bool {
        (self.device, self.ino) == (other.device, other.ino)
    }

    /// Whether they may be although the device has another number by now, as after a new start of the machine.
    #[must_use]
    pub fn is_named_as(&self, other: &Cover) -> bool {
        (&self.dir, self.ino) == (&other.dir, other.ino)
    }
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
        let directory = directory_below(&dir)?;
        Underlay::of(dir, directory)
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

    /// As it is now.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn anew(self) -> io::Result<Underlay> {
        Underlay::of(self.cover.dir, self.directory)
    }

    /// As it is when no other process of ours mounts on it any more, which is waited for, though not for longer than
    /// that; and none does from then on until [`Underlay::let_go`].
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn held(self, patience: Duration) -> io::Result<Underlay> {
        hold::hold(&self.directory, patience);
        self.anew()
    }

    /// Others may mount on it.
    pub fn let_go(&self) {
        hold::let_go(&self.directory);
    }

    /// With what is known of this directory from before it was covered, if it is as a cover leaves it: one that
    /// somebody has opened since is to stay as that was wanted.
    #[must_use]
    pub fn covered_by(self, known: &Cover) -> Underlay {
        if self.cover.ino != known.ino || self.cover.mode != known.mode & !WRITE_BITS {
            return self;
        }
        let Cover { mode, immutable, .. } = *known;
        Underlay { cover: Cover { mode, immutable, ..self.cover }, ..self }
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
        is_immutable(&self.directory) && self.is_bare()
    }

    /// Whether its bits let nobody write there, as a cover leaves them, also one that is being taken off.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.directory.metadata().is_ok_and(|found| found.mode() & WRITE_BITS == 0)
    }

    /// Whether its owner is who runs this process, and what this process closes on its file system is made
    /// immutable, too: then bits alone are no cover.
    #[must_use]
    pub fn is_covered_by_flag(&self) -> bool {
        let is_own = |found: std::fs::Metadata| found.uid() == rustix::process::geteuid().as_raw();
        let may_set =
            |sets: CapabilitySets| sets.effective.contains(CapabilitySet::LINUX_IMMUTABLE);
        self.directory.metadata().is_ok_and(is_own)
            && flags(&self.directory).is_some()
            && capabilities(None).is_ok_and(may_set)
    }

    /// Whether its bits, flags or owner were changed so short a time ago.
    #[must_use]
    pub fn changed_within(&self, time: Duration) -> bool {
        let Ok(found) = self.directory.metadata() else { return false };
        let since = Duration::new(
            u64::try_from(found.ctime()).unwrap_or_default(),
            u32::try_from(found.ctime_nsec()).unwrap_or_default(),
        );
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(since) < time
    }

    /// Puts the cover on. Idempotent.
    ///
    /// # Errors
    /// If the permission bits cannot be changed; a refused immutable flag is no error.
    pub fn apply(&self) -> io::Result<()> {
        if self.cover.immutable || self.looks_covered() {
            return Ok(());
        }
        set_immutable(&self.directory, false);
        set_mode(&self.directory, self.cover.mode & !WRITE_BITS)?;
        set_immutable(&self.directory, true);
        Ok(())
    }

    /// Gives the directory the permission bits and flags back that it had before, once no mount of ours lies on
    /// it. Idempotent; one that is as it was is not touched, so that this succeeds where it never could be
    /// covered.
    ///
    /// # Errors
    /// If a mount lies on it (EBUSY), or the bits cannot be changed.
    pub fn uncover(&self) -> io::Result<()> {
        if self.lies_below_a_mount()? {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        let mode = self.directory.metadata()?.mode() & 0o7777;
        if self.cover.immutable || (mode == self.cover.mode && !is_immutable(&self.directory)) {
            return Ok(());
        }
        set_immutable(&self.directory, false);
        set_mode(&self.directory, self.cover.mode)
    }

    fn called(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.directory.as_raw_fd()))
    }

    /// Whether a mount of workfs lies on it, here or where a directory above it is bound to; also a dead one.
    ///
    /// # Errors
    /// If `/proc` is not there.
    pub fn lies_below_a_mount(&self) -> io::Result<bool> {
        let before = self.called()?;
        let all = mounts()?;
        // As it is called by now.
        let called = self.called()?;
        // In the mount that it was opened in it has one name, if that is the one that it had when the table was
        // read. To look below each of some hundred mounts that lie there by other names takes seconds.
        let lies_in = mount_of(&self.directory).ok().filter(|_| called == before);
        let own = kernel_device(self.cover.device);
        let mut ours = all.iter().filter(|line| {
            let is_another = Some(line.parent) == lies_in && line.dir != called;
            let may_be_it = line.is_workfs() && !is_another;
            may_be_it && is_reached(&all, line) && may_lie_on(&all, line, own)
        });
        let is_it = |line: &MountLine| {
            // Who serves the way there may not answer.
            let look = || directory_below(&line.dir)?.metadata();
            match (!lies_in_fuse(&all, line)).then(look) {
                Some(Ok(found)) => {
                    (found.dev(), found.ino()) == (self.cover.device, self.cover.ino)
                }
                // Who may not look there goes by the name.
                _ => line.dir == called,
            }
        };
        Ok(ours.any(is_it))
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

/// As [`Underlay::uncover`], of a directory that is to be found where it was covered; one that is gone is none to
/// uncover.
///
/// # Errors
/// As that; or if another directory is in its place (EBUSY).
pub fn uncover(cover: &Cover) -> io::Result<()> {
    let below = match Underlay::open(&cover.dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    if !below.cover.is_of_same(cover) && !below.cover.is_named_as(cover) {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    below.covered_by(cover).uncover()
}

/// The directory below what is mounted on `dir`.
fn directory_below(dir: &Path) -> io::Result<File> {
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    };
    // A copy of what the parent lies in, without what is mounted there.
    let without = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let parent = open_tree(CWD, parent, without)?;
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, how, Mode::empty())?.into())
}

/// Refuses to open what a process serves: that is not the directory below, and it may hang.
fn open(dir: &Path) -> io::Result<File> {
    if mount_at(&resolved(dir)?)?.is_some_and(|line| line.is_fuse()) {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(dir)
}

/// A device number as the kernel's table of mounts has it.
fn kernel_device(device: u64) -> u64 {
    device_number(rustix::fs::major(device), rustix::fs::minor(device))
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
        assert_eq!(again.looks_covered(), again.cover().immutable);
        if again.cover().immutable {
            assert!(std::fs::write(dir.path().join("lost"), "x").is_err());
        }
        uncover(&cover).unwrap();
        uncover(&cover).unwrap();
        assert_eq!(mode_of(dir.path()), 0o2755);
        assert!(!again.looks_covered());
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
