//! Who writes: the writer's thread, or the caller's own where nobody else does.
//!
//! A change that finds the desk free is made at once, by the thread that brought it: waking another
//! one costs as much as a tenth of a claim. Where the desk is taken the change waits in the queue.
//!
//! What must stay true: whoever lets go of the desk looks at the queue afterwards, so that nothing
//! that was put there meanwhile is forgotten; whoever sits at the desk waits for no room in the queue,
//! which only the desk makes. Chores are the thread's alone.

use std::cell::Cell;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock};

use super::Desk;
use super::alarm::Wall;
use super::announcer::{Announcer, Ears};
use super::nameless::Nameless;
use super::queue::{Look, Queue};
use super::tally::Tally;
use super::trouble::{Trouble, no_room};
use crate::config::Config;
use crate::engine::actors::agents::Registry;
use crate::engine::change::queued::{Queued, lost, too_busy};
use crate::engine::change::turn::Head;
use crate::engine::lease::{Book, Ends, Fence, LeaseClock, LetGo, ReleaseHold};
use crate::engine::places::quota;
use crate::engine::plain_files::lock_files;
use crate::engine::records::rules;
use crate::engine::{Audience, Bell, Command, Context, Doors, Line, Ranks, Scopes, Undone};
use crate::ledger::Hash;
use crate::limits::{QUEUE_CHANGES_MAX, REQUEST_DEADLINE};
use crate::numbers::{G, LeaseTime, RecordKey, UnixNanos};
use crate::refusal::Refusal;
use crate::store::{Durability, Read, Readers, Result, StoreError, Txn, Writer};

thread_local! {
    static AT_DESK: Cell<bool> = const { Cell::new(false) };
}

/// Lets this thread work at the desk. Answers are given there, and may bring changes.
fn work(desk: &mut Desk, queue: &Queue<Queued>) {
    AT_DESK.set(true);
    desk.work(queue);
    AT_DESK.set(false);
    desk.trouble.note_tight(desk.writer.is_tight());
}

/// What leads to the desk. The writer's thread ends when it is dropped.
struct Door {
    queue: Arc<Queue<Queued>>,
    /// Always there, except while it is dropped.
    desk: Option<Arc<Mutex<Desk>>>,
}

impl Door {
    /// Lends the desk, if it is free, and looks at the queue afterwards: what was put there meanwhile nobody
    /// else would make.
    fn at_desk<T>(&self, work: impl FnOnce(&mut Desk) -> T) -> Option<T> {
        let mut desk = self.desk.as_ref()?.try_lock()?;
        let done = work(&mut desk);
        drop(desk);
        self.look_at_queue();
        Some(done)
    }

    /// Calls the writer's thread, if something waits.
    fn look_at_queue(&self) {
        if !self.queue.is_empty() {
            self.queue.call();
        }
    }

    /// Makes what waits, if nobody else does.
    fn help(&self) {
        let thread_is_needed = self.at_desk(|desk| {
            let alarm = desk.alarm();
            work(desk, &self.queue);
            desk.has_chores() || desk.alarm().is_sooner(&alarm)
        });
        if thread_is_needed == Some(true) {
            self.queue.call();
        }
    }

    /// Makes what waits, and what the clock says, as soon as nobody else is at the desk.
    fn take_turn(&self) {
        if let Some(desk) = &self.desk {
            work(&mut desk.lock(), &self.queue);
        }
        self.look_at_queue();
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // The thread is the last to have the desk, so that the store is closed when it is joined.
        self.desk = None;
        self.queue.close();
    }
}

/// The way to the writer. Clones share it; the writer ends when the last one is dropped.
#[derive(Clone)]
pub struct Engine {
    door: Arc<Door>,
    readers: Arc<dyn Readers>,
    config: Arc<RwLock<Arc<Config>>>,
    agents: Arc<RwLock<Arc<Registry>>>,
    doors: Doors,
    clock: LeaseClock,
    bell: Arc<Bell>,
    line: Arc<Line>,
    undone: Arc<Undone>,
    let_go: Arc<LetGo>,
    ends: Arc<Ends>,
    trouble: Arc<Trouble>,
    tally: Arc<Tally>,
    audience: Arc<dyn Audience>,
    started: UnixNanos,
    /// What is refused, where nothing can be written.
    protection: Option<Refusal>,
}

/// Starts the writer thread of a store; of one that cannot be written nothing is done by itself.
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
    let clock = crate::store::read(&*readers, |snapshot| LeaseClock::start(snapshot, &doors))?;
    let (leases, due) = if readers.write_protection().is_none() {
        first_changes(&mut *writer, (&config, head.g), (&clock, &doors))?;
        let leases = crate::store::read(&*readers, |read| Book::load(read, &clock))?;
        (leases, crate::store::read(&*readers, |read| read.next_turn())?)
    } else {
        (Book::default(), None)
    };
    let agents = crate::store::read(&*readers, |snapshot| Registry::load(snapshot))?;
    let (bell, line) = (Arc::new(Bell::default()), Arc::new(Line::default()));
    bell.ring(head.g);
    audience.told_up_to(head.g);
    let announcer = Announcer::start(Ears {
        audience: Arc::clone(&audience),
        bell: Arc::clone(&bell),
        line: Arc::clone(&line),
        doors: doors.clone(),
    });
    let announcer = announcer.map_err(|error| StoreError::NoThread(error.to_string()))?;
    let desk = Desk {
        writer,
        readers,
        config: Arc::new(RwLock::new(config)),
        agents: Arc::new(RwLock::new(Arc::new(agents))),
        sync,
        doors,
        audience,
        announcer,
        head,
        nameless: Nameless::default(),
        scopes: Scopes::default(),
        ranks: Ranks::default(),
        undone: Arc::default(),
        let_go: Arc::default(),
        trouble: Arc::default(),
        tally: Arc::default(),
        leases,
        wall: Wall::at(clock.wall_before()),
        clock,
        due,
        ripened: Arc::default(),
    };
    Engine::before(desk, bell, line)
}

/// What is made of a store before anybody asks for a change.
fn first_changes(
    writer: &mut dyn Writer,
    (config, g): (&Config, G),
    (clock, doors): (&LeaseClock, &Doors),
) -> Result<()> {
    at_start(writer, &mut |txn| {
        for ino in txn.orphans()? {
            // One that says that it has a name is left to `fsck`.
            if txn.node(ino)?.is_none_or(|node| node.nlink == 0) {
                txn.delete_node(ino)?;
            }
        }
        rules::note_rules(txn, config, g)?;
        quota::charge_all(txn, config)?;
        lock_files::shorten_locks(txn, config, clock.now())?;
        clock.keep(txn, (doors.clock)())?;
        Ok(Durability::Process)
    })
}

/// A first transaction. On a full disk the log, which a daemon that was killed has left long, must
/// begin anew for it.
fn at_start(
    writer: &mut dyn Writer,
    work: &mut dyn FnMut(&mut dyn Txn) -> Result<Durability>,
) -> Result<()> {
    match writer.transaction(work) {
        Err(StoreError::Full(_)) => {
            writer.find_room();
            writer.transaction(work)
        }
        done => done,
    }
}

/// The writer's thread: makes what callers could not make themselves, and the chores.
fn keep(queue: &Queue<Queued>, desk: &Mutex<Desk>) {
    loop {
        let patience = desk.lock().patience();
        if queue.watch(patience) == Look::Closed {
            return desk.lock().leave();
        }
        loop {
            let mut desk = desk.lock();
            work(&mut desk, queue);
            if queue.is_empty() || desk.must_rest() {
                desk.rest();
            }
            drop(desk);
            if queue.is_empty() {
                break;
            }
        }
    }
}

fn read_head(snapshot: &dyn Read) -> Result<Head> {
    let Some(last) = snapshot.last_event()? else {
        return Ok(Head { g: G(0), hash: Hash::ZERO, end: 0 });
    };
    Ok(Head { g: last.g, hash: Hash::of(&last.line), end: last.end })
}

impl Engine {
    /// The way to this desk, and the thread that works there.
    fn before(desk: Desk, bell: Arc<Bell>, line: Arc<Line>) -> Result<(Engine, JoinHandle<()>)> {
        let queue = Arc::new(Queue::bounded(QUEUE_CHANGES_MAX));
        let (readers, doors, clock) =
            (Arc::clone(&desk.readers), desk.doors.clone(), desk.clock.clone());
        let (config, agents) = (Arc::clone(&desk.config), Arc::clone(&desk.agents));
        let (undone, let_go) = (Arc::clone(&desk.undone), Arc::clone(&desk.let_go));
        let (ends, trouble) = (desk.leases.ends(), Arc::clone(&desk.trouble));
        let (tally, audience) = (Arc::clone(&desk.tally), Arc::clone(&desk.audience));
        let started = (doors.clock)();
        let protection = desk.writer.refuses().map(Refusal::from);
        let desk = Arc::new(Mutex::new(desk));
        let door = Arc::new(Door { queue: Arc::clone(&queue), desk: Some(Arc::clone(&desk)) });
        let handle = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || keep(&queue, &desk))
            .map_err(|error| StoreError::NoThread(error.to_string()))?;
        let engine = Engine {
            door,
            readers,
            config,
            agents,
            doors,
            clock,
            bell,
            line,
            undone,
            let_go,
            ends,
            trouble,
            tally,
            audience,
            started,
            protection,
        };
        Ok((engine, handle))
    }

    /// Makes `command`, or queues it where somebody else is writing; `answer` is called once, from
    /// the thread that wrote, after the commit. Not for a thread that holds a gate of a mount: what
    /// the audience tells the kernels waits for those.
    pub fn submit<C: Command>(
        &self,
        context: Context,
        command: C,
        answer: impl FnOnce(std::result::Result<C::Out, Refusal>) + Send + 'static,
    ) {
        let queued = Queued::new(context, command, answer);
        let put = if AT_DESK.get() {
            self.door.queue.put_beside(queued)
        } else {
            // A full queue makes callers wait at the door, for as long as a request may take.
            self.door.queue.put(queued, REQUEST_DEADLINE)
        };
        match put {
            Ok(()) => self.door.help(),
            Err(queued) => queued.answer(too_busy()),
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

    /// Gives a record back whose descriptor is gone, if it is still claimed as it was when it was held. What
    /// is in the way of that, or of writing it, ends the lease.
    pub fn let_go(&self, context: Context, record: RecordKey, fence: Fence) {
        let (let_go, attempt) = (Arc::clone(&self.let_go), fence.attempt);
        self.submit(context, ReleaseHold { record, fence }, move |released| {
            if let Err(refusal) = released {
                tracing::warn!(%refusal, "a held record is not given back yet");
                let_go.add(record, attempt);
            }
        });
    }

    /// Makes what the clock says before anybody asks: leases that are over end. The writer's thread does it
    /// by itself, a moment after the start.
    pub fn catch_up(&self) {
        self.door.take_turn();
    }

    /// Reads little of what is committed now: through the writer, which has the pages at hand that were
    /// changed last, where nobody writes; else from a snapshot. It waits for nobody.
    ///
    /// # Errors
    /// What the store or `work` said.
    pub fn glance<T>(&self, mut work: impl FnMut(&dyn Read) -> Result<T>) -> Result<T> {
        let read = self.door.at_desk(|desk| crate::store::read_by(&*desk.writer, &mut work));
        read.unwrap_or_else(|| crate::store::read(&*self.readers, work))
    }

    /// Snapshots of what is committed.
    #[must_use]
    pub fn readers(&self) -> &Arc<dyn Readers> {
        &self.readers
    }

    /// Why nothing can be changed, where nothing can.
    #[must_use]
    pub fn write_protection(&self) -> Option<&str> {
        self.readers.write_protection()
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

    /// Leases that are over, of which the store does not say so yet.
    #[must_use]
    pub fn ends(&self) -> &Arc<Ends> {
        &self.ends
    }

    /// Whether the last one who wrote found no room.
    #[must_use]
    pub fn had_no_room(&self) -> bool {
        self.trouble.is_tight()
    }

    /// Why all changes are refused, where they are: the store cannot be written, or has no room now. That is
    /// looked at once more first, where nobody writes.
    #[must_use]
    pub fn refuses(&self) -> Option<Refusal> {
        if self.protection.is_some() {
            return self.protection.clone();
        }
        if self.trouble.failed().is_some() {
            self.door.at_desk(Desk::try_to_write);
        }
        if self.trouble.is_tight() {
            self.door.at_desk(Desk::look_for_room);
        }
        self.trouble.failed().or_else(|| self.trouble.is_tight().then(no_room))
    }

    /// What was done since the process began.
    pub(in crate::engine) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// When this engine was started.
    pub(in crate::engine) fn started(&self) -> UnixNanos {
        self.started
    }

    /// Who hears of changes.
    pub(in crate::engine) fn audience(&self) -> &dyn Audience {
        &*self.audience
    }

    /// How many changes wait for their turn.
    pub(in crate::engine) fn queue_length(&self) -> usize {
        self.door.queue.length()
    }

    /// What chores could not do.
    #[must_use]
    pub fn undone(&self) -> &Arc<Undone> {
        &self.undone
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

    /// The lease clock.
    #[must_use]
    pub fn lease_now(&self) -> LeaseTime {
        self.clock.now()
    }

    /// The same clock, which also knows when leases end.
    #[must_use]
    pub fn lease_clock(&self) -> &LeaseClock {
        &self.clock
    }

    /// The clock.
    #[must_use]
    pub fn now(&self) -> UnixNanos {
        (self.doors.clock)()
    }
}
