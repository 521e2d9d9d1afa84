//! The mount that a file lies in, above all the working directory.
//!
//! What must stay true: it is found by the kernel's number for it, since the directory's path may lead to
//! nothing by now (it was removed, or its mount taken from sight), or to something else (that was mounted over
//! it); finding it hangs on nobody. Deliberately not here: whose it is.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statfs, statx};
use rustix::path::Arg;
use rustix::process::getcwd;

use super::mountinfo::{MountLine, device_number, mount_around, mounts};
use crate::mounting::deadline::within;
use crate::mounting::heal::{STAT_WAIT, is_gone};

/// The number of the mount that a file lies in, which this path leads to: in `/proc`, say, whatever serves the file.
///
/// # Errors
/// If the path leads nowhere, or the kernel does not tell.
pub fn mount_number(path: &Path) -> io::Result<u64> {
    number(CWD, path, AtFlags::empty()).map(|here| here.stx_mnt_id)
}

/// The number of the mount that an open file lies in.
///
/// # Errors
/// If the kernel does not tell.
pub(crate) fn mount_of(open: impl AsFd) -> io::Result<u64> {
    number(open, c"", AtFlags::EMPTY_PATH).map(|here| here.stx_mnt_id)
}

/// What the kernel alone answers, also where nobody may look at what is mounted.
fn number(from: impl AsFd, path: impl Arg, flags: AtFlags) -> io::Result<Statx> {
    let here = statx(from, path, flags | AtFlags::STATX_DONT_SYNC, StatxFlags::empty())?;
    let told = here.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    if told { Ok(here) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// The mount that the working directory lies in; `None`: one that is not in the table, and that no process serves.
/// Where no table is to be had (`/proc` is not there, or another name space's) none is in it.
///
/// # Errors
/// If the kernel does not tell.
pub fn mount_here() -> io::Result<Option<MountLine>> {
    let here = match number(CWD, c"", AtFlags::EMPTY_PATH) {
        // Before Linux 5.8 there is only the path.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return by_path(),
        here => here?,
    };
    let id = here.stx_mnt_id;
    let table = mounts();
    let has_table = table.is_ok();
    if let Some(line) = table.into_iter().flatten().find(|line| line.id == id) {
        return Ok(Some(line));
    }
    // What lies on a disk is asked nothing. And one to which a path leads has its mount in the table, or it lies
    // above the root of this process (chroot), and is none of ours.
    if here.stx_dev_major != 0 || has_table && is_reached() {
        return Ok(None);
    }
    let device = device_number(here.stx_dev_major, here.stx_dev_minor);
    Ok(is_served().map(|read_only| MountLine::unseen(id, device, read_only)))
}

/// The same where the kernel tells no numbers: what was removed, or is hidden, is not found.
fn by_path() -> io::Result<Option<MountLine>> {
    mount_around(&std::env::current_dir()?)
}

/// Whether a path leads to the working directory. The kernel alone is asked: what a C library does where none
/// does waits for who serves it.
fn is_reached() -> bool {
    getcwd(Vec::new()).is_ok_and(|path| path.to_bytes().starts_with(b"/"))
}

/// Whether the working directory is read-only, if a process serves it.
fn is_served() -> Option<bool> {
    match within(STAT_WAIT, || statfs(c".").map_err(io::Error::from)) {
        Ok(Some(Ok(found))) => {
            let is_fuse = found.f_type == libc::FUSE_SUPER_MAGIC;
            is_fuse.then_some(u64::try_from(found.f_flags).unwrap_or(0) & libc::ST_RDONLY != 0)
        }
        Ok(Some(Err(error))) => is_gone(&error).then_some(false),
        // The process is stopped.
        Ok(None) => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_tell_no_numbers_are_asked_by_path() {
        assert_eq!(
            by_path().unwrap().map(|line| line.id),
            mount_here().unwrap().map(|line| line.id)
        );
    }
}
