//! Who opens a file that is replaced again and again.
//!
//! An `open` that finds its file without a name is answered ESTALE, upon which the kernel looks the
//! name up once more, but not a third time. Who is overtaken twice is given what that second
//! look-up found, as on other file systems: the plain file, which stays for a moment without its
//! name, or the version that the record had. Not to write that, since nobody would want what comes
//! of it: a shell hears ESTALE from `open`, but not from `close`. Deliberately not here: how long
//! nameless files stay (the engine's desk).

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use workfs_mount::{Caller, MountId, OpenFlags, Opened, Reply};

use crate::limits::{OVERTAKEN_MAX, OVERTAKEN_TWICE_WITHIN};
use crate::numbers::Ino;
use crate::refusal::{Door, Rule};
use crate::store::{Class, Node, Read, Record, StoreError};

use super::WorkTree;
use super::handles::Held;
use super::open::Looked;

/// Threads whose `open` was overtaken, and is made once more.
#[derive(Default)]
pub(super) struct Overtaken {
    threads: Mutex<HashMap<(MountId, u32), Again>>,
    /// How many they are: whoever is none of them takes no lock.
    count: AtomicUsize,
}

/// The second attempt.
struct Again {
    since: Instant,
    found: Option<Found>,
}

/// The file that was looked up last.
pub(super) struct Found {
    ino: Ino,
    /// It was empty then.
    was_empty: bool,
    /// The record that it was then.
    record: Option<Record>,
}

impl Overtaken {
    /// Notes what a thread finds that looks a name up for the second time.
    pub fn looked(&self, read: &dyn Read, caller: &Caller, node: &Node) -> Result<(), StoreError> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        if let Some(again) = self.threads.lock().get_mut(&key(caller)) {
            let is_record = node.class == Class::Record;
            let record = if is_record { read.record_at(node.ino)? } else { None };
            again.found = Some(Found { ino: node.ino, was_empty: node.size == 0, record });
        }
        Ok(())
    }

    /// Ends a thread's attempts: it opened what it wanted, or is overtaken once more. Gives what it had
    /// found.
    pub fn end(&self, caller: &Caller) -> Option<Found> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut threads = self.threads.lock();
        let again = threads.remove(&key(caller));
        self.count.store(threads.len(), Ordering::Release);
        again.filter(Again::is_recent)?.found
    }

    fn begin(&self, caller: &Caller) {
        let mut threads = self.threads.lock();
        // Those that gave up, or have ended.
        threads.retain(|_, again| again.is_recent());
        if threads.len() < OVERTAKEN_MAX {
            threads.insert(key(caller), Again { since: Instant::now(), found: None });
        }
        self.count.store(threads.len(), Ordering::Release);
    }
}

impl Again {
    fn is_recent(&self) -> bool {
        self.since.elapsed() < OVERTAKEN_TWICE_WITHIN
    }
}

fn key(caller: &Caller) -> (MountId, u32) {
    (caller.mount, caller.pid)
}

impl WorkTree {
    /// Opens an inode that has no name.
    pub(super) fn open_overtaken(
        &self,
        caller: &Caller,
        held: Held,
        flags: OpenFlags,
        reply: Reply<Opened>,
    ) {
        let Some(mut found) = self.overtaken.end(caller) else {
            self.overtaken.begin(caller);
            return reply.send(Err(Rule::Gone.errno(Door::Handle)));
        };
        if found.ino != held.ino() {
            // Its name was looked up once more meanwhile, by another thread: the kernel shares that.
            found = Found { ino: held.ino(), was_empty: false, record: None };
        }
        match self.read(|read| self.what_was_found(read, caller, &found, flags)) {
            Ok(Some(looked)) => self.give(caller, held, looked, flags, reply),
            Ok(None) => reply.send(Err(Rule::Gone.errno(Door::Handle))),
            Err(errno) => reply.send(Err(errno)),
        }
    }

    fn what_was_found(
        &self,
        read: &dyn Read,
        caller: &Caller,
        found: &Found,
        flags: OpenFlags,
    ) -> Result<Option<Looked>, StoreError> {
        if let Some(record) = &found.record {
            if flags.write || flags.truncate {
                return Ok(None);
            }
            let version = read.version(record.version_g)?;
            return Ok(version.map(|version| Looked::Open(self.pinned(caller, record, version))));
        }
        let gone = read.node(found.ino)?;
        // One that has become empty may have been reclaimed in part.
        let is_whole = |gone: &Node| gone.nlink > 0 || gone.size > 0 || found.was_empty;
        let gone = gone.filter(|gone| {
            gone.class == Class::Plain && is_whole(gone) && !self.is_hidden(&gone.kind(), caller)
        });
        Ok(gone.map(|gone| self.look_at_plain(caller, (gone.parent, gone.ino), flags)))
    }
}
