//! System calls, as directly as a program in C would make them.
//!
//! What must stay true: `unsafe` is here and nowhere else in this program.

use std::ffi::{CStr, CString};
use std::fs::{File, Metadata};
use std::io::{self, Error};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A name for the kernel.
pub fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(Error::last_os_error()) } else { Ok(returned) }
}

/// An open directory.
pub struct Dir(OwnedFd);

impl Dir {
    /// Opens one.
    pub fn open(path: &Path) -> io::Result<Dir> {
        Ok(Dir(File::open(path)?.into()))
    }

    fn fd(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }

    /// rename(2) of a name to the same name in `to`.
    pub fn rename(&self, name: &CStr, to: &Dir) -> io::Result<()> {
        // SAFETY: both descriptors are open and `name` ends in NUL.
        check(unsafe { libc::renameat(self.fd(), name.as_ptr(), to.fd(), name.as_ptr()) })?;
        Ok(())
    }

    /// fsync(2) of the directory itself.
    pub fn flush(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open.
        check(unsafe { libc::fsync(self.fd()) })?;
        Ok(())
    }

    /// The size that stat(2) says a file has.
    pub fn size(&self, name: &CStr) -> io::Result<u64> {
        let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the descriptor is open, `name` ends in NUL, and `stat` has room for the answer.
        check(unsafe { libc::fstatat(self.fd(), name.as_ptr(), stat.as_mut_ptr(), 0) })?;
        // SAFETY: the call succeeded, so it filled `stat`.
        Ok(unsafe { stat.assume_init() }.st_size.unsigned_abs())
    }

    /// open(2) of a file in it.
    pub fn open_file(&self, name: &CStr, flags: libc::c_int) -> io::Result<File> {
        let flags = flags | libc::O_CLOEXEC;
        // SAFETY: the descriptor is open and `name` ends in NUL.
        let fd = check(unsafe { libc::openat(self.fd(), name.as_ptr(), flags, 0o644) })?;
        // SAFETY: the kernel just made this descriptor, nobody else has it.
        Ok(unsafe { File::from_raw_fd(fd) })
    }
}

/// Closes a file and says what close(2) said: where a file system judges a save.
pub fn close(file: File) -> io::Result<()> {
    use std::os::fd::IntoRawFd as _;
    // SAFETY: the descriptor was ours alone and is not used after this.
    check(unsafe { libc::close(file.into_raw_fd()) })?;
    Ok(())
}

/// Whether this process is root.
pub fn is_root() -> bool {
    // SAFETY: it has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Microseconds of CPU that this process and its ended children have used.
pub fn own_cpu_us() -> u64 {
    let mut sum = 0;
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: `usage` has room for the answer.
        if unsafe { libc::getrusage(who, usage.as_mut_ptr()) } != 0 {
            continue;
        }
        // SAFETY: the call succeeded, so it filled `usage`.
        let usage = unsafe { usage.assume_init() };
        for time in [usage.ru_utime, usage.ru_stime] {
            sum += time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_usec.unsigned_abs();
        }
    }
    sum
}

/// Clock ticks in a second, as /proc counts.
pub fn ticks_per_second() -> u64 {
    // SAFETY: it has no pointers.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1).unsigned_abs()
}

/// The major and minor number of the device that a file lies on.
pub fn device(metadata: &Metadata) -> (u32, u32) {
    (libc::major(metadata.dev()), libc::minor(metadata.dev()))
}

/// The program dies with us, also when we are killed.
pub fn die_with_parent(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    let ask = || {
        // SAFETY: an ordinary system call; nothing is allocated between fork and exec.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) }).map(drop)
    };
    // SAFETY: `ask` only makes one system call.
    unsafe { command.pre_exec(ask) };
}
