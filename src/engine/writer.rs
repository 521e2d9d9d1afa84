//! The writer thread: batches, savepoints, one commit, then the answers.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::config::Config;
use crate::ledger::Hash;
use crate::limits::{BATCH_CHANGES_MAX, CLOCK_LOOK, QUEUE_CHANGES_MAX, REQUEST_DEADLINE};
use crate::names::TreePath;
use crate::numbers::{G, Ino, UnixNanos};
use crate::refusal::{Refusal, Rule};
use crate::store::{Durability, Read, Readers, Result, StoreError, Txn, Writer};

use super::agents::Registry;
use super::queue::{self, Sender, Taken, Taker};
use super::ready::Ripen;
use super::turn::Head;
use super::{
    Audience, Bell, Command, Context, Doors, Effect, FaultPoint, Line, Origin, Stop, Turn,
};

/// Answers one caller after the commit (or its failure).
type Finish = Box<dyn FnOnce(std::result::Result<(), Refusal>) + Send>;

/// What a queued command leaves to be done after the commit, and how it ended.
type Ran = (Finish, std::result::Result<(), Stop>);

/// A queued command: runs in a turn; or, where there is none, answers why.
type Job = Box<dyn FnOnce(std::result::Result<&mut Turn<'_>, Refusal>) -> Option<Ran> + Send>;

struct Queued {
    context: Context,
    operation: &'static str,
    durability: Durability,
    job: Job,
}

impl Queued {
    fn new<C: Command>(
        context: Context,
        command: C,
        answer: impl FnOnce(std::result::Result<C::Out, Refusal>) + Send + 'static,
    ) -> Self {
        let operation = command.operation();
        let (durability, changes) = (command.durability(), command.is_change());
        let job: Job = Box::new(move |turn| {
            let turn = match turn {
                Ok(turn) => turn,
                Err(refusal) => {
                    answer(Err(refusal));
                    return None;
                }
            };
            let may = if changes { turn.context.may_change() } else { Ok(()) };
            let ran = match may {
                Err(refusal) => Err(Stop::kept(refusal, TreePath::root())),
                Ok(()) => command.run(turn),
            };
            Some(match ran {
                Ok(out) => {
                    let finish: Finish =
                        Box::new(move |committed| answer(committed.map(move |()| out)));
                    (finish, Ok(()))
                }
                Err(stop) => {
                    let refusal = match &stop {
                        Stop::Refused(refused) => Some(refused.refusal.clone()),
                        Stop::Store(_) => None,
                    };
                    let finish: Finish = Box::new(move |committed| match (refusal, committed) {
                        (_, Err(failure)) => answer(Err(failure)),
                        (Some(refusal), Ok(())) => answer(Err(refusal)),
                        (None, Ok(())) => answer(Err(lost())),
                    });
                    (finish, Err(stop))
                }
            })
        });
        Queued { context, operation, durability, job }
    }
}

/// The way to the writer. Clones share it; the writer ends when the last one is dropped.
#[derive(Clone)]
pub struct Engine {
    queue: Sender<Queued>,
    readers: Arc<dyn Readers>,
    config: Arc<RwLock<Arc<Config>>>,
    agents: Arc<RwLock<Arc<Registry>>>,
    doors: Doors,
    bell: Arc<Bell>,
    line: Arc<Line>,
}

/// Starts the writer thread of a store.
///
/// # Errors
/// A store that cannot be read.
pub fn start(
    mut writer: Box<dyn Writer>,
    readers: Arc<dyn Readers>,
    config: Arc<Config>,
    sync: Durability,
    doors: Doors,
    audience: Arc<dyn Audience>,
) -> Result<(Engine, JoinHandle<()>)> {
    let head = crate::store::read(&*readers, |snapshot| read_head(snapshot))?;
    writer.transaction(Durability::Process, &mut |txn| {
        for ino in txn.orphans()? {
            txn.delete_node(ino)?;
        }
        Ok(())
    })?;
    let (queue, waiting) = queue::bounded(QUEUE_CHANGES_MAX);
    let config = Arc::new(RwLock::new(config));
    let agents = crate::store::read(&*readers, |snapshot| Registry::load(snapshot))?;
    let agents = Arc::new(RwLock::new(Arc::new(agents)));
    let bell = Arc::new(Bell::default());
    bell.ring(head.g);
    let line = Arc::new(Line::default());
    let mut thread = WriterThread {
        writer,
        waiting,
        readers: Arc::clone(&readers),
        config: Arc::clone(&config),
        agents: Arc::clone(&agents),
        sync,
        doors: doors.clone(),
        audience,
        bell: Arc::clone(&bell),
        line: Arc::clone(&line),
        head,
        nameless: Vec::new(),
        refused: 0,
        due: crate::store::read(&*readers, |snapshot| snapshot.next_turn())?,
        next_due: Arc::default(),
    };
    let handle = std::thread::Builder::new()
        .name("writer".into())
        .spawn(move || thread.run())
        .map_err(|error| StoreError::Failed(format!("starting the writer: {error}")))?;
    Ok((Engine { queue, readers, config, agents, doors, bell, line }, handle))
}

fn read_head(snapshot: &dyn Read) -> Result<Head> {
    let Some(last) = snapshot.last_event()? else {
        return Ok(Head { g: G(0), hash: Hash::ZERO, end: 0 });
    };
    Ok(Head { g: last.g, hash: Hash::of(&last.line), end: last.end })
}

impl Engine {
    /// Queues `command`; `answer` is called once, from the writer's thread, after the commit.
    pub fn submit<C: Command>(
        &self,
        context: Context,
        command: C,
        answer: impl FnOnce(std::result::Result<C::Out, Refusal>) + Send + 'static,
    ) {
        let queued = Queued::new(context, command, answer);
        // A full queue makes callers wait at the door, for as long as a request may take.
        if let Err(queued) = self.queue.send(queued, REQUEST_DEADLINE) {
            tracing::error!(operation = queued.operation, "the writer takes no more changes");
            (queued.job)(Err(too_busy()));
        }
    }

    /// Queues `command` and waits for its answer: for the socket and for tests, never for a thread
    /// that serves the kernel.
    ///
    /// # Errors
    /// The command's refusal.
    pub fn run<C: Command>(
        &self,
        context: Context,
        command: C,
    ) -> std::result::Result<C::Out, Refusal> {
        let (send, receive) = crossbeam_channel::bounded(1);
        self.submit(context, command, move |result| {
            // The receiver waits below, unless its thread died.
            let _ = send.send(result);
        });
        receive.recv().unwrap_or_else(|_| Err(lost()))
    }

    /// Snapshots of what is committed.
    #[must_use]
    pub fn readers(&self) -> &Arc<dyn Readers> {
        &self.readers
    }

    /// Wakes whoever subscribes with every event.
    #[must_use]
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Those who wait until a record is ready.
    #[must_use]
    pub fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read())
    }

    /// Who is registered as an agent.
    #[must_use]
    pub fn agents(&self) -> Arc<Registry> {
        Arc::clone(&self.agents.read())
    }

    /// The clock.
    #[must_use]
    pub fn now(&self) -> UnixNanos {
        (self.doors.clock)()
    }
}

fn too_busy() -> Refusal {
    Refusal::new(
        Rule::Deadline,
        "the queue of changes was full for too long, or the daemon ends",
        "try again: nothing was changed",
    )
}

fn lost() -> Refusal {
    Refusal::new(
        Rule::Store,
        "the daemon ended before the change was made",
        "start it again and look whether the change is there",
    )
}

struct WriterThread {
    writer: Box<dyn Writer>,
    waiting: Taker<Queued>,
    readers: Arc<dyn Readers>,
    config: Arc<RwLock<Arc<Config>>>,
    agents: Arc<RwLock<Arc<Registry>>>,
    sync: Durability,
    doors: Doors,
    audience: Arc<dyn Audience>,
    bell: Arc<Bell>,
    line: Arc<Line>,
    head: Head,
    nameless: Vec<Ino>,
    refused: u64,
    /// When the next record becomes ready by itself.
    due: Option<UnixNanos>,
    /// The same, as a [`Ripen`] found it.
    next_due: Arc<Mutex<Option<Option<UnixNanos>>>>,
}

/// What a batch leaves to be done after its commit.
#[derive(Default)]
struct Batch {
    finishes: Vec<Finish>,
    effects: Vec<(Origin, Effect)>,
    nameless: Vec<Ino>,
}

impl WriterThread {
    fn run(&mut self) {
        while let Some(jobs) = self.next_changes() {
            // A panic here is a bug, and a writer that is gone would let every later change hang:
            // the daemon ends instead, and what was acknowledged is in the store.
            let turn = std::panic::AssertUnwindSafe(|| {
                self.commit(jobs);
                if self.waiting.is_empty() {
                    self.rest();
                }
            });
            if std::panic::catch_unwind(turn).is_err() {
                tracing::error!("the writer panicked: the daemon ends");
                std::process::abort();
            }
        }
    }

    /// Waits for changes, and meanwhile for the clock; `None` at the end. One change alone does
    /// not wait for company: only what waits already is taken.
    fn next_changes(&mut self) -> Option<Vec<Queued>> {
        loop {
            let until = match self.due {
                None => None,
                Some(due) => {
                    let left = due.0.saturating_sub((self.doors.clock)().0);
                    let Ok(left @ 1..) = u64::try_from(left) else {
                        return Some(vec![self.ripen()]);
                    };
                    Some(Instant::now() + CLOCK_LOOK.min(Duration::from_nanos(left)))
                }
            };
            match self.waiting.take(BATCH_CHANGES_MAX, until) {
                Taken::All(jobs) => return Some(jobs),
                Taken::Late => {}
                Taken::Closed => return None,
            }
        }
    }

    /// The change that makes those ready whose time has come.
    fn ripen(&mut self) -> Queued {
        // Should it fail, it is tried again after a moment.
        let again = (self.doors.clock)().0.saturating_add(CLOCK_LOOK.as_nanos() as i64);
        self.due = Some(UnixNanos(again));
        let next = Arc::clone(&self.next_due);
        Queued::new(Context::daemon(), Ripen, move |ran| *next.lock() = ran.ok())
    }

    fn commit(&mut self, jobs: Vec<Queued>) {
        let wanted = jobs.iter().map(|job| job.durability).max().unwrap_or(Durability::Process);
        let durability = match wanted {
            Durability::Flush => wanted,
            Durability::Power | Durability::Process => wanted.min(self.sync),
        };
        let head_before = self.head;
        let config = Arc::clone(&self.config.read());
        let mut batch = Batch::default();
        let mut jobs = std::collections::VecDeque::from(jobs);
        let now = (self.doors.clock)();
        let (head, doors, refused) = (&mut self.head, &self.doors, &mut self.refused);
        let committed = self.writer.transaction(durability, &mut |txn| {
            while let Some(queued) = jobs.pop_front() {
                run_one(txn, queued, now, &config, doors, head, refused, &mut batch)?;
            }
            (doors.fault)(FaultPoint::BeforeCommit);
            Ok(())
        });
        if let Err(error) = committed {
            self.head = head_before;
            tracing::error!(%error, changes = batch.finishes.len(), "a commit failed");
            let refusal = Refusal::from(error);
            for finish in batch.finishes {
                finish(Err(refusal.clone()));
            }
            // Those that did not get their turn because the store failed before it.
            for queued in jobs {
                (queued.job)(Err(refusal.clone()));
            }
            return;
        }
        (self.doors.fault)(FaultPoint::AfterCommit);
        if batch.effects.iter().any(|(_, effect)| *effect == Effect::Agents) {
            self.reload_agents();
        }
        self.audience.before_reply(&batch.effects);
        (self.doors.fault)(FaultPoint::BeforeReply);
        for finish in batch.finishes {
            finish(Ok(()));
        }
        if self.head.g > head_before.g {
            self.bell.ring(self.head.g);
        }
        self.nameless.extend(batch.nameless);
        if let Some(next) = self.next_due.lock().take() {
            self.due = next;
        }
        for (_, effect) in &batch.effects {
            match effect {
                Effect::Ready(workspace, _) => self.line.call(*workspace),
                Effect::Due(at) => self.due = Some(self.due.map_or(*at, |due| due.min(*at))),
                Effect::Attr { .. } | Effect::Data(_) | Effect::Name { .. } | Effect::Agents => {}
            }
        }
    }

    /// Whoever registers an agent finds it registered when its call returns.
    fn reload_agents(&self) {
        match crate::store::read(&*self.readers, |snapshot| Registry::load(snapshot)) {
            Ok(registry) => *self.agents.write() = Arc::new(registry),
            Err(error) => tracing::error!(%error, "the registered agents cannot be read"),
        }
    }

    /// Chores that no caller waits for: nameless inodes without handles go, the log is moved.
    fn rest(&mut self) {
        let audience = &self.audience;
        let (open, closed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.nameless).into_iter().partition(|ino| audience.is_open(*ino));
        self.nameless = open;
        if !closed.is_empty() {
            let reclaimed = self.writer.transaction(Durability::Process, &mut |txn| {
                closed.iter().try_for_each(|ino| txn.delete_node(*ino))
            });
            if let Err(error) = reclaimed {
                tracing::warn!(%error, "nameless inodes stay until the next start");
            }
        }
        if let Err(error) = self.writer.checkpoint() {
            tracing::warn!(%error, "the log could not be moved into the store");
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn run_one(
    txn: &mut dyn Txn,
    queued: Queued,
    now: UnixNanos,
    config: &Config,
    doors: &Doors,
    head: &mut Head,
    refused: &mut u64,
    batch: &mut Batch,
) -> Result<()> {
    let Queued { context, operation, job, .. } = queued;
    let head_before = *head;
    let mut effects = Vec::new();
    let mut nameless = Vec::new();
    txn.savepoint()?;
    let ran = job(Ok(&mut Turn {
        txn: &mut *txn,
        now,
        context: &context,
        operation,
        config,
        doors,
        head: &mut *head,
        effects: &mut effects,
        nameless: &mut nameless,
    }));
    let Some((finish, result)) = ran else { return txn.release() };
    batch.finishes.push(finish);
    match result {
        Ok(()) => {
            txn.release()?;
            batch.effects.extend(effects.into_iter().map(|effect| (context.origin, effect)));
            batch.nameless.extend(nameless);
        }
        Err(Stop::Store(error)) => return Err(error),
        Err(Stop::Refused(why)) => {
            txn.rollback()?;
            *head = head_before;
            if why.kept {
                super::turn::keep_refusal(txn, &context, operation, now, *why)?;
                *refused += 1;
                // Pruning in strides keeps its cost away from the single refusal.
                if refused.is_multiple_of(64) {
                    txn.prune_refusals()?;
                }
            }
        }
    }
    Ok(())
}
