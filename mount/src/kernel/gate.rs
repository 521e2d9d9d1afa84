//! What a mount's kernel knows, and which answers are on their way to it.
//!
//! An invalidation that overtakes an answer is lost: the kernel does not know the inode yet, drops
//! the notice, and then keeps the old attributes of the answer for as long as their lifetime says.
//! So answers that carry attributes pass a gate, and an invalidation first waits until all that
//! were inside have left; none of them waits for anything but the store's snapshot.
//!
//! A shut gate lets nothing in, so that what is forgotten meanwhile stays forgotten: who shuts it for
//! the time of a commit shows all of it at once.
//!
//! What must stay true: a name, an inode or its attributes are noted as told before their answer
//! leaves. Deliberately not here: sending anything.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use parking_lot::{ArcRwLockWriteGuard, Mutex, RawRwLock, RwLock, RwLockReadGuard};

use super::absent::Absent;
use super::lookups::Lookups;
use super::stale::Stale;
use crate::ids::{Handle, Ino};

/// A gate that is shut; dropping it opens the gate.
pub(crate) type Shut = ArcRwLockWriteGuard<RawRwLock, ()>;

/// What the kernel was told.
#[derive(Debug, Default)]
struct Told {
    /// How many lookups of an inode the kernel still holds.
    lookups: Lookups,
    /// What of it the kernel has forgotten again.
    stale: Stale,
}

/// The gate of one mount.
#[derive(Debug)]
pub(crate) struct Gate {
    root: Ino,
    inside: Arc<RwLock<()>>,
    told: Mutex<Told>,
    absent: Mutex<Absent>,
}

impl Gate {
    /// The gate of a mount with this root.
    pub(crate) fn new(root: Ino) -> Gate {
        let (inside, told) = (Arc::default(), Mutex::default());
        Gate { root, inside, told, absent: Mutex::new(Absent::new()) }
    }

    /// Says whether the kernel can be made to forget absent names.
    pub(crate) fn remember_absent(&self, is_allowed: bool) {
        self.absent.lock().allow(is_allowed);
    }

    /// The kernel is about to be told that a name is absent; whether it may remember that. To be
    /// called from inside.
    pub(crate) fn note_absent(&self, parent: Ino, name: &OsStr) -> bool {
        self.told.lock().stale.told_name();
        self.absent.lock().note(parent, name.as_bytes())
    }

    /// Whether the kernel may remember that a name is absent. If so, it is about to forget all of
    /// them.
    pub(crate) fn take_absent(&self, parent: Ino, name: &[u8]) -> bool {
        self.absent.lock().take(parent, name)
    }

    /// Enters with a request whose answer carries attributes; leave when it is answered.
    pub(crate) fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.inside.read()
    }

    /// Waits until every answer that was inside has left.
    pub(crate) fn settle(&self) {
        drop(self.inside.write());
    }

    /// Waits until every answer that was inside has left, and lets no other in.
    pub(crate) fn shut(&self) -> Shut {
        self.inside.write_arc()
    }

    /// The kernel is about to be told that a name stands for an inode, with its attributes.
    pub(crate) fn note(&self, ino: Ino) {
        let mut told = self.told.lock();
        told.lookups.add(ino);
        told.stale.told_name();
        told.stale.told_attributes(ino);
    }

    /// The kernel is about to be told the attributes of an inode.
    pub(crate) fn note_attributes(&self, ino: Ino) {
        self.told.lock().stale.told_attributes(ino);
    }

    /// The kernel is about to be told the attributes of an inode that it changed or made. It takes
    /// them unseen (`fuse_do_setattr`, `create_new_entry`), also where a notice came before they
    /// were read: so of such an inode it is told each time.
    pub(crate) fn note_changed(&self, ino: Ino) {
        self.told.lock().lookups.note_changed(ino);
    }

    /// The kernel is about to be told a part of a listing with attributes.
    pub(crate) fn note_listing(&self, handle: Handle) {
        self.told.lock().stale.told_listing(handle);
    }

    /// The kernel has read what it was told of a listing; whether it must forget names once more.
    pub(crate) fn take_listing(&self, handle: Handle) -> bool {
        self.told.lock().stale.read_listing(handle)
    }

    /// An inode has left a name; whether the kernel may still come to read that in a listing.
    pub(crate) fn leave(&self, ino: Ino) -> bool {
        self.told.lock().stale.leave(ino)
    }

    /// A name of this directory came or went by another mount, or by none.
    pub(crate) fn stir(&self, dir: Ino) {
        self.told.lock().stale.stir(dir);
    }

    /// Whether that was a moment ago: names that a listing tells are to be asked for each time then. To be called
    /// from inside.
    pub(crate) fn is_restless(&self, dir: Ino) -> bool {
        self.told.lock().stale.is_restless(dir)
    }

    /// Whether a name by which the kernel asks for an inode may be one that this has left.
    pub(crate) fn has_left(&self, ino: Ino) -> bool {
        self.told.lock().stale.has_left(ino)
    }

    /// The kernel forgot some lookups of an inode.
    pub(crate) fn forget(&self, ino: Ino, count: u64) {
        self.told.lock().lookups.remove(ino, count);
    }

    /// Whether the kernel may have cached anything of an inode. The root is always known.
    pub(crate) fn knows(&self, ino: Ino) -> bool {
        ino == self.root || self.told.lock().lookups.contains(ino)
    }

    /// All of which the kernel may have cached anything.
    pub(crate) fn known(&self) -> Vec<Ino> {
        let told = self.told.lock();
        told.lookups.all().chain([self.root]).collect()
    }

    /// Whether the kernel may know the attributes of an inode. If so, it is about to forget them.
    pub(crate) fn take_attributes(&self, ino: Ino) -> bool {
        let mut told = self.told.lock();
        (ino == self.root || told.lookups.contains(ino))
            && (told.lookups.is_changed(ino) || told.stale.forget_attributes(ino))
    }

    /// Whether the kernel may know what any name stands for. If so, it is about to forget all of them.
    pub(crate) fn take_names(&self) -> bool {
        self.told.lock().stale.forget_names()
    }
}
