//! New record-like files that were not judged yet: their maker alone sees them, so that nobody
//! else reads an empty or half-written file where records lie.
//!
//! What must stay true: a file is born when it was judged, whatever the verdict, or when its last
//! handle is gone. Deliberately not here: files that lay there before.

use std::collections::HashMap;

use parking_lot::Mutex;
use workfs_mount::{Caller, MountId};

use crate::numbers::Ino;

use super::seen::process_of;

/// Who made an unborn file: through which mount, and as which process where that is known.
type Maker = (MountId, Option<u32>);

/// Inodes of unborn files.
#[derive(Default)]
pub(super) struct Unborn(Mutex<HashMap<Ino, Maker>>);

impl Unborn {
    /// `caller` made `ino`.
    pub fn begin(&self, caller: &Caller, ino: Ino) {
        self.0.lock().insert(ino, (caller.mount, process_of(caller.pid)));
    }

    /// The file is born; says through which mount it was made, if it was not born before.
    pub fn end(&self, ino: Ino) -> Option<MountId> {
        self.0.lock().remove(&ino).map(|(mount, _)| mount)
    }

    /// Whether `caller` must not see `ino` yet.
    pub fn hides(&self, ino: Ino, caller: &Caller) -> bool {
        let unborn = self.0.lock();
        match unborn.get(&ino) {
            None => false,
            // Where the maker is not known (another name space), nothing can be hidden from it.
            Some((_, None)) => false,
            Some((_, maker)) => process_of(caller.pid) != *maker,
        }
    }
}
