//! Locks of all mounts of one tree: `flock`, and `fcntl` with its ranges.
//!
//! What must stay true:
//! - A lock goes with its holder: POSIX locks when the process closes the file (FLUSH), all that is
//!   left when the open file goes (RELEASE) or its mount. The kernel says so also for a process
//!   that was killed.
//! - No thread waits here: who waits is an entry with its reply, answered by whoever lets go.
//! - A lock that goes with its open file counts for nobody who asks after the last `close`: that returns when
//!   RELEASE is sent, and not when it has come here. So who does not want to wait waits for it nonetheless, for
//!   a moment ([`CLOSING_WAIT`]), where a descriptor of the file that has the lock was closed just before.
//! - Who waits can be interrupted and killed, although the library knows no FUSE_INTERRUPT: a
//!   thread, which lives while anybody waits, looks at their signals every [`LOOK_EVERY`].
//!
//! Locks are about open files of living processes; nothing of them is stored. Deliberately not
//! here: fairness (who asks next may be faster than who waits, as on other file systems).

mod signals;
mod table;
mod wire;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::errno::Errno;
use crate::ids::{Handle, Ino, MountId};
use crate::requests::reply::Reply;
use crate::shares::used_up;
use signals::Thread;
use table::Table;
pub(crate) use table::{Family, Kind, Lock, Owner};
pub(crate) use wire::family_of;

/// Locks that are held at once: bounds the memory to some hundred megabytes.
const LOCKS_MAX: usize = 1 << 20;

/// Who may wait at once: each is looked at every [`LOOK_EVERY`].
const WAITERS_MAX: usize = 1 << 14;

/// Looks in a row after which who may have been told of a signal has been: a first thread that is in the
/// midst of handling one blocks it, too, and takes the next one itself a moment later.
const PERHAPS_LOOKS: u32 = 10;

/// How soon an interrupted waiter goes. A look costs some microseconds a waiter.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long after a `close` a lock may be one that goes by it. RELEASE waits in the kernel's queue by then, for
/// a thread of ours that reads it, which took up to 13 ms where all cores were busy, and once over 30. Whoever
/// asks for a lock that a child has inherited, or a copy of the descriptor, is refused so much later.
const CLOSING_WAIT: Duration = Duration::from_millis(100);

/// Files of which is remembered that they were locked: some megabytes. A lock file is one for good.
const LOCKED_MAX: usize = 1 << 16;

/// How long somebody waits whose signals cannot be seen: nobody could end it.
const UNSEEN_WAIT: Duration = Duration::from_secs(2);

/// Somebody who waits for a lock.
struct Waiter {
    number: u64,
    ino: Ino,
    lock: Lock,
    thread: u32,
    since: Instant,
    /// Who did not want to wait waits until then.
    until: Option<Instant>,
    /// It only asks, and takes nothing.
    asks: bool,
    /// How many times in a row it may have been told of a signal.
    perhaps: u32,
    reply: Reply<()>,
}

impl Waiter {
    /// With what its waiting ends, if it does: by how it stands with its thread now.
    fn ends(&mut self, thread: Thread) -> Option<Errno> {
        if let Some(until) = self.until {
            return (until <= Instant::now()).then_some(Errno::EAGAIN);
        }
        self.perhaps = if thread == Thread::Perhaps { self.perhaps + 1 } else { 0 };
        match thread {
            Thread::Signalled => Some(Errno::EINTR),
            Thread::Perhaps => (self.perhaps >= PERHAPS_LOOKS).then_some(Errno::EINTR),
            Thread::Unseen => (self.since.elapsed() >= UNSEEN_WAIT).then_some(Errno::ETIMEDOUT),
            Thread::Waits => None,
        }
    }
}

#[derive(Default)]
struct State {
    files: HashMap<Ino, Table>,
    /// Files that somebody has, or had, a lock of.
    locked: HashSet<Ino>,
    held: usize,
    waiters: Vec<Waiter>,
    next_waiter: u64,
    watched: bool,
}

/// All locks of one tree. Every mount of the tree shares them.
pub struct Locks {
    state: Mutex<State>,
    waits: Condvar,
    /// Starts the thread that looks at who waits.
    start: fn(Arc<Locks>) -> io::Result<()>,
}

impl Default for Locks {
    fn default() -> Locks {
        let start = |locks: Arc<Locks>| {
            let thread = std::thread::Builder::new().name("locks".into());
            thread.spawn(move || locks.look()).map(drop)
        };
        Locks { state: Mutex::default(), waits: Condvar::new(), start }
    }
}

/// What is to be done with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// It is to be let go of.
    Unlock,
    /// It is to be had now, or not at all.
    Try,
    /// It is to be waited for.
    Wait,
}

/// What a request of the kernel asks for.
pub(crate) struct Wanted {
    pub(crate) ino: Ino,
    /// The lock; where it is to be let go of, its kind says nothing.
    pub(crate) lock: Lock,
    pub(crate) ask: Ask,
    /// The calling thread.
    pub(crate) thread: u32,
}

impl State {
    /// Holds a lock that nothing stands in the way of.
    fn put(&mut self, ino: Ino, lock: Lock) {
        if self.locked.len() >= LOCKED_MAX {
            self.locked.clear();
        }
        self.locked.insert(ino);
        self.change(ino, |table| table.put(lock));
    }

    /// Has somebody wait; who only `asks` is to be given nothing.
    fn wait(
        &mut self,
        (ino, lock, thread): (Ino, Lock, u32),
        until: Option<Instant>,
        asks: bool,
        reply: Reply<()>,
    ) {
        let (number, since, perhaps) = (self.next_waiter, Instant::now(), 0);
        self.next_waiter += 1;
        let waiter = Waiter { number, ino, lock, thread, since, until, asks, perhaps, reply };
        self.waiters.push(waiter);
    }

    /// Changes one file's table and keeps the count.
    fn change<T>(&mut self, ino: Ino, change: impl FnOnce(&mut Table) -> T) -> T {
        let table = self.files.entry(ino).or_default();
        self.held -= table.len();
        let done = change(table);
        self.held += table.len();
        if table.is_empty() {
            self.files.remove(&ino);
        }
        done
    }

    fn conflict(&self, ino: Ino, lock: &Lock) -> Option<&Lock> {
        self.files.get(&ino).and_then(|table| table.conflict(lock))
    }

    /// Until when everything that stands in the way of a lock may be about to go.
    fn goes_until(&self, ino: Ino, lock: &Lock) -> Option<Instant> {
        let now = Instant::now();
        let conflicts = self.files.get(&ino).into_iter().flat_map(|table| table.conflicts(lock));
        let until = conflicts.map(|held| held.closed.map(|closed| closed + CLOSING_WAIT));
        // One that stays is sooner than any that may go.
        until.min().flatten().filter(|until| *until > now)
    }

    /// Gives the waiters of a file what they can have now; they are to be answered, and so are those who
    /// do not want to wait for whoever has it instead.
    fn grant(&mut self, ino: Ino) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut at = 0;
        while at < self.waiters.len() {
            let Waiter { ino: of, lock, until, asks, .. } = self.waiters[at];
            if of == ino && asks && self.goes_until(ino, &lock).is_none() {
                answers.push((self.waiters.remove(at).reply, Ok(())));
            } else if of == ino && !asks && self.conflict(ino, &lock).is_none() {
                let changes = self.files.get(&ino).is_some_and(|table| table.changes_kind(&lock));
                self.put(ino, lock);
                answers.push((self.waiters.remove(at).reply, Ok(())));
                // What it shares from now on may be what one before it waits for.
                at = if changes { 0 } else { at };
            } else if of == ino && until.is_some() && self.goes_until(ino, &lock).is_none() {
                answers.push((self.waiters.remove(at).reply, Err(Errno::EAGAIN)));
            } else {
                at += 1;
            }
        }
        answers
    }

    /// Whether somebody whom `lock` would wait for waits for its owner, maybe by way of others.
    fn would_deadlock(&self, ino: Ino, lock: &Lock) -> bool {
        let mut seen = Vec::new();
        let mut ask = vec![(ino, *lock)];
        while let Some((ino, wanted)) = ask.pop() {
            let in_the_way = self.files.get(&ino).into_iter().flat_map(|t| t.conflicts(&wanted));
            for holder in in_the_way.map(|held| held.owner) {
                if holder == lock.owner {
                    return true;
                }
                if seen.contains(&holder) {
                    continue;
                }
                seen.push(holder);
                let theirs = self.waiters.iter().filter(|waiter| {
                    let lock = &waiter.lock;
                    waiter.until.is_none() && lock.family == Family::Posix && lock.owner == holder
                });
                ask.extend(theirs.map(|waiter| (waiter.ino, waiter.lock)));
            }
        }
        false
    }
}

impl State {
    /// Why somebody may not wait for this lock, if so.
    fn refuses_to_wait(&self, ino: Ino, lock: &Lock) -> Option<Errno> {
        if lock.family == Family::Posix && self.would_deadlock(ino, lock) {
            return Some(Errno::EDEADLK);
        }
        let count = |counts: &dyn Fn(u32) -> bool| {
            self.waiters.iter().filter(|waiter| counts(waiter.lock.user)).count()
        };
        let places = (self.waiters.len(), WAITERS_MAX);
        used_up(lock.user, places, count).map(|_| Errno::ENOLCK)
    }

    /// Whether a user may have no more locks.
    fn has_none_for(&self, user: u32) -> bool {
        let count = |counts: &dyn Fn(u32) -> bool| {
            self.files.values().map(|table| table.count_of(counts)).sum()
        };
        used_up(user, (self.held, LOCKS_MAX), count).is_some()
    }
}

/// What somebody who waited is told.
type Answer = (Reply<()>, Result<(), Errno>);

fn answer(answers: Vec<Answer>) {
    for (reply, told) in answers {
        reply.send(told);
    }
}

impl Locks {
    /// What stands in the way of a lock.
    pub(crate) fn conflict(&self, ino: Ino, lock: &Lock) -> Option<Lock> {
        self.state.lock().conflict(ino, lock).copied()
    }

    /// Tells what stands in the way of a lock: of what may be about to go, when it has gone or may not any more.
    pub(crate) fn test(
        self: &Arc<Self>,
        (ino, lock, thread): (Ino, Lock, u32),
        reply: Reply<Option<Lock>>,
    ) {
        let mut state = self.state.lock();
        let until = state.goes_until(ino, &lock);
        let waits = until.is_some() && state.refuses_to_wait(ino, &lock).is_none();
        if waits && self.watch(&mut state) {
            let me = Arc::clone(self);
            let reply = Reply::new(move |_| reply.send(Ok(me.conflict(ino, &lock))));
            state.wait((ino, lock, thread), until, true, reply);
            self.waits.notify_one();
            return;
        }
        let found = state.conflict(ino, &lock).copied();
        drop(state);
        reply.send(Ok(found));
    }

    /// What its own open file holds there: nothing stands in the way of a lock's end, and who asks for that wants to
    /// know this (`F_OFD_GETLK` with `F_UNLCK`).
    pub(crate) fn own(&self, ino: Ino, lock: &Lock) -> Option<Lock> {
        self.state.lock().files.get(&ino)?.own(lock).copied()
    }

    /// Takes, changes or lets go of a lock, or queues who waits for it.
    pub(crate) fn set(self: &Arc<Self>, wanted: Wanted, reply: Reply<()>) {
        let Wanted { ino, lock, ask, thread } = wanted;
        let mut state = self.state.lock();
        let changes = state.files.get(&ino).is_some_and(|table| table.changes_kind(&lock));
        // `flock` gives up the old lock before it asks for one of the other kind.
        if ask == Ask::Unlock || (changes && lock.family == Family::Flock) {
            state.change(ino, |table| table.take(&lock));
        }
        let until = if ask == Ask::Try { state.goes_until(ino, &lock) } else { None };
        // `None`: it waits.
        let verdict = if ask == Ask::Unlock {
            Some(Ok(()))
        } else if state.conflict(ino, &lock).is_some() {
            match ask == Ask::Wait || until.is_some() {
                // Who was only given a moment to see a lock go hears of nothing but the lock.
                true => {
                    let refused = state.refuses_to_wait(ino, &lock);
                    // Nobody could end that.
                    let unseen = || (!self.watch(&mut state)).then_some(Errno::ENOLCK);
                    let refused = refused.or_else(unseen);
                    refused.map(|why| Err(if ask == Ask::Wait { why } else { Errno::EAGAIN }))
                }
                false => Some(Err(Errno::EAGAIN)),
            }
        } else if state.has_none_for(lock.user) {
            Some(Err(Errno::ENOLCK))
        } else {
            state.put(ino, lock);
            Some(Ok(()))
        };
        let granted = if ask == Ask::Unlock || changes { state.grant(ino) } else { Vec::new() };
        let Some(verdict) = verdict else {
            state.wait((ino, lock, thread), until, false, reply);
            if until.is_some() {
                self.waits.notify_one();
            }
            drop(state);
            return answer(granted);
        };
        drop(state);
        answer(granted);
        reply.send(verdict);
    }

    /// Whether anybody holds a lock of this file.
    #[must_use]
    pub fn is_held(&self, ino: Ino) -> bool {
        self.state.lock().files.contains_key(&ino)
    }

    /// Whether anybody holds a lock of this file, or held one, as far as is remembered.
    #[must_use]
    pub fn was_held(&self, ino: Ino) -> bool {
        self.state.lock().locked.contains(&ino)
    }

    /// A process has closed a descriptor of a file: its POSIX locks there are gone, through whichever they
    /// were taken; those of the open file `handle` go with its last one.
    pub(crate) fn closed(&self, ino: Ino, owner: Owner, handle: Handle) {
        if let Some(table) = self.state.lock().files.get_mut(&ino) {
            table.note_closed(handle, Instant::now());
        }
        self.drop_of(ino, |lock| lock.family == Family::Posix && lock.owner == owner);
    }

    /// An open file is gone, and with it what is left of its locks.
    pub(crate) fn released(&self, ino: Ino, handle: Handle) {
        self.drop_of(ino, |lock| lock.handle == handle);
    }

    fn drop_of(&self, ino: Ino, goes: impl Fn(&Lock) -> bool) {
        let mut state = self.state.lock();
        if state.files.contains_key(&ino) && state.change(ino, |table| table.drop_all(goes)) {
            let granted = state.grant(ino);
            drop(state);
            answer(granted);
        }
    }

    /// A mount has ended; its kernel says nothing more.
    pub(crate) fn unmounted(&self, mount: MountId) {
        let mut state = self.state.lock();
        // What waits there is dropped, which answers it.
        let waiters = std::mem::take(&mut state.waiters);
        let (gone, stay): (Vec<_>, Vec<_>) =
            waiters.into_iter().partition(|waiter| waiter.lock.owner.mount == mount);
        state.waiters = stay;
        let files: Vec<Ino> = state.files.keys().copied().collect();
        let mut granted = Vec::new();
        for ino in files {
            if state.change(ino, |table| table.drop_all(|lock| lock.owner.mount == mount)) {
                granted.extend(state.grant(ino));
            }
        }
        drop(state);
        drop(gone);
        answer(granted);
    }

    /// Sees to it that the thread runs that looks at who waits, of whom one is to come; false if it cannot.
    fn watch(self: &Arc<Self>, state: &mut State) -> bool {
        if !state.watched {
            let started = (self.start)(Arc::clone(self));
            state.watched = started.is_ok();
            if let Err(error) = started {
                tracing::error!(%error, "nobody can wait for a lock");
            }
        }
        state.watched
    }

    /// The watching thread: ends when nobody waits.
    fn look(&self) {
        let mut state = self.state.lock();
        while !state.waiters.is_empty() {
            // It is the clock; who waits for a moment only wakes it.
            let soon = state.waiters.iter().filter_map(|waiter| waiter.until).min();
            let left = soon.map(|soon| soon.saturating_duration_since(Instant::now()));
            self.waits.wait_for(&mut state, LOOK_EVERY.min(left.unwrap_or(LOOK_EVERY)));
            let seen = state.waiters.iter().filter(|waiter| waiter.until.is_none());
            let threads: Vec<_> = seen.map(|waiter| (waiter.number, waiter.thread)).collect();
            let looked: HashMap<u64, Thread> =
                parking_lot::MutexGuard::unlocked(&mut state, || {
                    threads.iter().map(|(number, id)| (*number, signals::look(*id))).collect()
                });
            let (mut gone, mut stay) = (Vec::new(), Vec::new());
            for mut waiter in std::mem::take(&mut state.waiters) {
                let thread = looked.get(&waiter.number).copied().unwrap_or(Thread::Waits);
                match waiter.ends(thread) {
                    Some(errno) => gone.push((waiter, errno)),
                    None => stay.push(waiter),
                }
            }
            state.waiters = stay;
            parking_lot::MutexGuard::unlocked(&mut state, || {
                gone.into_iter().for_each(|(waiter, errno)| waiter.reply.send(Err(errno)));
            });
        }
        state.watched = false;
    }
}

#[cfg(test)]
#[path = "locks_test.rs"]
mod locks_test;
