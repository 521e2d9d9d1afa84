//! The clean-up after a save that was refused: some programs remove what they could not write whole
//! (node's `fs.copyFile`, by libuv), and here that would be the version before, which stays.
//!
//! What must stay true: nothing here decides a right, since the next `unlink` is as good as any; it
//! is the writer's own process that is kept from it, once for each save, and soon after; what is new
//! goes. Deliberately not here: `rm`, which is another process and means what it does.

use std::time::Instant;

use parking_lot::Mutex;
use workfs_mount::{Caller, Errno, Handle, Reply};

use crate::limits::{CLEANUP_GRACE, CLEANUPS_MAX};
use crate::names::FileName;
use crate::numbers::{Ino, RecordKey};
use crate::refusal::{Door, Rule};
use crate::store::{Class, Read, StoreError};

use super::WorkTree;
use super::lineage::process_of;
use super::staged::Staged;

/// What was not saved. A record may get another file meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Record(RecordKey),
    File(Ino),
}

/// Who wrote what, by which handle.
#[derive(Clone, Copy, Debug)]
struct Writer {
    kept: Kept,
    thread: u32,
    handle: Handle,
}

/// A save that was refused.
struct Refused {
    by: Writer,
    process: u32,
    until: Instant,
}

/// Saves that were refused a moment ago.
#[derive(Default)]
pub(super) struct Cleanups(Mutex<Vec<Refused>>);

impl Cleanups {
    /// Something between a save that was refused and its clean-up: what its writer was answered last
    /// counts. Other threads of a process may save the same file, and clean up for themselves.
    fn forget(&self, by: Writer) {
        let is_same = |one: &Writer| one.thread == by.thread || one.handle == by.handle;
        self.0.lock().retain(|one| one.by.kept != by.kept || !is_same(&one.by));
    }

    fn note(&self, refused: Refused) {
        self.forget(refused.by);
        let mut all = self.0.lock();
        let now = Instant::now();
        all.retain(|one| one.until > now);
        if all.len() >= CLEANUPS_MAX {
            all.remove(0);
        }
        all.push(refused);
    }

    fn is_idle(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Whether a process cleans up now; it does so once for each save.
    fn take(&self, process: u32, kept: Kept) -> bool {
        let mut all = self.0.lock();
        let now = Instant::now();
        all.retain(|one| one.until > now);
        let found = all.iter().position(|one| (one.process, one.by.kept) == (process, kept));
        found.map(|nth| all.swap_remove(nth)).is_some()
    }
}

impl WorkTree {
    /// A reply to who writes or closes what lay there before that, if it is refused, notes who will
    /// clean up.
    pub(super) fn noting_unsaved<T: 'static>(
        &self,
        caller: &Caller,
        (ino, handle): (Ino, Handle),
        staged: &Mutex<Staged>,
        reply: Reply<T>,
    ) -> Reply<T> {
        let kept = {
            let staged = staged.lock();
            let kept = staged.record.map_or(Kept::File(ino), Kept::Record);
            staged.was_there.then_some(kept)
        };
        let (Some(kept), Some(me)) = (kept, self.me()) else { return reply };
        let by = Writer { kept, thread: caller.pid, handle };
        Reply::new(move |answer| {
            let cleanups = &me.handles.cleanups;
            if answer.is_ok() {
                cleanups.forget(by);
            } else if let Some(process) = process_of(by.thread) {
                cleanups.note(Refused { by, process, until: Instant::now() + CLEANUP_GRACE });
            }
            reply.send(answer);
        })
    }

    /// Refuses to remove what the caller could not save just before. No `why` tells of it: that goes on to
    /// say why the save was refused.
    pub(super) fn refuse_cleanup(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &FileName,
    ) -> Result<(), Errno> {
        let cleanups = &self.handles.cleanups;
        if cleanups.is_idle() {
            return Ok(());
        }
        let (kept, process) =
            (self.read(|read| kept_at(read, parent, name))?, process_of(caller.pid));
        match (kept, process) {
            (Some(kept), Some(process)) if cleanups.take(process, kept) => {
                Err(Rule::JustRefused.errno(Door::Name))
            }
            _ => Ok(()),
        }
    }
}

fn kept_at(read: &dyn Read, dir: Ino, name: &FileName) -> Result<Option<Kept>, StoreError> {
    let Some(node) = read.lookup(dir, name)? else { return Ok(None) };
    match node.class {
        Class::Record => Ok(read.record_at(node.ino)?.map(|record| Kept::Record(record.key))),
        Class::Draft => Ok(None),
        Class::Plain => Ok(Some(Kept::File(node.ino))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FILE: Kept = Kept::File(Ino(7));

    fn by(thread: u32, handle: u64) -> Writer {
        Writer { kept: FILE, thread, handle: Handle(handle) }
    }

    fn noted(refused: &[(Writer, Duration)]) -> Cleanups {
        let cleanups = Cleanups::default();
        for (by, left) in refused {
            cleanups.note(Refused { by: *by, process: 1, until: Instant::now() + *left });
        }
        cleanups
    }

    #[test]
    fn a_clean_up_comes_once_for_each_save_and_soon() {
        let cleanups = noted(&[(by(1, 1), CLEANUP_GRACE), (by(2, 2), CLEANUP_GRACE)]);
        assert!(!cleanups.take(2, FILE) && !cleanups.take(1, Kept::File(Ino(8))));
        assert!(cleanups.take(1, FILE) && cleanups.take(1, FILE) && !cleanups.take(1, FILE));
        let cleanups = noted(&[(by(1, 1), Duration::ZERO)]);
        assert!(!cleanups.take(1, FILE) && cleanups.is_idle());
    }

    #[test]
    fn what_one_thread_or_handle_is_told_last_counts() {
        // `write` and `close` of one handle, from two threads; then another try of the second.
        let refused = [by(1, 1), by(2, 1), by(2, 2)].map(|by| (by, CLEANUP_GRACE));
        let cleanups = noted(&refused);
        assert!(cleanups.take(1, FILE) && !cleanups.take(1, FILE));
        let cleanups = noted(&[(by(1, 1), CLEANUP_GRACE)]);
        cleanups.forget(by(3, 3));
        cleanups.forget(Writer { kept: Kept::File(Ino(8)), ..by(1, 1) });
        assert!(!cleanups.is_idle());
        cleanups.forget(by(1, 2));
        assert!(cleanups.is_idle());
    }

    #[test]
    fn only_so_many_are_remembered() {
        let many = (0..2 * CLEANUPS_MAX as u64).map(|nth| (by(nth as u32, nth), CLEANUP_GRACE));
        let cleanups = noted(&many.collect::<Vec<_>>());
        assert_eq!(cleanups.0.lock().len(), CLEANUPS_MAX);
    }
}
