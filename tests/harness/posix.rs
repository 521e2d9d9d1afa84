//! Calls whose errors the standard library hides, or that it does not have.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::Path;

pub use rustix::io::Errno;

/// An error as a number.
fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or_else(|| panic!("no error of a call: {error}"))
}

/// Closes a file and tells what `close` said: `drop` does not.
pub fn close(file: File) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and nobody uses it after this: `into_raw_fd` gave it up.
    let done = unsafe { libc::close(file.into_raw_fd()) };
    if done == 0 { Ok(()) } else { Err(errno(&io::Error::last_os_error())) }
}

/// Truncates, writes and closes, as programs do; the first error counts.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), Errno> {
    let mut file = open(path)?;
    let written = file.write_all(bytes).map_err(|error| errno(&error));
    let closed = close(file);
    written.and(closed)
}

/// The same with `fsync` before `close`; tells what each of the three said.
pub fn save_synced(path: &Path, bytes: &[u8]) -> [Result<(), Errno>; 3] {
    let mut file = open(path).expect("can be opened");
    let written = file.write_all(bytes).map_err(|error| errno(&error));
    let synced = file.sync_all().map_err(|error| errno(&error));
    [written, synced, close(file)]
}

fn open(path: &Path) -> Result<File, Errno> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).open(path).map_err(|error| errno(&error))
}

/// `renameat2` with flags.
pub fn rename_with(
    from: &Path,
    to: &Path,
    flags: rustix::fs::RenameFlags,
) -> Result<(), rustix::io::Errno> {
    rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags)
}

/// Raises this process's limit of open files; false where that is not allowed.
pub fn set_soft_open_files(wanted: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|current| current >= wanted) {
        return true;
    }
    let maximum = now.maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok()
}

/// A file's content, mapped shared and readable.
pub struct Mapped {
    at: *mut libc::c_void,
    length: usize,
}

impl Mapped {
    /// Maps a whole file.
    pub fn new(file: &File) -> io::Result<Mapped> {
        let length = usize::try_from(file.metadata()?.len()).expect("a small file");
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping at a place that the kernel chooses touches no other memory.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, flags, file.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapped { at, length })
    }

    /// What it shows now.
    pub fn bytes(&self) -> Vec<u8> {
        self.part(0..self.length)
    }

    /// What it shows now of a part.
    pub fn part(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        assert!(range.end <= self.length);
        // SAFETY: the mapping is this long and lives as long as `self`; the file may change under
        // it, so it is copied byte by byte with volatile reads and never borrowed.
        range.map(|at| unsafe { self.at.cast::<u8>().add(at).read_volatile() }).collect()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and nobody can borrow from it.
        unsafe { libc::munmap(self.at, self.length) };
    }
}
