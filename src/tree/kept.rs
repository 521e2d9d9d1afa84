//! What kernels may keep of plain directories beside names and attributes: that a name is absent, and
//! the listing of a directory of few names.
//!
//! What must stay true:
//! - A kernel remembers an absent name only in a directory of which it is told when names appear. Such
//!   a directory is noted before the snapshot in which the name is absent: a change that this snapshot
//!   lacks then finds it noted.
//! - A listing that a kernel keeps goes with the first `opendir` after another mount changed a name. The
//!   kernel also compares the directory's modification time, but that can be set to what it was.
//! - Where listings are kept, cookies are the same in all handles: a reader may go over from a kept
//!   listing to this daemon's. They are the names' hashes, and listings are in their order.
//!
//! Deliberately not here: governed directories, and the root, where names are computed.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use parking_lot::{Mutex, RwLock};
use workfs_mount::{Caller, DirEntry, MountId};

use crate::engine::{Effect, Fate, Origin, governed};
use crate::limits::{CACHE_TTL, KEPT_DIRS_MAX, LISTING_KEPT_MAX};
use crate::names::FileName;
use crate::numbers::Ino;
use crate::store::{Node, Read, StoreError};

use super::attr::attr;
use super::computed::{Computed, is_computed_name};
use super::listing::FIRST_COOKIE;
use super::{Answer, WorkTree};

/// What the kernels of all mounts may keep.
#[derive(Default)]
pub(super) struct Kept {
    /// Directories of which kernels are told when names appear.
    told: RwLock<HashSet<Ino>>,
    /// Directories whose listing a kernel has kept since nobody else changed it.
    listed: Mutex<Listed>,
    /// Directories that were found to be governed: there it need not be asked again for each claim. One
    /// that is not governed any more is only remembered less of.
    governed: RwLock<HashSet<Ino>>,
    cookies: RandomState,
}

/// By directory, the mounts whose kernels have kept its listing.
#[derive(Default)]
struct Listed(HashMap<Ino, Vec<MountId>>);

impl Listed {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A directory's names changed, which the kernel of `knows` knows by itself.
    fn changed(&mut self, knows: Option<Origin>, dir: Ino) {
        let Some(mounts) = self.0.get_mut(&dir) else { return };
        mounts.retain(|mount| knows == Some(Origin::Mount(*mount)));
        if mounts.is_empty() {
            self.0.remove(&dir);
        }
    }
}

impl Kept {
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

    /// Whether what a kernel has kept of a directory's listing still holds; it keeps it from now on.
    pub fn is_kept(&self, mount: MountId, dir: Ino) -> bool {
        let mut listed = self.listed.lock();
        if listed.0.len() >= KEPT_DIRS_MAX {
            listed.0.clear();
        }
        let mounts = listed.0.entry(dir).or_default();
        let was = mounts.contains(&mount);
        if !was {
            mounts.push(mount);
        }
        was
    }

    fn note_governed(&self, dir: Ino) {
        let mut governed = self.governed.write();
        if governed.len() < KEPT_DIRS_MAX {
            governed.insert(dir);
        }
    }

    /// Names came or went: where not by the kernel itself, what it kept is old. To be called after
    /// the commit: who opens the directory before may still list what was there.
    pub fn note(&self, effects: &[(Origin, Effect)]) {
        let mut listed = self.listed.lock();
        if listed.is_empty() {
            return;
        }
        for (origin, effect) in effects {
            match effect {
                Effect::Appeared { parent, .. } => listed.changed(Some(*origin), *parent),
                Effect::Name { parent, also_origin, fate, .. } => {
                    let knows = (!also_origin).then_some(*origin);
                    listed.changed(knows, *parent);
                    if let Fate::Moved { to: (parent, _), .. } = fate {
                        listed.changed(knows, *parent);
                    }
                }
                _ => {}
            }
        }
    }

    /// A mount has ended.
    pub fn remove_mount(&self, mount: MountId) {
        self.listed.lock().0.retain(|_, mounts| {
            mounts.retain(|kept| *kept != mount);
            !mounts.is_empty()
        });
    }

    /// A name's place in a listing. Of a thousand names two have the same with a chance of one in
    /// 10^13.
    fn cookie(&self, name: &FileName) -> u64 {
        (self.cookies.hash_one(name.as_bytes()) >> 2).max(FIRST_COOKIE)
    }
}

impl WorkTree {
    /// Whether kernels may keep anything of a directory.
    fn is_plain_dir(&self, read: &dyn Read, dir: Ino) -> Result<bool, StoreError> {
        if !self.may_be_plain(dir) {
            return Ok(false);
        }
        let is_governed = governed(read, &self.engine.config(), dir)?.is_some();
        if is_governed {
            self.hub.kept.note_governed(dir);
        }
        Ok(!is_governed)
    }

    /// The same, as far as it is known without a look at the store.
    fn may_be_plain(&self, dir: Ino) -> bool {
        // Where files are checked, a new one is its maker's alone for a while.
        Computed::of(dir).is_none()
            && !self.engine.config().files().has_checks()
            && !self.hub.kept.governed.read().contains(&dir)
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

    /// Whether kernels may keep the listing of a directory.
    pub(super) fn is_short(&self, caller: &Caller, dir: Ino) -> Answer<bool> {
        if dir == self.root(caller) || !self.may_be_plain(dir) {
            return Ok(false);
        }
        self.read(|read| {
            let is_plain = self.is_plain_dir(read, dir)?;
            Ok(is_plain && read.count_names(dir, LISTING_KEPT_MAX + 1)? <= LISTING_KEPT_MAX)
        })
    }

    /// Lists what lies after `cookie`, in the order of the cookies. `rest` is what the handle knows of
    /// the names; it knows none where the reader had what came before from its kernel.
    pub(super) fn list_short(
        &self,
        dir: Ino,
        rest: &mut Option<Vec<(u64, FileName)>>,
        cookie: u64,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        let entry = |cookie, name: &FileName, node: &Node| DirEntry {
            name: name.as_bytes().to_vec(),
            attr: attr(node),
            cookie,
            ttl: CACHE_TTL,
        };
        if let Some(names) = rest.as_ref().filter(|_| cookie >= FIRST_COOKIE) {
            let left = &names[names.partition_point(|(at, _)| *at <= cookie)..];
            return self.read(|read| {
                for (at, name) in left {
                    if let Some(node) = read.lookup(dir, name)?
                        && !emit(entry(*at, name, &node))
                    {
                        break;
                    }
                }
                Ok(())
            });
        }
        self.read(|read| {
            let mut found = Vec::new();
            read.list(dir, None, &mut |(name, node)| {
                found.push((self.hub.kept.cookie(&name), name, node));
                true
            })?;
            found.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
            let left = found.iter().filter(|(at, ..)| *at > cookie.max(FIRST_COOKIE - 1));
            for (at, name, node) in left {
                if !emit(entry(*at, name, node)) {
                    break;
                }
            }
            *rest = Some(found.into_iter().map(|(at, name, _)| (at, name)).collect());
            Ok(())
        })
    }
}
