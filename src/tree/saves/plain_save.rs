//! The save of a plain file: what tells that a handle has written, and what its `close` then does.
//!
//! What must stay true: a handle that did not write, and a file for which no rule counts, cost no
//! change. A large file is hashed by a thread, never by one that serves the kernel nor by the
//! writer; each user has a turn there, one file at a time, and none can have so many wait that they
//! take memory without end.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use sha2::{Digest as _, Sha256};
use workfs_mount::{Caller, Reply};

use super::judging::Call;
use crate::config::Scope;
use crate::engine::{Digest, SaveFile, Sync, read_plain};
use crate::ledger::Hash;
use crate::limits::{
    DAEMON_END_WAIT, HASH_AWAITED_BYTES_MAX, HASHED_BYTES_MAX, HASHED_IN_TURN_BYTES_MAX,
    HASHES_OF_ONE_MAX,
};
use crate::numbers::Ino;
use crate::refusal::Door;
use crate::store::{Class, Durability, Node, Read, StoreError};
use crate::tree::start::Start;
use crate::tree::{Touch, WorkTree};

/// Bytes that are hashed from one snapshot at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Whether a handle has written since its last `close`, and who opened it.
pub(in crate::tree) struct Wrote {
    /// The directory whose rules counted for the file when it was opened.
    dir: Ino,
    opener: Caller,
    /// It wrote since the last save.
    since: AtomicBool,
    /// Opening it made or emptied the file, and nothing was saved yet. Counts at the end only:
    /// shells close a copy of the descriptor before anything is written.
    opening: AtomicBool,
}

impl Wrote {
    /// A handle of a file in `dir`; `already`: opening it was a change.
    pub fn new(dir: Ino, opener: &Caller, already: bool) -> Self {
        let (since, opening) = (AtomicBool::new(false), AtomicBool::new(already));
        Wrote { dir, opener: *opener, since, opening }
    }

    /// It wrote.
    pub fn note(&self) {
        self.since.store(true, Ordering::Relaxed);
    }

    /// Whether it wrote since the last save.
    pub fn is_any(&self) -> bool {
        self.since.load(Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        let wrote = self.is_any() && self.since.swap(false, Ordering::Relaxed);
        if wrote {
            self.opening.store(false, Ordering::Relaxed);
        }
        wrote
    }

    /// The same at the end.
    fn take_last(&self) -> bool {
        self.take() || self.opening.load(Ordering::Relaxed)
    }
}

/// The save of a large file: whether that can be hashed before.
type Job = Box<dyn FnOnce(bool) + Send>;

/// Hashes large files one after the other; its thread lives as long as there are any.
#[derive(Default)]
struct Hasher {
    waiting: Mutex<Waiting>,
    /// Its thread has ended.
    ended: Condvar,
    start: Start,
}

/// The files that wait to be hashed.
#[derive(Default)]
struct Waiting {
    of_users: HashMap<u32, VecDeque<Job>>,
    /// The users that have some, by whose turn it is.
    turns: VecDeque<u32>,
    /// There is a thread that takes them.
    at_work: bool,
}

impl Waiting {
    /// Gives it back where its user has too many already.
    fn push(&mut self, user: u32, job: Job) -> Result<(), Job> {
        let own = self.of_users.entry(user).or_default();
        if own.len() >= HASHES_OF_ONE_MAX {
            return Err(job);
        }
        if own.is_empty() {
            self.turns.push_back(user);
        }
        own.push_back(job);
        Ok(())
    }

    fn pop(&mut self) -> Option<Job> {
        let user = self.turns.pop_front()?;
        let own = self.of_users.get_mut(&user)?;
        let job = own.pop_front();
        if own.is_empty() {
            self.of_users.remove(&user);
        } else {
            self.turns.push_back(user);
        }
        job
    }
}

/// Small ones do not wait for large ones.
#[derive(Default)]
pub(in crate::tree) struct Hashers {
    /// Those whose `close` waits.
    awaited: Arc<Hasher>,
    /// The others.
    others: Arc<Hasher>,
    /// The daemon ends, and waits for no hash.
    is_over: AtomicBool,
}

impl Hasher {
    fn run(self: &Arc<Self>, user: u32, job: Job) {
        let mut waiting = self.waiting.lock();
        if let Err(job) = waiting.push(user, job) {
            drop(waiting);
            tracing::warn!(
                user,
                "so many large files wait that one more is saved without its hash"
            );
            return job(false);
        }
        if waiting.at_work {
            return;
        }
        let hasher = Arc::clone(self);
        let work = move || {
            while let Some(job) = hasher.next() {
                // Whoever closes a file next must not wait for a thread that is no more.
                if catch_unwind(AssertUnwindSafe(|| job(true))).is_err() {
                    tracing::error!("the save of a large file panicked");
                }
            }
        };
        match self.start.thread("hasher", work) {
            Ok(()) => waiting.at_work = true,
            Err(error) => {
                let mut left = std::mem::take(&mut *waiting);
                drop(waiting);
                tracing::warn!(%error, "a large file is saved without its hash");
                while let Some(job) = left.pop() {
                    job(false);
                }
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting.lock();
        let next = waiting.pop();
        waiting.at_work = next.is_some();
        if next.is_none() {
            self.ended.notify_all();
        }
        next
    }

    /// Waits until nothing is hashed any more.
    fn await_end(&self, until: Instant) {
        let mut waiting = self.waiting.lock();
        while waiting.at_work && !self.ended.wait_until(&mut waiting, until).timed_out() {}
    }
}

impl WorkTree {
    /// The rules that count for files of `dir`.
    pub(super) fn scope(&self, dir: Ino) -> Option<Arc<Scope>> {
        let config = self.engine.config();
        if config.files().is_empty() {
            return None;
        }
        let ticket = self.hub.scopes.ticket();
        self.read(|read| self.hub.scopes.of(ticket, read, &config, dir)).ok().flatten()
    }

    /// `close` and `fsync` of a plain file.
    pub(super) fn save_plain(
        &self,
        caller: &Caller,
        ino: Ino,
        wrote: &Wrote,
        call: Call,
        reply: Reply<()>,
    ) {
        let closes = wrote.take();
        if closes {
            self.hub.note_file(wrote.opener.mount, Touch::Closed(ino));
        }
        if closes && (self.scope(wrote.dir).is_some() || self.hub.open.counts(ino)) {
            let durability = match call {
                Call::Fsync => Durability::Flush,
                Call::Flush => Durability::Process,
            };
            return self.log_save(caller, ino, durability, reply);
        }
        match call {
            Call::Fsync => self.submit(caller, Door::Handle, Sync, reply, |()| ()),
            Call::Flush => reply.send(Ok(())),
        }
    }

    /// At the daemon's end: large files that were saved and are not hashed yet have their events without.
    pub(in crate::tree) fn end_saves(&self) {
        let Hashers { awaited, others, is_over } = &self.hashers;
        is_over.store(true, Ordering::Release);
        let until = Instant::now() + DAEMON_END_WAIT;
        // A piece at most of each is read to its end.
        awaited.await_end(until);
        others.await_end(until);
    }

    /// The last descriptor is gone: a file that was made or emptied and not written is saved now;
    /// a write after the last `close` came through a mapping.
    /// `counts`: rules have come to count for it since it is open.
    pub(in crate::tree) fn release_plain(&self, ino: Ino, wrote: &Wrote, counts: bool) {
        let closes = wrote.take_last();
        if closes {
            self.hub.note_file(wrote.opener.mount, Touch::Closed(ino));
        }
        if closes && (counts || self.scope(wrote.dir).is_some()) {
            self.log_save(&wrote.opener, ino, Durability::Process, Reply::new(|_| {}));
        }
    }

    /// The save of a file that was changed by its name: `truncate(2)`.
    pub(super) fn log_cut(&self, caller: &Caller, node: &Node, reply: Reply<()>) {
        let counts = || self.read(|read| dir_that_counts(read, node)).ok();
        if node.class == Class::Plain && counts().is_some_and(|dir| self.scope(dir).is_some()) {
            return self.log_save(caller, node.ino, Durability::Process, reply);
        }
        reply.send(Ok(()));
    }

    fn log_save(&self, caller: &Caller, ino: Ino, durability: Durability, reply: Reply<()>) {
        let size = self.read(|read| read.node(ino)).ok().flatten().map_or(0, |node| node.size);
        if size <= HASHED_IN_TURN_BYTES_MAX {
            let command = SaveFile { ino, digest: None, durability };
            return self.submit(caller, Door::Handle, command, reply, |()| ());
        }
        if size > HASHED_BYTES_MAX {
            let command = SaveFile { ino, digest: None, durability };
            return self.submit(caller, Door::Handle, command, reply, |()| ());
        }
        let awaited = size <= HASH_AWAITED_BYTES_MAX;
        // Who closes a very large file is not kept waiting, and keeps nobody else waiting: its
        // event comes when it is hashed.
        let (hasher, reply) = if awaited {
            (&self.hashers.awaited, reply)
        } else if durability == Durability::Process {
            reply.send(Ok(()));
            (&self.hashers.others, Reply::new(|_| {}))
        } else {
            self.submit(caller, Door::Handle, Sync, reply, |()| ());
            (&self.hashers.others, Reply::new(|_| {}))
        };
        // Whom the mount acts for is known now: it may have ended by then.
        let (tree, context) = (self.me.clone(), self.context(caller, Door::Handle));
        hasher.run(
            caller.uid,
            Box::new(move |hashes| {
                let digest = hashes.then(|| digest(&tree, ino)).flatten();
                // The daemon may have ended meanwhile.
                if let Some(me) = tree.upgrade() {
                    let command = SaveFile { ino, digest, durability };
                    me.engine.submit(context, command, move |saved| {
                        reply.send(saved.map_err(|refusal| refusal.rule.errno(Door::Handle)));
                    });
                }
            }),
        );
    }
}

/// The directory whose rules count for a plain file: that of its first name, if no other is noted.
pub(in crate::tree) fn dir_that_counts(read: &dyn Read, node: &Node) -> Result<Ino, StoreError> {
    let noted = if node.nlink > 1 { read.file_name(node.ino)? } else { None };
    Ok(noted.map_or(node.parent, |at| at.dir))
}

/// Hashes a file, from as many snapshots as it takes; nothing if it changed meanwhile, or the daemon ends.
fn digest(tree: &Weak<WorkTree>, ino: Ino) -> Option<Digest> {
    let mut hash = Sha256::new();
    let mut first: Option<Node> = None;
    let mut at = 0;
    loop {
        let tree = tree.upgrade().filter(|tree| !tree.hashers.is_over.load(Ordering::Acquire))?;
        let read = tree.read(|read| {
            let Some(node) = read.node(ino)? else { return Ok(None) };
            let piece = read_plain(read, &node, at, PIECE_BYTES)?;
            Ok(Some((node, piece)))
        });
        drop(tree);
        let (node, piece) = read.ok()??;
        let begun = first.get_or_insert_with(|| node.clone());
        if (begun.size, begun.ctime) != (node.size, node.ctime) {
            return None;
        }
        hash.update(&piece);
        at += piece.len() as u64;
        if at >= node.size || piece.is_empty() {
            let sha256 = Hash::from_bytes(hash.finalize().into());
            return Some(Digest { size: node.size, ctime: node.ctime, sha256 });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_user_has_a_turn_however_many_files_another_saves() {
        let hasher = Arc::new(Hasher::default());
        let (tell, told) = std::sync::mpsc::channel();
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel();
        hasher.run(1, Box::new(move |_| (begin.send(()).unwrap(), goes_on.recv().unwrap()).1));
        begun.recv_timeout(Duration::from_secs(20)).unwrap();
        let save = |user: u32, name: u32| {
            let tell = tell.clone();
            hasher.run(user, Box::new(move |hashes| tell.send((user, name, hashes)).unwrap()));
        };
        (0..3).for_each(|name| save(1, name));
        (0..2).for_each(|name| save(2, name));
        save(3, 0);
        go_on.send(()).unwrap();
        let order: Vec<_> =
            (0..6).map(|_| told.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
        let ours = [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)];
        assert_eq!(order, ours.map(|(user, name)| (user, name, true)));
        hasher.await_end(Instant::now() + Duration::from_secs(20));
        assert!(!hasher.waiting.lock().at_work);
    }

    #[test]
    fn what_one_user_has_waiting_has_a_limit() {
        let hasher = Arc::new(Hasher::default());
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel();
        hasher.run(1, Box::new(move |_| (begin.send(()).unwrap(), goes_on.recv().unwrap()).1));
        begun.recv_timeout(Duration::from_secs(20)).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let save = |user: u32| {
            let tell = tell.clone();
            hasher.run(user, Box::new(move |hashes| tell.send((user, hashes)).unwrap()));
        };
        (0..HASHES_OF_ONE_MAX).for_each(|_| save(1));
        told.try_recv().unwrap_err();
        save(1);
        save(2);
        assert_eq!(told.try_recv(), Ok((1, false)));
        told.try_recv().unwrap_err();
        hasher.await_end(Instant::now() + Duration::from_millis(20));
        assert!(hasher.waiting.lock().at_work, "it waits no longer than it was told to");
        go_on.send(()).unwrap();
        hasher.await_end(Instant::now() + Duration::from_secs(20));
        assert_eq!(told.try_iter().filter(|(_, hashes)| *hashes).count(), HASHES_OF_ONE_MAX + 1);
    }

    #[test]
    fn one_that_panics_leaves_the_others_their_turn() {
        let hasher = Arc::new(Hasher::default());
        let (tell, told) = std::sync::mpsc::channel();
        hasher.run(1, Box::new(|_| panic!("a panic that a test asked for")));
        hasher.run(1, Box::new(move |hashes| tell.send(hashes).unwrap()));
        assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(true));
    }

    #[test]
    fn without_a_thread_a_large_file_is_saved_without_its_hash() {
        let none = Hasher { start: Start::none(), ..Hasher::default() };
        let hasher = Arc::new(none);
        let (tell, told) = std::sync::mpsc::channel();
        for _ in 0..2 {
            let tell = tell.clone();
            hasher.run(1, Box::new(move |hashes| tell.send(hashes).unwrap()));
            assert_eq!(told.try_recv(), Ok(false));
        }
        assert!(!hasher.waiting.lock().at_work);
    }
}
