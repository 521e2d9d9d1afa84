//! New record-like files that were not judged yet: their maker alone sees them, so that nobody
//! else reads an empty or half-written file where records lie.
//!
//! What must stay true: a file is born when it was judged, whatever the verdict, or when its last
//! handle is gone. Deliberately not here: files that lay there before.

use std::collections::HashMap;

use parking_lot::Mutex;
use workfs_mount::Caller;

use crate::numbers::Ino;

use super::seen::process_of;

/// Inodes of unborn files, with the process that made each.
#[derive(Default)]
pub(super) struct Unborn(Mutex<HashMap<Ino, Option<u32>>>);

impl Unborn {
    /// `caller` made `ino`.
    pub fn begin(&self, caller: &Caller, ino: Ino) {
        self.0.lock().insert(ino, process_of(caller.pid));
    }

    /// The file is born.
    pub fn end(&self, ino: Ino) {
        self.0.lock().remove(&ino);
    }

    /// Whether `caller` must not see `ino` yet.
    pub fn hides(&self, ino: Ino, caller: &Caller) -> bool {
        let unborn = self.0.lock();
        match unborn.get(&ino) {
            None => false,
            // Where the maker is not known (another name space), nothing can be hidden from it.
            Some(None) => false,
            Some(maker) => process_of(caller.pid) != *maker,
        }
    }
}
