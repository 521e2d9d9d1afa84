//! A name space of mounts of this process's own: what is mounted in it nobody else sees.
//!
//! What must stay true: this runs in the process's first thread, since a name space is a thread's
//! own and `/proc/self` tells of the first; nothing that is to live outside (a daemon) is started
//! from here on. Deliberately not here: user name spaces, in which programs such as `sudo` would
//! not work.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change};
use rustix::thread::{CapabilitySet, UnshareFlags};
use workfs_mount::MountOptions;

use crate::daemon::{Failure, mounted_at, of_workfs};

/// Whether this process may have one.
pub fn is_allowed() -> bool {
    let has = rustix::thread::capabilities(None);
    has.is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Enters one and mounts there; gives the connection to the kernel, for the daemon.
pub fn mount(dir: &Path, options: &MountOptions) -> Result<OwnedFd, Failure> {
    enter().map_err(|error| Failure::io("making a name space of mounts", &error.into()))?;
    Ok(workfs_mount::connect(dir, options)?)
}

fn enter() -> rustix::io::Result<()> {
    // SAFETY: only the view of mounts changes; no descriptor and no memory does.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)? };
    // What is mounted outside later is seen here; nothing gets out.
    let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", flags)?;
    // Other agents' mounts are none of the command's business; and as long as this name space had
    // a copy of one, of whichever store, that one could not end.
    for other in of_workfs() {
        // By its path one below another would take away what lies on it.
        if mounted_at(&other.dir).is_none_or(|top| top.id != other.id) {
            continue;
        }
        let _ = rustix::mount::unmount(&other.dir, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    }
    Ok(())
}

/// Takes the mount away; says whether it ended, which it does when its last user lets go.
pub fn unmount(dir: &Path) -> bool {
    match rustix::mount::unmount(dir, UnmountFlags::NOFOLLOW) {
        Ok(()) => true,
        Err(Errno::BUSY) => {
            let _ = rustix::mount::unmount(dir, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
            false
        }
        // Whoever runs in it may have done so.
        Err(_) => false,
    }
}
