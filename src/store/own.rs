//! Files of a store's own beside it: its lock, its log, its list of covers. Whoever runs the store
//! may do so in a directory of somebody else, who could have put there a link to one of his own
//! files.
//!
//! What must stay true: what is opened here is the very file that has the name, and nobody waits
//! for the other end of a pipe; what [`open_own`] opens has no second name; what is removed here,
//! or gets another mode, is still the file that it was taken for.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Whether there is a store at `path`. An empty file is none yet.
#[must_use]
pub fn is_made(path: &Path) -> bool {
    let is_empty = |found: Metadata| found.is_file() && found.len() == 0;
    std::fs::metadata(path).is_ok_and(|found| !is_empty(found))
}

/// What has the same path with more at its end.
#[must_use]
pub fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Opens a store's own file; one that is made is its owner's alone.
///
/// # Errors
/// Where something else lies there: a link, a file with another name as well, no file.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = open_there(options, path)?;
    if has_one_name(&file)? {
        return Ok(file);
    }
    Err(io::Error::other(NotOwn("it is no file, or has another name as well")))
}

/// Opens a store's own file that may have a second name: a log, which whoever copies a store by links (`cp -al`) has
/// there as well, and which is not to be removed for that.
///
/// # Errors
/// Where a link lies there, or no file.
pub fn open_itself(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = open_there(options, path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(NotOwn("it is no file")))
}

/// What lies at the name of a store's own file, and is none.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{0}; remove it")]
pub struct NotOwn(pub &'static str);

impl NotOwn {
    /// Why opening one failed, if it was that.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<NotOwn> {
        error.get_ref()?.downcast_ref().copied()
    }
}

fn open_there(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    file.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other(NotOwn("it is a symbolic link")),
        Some(libc::EISDIR) => io::Error::other(NotOwn("it is a directory")),
        Some(libc::ENXIO) => io::Error::other(NotOwn("it is a socket")),
        _ => error,
    })
}

/// Which file something is, whatever has its name by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Of what was found by looking.
    #[must_use]
    pub fn of(found: &Metadata) -> Identity {
        Identity { device: found.dev(), inode: found.ino() }
    }

    /// Of what has this name now.
    ///
    /// # Errors
    /// If nothing has, or it cannot be looked at.
    pub fn named(path: &Path) -> io::Result<Identity> {
        std::fs::symlink_metadata(path).map(|found| Identity::of(&found))
    }

    /// Whether it has this name still: others may have removed it, and made another.
    #[must_use]
    pub fn has_name(self, path: &Path) -> bool {
        Identity::named(path).is_ok_and(|there| there == self)
    }

    /// The user whose it is, if it has this name still.
    #[must_use]
    pub fn owner(self, path: &Path) -> Option<u32> {
        let there = std::fs::symlink_metadata(path).ok()?;
        (Identity::of(&there) == self).then(|| there.uid())
    }

    /// Removes it, by its name; says whether that was its name still, and is free now.
    ///
    /// # Errors
    /// If it has that name and cannot be removed.
    pub fn remove(self, path: &Path) -> io::Result<bool> {
        if self.has_name(path) { std::fs::remove_file(path).map(|()| true) } else { Ok(false) }
    }

    /// Gives it this mode, if it has this name still; says whether it had. It is held meanwhile: by the name the mode
    /// would be given to whatever is there by then, such as what somebody's link leads to.
    ///
    /// # Errors
    /// If the mode cannot be set.
    pub fn set_mode(self, path: &Path, mode: u32) -> io::Result<bool> {
        let mut held = File::options();
        held.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW);
        let held = match held.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            held => held?,
        };
        if Identity::of(&held.metadata()?) != self {
            return Ok(false);
        }
        set_mode_of_held(&held, mode).map(|()| true)
    }
}

/// What is only held has no mode to be set but by the kernel's number for it (`fchmodat2`, Linux 6.6, the same on all
/// architectures), or by its name in `/proc`.
fn set_mode_of_held(held: &File, mode: u32) -> io::Result<()> {
    const FCHMODAT2: libc::c_long = 452;
    // SAFETY: the pointer is to a string that ends in NUL and outlives the call.
    let done = unsafe {
        libc::syscall(FCHMODAT2, held.as_raw_fd(), c"".as_ptr(), mode, libc::AT_EMPTY_PATH)
    };
    if done == 0 {
        return Ok(());
    }
    let itself = format!("/proc/self/fd/{}", held.as_raw_fd());
    std::fs::set_permissions(itself, Permissions::from_mode(mode))
}

/// Whether it is a file that can be reached by no second name.
///
/// # Errors
/// If it cannot be looked at.
pub fn has_one_name(file: &File) -> io::Result<bool> {
    // None is left of one that was just removed.
    file.metadata().map(|found| found.is_file() && found.nlink() <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_leads_elsewhere_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("precious"), "kept").unwrap();
        std::fs::hard_link(path("precious"), path("hard")).unwrap();
        std::os::unix::fs::symlink("precious", path("soft")).unwrap();
        std::os::unix::fs::symlink("none", path("dangling")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        let mut options = File::options();
        options.read(true).write(true).create(true);
        for name in ["hard", "soft", "dangling", "pipe"] {
            open_own(&mut options, &path(name)).unwrap_err();
        }
        assert!(!path("none").exists());
        let mut there = File::options();
        for name in ["soft", "dangling", "pipe"] {
            open_itself(there.read(true), &path(name)).unwrap_err();
        }
        open_itself(there.read(true), &path("hard")).unwrap();
        let made = open_own(&mut options, &path("new")).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_mode_is_given_to_nothing_that_somebody_puts_in_its_place() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("precious"), "kept").unwrap();
        std::os::unix::fs::symlink("precious", path("trap")).unwrap();
        let _own = std::os::unix::net::UnixListener::bind(path("own")).unwrap();
        let own = Identity::named(&path("own")).unwrap();
        let mode = |name: &str| std::fs::symlink_metadata(path(name)).unwrap().mode() & 0o777;
        let before = mode("precious");
        let is_over = AtomicBool::new(false);
        let set = std::thread::scope(|scope| {
            scope.spawn(|| {
                use rustix::fs::{CWD, RenameFlags, renameat_with};
                while !is_over.load(Ordering::Relaxed) {
                    let swap = RenameFlags::EXCHANGE;
                    renameat_with(CWD, path("trap"), CWD, path("own"), swap).unwrap();
                }
            });
            let modes = (0..20_000).map(|nth| if nth % 2 == 0 { 0o666 } else { 0o602 });
            let set: Vec<_> = modes.map(|mode| own.set_mode(&path("own"), mode)).collect();
            // Before any of them fails the test, which waits for the other thread.
            is_over.store(true, Ordering::Relaxed);
            set.into_iter().filter(|set| *set.as_ref().unwrap()).count()
        });
        assert_eq!(mode("precious"), before);
        assert!(set > 0, "it was never there");
        assert!(!own.set_mode(&path("none"), 0o600).unwrap());
    }
}
