//! Listings that kernels keep: of plain directories of few names.
//!
//! What must stay true:
//! - A listing that a kernel keeps goes with the first `opendir` after another mount changed a name. The
//!   kernel also compares the directory's modification time, but that can be set to what it was.
//! - Into what a kernel keeps go no answers from before a change beside a time from after it. It notes
//!   the directory's time when somebody begins to list, and adds what anybody's handle is answered,
//!   however old. So after a change nothing is kept before each handle is closed that was open then.
//! - Cookies are the same in all handles: a reader may go over from a kept listing to this daemon's.
//!   They are the names' hashes, and listings are in their order.
//!
//! Deliberately not here: governed directories, and the root, where names are computed.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Caching, Caller, DirEntry, MountId};

use crate::engine::{Effect, Fate, Origin};
use crate::limits::{CACHE_TTL, KEPT_DIRS_MAX, LISTING_KEPT_MAX};
use crate::names::FileName;
use crate::numbers::Ino;
use crate::store::Node;
use crate::tree::handles::pins::Charge;
use crate::tree::{Answer, WorkTree};

use super::attr::attr;
use super::cursor::FIRST_COOKIE;

/// The listings that kernels keep.
#[derive(Default)]
pub(in crate::tree) struct KeptListings {
    table: Arc<Mutex<Table>>,
    cookies: RandomState,
}

/// By directory, what each mount's kernel has of its listing.
#[derive(Default)]
struct Table(HashMap<Ino, Vec<Kept>>);

struct Kept {
    mount: MountId,
    /// Names have changed only in ways that the kernel sees by itself.
    holds: bool,
    /// Open handles whose answers it may add.
    fillers: usize,
}

/// An open handle of a directory, with which a kernel reads and fills what it keeps of the listing.
pub(super) struct Filler {
    table: Arc<Mutex<Table>>,
    mount: MountId,
    dir: Ino,
    /// What the kernel had kept held when this was opened.
    held: bool,
}

/// A handle of a plain directory of few names.
pub(in crate::tree) struct Short {
    /// Where the kernel keeps what it reads here.
    filler: Option<Filler>,
    /// What is listed; nothing where the reader had what came before from its kernel.
    listed: Mutex<Option<Listed>>,
}

/// The names of a directory in the order of their cookies, as they were when they were listed.
struct Listed {
    names: Vec<(u64, FileName)>,
    _charge: Charge,
}

impl Table {
    /// A directory's names changed, which the kernel of `knows` knows by itself.
    fn changed(&mut self, knows: Option<Origin>, dir: Ino) {
        let Some(mounts) = self.0.get_mut(&dir) else { return };
        for kept in &mut *mounts {
            kept.holds &= knows == Some(Origin::Mount(kept.mount)) && kept.fillers == 0;
        }
        self.tidy(dir);
    }

    /// Forgets what says nothing of a directory.
    fn tidy(&mut self, dir: Ino) {
        if let Some(mounts) = self.0.get_mut(&dir) {
            mounts.retain(|kept| kept.holds || kept.fillers > 0);
            if mounts.is_empty() {
                self.0.remove(&dir);
            }
        }
    }

    /// Makes room for one more directory, if that is possible.
    fn has_room(&mut self) -> bool {
        if self.0.len() >= KEPT_DIRS_MAX {
            self.0.retain(|_, mounts| mounts.iter().any(|kept| kept.fillers > 0));
        }
        self.0.len() < KEPT_DIRS_MAX
    }
}

impl KeptListings {
    /// A directory is opened. Gives nothing where its listing must not be kept.
    fn fill(&self, mount: MountId, dir: Ino) -> Option<Filler> {
        let mut table = self.table.lock();
        if !table.has_room() {
            return None;
        }
        let mounts = table.0.entry(dir).or_default();
        let held = match mounts.iter_mut().find(|kept| kept.mount == mount) {
            // Who had it open before a change may still be given what was there before.
            Some(Kept { holds: false, .. }) => return None,
            Some(kept) => {
                kept.fillers += 1;
                true
            }
            None => {
                mounts.push(Kept { mount, holds: true, fillers: 1 });
                false
            }
        };
        Some(Filler { table: Arc::clone(&self.table), mount, dir, held })
    }

    /// Names came or went: where not by the kernel itself, what it kept is old. To be called after
    /// the commit: who opens the directory before may still list what was there.
    pub fn note(&self, effects: &[(Origin, Effect)]) {
        let mut table = self.table.lock();
        if table.0.is_empty() {
            return;
        }
        for (origin, effect) in effects {
            match effect {
                Effect::Appeared { parent, .. } => table.changed(Some(*origin), *parent),
                Effect::Name { parent, also_origin, fate, .. } => {
                    let knows = (!also_origin).then_some(*origin);
                    table.changed(knows, *parent);
                    if let Fate::Moved { to, .. } = fate {
                        table.changed(knows, to.dir);
                    }
                }
                _ => {}
            }
        }
    }

    /// A mount has ended.
    pub fn remove_mount(&self, mount: MountId) {
        self.table.lock().0.retain(|_, mounts| {
            mounts.retain(|kept| kept.mount != mount);
            !mounts.is_empty()
        });
    }

    /// A name's place in a listing. Of a thousand names two have the same with a chance of one in
    /// 10^13.
    fn cookie(&self, name: &FileName) -> u64 {
        (self.cookies.hash_one(name.as_bytes()) >> 2).max(FIRST_COOKIE)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        let mounts = table.0.get_mut(&self.dir);
        // A mount that has ended is forgotten before its handles are.
        let kept = mounts.and_then(|all| all.iter_mut().find(|kept| kept.mount == self.mount));
        if let Some(kept) = kept {
            kept.fillers -= 1;
            table.tidy(self.dir);
        }
    }
}

impl Short {
    /// What the kernel may do with what it reads through this handle.
    pub fn caching(&self) -> Caching {
        match &self.filler {
            None => Caching::Direct,
            Some(Filler { held: true, .. }) => Caching::KeepCache,
            Some(_) => Caching::Cached,
        }
    }
}

impl WorkTree {
    /// Opens a plain directory, if it has few names.
    pub(super) fn open_short(&self, caller: &Caller, dir: Ino) -> Answer<Option<Short>> {
        if dir == self.root(caller) || !self.may_be_plain(dir) {
            return Ok(None);
        }
        let is_short = self.read(|read| {
            let is_plain = self.is_plain_dir(read, dir)?;
            Ok(is_plain && read.count_names(dir, LISTING_KEPT_MAX + 1)? <= LISTING_KEPT_MAX)
        })?;
        let open = || Short {
            filler: self.hub.kept_listings.fill(caller.mount, dir),
            listed: Mutex::default(),
        };
        Ok(is_short.then(open))
    }

    /// Lists what lies after `cookie`, in the order of the cookies.
    pub(super) fn list_short(
        &self,
        caller: &Caller,
        (dir, short): (Ino, &Short),
        cookie: u64,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        let mut listed = short.listed.lock();
        let entry = |cookie, name: &FileName, node: &Node| DirEntry {
            name: name.as_bytes().to_vec(),
            attr: attr(node),
            cookie,
            ttl: CACHE_TTL,
        };
        if let Some(Listed { names, .. }) = listed.as_ref().filter(|_| cookie >= FIRST_COOKIE) {
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
                found.push((self.hub.kept_listings.cookie(&name), name, node));
                true
            })?;
            found.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
            let left = found.iter().filter(|(at, ..)| *at > cookie.max(FIRST_COOKIE - 1));
            for (at, name, node) in left {
                if !emit(entry(*at, name, node)) {
                    break;
                }
            }
            // Who has too much open has it listed anew for each piece.
            let charge = self.pins.names(caller.uid, found.len()).ok();
            *listed = charge.map(|charge| {
                let names = found.into_iter().map(|(at, name, _)| (at, name)).collect();
                Listed { names, _charge: charge }
            });
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NodeType;

    const DIR: Ino = Ino(7);
    const CHANGER: MountId = MountId(1);
    const OTHER: MountId = MountId(2);

    fn changed(kept: &KeptListings, by: Origin) {
        let name = FileName::new("new").unwrap();
        let effect = Effect::Appeared { parent: DIR, name, node_type: NodeType::File };
        kept.note(&[(by, effect)]);
    }

    /// Opens and closes the directory; says whether its listing is kept, and whether it was.
    fn look(kept: &KeptListings, mount: MountId) -> Option<bool> {
        kept.fill(mount, DIR).map(|filler| filler.held)
    }

    #[test]
    fn a_listing_is_kept_until_another_mount_changes_it() {
        let kept = KeptListings::default();
        assert_eq!(
            [CHANGER, OTHER, CHANGER, OTHER].map(|mount| look(&kept, mount)),
            [Some(false), Some(false), Some(true), Some(true)]
        );
        changed(&kept, Origin::Mount(CHANGER));
        assert_eq!([CHANGER, OTHER].map(|mount| look(&kept, mount)), [Some(true), Some(false)]);
        changed(&kept, Origin::Socket);
        assert_eq!([CHANGER, OTHER].map(|mount| look(&kept, mount)), [Some(false); 2]);
    }

    #[test]
    fn nothing_is_kept_while_who_began_before_a_change_may_read_on() {
        for mount in [CHANGER, OTHER] {
            let kept = KeptListings::default();
            let before = [kept.fill(mount, DIR), kept.fill(mount, DIR)];
            assert!(before.iter().all(Option::is_some), "both may read the same");
            changed(&kept, Origin::Mount(CHANGER));
            for open in before {
                assert_eq!(look(&kept, mount), None);
                drop(open);
            }
            assert_eq!(look(&kept, mount), Some(false));
            assert_eq!(look(&kept, mount), Some(true));
        }
    }

    #[test]
    fn nothing_is_left_of_mounts_and_handles_that_are_gone() {
        let kept = KeptListings::default();
        let open = kept.fill(OTHER, DIR);
        kept.remove_mount(OTHER);
        drop(open);
        let open = kept.fill(CHANGER, DIR);
        changed(&kept, Origin::Daemon);
        drop(open);
        assert!(kept.table.lock().0.is_empty());
    }
}
