//! Those who wait by `.wait`: reads that are answered later, and polls.
//!
//! They only look. A record that becomes ready wakes one of them; if it is still there a moment
//! later, because that one did not take it, the next is woken. What must stay true: no thread of
//! the kernel's waits here, and no read waits longer than [`REQUEST_DEADLINE`]. Deliberately not
//! here: those who wait to take a record (the engine's line).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Select, Sender, unbounded};
use parking_lot::Mutex;
use workfs_mount::{Caller, Errno, Handle, PollWake, Reply};

use crate::limits::{REQUEST_DEADLINE, WAKE_NEXT_AFTER};
use crate::numbers::WorkspaceKey;

use super::{Answer, WorkTree};

/// An open `.wait`.
pub(super) struct Waited {
    workspace: WorkspaceKey,
    /// What is left of the line that was begun. Its end is owed to who reads on, such as `cat`; who polls
    /// before it reads asks anew.
    rest: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Waited {
    pub fn of(workspace: WorkspaceKey) -> Waited {
        Waited { workspace, rest: Arc::default() }
    }
}

/// What a read gives that goes on with a line; `None`: it begins one.
fn go_on(rest: &mut Option<Vec<u8>>, size: usize) -> Option<Vec<u8>> {
    let mut given = rest.take()?;
    if !given.is_empty() {
        *rest = Some(given.split_off(size.min(given.len())));
    }
    Some(given)
}

impl WorkTree {
    /// Gives the name of the best that can be claimed as soon as there is one, and then an end.
    pub(super) fn await_ready(
        &self,
        caller: &Caller,
        waited: &Waited,
        size: usize,
        reply: Reply<Vec<u8>>,
    ) {
        let more = go_on(&mut waited.rest.lock(), size);
        if let Some(more) = more {
            return reply.send(Ok(more));
        }
        let (workspace, rest) = (waited.workspace, Arc::clone(&waited.rest));
        let reply = reply.map(move |line: Vec<u8>| {
            let mut rest = rest.lock();
            // Nothing is an end already.
            *rest = (!line.is_empty()).then_some(line);
            go_on(&mut rest, size).unwrap_or_default()
        });
        match self.read(|read| self.claimable_name(read, workspace)) {
            Ok(Some(name)) => reply.send(Ok(line(name.as_bytes()))),
            Ok(None) if caller.nonblocking => reply.send(Err(Errno::EAGAIN)),
            Ok(None) => self.waits.read(&self.me, workspace, reply),
            Err(errno) => reply.send(Err(errno)),
        }
    }

    /// Whether a read would give something now; if not, `wake` is called when it would.
    pub(super) fn poll_ready(
        &self,
        waited: &Waited,
        handle: Handle,
        wake: Option<PollWake>,
    ) -> Answer<bool> {
        {
            let mut rest = waited.rest.lock();
            if rest.as_ref().is_some_and(|rest| !rest.is_empty()) {
                return Ok(true);
            }
            *rest = None;
        }
        if self.read(|read| self.claimable_name(read, waited.workspace))?.is_some() {
            return Ok(true);
        }
        if let Some(wake) = wake {
            self.waits.poll(&self.me, waited.workspace, handle, wake);
        }
        Ok(false)
    }
}

/// Somebody who waits.
enum Waiter {
    /// A read that is owed an answer.
    Read { until: Instant, reply: Reply<Vec<u8>> },
    /// A poll of this handle.
    Poll { handle: Handle, wake: PollWake },
}

/// What the thread is told.
enum Told {
    Waits(WorkspaceKey, Waiter),
    Closed(Handle),
}

/// The way to the thread that knows all who wait. It is started by the first of them.
#[derive(Default)]
pub(super) struct Waits(Mutex<Option<Sender<Told>>>);

impl Waits {
    /// A read of `.wait` that found nothing.
    pub fn read(&self, tree: &Weak<WorkTree>, workspace: WorkspaceKey, reply: Reply<Vec<u8>>) {
        let until = Instant::now() + REQUEST_DEADLINE - MARGIN;
        self.tell(tree, Told::Waits(workspace, Waiter::Read { until, reply }));
    }

    /// A poll that found nothing.
    pub fn poll(
        &self,
        tree: &Weak<WorkTree>,
        workspace: WorkspaceKey,
        handle: Handle,
        wake: PollWake,
    ) {
        self.tell(tree, Told::Waits(workspace, Waiter::Poll { handle, wake }));
    }

    /// A handle that may have polled is closed.
    pub fn closed(&self, handle: Handle) {
        if let Some(thread) = &*self.0.lock() {
            // A thread that is gone knows nobody.
            let _ = thread.send(Told::Closed(handle));
        }
    }

    /// Whoever cannot be told to wait is answered by the drop of its reply.
    fn tell(&self, tree: &Weak<WorkTree>, told: Told) {
        let mut thread = self.0.lock();
        let sender = thread.get_or_insert_with(|| start(tree.clone()));
        let _ = sender.send(told);
    }
}

/// A read is answered a little before its time is over.
const MARGIN: Duration = Duration::from_millis(100);

fn start(tree: Weak<WorkTree>) -> Sender<Told> {
    let (sender, told) = unbounded();
    let run = move || {
        let Some(news) = tree.upgrade().map(|tree| tree.engine.line().watch()) else { return };
        Waiting { tree, queues: HashMap::new(), again: HashMap::new() }.run(&told, &news);
    };
    let started = std::thread::Builder::new().name("waits".into()).stack_size(512 << 10).spawn(run);
    if let Err(error) = started {
        tracing::error!(%error, "nobody can wait");
    }
    sender
}

struct Waiting {
    tree: Weak<WorkTree>,
    queues: HashMap<WorkspaceKey, VecDeque<Waiter>>,
    /// When to look whether a record that somebody was woken for is still there.
    again: HashMap<WorkspaceKey, Instant>,
}

impl Waiting {
    /// Until the tree is gone.
    fn run(&mut self, told: &Receiver<Told>, news: &Receiver<WorkspaceKey>) {
        loop {
            let mut select = Select::new();
            let (of_told, _) = (select.recv(told), select.recv(news));
            let ready = match self.next_look() {
                Some(at) => select.select_deadline(at).ok(),
                None => Some(select.select()),
            };
            match ready {
                None => self.look_at_the_clock(),
                Some(ready) if ready.index() == of_told => match ready.recv(told) {
                    Ok(told) => self.hear(told),
                    Err(_) => return,
                },
                Some(ready) => match ready.recv(news) {
                    Ok(workspace) => self.wake_one(workspace),
                    Err(_) => return,
                },
            }
        }
    }

    fn next_look(&self) -> Option<Instant> {
        let reads = self.queues.values().flatten().filter_map(|waiter| match waiter {
            Waiter::Read { until, .. } => Some(*until),
            Waiter::Poll { .. } => None,
        });
        reads.chain(self.again.values().copied()).min()
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Waits(workspace, waiter) => {
                // It may have become ready since the caller looked.
                if let Some(name) = self.best(workspace) {
                    return waiter.wake(Some(name));
                }
                let queue = self.queues.entry(workspace).or_default();
                if let Waiter::Poll { handle, .. } = &waiter {
                    queue.retain(|known| !known.is_poll_of(*handle));
                }
                queue.push_back(waiter);
            }
            Told::Closed(handle) => {
                for queue in self.queues.values_mut() {
                    queue.retain(|known| !known.is_poll_of(handle));
                }
            }
        }
    }

    /// Wakes the first who waits, if there is something to be woken for.
    fn wake_one(&mut self, workspace: WorkspaceKey) {
        self.again.remove(&workspace);
        if self.queues.get(&workspace).is_none_or(VecDeque::is_empty) {
            return;
        }
        let Some(name) = self.best(workspace) else { return };
        let Some(queue) = self.queues.get_mut(&workspace) else { return };
        if let Some(first) = queue.pop_front() {
            first.wake(Some(name));
        }
        if !queue.is_empty() {
            self.again.insert(workspace, Instant::now() + WAKE_NEXT_AFTER);
        }
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        let again: Vec<WorkspaceKey> =
            self.again.iter().filter(|(_, at)| **at <= now).map(|(key, _)| *key).collect();
        for workspace in again {
            self.wake_one(workspace);
        }
        for workspace in self.queues.keys().copied().collect::<Vec<_>>() {
            let Some(queue) = self.queues.remove(&workspace) else { continue };
            let (late, waiting): (VecDeque<_>, VecDeque<_>) =
                queue.into_iter().partition(|waiter| waiter.is_late(now));
            if !waiting.is_empty() {
                self.queues.insert(workspace, waiting);
            }
            if !late.is_empty() {
                let name = self.best(workspace);
                late.into_iter().for_each(|waiter| waiter.wake(name.clone()));
            }
        }
    }

    /// The name of the best ready record, as a line.
    fn best(&self, workspace: WorkspaceKey) -> Option<Vec<u8>> {
        let tree = self.tree.upgrade()?;
        let name = tree.read(|read| tree.claimable_name(read, workspace)).ok().flatten()?;
        Some(line(name.as_bytes()))
    }
}

/// A name as `.wait` gives it.
fn line(name: &[u8]) -> Vec<u8> {
    [name, b"\n"].concat()
}

impl Waiter {
    fn wake(self, name: Option<Vec<u8>>) {
        match self {
            Waiter::Read { reply, .. } => reply.send(Ok::<_, Errno>(name.unwrap_or_default())),
            Waiter::Poll { wake, .. } => wake.now(),
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        matches!(self, Waiter::Read { until, .. } if *until <= now)
    }

    fn is_poll_of(&self, handle: Handle) -> bool {
        matches!(self, Waiter::Poll { handle: own, .. } if *own == handle)
    }
}
