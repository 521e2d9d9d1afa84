//! Whether a path means the same to a daemon as to who asks it: each may be in a name space of
//! mounts, or below a root directory, of its own, as in a mount that `exec` made.
//!
//! Deliberately not here: which paths a daemon is asked about (`service`).

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::daemon::failure::{Cause, Failure};
use crate::daemon::mounts::mount_table;
use crate::daemon::paths::answered;
use crate::names::Shown;

/// Fails where the process `daemon` would find another place by this path; passes where that cannot be told.
///
/// # Errors
/// If it would, or the place does not answer.
pub(super) fn expect_same_place(daemon: u32, path: &Path) -> Result<(), Failure> {
    let asked = path.to_owned();
    if answered(path, move || is_same_place(daemon, &asked))? {
        return Ok(());
    }
    let remedy = "name a place outside of it (inside, `cp -a` does it)";
    let reason = match mount_table::around(path).filter(|mount| mount.is_workfs()) {
        Some(mount) => {
            let dir = mount.dir.shown();
            format!("{} lies inside the mount {dir}, which the daemon does not see", path.shown())
        }
        None => {
            let how = "which sees other mounts, or has another root directory";
            format!("{} is another place for the daemon, process {daemon}, {how}", path.shown())
        }
    };
    Err(Failure::new(Cause::Usage, reason, remedy))
}

fn is_same_place(daemon: u32, path: &Path) -> bool {
    let root = PathBuf::from(format!("/proc/{daemon}/root"));
    // Another user's, or one that is not seen from here.
    if root.join(".").symlink_metadata().is_err() {
        return true;
    }
    let number = |at: &Path| at.symlink_metadata().ok().map(|found| (found.dev(), found.ino()));
    // What is not there yet lies in what is.
    let Some((here, own)) = path.ancestors().find_map(|at| Some((at, number(at)?))) else {
        return true;
    };
    number(&root.join(here.strip_prefix("/").unwrap_or(here))) == Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sees_the_same_finds_the_same_also_of_what_is_not_there_yet() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id();
        for path in [dir.path().to_owned(), dir.path().join("new/one"), "/".into()] {
            expect_same_place(own, &path).unwrap();
        }
        // Nothing is known of a process that is not there.
        expect_same_place(u32::MAX, dir.path()).unwrap();
    }
}
