//! Those who wait by `.wait`: reads that are answered later, and polls.
//!
//! They only look. A record that becomes ready wakes one of them; if it is still there a moment
//! later, because that one did not take it, the next is woken. What must stay true: no thread of
//! the kernel's waits here, and no read waits longer than [`REQUEST_DEADLINE`]. Deliberately not
//! here: whom a record wakes (`wakes`); those who wait to take a record (the engine's line).

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Select, Sender, unbounded};
use parking_lot::Mutex;
use workfs_mount::{Caller, Errno, Handle, PollWake, Reply};

use crate::engine::{About, Refuse};
use crate::limits::REQUEST_DEADLINE;
use crate::numbers::WorkspaceKey;
use crate::refusal::{Door, Refusal};
use crate::store::StoreError;
use crate::tree::start::Start;
use crate::tree::{Answer, WorkTree};

use super::wakes::{Call, Looker, Lookers, Whose};

/// An open `.wait`.
pub(in crate::tree) struct Waited {
    workspace: WorkspaceKey,
    /// Who opened it.
    whose: Whose,
    /// What is left of the line that was begun. Its end is owed to who reads on, such as `cat`; who polls
    /// before it reads asks anew.
    rest: Arc<Mutex<Option<Vec<u8>>>>,
    /// What wakes whoever polled last by this handle, as long as that is open.
    polled: Mutex<Option<(Handle, PollWake)>>,
}

impl Waited {
    pub fn of(workspace: WorkspaceKey, caller: &Caller) -> Waited {
        let whose = (caller.mount, caller.uid);
        Waited { workspace, whose, rest: Arc::default(), polled: Mutex::default() }
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
    pub(in crate::tree) fn await_ready(
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
            Ok(None) if caller.nonblocking => {
                // An epoll that is told of edges polls no more once it heard of one: it waits for the
                // next from where a read finds nothing.
                if let Some((handle, wake)) = waited.polled.lock().clone() {
                    // Where that cannot be, the next poll says so.
                    let _ = self.waits.poll(&self.me, waited, handle, wake);
                }
                reply.send(Err(Errno::EAGAIN));
            }
            Ok(None) => {
                if let Err((error, reply)) = self.waits.read(&self.me, waited, reply) {
                    reply.send(Err(self.refuse_to_wait(caller, &error)));
                }
            }
            Err(errno) => reply.send(Err(errno)),
        }
    }

    /// Whether a read would give something now; if not, `wake` is called when it would.
    pub(in crate::tree) fn poll_ready(
        &self,
        waited: &Waited,
        handle: Handle,
        wake: Option<PollWake>,
    ) -> Answer<bool> {
        *waited.polled.lock() = wake.clone().map(|wake| (handle, wake));
        {
            let mut rest = waited.rest.lock();
            if rest.as_ref().is_some_and(|rest| !rest.is_empty()) {
                return Ok(true);
            }
            *rest = None;
        }
        if self.read(|read| self.claimable_name(read, waited.workspace))?.is_some() {
            self.waits.came(waited.workspace, handle);
            return Ok(true);
        }
        match wake.map_or(Ok(true), |wake| self.waits.poll(&self.me, waited, handle, wake)) {
            Ok(true) => Ok(false),
            Ok(false) => Err(Errno::EIO),
            // It hears that there is an error, and a read says which, and has `why` tell.
            Err(error) => Err(no_thread(&error).rule.errno(Door::Handle)),
        }
    }

    fn refuse_to_wait(&self, caller: &Caller, error: &io::Error) -> Errno {
        let refusal = no_thread(error);
        let refuse = Refuse { operation: "wait", about: About::Nothing, refusal };
        self.refuse(caller, Door::Handle, refuse)
    }
}

/// There can be no thread that knows of who waits.
fn no_thread(error: &io::Error) -> Refusal {
    StoreError::NoThread(error.to_string()).into()
}

/// What the thread is told.
enum Told {
    Waits(WorkspaceKey, Looker),
    /// A poll of this handle found something.
    Came(WorkspaceKey, Handle),
    Closed(Handle),
}

/// The way to the thread that knows all who wait. It is started by the first of them.
#[derive(Default)]
pub(in crate::tree) struct Waits {
    thread: Mutex<Option<Sender<Told>>>,
    start: Start,
}

impl Waits {
    /// A read of `.wait` that found nothing; gives it back where there can be no thread.
    pub fn read(
        &self,
        tree: &Weak<WorkTree>,
        waited: &Waited,
        reply: Reply<Vec<u8>>,
    ) -> Result<(), (io::Error, Reply<Vec<u8>>)> {
        let mut thread = self.thread.lock();
        match self.started(&mut thread, tree) {
            Ok(()) => {
                let until = Instant::now() + REQUEST_DEADLINE - MARGIN;
                tell_of(&mut thread, waited, Call::Read { until, reply });
                Ok(())
            }
            Err(error) => Err((error, reply)),
        }
    }

    /// A poll that found nothing. False if nobody would wake it.
    ///
    /// # Errors
    /// There can be no thread that would.
    pub fn poll(
        &self,
        tree: &Weak<WorkTree>,
        waited: &Waited,
        handle: Handle,
        wake: PollWake,
    ) -> io::Result<bool> {
        let mut thread = self.thread.lock();
        self.started(&mut thread, tree)?;
        Ok(tell_of(&mut thread, waited, Call::Poll { handle, wake }))
    }

    /// A poll that found something: the one who was woken, perhaps.
    pub fn came(&self, workspace: WorkspaceKey, handle: Handle) {
        self.tell(Told::Came(workspace, handle));
    }

    /// A handle that may have polled is closed.
    pub fn closed(&self, handle: Handle) {
        self.tell(Told::Closed(handle));
    }

    fn tell(&self, told: Told) {
        if let Some(thread) = &*self.thread.lock() {
            // A thread that is gone knows nobody.
            let _ = thread.send(told);
        }
    }

    fn started(&self, thread: &mut Option<Sender<Told>>, tree: &Weak<WorkTree>) -> io::Result<()> {
        if thread.is_some() {
            return Ok(());
        }
        let ((sender, told), tree) = (unbounded(), tree.clone());
        let run = move || {
            let Some(news) = tree.upgrade().map(|tree| tree.engine.line().watch()) else { return };
            Waiting { tree, lookers: HashMap::new() }.run(&told, &news);
        };
        let started = self.start.thread("waits", run);
        started.inspect_err(|error| tracing::error!(%error, "nobody can wait"))?;
        *thread = Some(sender);
        Ok(())
    }
}

/// False if nobody knows of it: a read is answered by the drop of its reply then. For the next that
/// waits a thread is started again.
fn tell_of(thread: &mut Option<Sender<Told>>, waited: &Waited, call: Call) -> bool {
    let told = Told::Waits(waited.workspace, Looker { whose: waited.whose, call });
    let is_told = thread.as_ref().is_some_and(|thread| thread.send(told).is_ok());
    if !is_told {
        *thread = None;
    }
    is_told
}

/// A read is answered a little before its time is over.
const MARGIN: Duration = Duration::from_millis(100);

struct Waiting {
    tree: Weak<WorkTree>,
    lookers: HashMap<WorkspaceKey, Lookers>,
}

impl Waiting {
    /// Until the tree is gone.
    fn run(&mut self, told: &Receiver<Told>, news: &Receiver<WorkspaceKey>) {
        loop {
            let mut select = Select::new();
            let (of_told, _) = (select.recv(told), select.recv(news));
            let ready = match self.lookers.values().filter_map(Lookers::again).min() {
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
                    Ok(workspace) => self.call(workspace, Lookers::one_more),
                    Err(_) => return,
                },
            }
        }
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Waits(workspace, looker) => {
                // It may have become ready since the caller looked.
                if let Some(name) = self.best(workspace) {
                    return looker.wake(Some(name));
                }
                self.lookers.entry(workspace).or_default().join(looker);
            }
            Told::Came(workspace, handle) => {
                if let Some(lookers) = self.lookers.get_mut(&workspace) {
                    lookers.come(handle, Instant::now());
                }
            }
            Told::Closed(handle) => {
                self.lookers.values_mut().for_each(|lookers| lookers.leave(handle));
            }
        }
    }

    /// Wakes those whom it is for, if there is something to be woken for.
    fn call(
        &mut self,
        workspace: WorkspaceKey,
        whom: impl FnOnce(&mut Lookers, Instant) -> Vec<Looker>,
    ) {
        if !self.lookers.contains_key(&workspace) {
            return;
        }
        let name = self.best(workspace);
        let Some(lookers) = self.lookers.get_mut(&workspace) else { return };
        if name.is_none() {
            lookers.none();
            return;
        }
        for looker in whom(lookers, Instant::now()) {
            looker.wake(name.clone());
        }
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        for workspace in self.lookers.keys().copied().collect::<Vec<_>>() {
            let Some(lookers) = self.lookers.get_mut(&workspace) else { continue };
            let (late, is_time) = (lookers.late(now), lookers.is_time(now));
            if !late.is_empty() {
                let name = self.best(workspace);
                late.into_iter().for_each(|looker| looker.wake(name.clone()));
            }
            if is_time {
                self.call(workspace, Lookers::still);
            }
        }
        self.lookers.retain(|_, lookers| !lookers.is_void());
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

#[cfg(test)]
mod tests {
    use workfs_mount::MountId;

    use super::*;

    fn waited() -> Waited {
        Waited {
            workspace: WorkspaceKey(1),
            whose: (MountId(1), 0),
            rest: Arc::default(),
            polled: Mutex::default(),
        }
    }

    #[test]
    fn without_a_thread_nobody_is_left_waiting() {
        let waits = Waits { start: Start::none(), ..Waits::default() };
        let waited = waited();
        let reply = Reply::new(|_: Result<Vec<u8>, Errno>| panic!("it is for the caller"));
        let (error, reply) = waits.read(&Weak::new(), &waited, reply).unwrap_err();
        assert_eq!(no_thread(&error).rule.errno(Door::Handle), Errno::ETIMEDOUT);
        std::mem::forget(reply);
        assert!(waits.thread.lock().is_none(), "the next tries again");
    }

    #[test]
    fn a_thread_that_has_ended_is_not_told_of_the_next() {
        // What the thread was to hear by is gone.
        let (sender, _) = unbounded();
        let waits = Waits { thread: Mutex::new(Some(sender)), ..Waits::default() };
        let waited = waited();
        let (tell, told) = std::sync::mpsc::channel();
        let reply = Reply::new(move |read: Result<Vec<u8>, Errno>| tell.send(read).unwrap());
        assert!(waits.read(&Weak::new(), &waited, reply).is_ok());
        assert_eq!(told.recv().unwrap(), Err(Errno::EIO));
        assert!(waits.thread.lock().is_none());
    }
}
