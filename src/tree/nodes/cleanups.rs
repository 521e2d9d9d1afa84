//! The clean-up after a refused save. Some programs remove what they could not write whole (node's
//! `fs.copyFile`, by libuv), and here that would be the version before, which stays. The same goes
//! for the second half of a claim by copy whose first half was refused: a program that does not
//! look at `close` (a shell's `echo`) goes on, and removes what it takes for copied.
//!
//! What must stay true: nothing here decides a right, since the next `unlink` is as good as any.
//! Only the writer's own process is kept from it, and of what was to be copied a `rm` of its
//! family, too: once for each save, and soon after it. A file that was new goes. Deliberately not
//! here: the `rm` of what a shell saved in its place, which means what it does.

use std::time::Instant;

use parking_lot::Mutex;
use workfs_mount::{Caller, Errno, Handle, Reply};

use crate::engine::moved_by_copy;
use crate::limits::{CLEANUP_GRACE, CLEANUPS_MAX};
use crate::names::FileName;
use crate::numbers::{Ino, RecordKey};
use crate::refusal::{Door, Rule};
use crate::store::{Class, Read, StoreError};
use crate::tree::WorkTree;
use crate::tree::callers::lineage::{family, line_of, removes_files};
use crate::tree::saves::staged::Staged;

/// What was not saved. A record may get another file meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Record(RecordKey),
    File(Ino),
    /// The file of the record that a text in another place was to move.
    Source(Ino),
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
    /// The process, and those that started it, the nearest first.
    line: Vec<u32>,
    until: Instant,
}

impl Refused {
    /// Whether this process removes that after it.
    fn is_followed_by(&self, remover: &Remover) -> bool {
        match self.by.kept {
            Kept::Source(_) if remover.is_rm => {
                family(&self.line).any(|one| remover.line.contains(&one))
            }
            _ => remover.line.first().is_some_and(|process| self.line.first() == Some(process)),
        }
    }
}

/// Who removes a file.
struct Remover {
    thread: u32,
    /// The process, and those that started it, the nearest first.
    line: Vec<u32>,
    /// It is a program that does only that.
    is_rm: bool,
}

/// Saves that were refused a moment ago.
#[derive(Default)]
pub(in crate::tree) struct Cleanups(Mutex<Vec<Refused>>);

impl Cleanups {
    /// Something between a save that was refused and its clean-up: what its writer was answered last
    /// counts. Other threads of a process may save the same file, and clean up for themselves.
    fn forget(&self, by: Writer) {
        let is_same = |one: &Writer| one.thread == by.thread || one.handle == by.handle;
        self.0.lock().retain(|one| one.by.kept != by.kept || !is_same(&one.by));
    }

    fn note(&self, by: Writer) {
        self.note_of(Refused {
            by,
            line: line_of(by.thread),
            until: Instant::now() + CLEANUP_GRACE,
        });
    }

    fn note_of(&self, refused: Refused) {
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

    /// Whether a process cleans up now; it does so once for each save. Of several it is that of the thread itself:
    /// what the other threads are to clean up is still to come, and this one may go on to another save.
    fn take(&self, remover: &Remover, kept: &[Kept]) -> bool {
        let mut all = self.0.lock();
        let now = Instant::now();
        all.retain(|one| one.until > now);
        let is_this = |one: &Refused| kept.contains(&one.by.kept) && one.is_followed_by(remover);
        let is_own = |one: &Refused| one.by.thread == remover.thread && is_this(one);
        let found = all.iter().position(is_own).or_else(|| all.iter().position(is_this));
        found.map(|nth| all.remove(nth)).is_some()
    }
}

impl WorkTree {
    /// A reply to who writes or closes what lay there before that, if it is refused, notes who will
    /// clean up.
    pub(in crate::tree) fn noting_unsaved<T: 'static>(
        &self,
        caller: &Caller,
        (ino, handle): (Ino, Handle),
        staged: &Staged,
        reply: Reply<T>,
    ) -> Reply<T> {
        let Some(me) = self.me() else { return reply };
        let kept = staged.what.key().map_or(Kept::File(ino), Kept::Record);
        // Where its name is that of a record that went to a backup, that comes back with this file.
        let may_come_back = staged.is_draft();
        if !(staged.was_there || may_come_back) {
            return reply;
        }
        let thread = caller.pid;
        Reply::new(move |answer: Result<T, Errno>| {
            let cleanups = &me.handles.cleanups;
            let kept = match may_come_back {
                false => Some(kept),
                true if answer.is_ok() && cleanups.is_idle() => None,
                true => me.read(|read| record_in(read, ino)).ok().flatten(),
            };
            match kept.map(|kept| Writer { kept, thread, handle }) {
                Some(by) if answer.is_ok() => cleanups.forget(by),
                Some(by) => cleanups.note(by),
                None => {}
            }
            reply.send(answer);
        })
    }

    /// A reply to who closes a new file that is judged now, if it is refused, notes what that was to move.
    pub(in crate::tree) fn noting_uncopied(
        &self,
        caller: &Caller,
        (ino, handle): (Ino, Handle),
        staged: &Staged,
        reply: Reply<()>,
    ) -> Reply<()> {
        let home = staged.what.home().filter(|_| staged.is_draft()).cloned();
        let (Some(home), Some(me)) = (home, self.me()) else { return reply };
        let thread = caller.pid;
        Reply::new(move |answer: Result<(), Errno>| {
            let moved = match answer {
                Ok(()) => None,
                Err(_) => me.read(|read| moved_by_copy(read, &home)).ok().flatten(),
            };
            if let Some((_, file)) = moved.filter(|(_, file)| *file != ino) {
                me.handles.cleanups.note(Writer { kept: Kept::Source(file), thread, handle });
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
        let kept = self.read(|read| kept_at(read, parent, name))?;
        let thread = caller.pid;
        let remover = Remover { thread, line: line_of(thread), is_rm: removes_files(thread) };
        match cleanups.take(&remover, &kept) {
            true => Err(Rule::JustRefused.errno(Door::Name)),
            false => Ok(()),
        }
    }
}

fn record_in(read: &dyn Read, file: Ino) -> Result<Option<Kept>, StoreError> {
    Ok(read.record_at(file)?.map(|record| Kept::Record(record.key)))
}

fn kept_at(read: &dyn Read, dir: Ino, name: &FileName) -> Result<Vec<Kept>, StoreError> {
    let Some(node) = read.lookup(dir, name)? else { return Ok(Vec::new()) };
    Ok(match node.class {
        Class::Record => {
            let record = record_in(read, node.ino)?;
            record.into_iter().chain([Kept::Source(node.ino)]).collect()
        }
        Class::Draft => Vec::new(),
        Class::Plain => vec![Kept::File(node.ino)],
    })
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
            let until = Instant::now() + *left;
            cleanups.note_of(Refused { by: *by, line: vec![ME, SHELL], until });
        }
        cleanups
    }

    /// Processes that there are not: what they started and was waited for has ended.
    const ME: u32 = u32::MAX;
    const SHELL: u32 = u32::MAX - 1;

    fn takes(cleanups: &Cleanups, line: &[u32], is_rm: bool, kept: Kept) -> bool {
        cleanups.take(&Remover { thread: 0, line: line.to_vec(), is_rm }, &[kept])
    }

    #[test]
    fn a_clean_up_comes_once_for_each_save_and_soon() {
        let cleanups = noted(&[(by(1, 1), CLEANUP_GRACE), (by(2, 2), CLEANUP_GRACE)]);
        let take = |process, kept| takes(&cleanups, &[process], false, kept);
        assert!(!take(7, FILE) && !take(ME, Kept::File(Ino(8))));
        assert!(take(ME, FILE) && take(ME, FILE) && !take(ME, FILE));
        let cleanups = noted(&[(by(1, 1), Duration::ZERO)]);
        assert!(!takes(&cleanups, &[ME], false, FILE) && cleanups.is_idle());
    }

    #[test]
    fn of_what_was_to_be_copied_a_rm_of_the_family_is_kept_from() {
        let source = Kept::Source(Ino(7));
        for (line, is_rm, kept, is) in [
            (&[9, SHELL][..], true, source, true),
            (&[9, 8, SHELL], true, source, true),
            (&[ME, SHELL], true, source, true),
            (&[ME, SHELL], false, source, true),
            (&[SHELL], false, source, false),
            (&[9, SHELL], false, source, false),
            (&[9, 8], true, source, false),
            // What a shell saved in its place is its `rm`'s to remove.
            (&[9, SHELL], true, FILE, false),
        ] {
            let refused = Writer { kept, ..by(1, 1) };
            let cleanups = noted(&[(refused, CLEANUP_GRACE)]);
            assert_eq!(takes(&cleanups, line, is_rm, kept), is, "{line:?} {is_rm} {kept:?}");
        }
    }

    #[test]
    fn what_one_thread_or_handle_is_told_last_counts() {
        // `write` and `close` of one handle, from two threads; then another try of the second.
        let refused = [by(1, 1), by(2, 1), by(2, 2)].map(|by| (by, CLEANUP_GRACE));
        let cleanups = noted(&refused);
        let take = || takes(&cleanups, &[ME], false, FILE);
        assert!(take() && !take());
        let cleanups = noted(&[(by(1, 1), CLEANUP_GRACE)]);
        cleanups.forget(by(3, 3));
        cleanups.forget(Writer { kept: Kept::File(Ino(8)), ..by(1, 1) });
        assert!(!cleanups.is_idle());
        cleanups.forget(by(1, 2));
        assert!(cleanups.is_idle());
    }

    #[test]
    fn what_one_thread_cleans_up_is_its_own_and_another_s_is_still_to_come() {
        let cleanups = noted(&[(by(1, 1), CLEANUP_GRACE), (by(2, 2), CLEANUP_GRACE)]);
        let take = |thread| {
            let remover = Remover { thread, line: vec![ME, SHELL], is_rm: false };
            cleanups.take(&remover, &[FILE])
        };
        assert!(take(2));
        // That one begins another save.
        cleanups.forget(by(2, 3));
        assert!(take(1) && !take(1));
    }

    #[test]
    fn only_so_many_are_remembered() {
        let many = (0..2 * CLEANUPS_MAX as u64).map(|nth| (by(nth as u32, nth), CLEANUP_GRACE));
        let cleanups = noted(&many.collect::<Vec<_>>());
        assert_eq!(cleanups.0.lock().len(), CLEANUPS_MAX);
    }
}
