//! Descriptors that a process passes on to those it starts: `{ echo a; echo b; } > X` is one open, and
//! each program that writes to it closes a copy of its own when it ends.
//!
//! What must stay true: nothing here decides a right, and what cannot be known (another name space, another
//! user's process, one with very many descriptors) is no reason to put a save off; what is put off is saved
//! when whoever opened the file closes it, or when nobody has it any more. Deliberately not here: what a save is.

use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
use rustix::io::Errno;

use crate::limits::DESCRIPTORS_MAX;
use crate::numbers::Ino;

use super::lineage::Lineages;

/// Whether the process that opened a file by its thread `opener` has it open still when the thread `closer`
/// closes a descriptor of it. Whoever opened it and `wrote` itself ends that by any descriptor.
pub(in crate::tree) fn is_kept_open(
    lineages: &Lineages,
    opener: u32,
    (closer, wrote): (u32, bool),
    (ino, device): (Ino, impl FnOnce() -> Option<u64>),
) -> bool {
    if wrote && opener == closer {
        return false;
    }
    match (lineages.process_of(opener), lineages.process_of(closer)) {
        (Some(owner), Some(other)) => {
            (owner != other || !wrote) && descriptors(owner, ino, device()) > 0
        }
        _ => false,
    }
}

/// How many descriptors a process, given by any of its threads, has of a file of this number: of the file system with
/// this device number, where that is known.
pub(in crate::tree) fn descriptors(process: u32, ino: Ino, device: Option<u64>) -> usize {
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fdinfo")) else { return 0 };
    let number = ino.0.to_string();
    let has_number = |one: &fs::DirEntry| {
        let told = fs::read_to_string(one.path()).unwrap_or_default();
        told.lines().any(|line| line.strip_prefix("ino:").is_some_and(|ino| ino.trim() == number))
    };
    let is_there = |one: &fs::DirEntry| {
        let its = device_of(
            &Path::new("/proc").join(process.to_string()).join("fd").join(one.file_name()),
        );
        match (device, its) {
            (Some(device), Ok(its)) => its == device,
            // It was closed meanwhile.
            (_, Err(Errno::NOENT)) => false,
            // What may not be asked for is taken for the file.
            (None, _) | (_, Err(_)) => true,
        }
    };
    let open = open.flatten().take(DESCRIPTORS_MAX);
    // Most are of other file systems, which one call tells.
    open.filter(|one| is_there(one) && has_number(one)).count()
}

/// The device number of what a descriptor is of. Asked for nothing else no file system is asked, and so not this one,
/// for which a caller waits.
fn device_of(descriptor: &Path) -> rustix::io::Result<u64> {
    let (flags, nothing) = (AtFlags::STATX_DONT_SYNC, StatxFlags::empty());
    let told = statx(CWD, descriptor, flags, nothing)?;
    Ok(makedev(told.stx_dev_major, told.stx_dev_minor))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn what_a_process_has_open_is_told_by_its_number() {
        let file = tempfile::tempfile().unwrap();
        let found = file.metadata().unwrap();
        let (ino, device, own) = (Ino(found.ino()), found.dev(), std::process::id());
        assert_eq!(descriptors(own, ino, Some(device)), 1);
        let copy = file.try_clone().unwrap();
        assert_eq!(descriptors(own, ino, Some(device)), 2);
        assert_eq!(descriptors(own, ino, Some(device + 1)), 0, "another file system's");
        drop((copy, file));
        assert_eq!(descriptors(own, ino, Some(device)), 0);
        assert_eq!(descriptors(u32::MAX, ino, None), 0);
        // Oneself closes for oneself, and nothing is known of who is not there.
        let kept = |opener| is_kept_open(&Lineages::default(), opener, (own, true), (ino, || None));
        assert!(!kept(own) && !kept(0));
    }
}
