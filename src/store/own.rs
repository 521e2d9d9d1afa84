//! Files of a store's own beside it: its lock, its log, its list of covers. Whoever runs the store may
//! do so in a directory of somebody else, who could have put there what leads to a file of theirs.
//!
//! What must stay true: what is opened here has one name, which is the one it was opened by; what is
//! removed here is still the file that it was taken for.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Opens a store's own file; one that is made is its owner's alone.
///
/// # Errors
/// Where something else lies there: a link, a file with another name as well, no file.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a symbolic link; remove it"),
        _ => error,
    })?;
    if has_one_name(&file)? {
        return Ok(file);
    }
    Err(io::Error::other("it is no file, or has another name as well; remove it"))
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

    /// Removes it, by its name; says whether that was its name still, and is free now.
    ///
    /// # Errors
    /// If it has that name and cannot be removed.
    pub fn remove(self, path: &Path) -> io::Result<bool> {
        if self.has_name(path) { std::fs::remove_file(path).map(|()| true) } else { Ok(false) }
    }
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
        let made = open_own(&mut options, &path("new")).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
    }
}
