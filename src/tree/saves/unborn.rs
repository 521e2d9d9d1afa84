//! New record-like and checked files that were not judged yet: who makes them alone sees them, so that
//! nobody else reads an empty or half-written file where records lie.
//!
//! What must stay true: a file is born when it was judged (a checked one when it was taken), or when its
//! last handle is gone. Deliberately not here: files that lay there before, also before the daemon was
//! killed.

use std::collections::HashMap;

use parking_lot::Mutex;
use workfs_mount::{Caller, MountId};

use crate::numbers::Ino;
use crate::tree::callers::lineage::process_of;

/// Who made an unborn file: through which mount, and as which process where that is known. Several may
/// ask for it by making it: to all but the first it was there.
type Maker = (MountId, Option<u32>);

/// Inodes of unborn files, each with its makers; there is one.
#[derive(Default)]
pub(in crate::tree) struct Unborn(Mutex<HashMap<Ino, Vec<Maker>>>);

/// Who sees a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) enum Sees {
    /// Everybody.
    All,
    /// Its makers, of whom the caller is one.
    Makers,
    /// Its makers, and not the caller.
    Others,
}

impl Unborn {
    /// `caller` made `ino`.
    pub fn begin(&self, caller: &Caller, ino: Ino) {
        self.0.lock().insert(ino, vec![(caller.mount, process_of(caller.pid))]);
    }

    /// `caller` asks for `ino` by making it, too; says whether it was not born yet.
    pub fn join(&self, caller: &Caller, ino: Ino) -> bool {
        let mut unborn = self.0.lock();
        let Some(makers) = unborn.get_mut(&ino) else { return false };
        let maker = (caller.mount, process_of(caller.pid));
        if !makers.contains(&maker) {
            makers.push(maker);
        }
        true
    }

    /// Whether it was made and is not born.
    pub fn has(&self, ino: Ino) -> bool {
        self.0.lock().contains_key(&ino)
    }

    /// The file is born; says through which mount it was made, if it was not born before.
    pub fn end(&self, ino: Ino) -> Option<MountId> {
        self.0.lock().remove(&ino)?.first().map(|(mount, _)| *mount)
    }

    /// Through which mount a file was made that is not born.
    pub fn made_through(&self, ino: Ino) -> Option<MountId> {
        self.0.lock().get(&ino)?.first().map(|(mount, _)| *mount)
    }

    /// Who sees `ino`, as far as it concerns `caller`.
    pub fn sees(&self, ino: Ino, caller: &Caller) -> Sees {
        let unborn = self.0.lock();
        let Some(makers) = unborn.get(&ino) else { return Sees::All };
        let process = process_of(caller.pid);
        // Where a maker is not known (another name space), nothing can be hidden from it.
        if makers.iter().any(|(_, maker)| maker.is_none() || *maker == process) {
            Sees::Makers
        } else {
            Sees::Others
        }
    }
}
