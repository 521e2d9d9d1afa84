//! What is mounted where, for those who only want to know whether something is: where the kernel
//! does not tell (no `/proc`), nothing is.

use std::path::Path;

use workfs_mount::MountLine;

use crate::daemon::failure::{Cause, Failure};

/// Fails where the kernel does not tell what is mounted.
///
/// # Errors
/// If `/proc` is not there.
pub fn expect_told() -> Result<(), Failure> {
    workfs_mount::mounts().map(drop).map_err(|error| {
        let reason = format!("what is mounted cannot be told: {error}");
        Failure::new(Cause::Mount, reason, "mount /proc (`mount -t proc proc /proc`)")
    })
}

/// The topmost mount on exactly this absolute path.
#[must_use]
pub fn at(dir: &Path) -> Option<MountLine> {
    workfs_mount::mount_at(dir).ok().flatten()
}

/// What lies in the mounts on this absolute path, not counting those that lie on each other there.
#[must_use]
pub fn inside(dir: &Path) -> Vec<MountLine> {
    let all = workfs_mount::mounts().unwrap_or_default();
    let lowest = workfs_mount::stack_at(dir).unwrap_or_default().into_iter().next();
    let mut inside = lowest.map_or_else(Vec::new, |on| workfs_mount::mounts_inside(&all, &on));
    inside.retain(|mount| mount.dir != dir);
    inside
}

/// All mounts of workfs, the topmost first.
#[must_use]
pub fn of_workfs() -> Vec<MountLine> {
    let mounts = workfs_mount::mounts().unwrap_or_default();
    mounts.into_iter().rev().filter(MountLine::is_workfs).collect()
}

/// The mount that this absolute path lies in.
#[must_use]
pub fn around(path: &Path) -> Option<MountLine> {
    workfs_mount::mount_around(path).ok().flatten()
}

/// The mount that the working directory lies in.
#[must_use]
pub fn here() -> Option<MountLine> {
    workfs_mount::mount_here().ok().flatten()
}
