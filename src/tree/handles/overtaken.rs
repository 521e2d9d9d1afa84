//! Who opens a file that is replaced again and again, or by a name that it has left.
//!
//! An `open` that finds its file without a name is answered ESTALE, upon which the kernel looks the
//! name up once more, but not a third time. Who is overtaken twice is given what that second
//! look-up found, as on other file systems: the plain file, which stays for a moment without its
//! name, the text that a checked file had, or the version that the record had. Not to write a
//! version, since nobody would want what comes of it: a shell hears ESTALE from `open`, but not from
//! `close`. What must stay true: of a checked file without a name nobody reads what another is about to
//! write. Deliberately not here: how long nameless files stay (the engine's desk).

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use workfs_mount::{Caller, MountId, OpenFlags, Opened, Reply};

use crate::engine::ScopeTicket;
use crate::limits::{OVERTAKEN_MAX, OVERTAKEN_TWICE_WITHIN};
use crate::numbers::Ino;
use crate::refusal::{Door, Rule};
use crate::store::{Class, Node, Read, Record, StoreError};
use crate::tree::WorkTree;

use super::open::Looked;
use super::pins::Text;
use super::{Held, Open};

/// How long after a look-up the kernel opens what that found: what was found before is another call's.
const FOUND_WITHIN: Duration = Duration::from_millis(100);

/// Threads whose `open` was overtaken, and is made once more.
#[derive(Default)]
pub(in crate::tree) struct Overtaken {
    threads: Mutex<HashMap<(MountId, u32), Again>>,
    /// How many they are: whoever is none of them takes no lock.
    count: AtomicUsize,
}

/// The second attempt.
pub(in crate::tree) struct Again {
    since: Instant,
    found: Option<Found>,
}

/// The file that was looked up last.
pub(super) struct Found {
    ino: Ino,
    /// When it was.
    at: Instant,
    /// It was empty then.
    was_empty: bool,
    /// The record that it was then.
    record: Option<Record>,
    /// What a checked file said then.
    checked: Option<Text>,
}

impl Overtaken {
    /// Whether a thread looks for the second time.
    fn has(&self, caller: &Caller) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.threads.lock().contains_key(&key(caller))
    }

    /// Notes what a thread finds that looks a name up for the second time.
    fn found(&self, caller: &Caller, found: Found) {
        if let Some(again) = self.threads.lock().get_mut(&key(caller)) {
            again.found = Some(found);
        }
    }

    /// Ends a thread's attempts: it opened what it wanted, or is overtaken once more. Gives the second one.
    pub fn end(&self, caller: &Caller) -> Option<Again> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut threads = self.threads.lock();
        let again = threads.remove(&key(caller));
        self.count.store(threads.len(), Ordering::Release);
        again.filter(Again::is_recent)
    }

    /// Whether a thread that looked for the second time has found this file, and has not opened it yet.
    pub fn is_found(&self, ino: Ino) -> bool {
        let is_this = |again: &Again| again.found.as_ref().is_some_and(|found| found.ino == ino);
        self.count.load(Ordering::Acquire) > 0
            && self.threads.lock().values().any(|again| again.is_recent() && is_this(again))
    }

    /// Begins it; false where there are too many.
    fn begin(&self, caller: &Caller) -> bool {
        let mut threads = self.threads.lock();
        // Those that gave up, or have ended.
        threads.retain(|_, again| again.is_recent());
        let has_room = threads.len() < OVERTAKEN_MAX;
        if has_room {
            threads.insert(key(caller), Again { since: Instant::now(), found: None });
        }
        self.count.store(threads.len(), Ordering::Release);
        has_room
    }
}

impl Found {
    /// A file of which this thread has seen nothing: its name was looked up by another one, which a kernel
    /// shares, or it was opened by a descriptor (`/proc/self/fd/7`).
    fn unseen(ino: Ino) -> Self {
        Found { ino, at: Instant::now(), was_empty: false, record: None, checked: None }
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
    /// Whether this thread is to look the name up once more by which its kernel asks for an inode: a listing may
    /// have brought that after the inode had left it. The answer is ESTALE then.
    pub(in crate::tree) fn is_to_look_again(&self, caller: &Caller, ino: Ino) -> bool {
        let again = !self.overtaken.has(caller) && self.hub.has_left(caller.mount, ino);
        if again {
            self.overtaken.begin(caller);
        }
        again
    }

    /// Whether this thread is to look the name up once more by which its kernel asks for what it found: that is a
    /// version of a record which kernels may not have taken in yet, so that the record may have left the name, or have
    /// another size than its kernel says. For who only reads: a writer is told what it has not seen when it saves.
    pub(super) fn is_news(&self, caller: &Caller, looked: &Looked, flags: OpenFlags) -> bool {
        let Looked::Open(Open::Staged(staged)) = looked else { return false };
        if flags.changes() {
            return false;
        }
        let version = staged.lock().pinned.version();
        let is_news = version.is_some_and(|version| !self.hub.taken_in.has(version));
        is_news && !self.overtaken.has(caller) && self.overtaken.begin(caller)
    }

    /// The version of a record that this thread's second look-up has just found, for who reads: it may have another one,
    /// and another name, by now.
    pub(super) fn as_seen(
        &self,
        caller: &Caller,
        again: &Again,
        ino: Ino,
        flags: OpenFlags,
    ) -> Option<Looked> {
        let is_this = |found: &&Found| found.ino == ino && found.at.elapsed() < FOUND_WITHIN;
        // Of another container's threads no number is known: what one finds may be another's.
        let is_its = caller.pid != 0 && !flags.changes();
        let found = again.found.as_ref().filter(is_this).filter(|_| is_its)?;
        let record = found.record.as_ref()?;
        let version = self.read(|read| read.version(record.version_g)).ok()??;
        Some(Looked::Open(self.pinned(caller, record, version)))
    }

    /// Notes what a thread finds under a name, if it was overtaken.
    pub(in crate::tree) fn note_looked(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        caller: &Caller,
        node: &Node,
    ) -> Result<(), StoreError> {
        if !self.overtaken.has(caller) {
            return Ok(());
        }
        let mut found = Found { was_empty: node.size == 0, ..Found::unseen(node.ino) };
        match node.class {
            Class::Record => found.record = read.record_at(node.ino)?,
            Class::Plain => {
                // Who is overtaken in the middle of a save reads nothing of it.
                found.checked = self.text_of_checked(ticket, read, node)?;
                let counted = |text: &mut Text| self.pins.count(caller.uid, text).is_ok();
                found.checked =
                    found.checked.and_then(|mut text| counted(&mut text).then_some(text));
            }
            Class::Draft => {}
        }
        self.overtaken.found(caller, found);
        Ok(())
    }

    /// Opens an inode that has no name.
    pub(super) fn open_overtaken(
        &self,
        caller: &Caller,
        held: Held,
        flags: OpenFlags,
        reply: Reply<Opened>,
    ) {
        let Some(again) = self.overtaken.end(caller) else {
            self.overtaken.begin(caller);
            return reply.send(Err(Rule::Gone.errno(Door::Handle)));
        };
        let of_this = again.found.filter(|found| found.ino == held.ino());
        let found = of_this.unwrap_or_else(|| Found::unseen(held.ino()));
        let ticket = self.hub.scopes.ticket();
        match self.read(|read| self.what_was_found(ticket, read, caller, (&found, flags))) {
            Ok(Some(looked)) => self.give(caller, held, looked, flags, reply),
            Ok(None) => reply.send(Err(Rule::Gone.errno(Door::Handle))),
            Err(errno) => reply.send(Err(errno)),
        }
    }

    fn what_was_found(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        caller: &Caller,
        (found, flags): (&Found, OpenFlags),
    ) -> Result<Option<Looked>, StoreError> {
        if let Some(record) = &found.record {
            if flags.changes() {
                return Ok(None);
            }
            let version = read.version(record.version_g)?;
            return Ok(version.map(|version| Looked::Open(self.pinned(caller, record, version))));
        }
        let open = self.handles.of_file(caller.mount, found.ino);
        let gone = read.node(found.ino)?;
        // One that has become empty may have been reclaimed in part, if nobody has it open and it had chunks: it
        // counts them still.
        let stays = found.was_empty || !open.is_empty();
        let is_whole = |gone: &Node| gone.nlink > 0 || gone.size > 0 || gone.chunks == 0 || stays;
        let gone = gone.filter(|gone| {
            gone.class == Class::Plain && is_whole(gone) && !self.is_hidden(&gone.kind(), caller)
        });
        let Some(gone) = gone else { return Ok(None) };
        let is_unchecked =
            || !open.is_empty() && !open.iter().any(|(_, _, open)| open.is_checked());
        let checked = match &found.checked {
            Some(text) => Some(text.clone()),
            None if is_unchecked() => None,
            None => self.text_of_checked(ticket, read, &gone)?,
        };
        Ok(Some(match checked {
            Some(text) => self.open_nameless(caller, (&gone, text), flags),
            None => self.look_at_plain(caller, (gone.parent, gone.ino), flags),
        }))
    }
}
