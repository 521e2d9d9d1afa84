//! Who gets a lock of a file whose old pages its kernel is about to drop.
//!
//! A kernel drops them in the thread that first takes in that the file has changed (`AUTO_INVAL_DATA`). Another thread
//! finds the new attributes a moment before the pages are gone, and reads on in those: two programs that share a lock
//! through one mount, after a third has written through another, read half of what that wrote. No notice can drop them
//! (rule 2 of the architecture).
//!
//! What must stay true: after a change through another mount the threads of a mount get locks of that file one after the
//! other, until one that was told its new attributes has come back: to read, for which it asks when they are gone, or
//! with another lock. No thread waits here; nobody waits longer than [`OLD_PAGES_GO_WITHIN`]. Only files that somebody has
//! locked are looked at: who locks nothing may read pages of before and after.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use workfs_mount::{Handle, MountId, Reply};

use crate::limits::{OLD_PAGES_GO_WITHIN, PAGES_GO_WITHIN, SETTLING_MAX};
use crate::numbers::Ino;
use crate::tree::start::Start;

/// How long the thread that looks at the clock stays for the next who waits.
const TIMER_LINGERS: Duration = Duration::from_secs(1);

/// Who has a lock: the thread, and by which handle.
type By = (u32, Handle);

/// A thread that is to drop the pages.
struct First {
    thread: u32,
    /// By which it has a lock, if it has one.
    handle: Option<Handle>,
    since: Instant,
    /// It was told the new attributes: when it asks for anything else, the pages are gone.
    is_told: bool,
}

impl First {
    fn with_lock((thread, handle): By) -> First {
        First { thread, handle: Some(handle), since: Instant::now(), is_told: false }
    }

    /// Until when it is waited for. Who has a lock reads, or lets go of it; who asked for attributes alone may ask for
    /// nothing more.
    fn until(&self) -> Instant {
        let patience = if self.handle.is_some() { OLD_PAGES_GO_WITHIN } else { PAGES_GO_WITHIN };
        self.since + patience
    }
}

/// A file of which a kernel may have old pages.
#[derive(Default)]
struct File {
    first: Option<First>,
    /// When another thread was told the new attributes first, so that the first is told none: it finds them.
    told_another: Option<Instant>,
    /// Those who have a lock, and are to hear of it.
    waiting: Vec<(By, Reply<()>)>,
}

#[derive(Default)]
struct State {
    files: HashMap<(MountId, Ino), File>,
    has_timer: bool,
}

/// See the module.
#[derive(Default)]
pub(in crate::tree) struct Settling {
    state: Mutex<State>,
    /// How many files they are: where there is none, nobody takes the lock.
    count: AtomicUsize,
    came: Condvar,
    start: Start,
}

impl File {
    /// Whether the pages are gone when the first asks for anything.
    fn is_told(&self) -> bool {
        let is_long_ago = |told: Instant| told.elapsed() >= PAGES_GO_WITHIN;
        self.first.as_ref().is_some_and(|first| first.is_told)
            || self.told_another.is_some_and(is_long_ago)
    }
}

impl Settling {
    /// Another mount has changed a file that was locked by somebody.
    pub fn change(&self, mount: MountId, ino: Ino) {
        let mut state = self.state.lock();
        if state.files.len() >= SETTLING_MAX {
            state.files.retain(|_, file| !file.waiting.is_empty());
        }
        let file = state.files.entry((mount, ino)).or_default();
        // Where somebody waits for the first, that one has a lock, of which the writer takes no notice.
        if file.waiting.is_empty() {
            *file = File::default();
        }
        self.note(&state);
    }

    fn note(&self, state: &State) {
        self.count.store(state.files.len(), Ordering::Release);
    }

    fn is_idle(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// A thread is told what a file is by now.
    pub fn told(&self, mount: MountId, ino: Ino, thread: u32) {
        if self.is_idle() {
            return;
        }
        let mut state = self.state.lock();
        let Some(file) = state.files.get_mut(&(mount, ino)) else { return };
        let now = || First { thread, handle: None, since: Instant::now(), is_told: true };
        let first = file.first.get_or_insert_with(now);
        if first.thread == thread {
            first.is_told = true;
        } else if !first.is_told {
            file.told_another.get_or_insert_with(Instant::now);
        }
    }

    /// A thread asks for what it does not find among the pages.
    pub fn reads(&self, mount: MountId, ino: Ino, thread: u32) {
        if !self.is_idle() {
            self.come_back(mount, ino, thread);
        }
    }

    /// A thread lets go of a lock, or is going to.
    pub fn unlocks(&self, mount: MountId, ino: Ino, thread: u32) {
        if !self.is_idle() && !self.come_back(mount, ino, thread) {
            self.give_up((mount, ino), |first| first.thread == thread);
        }
    }

    /// A handle is gone, and with it its locks.
    pub fn closed(&self, mount: MountId, ino: Ino, handle: Handle) {
        if !self.is_idle() {
            self.give_up((mount, ino), |first| first.handle == Some(handle));
        }
    }

    /// The first, if it is this, is done: where it was told nothing the next one is the first.
    fn give_up(&self, of: (MountId, Ino), is_it: impl FnOnce(&First) -> bool) {
        let mut state = self.state.lock();
        let Some(file) = state.files.get_mut(&of) else { return };
        if !file.first.as_ref().is_some_and(is_it) {
            return;
        }
        if file.is_told() {
            return self.settle(state, of);
        }
        file.first = None;
        let next = (!file.waiting.is_empty()).then(|| file.waiting.remove(0));
        if let Some((by, reply)) = next {
            file.first = Some(First::with_lock(by));
            drop(state);
            reply.send(Ok(()));
        }
    }

    /// Whether this is the first, and was told, so that the pages are gone; then who waits goes on.
    fn come_back(&self, mount: MountId, ino: Ino, thread: u32) -> bool {
        let state = self.state.lock();
        let is_gone = state.files.get(&(mount, ino)).is_some_and(|file| {
            file.is_told() && file.first.as_ref().is_some_and(|first| first.thread == thread)
        });
        if is_gone {
            self.settle(state, (mount, ino));
        }
        is_gone
    }

    /// All who wait go on.
    fn settle(&self, mut state: MutexGuard<'_, State>, of: (MountId, Ino)) {
        let file = state.files.remove(&of);
        self.note(&state);
        drop(state);
        file.into_iter().flat_map(|file| file.waiting).for_each(|(_, reply)| reply.send(Ok(())));
    }

    /// A thread has got a lock: it hears of it when it finds no old pages.
    pub fn locked(self: &Arc<Self>, (mount, ino): (MountId, Ino), by: By, reply: Reply<()>) {
        if self.is_idle() || self.come_back(mount, ino, by.0) {
            return reply.send(Ok(()));
        }
        let mut state = self.state.lock();
        let Some(file) = state.files.get_mut(&(mount, ino)) else {
            drop(state);
            return reply.send(Ok(()));
        };
        match &file.first {
            Some(first) if first.thread != by.0 && Instant::now() < first.until() => {
                file.waiting.push((by, reply));
                self.see_to_it(state);
            }
            Some(first) if first.thread != by.0 => {
                self.settle(state, (mount, ino));
                reply.send(Ok(()));
            }
            _ => {
                file.first = Some(First::with_lock(by));
                drop(state);
                reply.send(Ok(()));
            }
        }
    }

    /// Has the clock looked at for who waits; where no thread can be had for that nobody waits.
    fn see_to_it(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if !state.has_timer {
            let timer = Arc::clone(self);
            if let Err(error) = self.start.thread("settling", move || timer.time()) {
                tracing::warn!(%error, "no thread to wait until old pages are gone");
                let all = std::mem::take(&mut state.files);
                self.note(&state);
                drop(state);
                let waiting = all.into_values().flat_map(|file| file.waiting);
                waiting.for_each(|(_, reply)| reply.send(Ok(())));
                return;
            }
            state.has_timer = true;
        }
        drop(state);
        self.came.notify_one();
    }

    /// The timer thread; it ends when nobody has waited for a while.
    fn time(&self) {
        let mut state = self.state.lock();
        loop {
            let waits = |(of, file): (&(MountId, Ino), &File)| {
                let first = file.first.as_ref().filter(|_| !file.waiting.is_empty())?;
                Some((first.until(), *of))
            };
            match state.files.iter().filter_map(waits).min() {
                Some((until, of)) if until <= Instant::now() => {
                    self.settle(state, of);
                    state = self.state.lock();
                }
                Some((until, _)) => {
                    self.came.wait_until(&mut state, until);
                }
                None if self.came.wait_for(&mut state, TIMER_LINGERS).timed_out() => {
                    state.has_timer = false;
                    return;
                }
                None => {}
            }
        }
    }

    /// A mount has ended.
    pub fn remove_mount(&self, id: MountId) {
        let mut state = self.state.lock();
        // What waits there is dropped, which answers it.
        let gone: Vec<_> = state.files.extract_if(|(mount, _), _| *mount == id).collect();
        self.note(&state);
        drop(state);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    const HERE: (MountId, Ino) = (MountId(1), Ino(7));

    fn lock(settling: &Arc<Settling>, thread: u32) -> Receiver<()> {
        let (tell, told) = channel();
        settling.locked(
            HERE,
            (thread, Handle(u64::from(thread))),
            Reply::new(move |_| tell.send(()).unwrap_or(())),
        );
        told
    }

    fn changed() -> Arc<Settling> {
        let settling = Arc::new(Settling::default());
        settling.change(HERE.0, HERE.1);
        settling
    }

    #[test]
    fn one_after_the_other_gets_a_lock_until_one_has_looked() {
        let settling = changed();
        let (first, second, third) = (lock(&settling, 1), lock(&settling, 2), lock(&settling, 3));
        assert!(first.try_recv().is_ok() && second.try_recv().is_err());
        // It was not told anything: its next lock says nothing of the pages, nor does its last.
        assert!(lock(&settling, 1).try_recv().is_ok() && second.try_recv().is_err());
        settling.unlocks(HERE.0, HERE.1, 1);
        assert!(second.try_recv().is_ok() && third.try_recv().is_err());
        let fourth = lock(&settling, 4);
        settling.closed(HERE.0, HERE.1, Handle(4));
        assert!(third.try_recv().is_err(), "that one waits itself");
        settling.closed(HERE.0, HERE.1, Handle(2));
        assert!(third.try_recv().is_ok() && fourth.try_recv().is_err());
        settling.reads(HERE.0, HERE.1, 3);
        assert!(fourth.try_recv().is_err(), "what a mapping asks for");
        settling.told(HERE.0, HERE.1, 3);
        settling.reads(HERE.0, HERE.1, 4);
        assert!(fourth.try_recv().is_err());
        settling.reads(HERE.0, HERE.1, 3);
        assert!(fourth.try_recv().is_ok() && settling.is_idle());
    }

    #[test]
    fn who_was_told_without_a_lock_is_waited_for_too_but_not_for_long() {
        let settling = changed();
        settling.told(HERE.0, HERE.1, 9);
        let waits = lock(&settling, 1);
        assert!(waits.try_recv().is_err());
        waits.recv().unwrap();
        assert!(settling.is_idle());
        settling.change(HERE.0, HERE.1);
        settling.told(HERE.0, HERE.1, 9);
        assert!(lock(&settling, 9).try_recv().is_ok(), "the pages are gone when it asks");
        assert!(settling.is_idle());
    }

    #[test]
    fn who_finds_what_another_was_told_has_no_pages_of_before_a_moment_later() {
        let settling = changed();
        let (first, second) = (lock(&settling, 1), lock(&settling, 2));
        settling.told(HERE.0, HERE.1, 9);
        settling.reads(HERE.0, HERE.1, 1);
        assert!(first.try_recv().is_ok() && second.try_recv().is_err(), "that one drops them now");
        let until = Instant::now() + PAGES_GO_WITHIN;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left);
        }
        settling.reads(HERE.0, HERE.1, 1);
        assert!(second.try_recv().is_ok() && settling.is_idle());
        // By a handle that is gone one can be told, too.
        let settling = changed();
        let waits = [lock(&settling, 1), lock(&settling, 2), lock(&settling, 3)];
        settling.told(HERE.0, HERE.1, 1);
        settling.closed(HERE.0, HERE.1, Handle(1));
        assert!(waits.iter().all(|waits| waits.try_recv().is_ok()) && settling.is_idle());
    }

    #[test]
    fn nobody_waits_where_nobody_looks_at_the_clock_or_the_mount_is_gone() {
        let none = Settling { start: Start::none(), ..Settling::default() };
        let settling = Arc::new(none);
        settling.change(HERE.0, HERE.1);
        assert!(lock(&settling, 1).try_recv().is_ok() && lock(&settling, 2).try_recv().is_ok());
        let settling = changed();
        let waits = [lock(&settling, 1), lock(&settling, 2)];
        settling.remove_mount(HERE.0);
        assert!(waits.iter().all(|waits| waits.recv().is_ok()) && settling.is_idle());
    }
}
