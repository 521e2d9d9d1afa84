//! Taking mounts away: one that somebody unmounts, one that nobody wants any more, all at the
//! daemon's end.
//!
//! What must stay true: a mount that is only taken from sight is noted as such, and the directory
//! below it is given back. Deliberately not here: forgetting one that has ended.

use std::path::Path;
use std::sync::Arc;

use workfs_mount::Mount;

use super::{Mounts, Row, point};
use crate::daemon::failure::{Cause, Failure};
use crate::daemon::socket::wire::UnmountAsk;
use crate::names::Shown;

impl Mounts {
    /// Unmounts a directory; says whether it was the last mount.
    ///
    /// # Errors
    /// If it is none of this daemon's, or in use and not asked to be taken away lazily.
    pub fn remove(&self, ask: &UnmountAsk) -> Result<bool, Failure> {
        let _alone = self.one_at_a_time.lock();
        let dir = Path::new(&ask.dir);
        let (mount, _) = self.find(dir).ok_or_else(|| {
            let reason = format!("{} is no mount of this store's daemon", dir.shown());
            Failure::new(Cause::Absent, reason, "`workfs ps` tells what is mounted")
        })?;
        let removed = match ask.lazy {
            true => self.take_away(&mount, dir),
            false => point::unmount(&mount).map(|()| self.unmounted(&mount, dir)),
        };
        removed.map_err(|error| point::in_use(dir, &error))?;
        self.wake();
        Ok(self.table.lock().rows.is_empty())
    }

    /// Takes away a mount that whoever had it made wants no more; one that is in use from sight.
    ///
    /// # Errors
    /// If another mount lies on top of it, or the system refuses.
    pub fn leave(&self, mount: &Mount) -> std::io::Result<()> {
        let _alone = self.one_at_a_time.lock();
        let dir = mount.place().unwrap_or_else(|| mount.dir().to_owned());
        self.take_away(mount, &dir)?;
        self.wake();
        Ok(())
    }

    fn take_away(&self, mount: &Mount, dir: &Path) -> std::io::Result<()> {
        if mount.unmount().is_err() {
            mount.detach()?;
        }
        self.unmounted(mount, dir);
        Ok(())
    }

    /// It is nowhere to be seen, and may be in use all the same.
    fn unmounted(&self, mount: &Mount, dir: &Path) {
        if mount.is_connected() {
            self.detached(mount, dir);
        } else {
            self.finish(mount.id());
        }
    }

    /// Unmounts all, and ends what is in use: a session that went on would keep the store open.
    pub fn remove_all(&self) {
        let _alone = self.one_at_a_time.lock();
        let row = |row: &Row| (Arc::clone(&row.mount), row.info.detached);
        let all: Vec<(Arc<Mount>, bool)> = self.table.lock().rows.iter().map(row).collect();
        for (mount, detached) in all {
            // One that lies elsewhere fails from the end of this process on.
            let is_over = |mount: &Mount| mount.unmount().is_ok() && !mount.is_connected();
            if mount.lies_here() && (detached || !is_over(&mount)) {
                point::cut_off(&mount);
            }
            self.finish(mount.id());
        }
        self.tree.end_saves();
    }

    fn detached(&self, mount: &Mount, dir: &Path) {
        // Its end may come now, and a directory is removed only when it was given back.
        let _none_ends = self.finishing.lock();
        let mut table = self.table.lock();
        let row = table.rows.iter_mut().find(|row| row.mount.id() == mount.id());
        let below = row.and_then(|row| {
            row.info.detached = true;
            row.info.dir = dir.to_str().unwrap_or_default().to_owned();
            row.below.take()
        });
        drop(table);
        self.give_back(below);
    }
}
