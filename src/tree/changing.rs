//! Files that handles have changed, while nobody has taken what they wrote: what size they have.
//!
//! To everybody a file has the size of what was saved last. But who changes it goes by what it wrote:
//! it asks for the end of its file (`fstat`, SEEK_END) to write on behind it. What must stay true: a
//! kernel has one size of an inode, whoever asks, so it is to keep none while there are two.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use workfs_mount::{Attr, Caller, Entry, Handle, MountId};

use crate::numbers::Ino;

use super::WorkTree;
use super::handles::Open;

/// A handle that has changed what it was opened at.
struct Changed {
    handle: u64,
    /// The thread that wrote last, or opened it to be cut.
    by: u32,
    open: Arc<Open>,
}

/// All handles that have changed something, by what each mount's kernel knows.
#[derive(Default)]
pub(super) struct Changing {
    files: Mutex<HashMap<(MountId, Ino), Vec<Changed>>>,
    /// How many files they are: where there is none, nobody takes the lock.
    count: AtomicUsize,
}

impl Changing {
    /// A thread changes what a handle shows.
    pub fn note(&self, by: &Caller, ino: Ino, handle: Handle, open: &Arc<Open>) {
        let mut files = self.files.lock();
        let changed = files.entry((by.mount, ino)).or_default();
        // The newest comes last.
        changed.retain(|other| other.handle != handle.0);
        changed.push(Changed { handle: handle.0, by: by.pid, open: Arc::clone(open) });
        self.count.store(files.len(), Ordering::Release);
    }

    /// A handle is gone.
    pub fn end(&self, mount: MountId, ino: Ino, handle: Handle) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut files = self.files.lock();
        if let Some(changed) = files.get_mut(&(mount, ino)) {
            changed.retain(|other| other.handle != handle.0);
            if changed.is_empty() {
                files.remove(&(mount, ino));
            }
        }
        self.count.store(files.len(), Ordering::Release);
    }

    /// The handles that changed a file, the newest first, each with the thread that did.
    fn of(&self, mount: MountId, ino: Ino) -> Vec<(u32, Arc<Open>)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let files = self.files.lock();
        let changed = files.get(&(mount, ino)).into_iter().flatten().rev();
        changed.map(|one| (one.by, Arc::clone(&one.open))).collect()
    }
}

impl WorkTree {
    /// What a kernel is told of a file, and for how long that is true.
    pub(super) fn told(&self, caller: &Caller, mut attr: Attr, ttl: Duration) -> Entry {
        let changed = self.handles.changing.of(caller.mount, attr.ino);
        if changed.is_empty() {
            return Entry { attr, ttl };
        }
        let is_own = |by: u32| {
            let process_of = |thread| self.seen.lineages.process_of(thread);
            by == caller.pid || process_of(by).is_some_and(|by| process_of(caller.pid) == Some(by))
        };
        let own = changed.iter().find(|(by, _)| is_own(*by));
        // `fstat` does not say of which descriptor: who also reads what was saved is told of that.
        let reads_it = || {
            self.hub.open.of(attr.ino) > changed.len() && {
                let all = self.handles.of_file(caller.mount, attr.ino);
                all.iter().any(|(opener, open)| !open.is_changed() && is_own(*opener))
            }
        };
        if let Some((_, open)) = own
            && !reads_it()
            && let Some(size) = open.staged_size()
        {
            attr.size = size;
        }
        Entry { attr, ttl: Duration::ZERO }
    }
}
