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

use crate::daemon::{Cause, Failure, mounted_at, of_workfs};

/// The length of a map of users that is none, as `/proc/self/uid_map` has it.
const ALL_USERS: &str = "4294967295";

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

/// Fails where the owners that the daemon tells of are nobody here, nor are we whom it takes us for: where it runs outside
/// of this user name space, in which the kernel reads its numbers.
pub fn expect_owners(dir: &Path) -> Result<(), Failure> {
    let text = |file: &str| std::fs::read_to_string(file).ok();
    let nobody = text("/proc/sys/kernel/overflowuid").and_then(|text| text.trim().parse().ok());
    let maps_all = text("/proc/self/uid_map")
        .is_none_or(|map| map.split_whitespace().nth(2) == Some(ALL_USERS));
    let owner = rustix::fs::lstat(dir).map(|found| found.st_uid).ok();
    if maps_all || owner != nobody {
        return Ok(());
    }
    let reason =
        "the store's daemon runs outside of this user name space, in which its users are others";
    let remedy = "start it in here (no mount of the store outside), or run `workfs exec` outside, with \
                  `unshare` in it; `unshare --map-user` with your own number keeps you who you are";
    Err(Failure::new(Cause::Mount, reason, remedy))
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
