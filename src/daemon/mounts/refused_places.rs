//! Places in which a daemon would wait for itself.
//!
//! What must stay true: whatever a daemon opens for a command lies in none of its own mounts, by
//! whatever name.

use std::path::{Component, Path, PathBuf};

use super::Mounts;
use super::options::{self, OwnOptions};
use crate::daemon::failure::{Cause, Failure};
use crate::daemon::paths::{answered, device_of};
use crate::names::Shown;

impl Mounts {
    /// Places that the daemon would wait for itself in, and levels it was not started with.
    pub(super) fn refuse_place(&self, dir: &Path, own: &OwnOptions) -> Result<(), Failure> {
        let refuse = |cause, reason: String, remedy: &str| Err(Failure::new(cause, reason, remedy));
        if !dir.is_absolute() || dir.components().any(|part| part == Component::ParentDir) {
            let reason = format!("{} is not absolute, or has `..`", dir.shown());
            return refuse(Cause::Usage, reason, "name it from the root");
        }
        if self.paths.store().starts_with(dir) {
            let store = self.paths.store().shown();
            let reason = format!("{} contains the store {store}", dir.shown());
            return refuse(Cause::Usage, reason, "mount elsewhere: the mount would hide its store");
        }
        if let Some(outer) = self.dir_around(dir).filter(|outer| outer != dir) {
            let reason = format!("{} lies inside the mount {}", dir.shown(), outer.shown());
            return refuse(Cause::Usage, reason, "mount outside of the store's other mounts");
        }
        if own.sync.is_some_and(|sync| sync != self.sync) {
            let level = options::sync_name(self.sync);
            let reason = format!("the store's daemon runs with --sync {level}");
            return refuse(Cause::Conflict, reason, "unmount all, then mount with the other level");
        }
        Ok(())
    }

    /// Which of the mounts `path` lies in, if any, by its name.
    fn dir_around(&self, path: &Path) -> Option<PathBuf> {
        let table = self.table.lock();
        let rows = table.rows.iter().filter(|row| row.is_seen());
        rows.filter_map(|row| row.mount.place()).find(|dir| path.starts_with(dir))
    }

    /// Which of the mounts a path leads into, if any, by whatever name: a bind mount and a link have others.
    ///
    /// # Errors
    /// If what lies there does not answer.
    pub fn reached_by(&self, path: &Path) -> Result<Option<PathBuf>, Failure> {
        if let Some(dir) = self.dir_around(path) {
            return Ok(Some(dir));
        }
        let asked = path.to_owned();
        let Some(device) = answered(path, move || device_of(&asked))? else { return Ok(None) };
        let table = self.table.lock();
        let row = table.rows.iter().find(|row| row.device() == Some(device));
        Ok(row.map(|row| row.info_now().dir.into()))
    }
}
