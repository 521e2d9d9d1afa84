//! Names of plain directories that kernels remember to be absent.
//!
//! What must stay true: a kernel remembers an absent name only in a directory of which it is told when
//! names appear. Such a directory is noted before the snapshot in which the name is absent: a change
//! that this snapshot lacks then finds it noted.
//!
//! Deliberately not here: governed directories, and the root, where names are computed.

use std::collections::HashSet;

use parking_lot::RwLock;

use crate::engine::{Effect, Fate, Origin, governed};
use crate::limits::KEPT_DIRS_MAX;
use crate::names::FileName;
use crate::numbers::Ino;
use crate::store::{NodeType, Read, StoreError};
use crate::tree::WorkTree;
use crate::tree::computed::{Computed, is_computed_name};

/// Where kernels may remember that names are absent.
#[derive(Default)]
pub(in crate::tree) struct Absent {
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

    /// Takes note of a commit: in a directory that is gone no name appears. So one that is made and removed takes
    /// nothing from those that come after it.
    pub fn note(&self, effects: &[(Origin, Effect)]) {
        for (_, effect) in effects {
            let gone = match effect {
                Effect::Name { ino, fate: Fate::Removed(NodeType::Directory), .. } => ino,
                Effect::Name {
                    fate: Fate::Moved { over: Some((ino, NodeType::Directory)), .. },
                    ..
                } => ino,
                _ => continue,
            };
            self.told.write().remove(gone);
            self.governed.write().remove(gone);
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
    pub(in crate::tree) fn is_plain_dir(
        &self,
        read: &dyn Read,
        dir: Ino,
    ) -> Result<bool, StoreError> {
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
    pub(in crate::tree) fn may_be_plain(&self, dir: Ino) -> bool {
        // Where files are checked, a new one is its maker's alone for a while.
        Computed::of(dir).is_none()
            && !self.engine.config().files().has_checks()
            && !self.hub.absent.governed.read().contains(&dir)
    }

    /// Whether an absent name of a directory is nothing but absent: neither computed at times nor a
    /// governed directory's.
    pub(in crate::tree) fn is_ordinary_name(
        &self,
        read: &dyn Read,
        dir: Ino,
        name: &FileName,
    ) -> Result<bool, StoreError> {
        Ok(!is_computed_name(&self.engine.config(), name) && self.is_plain_dir(read, dir)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Dentry;

    #[test]
    fn a_directory_that_is_gone_takes_no_place() {
        let absent = Absent::default();
        let dirs = 2..2 + KEPT_DIRS_MAX as u64;
        dirs.clone().for_each(|dir| absent.tell_of(Ino(dir)));
        absent.note_governed(Ino(1));
        absent.tell_of(Ino(1));
        assert!(!absent.tells_of(Ino(1)), "there is no room");
        let name = FileName::new(b"name").unwrap();
        let gone = |ino, fate| {
            let name = name.clone();
            let effect = Effect::Name { parent: Ino(9), name, ino, also_origin: false, fate };
            absent.note(&[(Origin::Daemon, effect)]);
        };
        let to = Dentry::of(Ino(9), name.clone());
        let over = Some((Ino(4), NodeType::Directory));
        gone(Ino(2), Fate::Removed(NodeType::File));
        assert!(absent.tells_of(Ino(2)));
        gone(Ino(2), Fate::Removed(NodeType::Directory));
        gone(Ino(3), Fate::Moved { to, node_type: NodeType::Directory, over });
        let tells = [2, 3, 4].map(|dir| absent.tells_of(Ino(dir)));
        assert_eq!(tells, [false, true, false]);
        absent.tell_of(Ino(1));
        assert!(absent.tells_of(Ino(1)));
    }
}
