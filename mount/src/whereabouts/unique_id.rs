//! The number of a mount that no other mount ever has, and what the kernel says of it.
//!
//! What must stay true: nothing here walks a path that a process may serve, but the one on which this process
//! has just mounted, and no file system is asked anything. Deliberately not here: what follows from it.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// `STATX_MNT_ID_UNIQUE` of `linux/stat.h` (Linux 6.8).
const MNT_ID_UNIQUE: u32 = 0x4000;

/// `SYS_statmount`, the same on all architectures (Linux 6.8).
const STATMOUNT: libc::c_long = 457;

/// `STATMOUNT_MNT_BASIC` of `linux/mount.h`: the numbers of the mount.
const MNT_BASIC: u64 = 0x2;

/// A mount's number for good, other than that of [`crate::MountLine::id`], which the next mount may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UniqueId(u64);

/// `struct mnt_id_req` of `linux/mount.h`, in its first version.
#[repr(C)]
struct Request {
    size: u32,
    spare: u32,
    mount: u64,
    mask: u64,
}

/// `struct statmount` of `linux/mount.h`.
#[repr(C)]
struct Answer {
    size: u32,
    options: u32,
    mask: u64,
    device: [u32; 2],
    magic: u64,
    flags: u32,
    fs_type: u32,
    mount: u64,
    parent: u64,
    /// As `/proc/self/mountinfo` has it.
    line: u32,
    /// What is not asked for here.
    rest: [u32; 113],
}

impl UniqueId {
    /// That of the topmost mount on `dir`; `None` where the kernel has none.
    pub fn at(dir: &Path) -> Option<UniqueId> {
        let how = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let found = statx(CWD, dir, how, StatxFlags::from_bits_retain(MNT_ID_UNIQUE)).ok()?;
        (found.stx_mask & MNT_ID_UNIQUE != 0).then_some(UniqueId(found.stx_mnt_id))
    }

    /// Its number in this process's table of mounts; `None`: it is not there any more.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn line(self) -> io::Result<Option<u64>> {
        let request =
            Request { size: size_of::<Request>() as u32, spare: 0, mount: self.0, mask: MNT_BASIC };
        // SAFETY: all of it are integers.
        let mut answer: Answer = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel reads the first, whose size it is told, and writes at most as many bytes as it is
        // told to the second; both outlive the call.
        let done = unsafe {
            libc::syscall(STATMOUNT, &raw const request, &raw mut answer, size_of::<Answer>(), 0)
        };
        if done == 0 {
            return Ok(Some(answer.line.into()));
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            error => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whereabouts::mountinfo::mount_at;

    #[test]
    fn a_mount_is_found_in_the_table_and_one_that_never_was_is_not() {
        // Kernels before 6.8 have neither.
        let Some(proc) = UniqueId::at(Path::new("/proc")) else { return };
        assert_eq!(proc.line().unwrap(), Some(mount_at(Path::new("/proc")).unwrap().unwrap().id));
        assert_eq!(UniqueId(u64::MAX).line().unwrap(), None);
    }
}
