//! Names of plain directories that kernels remember to be absent.
//!
//! What must stay true: a kernel remembers an absent name only in a directory of which it is told when
//! names appear. Such a directory is noted before the snapshot in which the name is absent: a change
//! that this snapshot lacks then finds it noted.
//!
//! Deliberately not here: governed directories, and the root, where names are computed.

use std::collections::HashSet;

use parking_lot::RwLock;

use crate::engine::governed;
use crate::limits::KEPT_DIRS_MAX;
use crate::names::FileName;
use crate::numbers::Ino;
use crate::store::{Read, StoreError};

use super::WorkTree;
use super::computed::{Computed, is_computed_name};

/// Where kernels may remember that names are absent.
#[derive(Default)]
pub(super) struct Absent {
    /// Directories of which kernels are told when names appear.
    told: RwLock<HashSet<Ino>>,
    /// Directories that were found to be governed: there it need not be asked again for each claim. One
    /// that is not governed any more is only remembered less of.
    governed: RwLock<HashSet<Ino>>,
}

impl Absent {
    /// Whether kernels are told of names that appear in this directory.
    pub fn tells_of(&self, dir: Ino) -> bool {
        self.told.read().contains(&dir)
    }

    /// From now on kernels are told of names that appear in this directory. It stays so: a kernel may
    /// remember what it was told.
    pub fn tell_of(&self, dir: Ino) {
        let mut told = self.told.write();
        if told.len() < KEPT_DIRS_MAX {
            told.insert(dir);
        }
    }

    fn note_governed(&self, dir: Ino) {
        let mut governed = self.governed.write();
        if governed.len() < KEPT_DIRS_MAX {
            governed.insert(dir);
        }
    }
}

impl WorkTree {
    /// Whether kernels may keep anything of a directory.
    pub(super) fn is_plain_dir(&self, read: &dyn Read, dir: Ino) -> Result<bool, StoreError> {
        if !self.may_be_plain(dir) {
            return Ok(false);
        }
        let is_governed = governed(read, &self.engine.config(), dir)?.is_some();
        if is_governed {
            self.hub.absent.note_governed(dir);
        }
        Ok(!is_governed)
    }

    /// The same, as far as it is known without a look at the store.
    pub(super) fn may_be_plain(&self, dir: Ino) -> bool {
        // Where files are checked, a new one is its maker's alone for a while.
        Computed::of(dir).is_none()
            && !self.engine.config().files().has_checks()
            && !self.hub.absent.governed.read().contains(&dir)
    }

    /// Whether an absent name of a directory is nothing but absent: neither computed at times nor a
    /// governed directory's.
    pub(super) fn is_ordinary_name(
        &self,
        read: &dyn Read,
        dir: Ino,
        name: &FileName,
    ) -> Result<bool, StoreError> {
        Ok(!is_computed_name(&self.engine.config(), name) && self.is_plain_dir(read, dir)?)
    }
}
