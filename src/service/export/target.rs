//! The directory that an export fills: made or found, and what in it is not to be filled.
//!
//! What must stay true: an export never fills a mount of workfs that lies in it; whom the tree
//! keeps out does not come to what is written either.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, fstat, major, minor, openat};
use rustix::io::Errno;
use workfs_mount::device_number;

use super::super::{Exit, ExportArgs, Failure};
use crate::names::Shown;

/// The way out of a directory that is closed.
const MAY_MAKE: &str = "name a directory in which you may make something";

/// The target: made, its owner's alone, or there and empty.
pub(super) fn target(args: &ExportArgs) -> Result<OwnedFd, Failure> {
    let shown = &args.to.shown();
    let unusable = |error: std::io::Error, remedy: &str| {
        let failure = Failure::of_file(shown, &error, remedy);
        if failure.exit == Exit::Busy { failure } else { Failure { exit: Exit::Usage, ..failure } }
    };
    Failure::unless_absolute(&args.to)?;
    match DirBuilder::new().mode(0o700).create(&args.to) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let entries = std::fs::read_dir(&args.to);
            let mut entries = entries.map_err(|error| unusable(error, "name a directory"))?;
            if !args.force && entries.next().is_some() {
                let reason = format!("{shown} is not empty");
                let remedy = "name a new directory; with --force files are added to it, and none \
                              is overwritten";
                return Err(Failure::new(Exit::Refused, reason, remedy));
            }
        }
        Err(error) => {
            let remedy = match error.kind() {
                std::io::ErrorKind::NotFound => "make its parent first",
                _ => MAY_MAKE,
            };
            return Err(Failure::of_file(shown, &error, remedy));
        }
    }
    let open = |path: &Path| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty())
    };
    let opened =
        open(&args.to).map_err(|errno| unusable(errno.into(), "name a directory that is yours"))?;
    let may = |asked| accessat(&opened, ".", asked, AtFlags::empty());
    // Else each name would be told of by itself.
    let may_write = may(Access::WRITE_OK | Access::EXEC_OK).or_else(|errno| match errno {
        // A directory that is there already may be open where this one is not.
        Errno::ACCESS | Errno::PERM if args.force => may(Access::EXEC_OK),
        _ => Err(errno),
    });
    may_write.map_err(|errno| Failure::of_file(shown, &errno.into(), MAY_MAKE))?;
    Ok(opened)
}

/// The mounts of workfs in which nothing is written: what is served by whoever writes there waits for itself, or is
/// given what it just gave.
pub(super) struct Others(HashSet<u64>);

impl Others {
    /// All but the one that the target itself lies in.
    pub fn than(target: impl AsFd) -> Others {
        let mounts = workfs_mount::mounts().unwrap_or_default();
        let devices = mounts.into_iter().filter(|mount| mount.is_workfs());
        let mut devices: HashSet<u64> = devices.map(|mount| mount.device).collect();
        if let Ok(own) = device(target) {
            devices.remove(&own);
        }
        Others(devices)
    }

    /// Whether a directory is in one of them.
    pub fn have(&self, dir: impl AsFd) -> Result<bool, Errno> {
        Ok(!self.0.is_empty() && self.0.contains(&device(dir)?))
    }
}

fn device(of: impl AsFd) -> Result<u64, Errno> {
    let device = fstat(of)?.st_dev;
    Ok(device_number(major(device), minor(device)))
}

/// Whether what cannot be written is refused for the name, and others may be taken all the same.
pub(super) fn is_of_one_name(error: &std::io::Error) -> bool {
    let errnos = [
        Errno::ACCESS,
        Errno::PERM,
        Errno::INVAL,
        Errno::NAMETOOLONG,
        Errno::ILSEQ,
        Errno::NOTSUP,
        Errno::NOSYS,
        Errno::NOTDIR,
        Errno::LOOP,
        Errno::BUSY,
        // Of another file system that is mounted there: of the target's own it was asked before.
        Errno::ROFS,
    ];
    errnos.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
