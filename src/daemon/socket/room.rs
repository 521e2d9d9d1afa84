//! The waiting room: clients that wait for a record to claim, without a thread each.
//!
//! One thread holds all their connections and sees when one is gone or its time is over; a few
//! others make the claims.
//!
//! What must stay true:
//! - Each client waits at its place in the engine's line while its claim is tried, so that no
//!   record becomes ready unheard. One that is woken and takes nothing (it needs it no more, may
//!   not, or cannot) passes the wake-up on.
//! - One that finds something in the way of all that is ready waits on, and is not tried again
//!   before it is woken.
//! - Nobody is waited for to take its answer: who does not take it counts as gone.
//! - A record that was claimed for a client which is gone by then, or goes without having read that
//!   it has it, is given back. So it is when the room ends, which begins no claim any more.
//! - For whom a claim is made the register says at each try, also of an agent that has gone from it
//!   meanwhile.
//!
//! Deliberately not here: which record is claimed (`service`).

mod jobs;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use workfs_mount::Shares;

use super::lines::Lines;
use super::places::no_place;
use super::wire::Answer;
use crate::daemon::failure::Failure;
use crate::daemon::{socket, spare};
use crate::engine::Place;
use crate::limits::{CLAIM_WAITERS_MAX, CLAIM_WORKERS};
use crate::names::AgentName;
use crate::numbers::WorkspaceKey;
use crate::service::{self, Caller, ClaimArgs, ClaimReport, Reply, Service};
use jobs::{Job, serve};

pub use jobs::give_back;

/// Descriptor 0 of the poll set: something was told.
const TOLD: u64 = 0;

/// The room's thread looks at the clock this often at least: before Linux 5.11 epoll sleeps no longer than 24 days.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// The way into the room.
pub struct Room {
    bell: Bell,
    /// Hung up when all that the room does is done.
    over: Receiver<()>,
}

/// Tells the room's thread something and wakes it. Never blocks.
#[derive(Clone)]
struct Bell {
    tell: Sender<Told>,
    wake: Arc<OwnedFd>,
}

enum Told {
    Enter(Box<Client>),
    /// A record became ready, and this client is the one that hears of it.
    Ready(u64, WorkspaceKey),
    Tried(u64, Reply),
    End,
}

/// A client that waits.
struct Client {
    lines: Lines,
    caller: Caller,
    args: ClaimArgs,
    /// The agent that it acts for was registered when it came.
    registered: bool,
    until: Instant,
    place: Place,
    trying: bool,
    /// It was woken while it was tried already.
    again: bool,
    /// The workspaces for whose records it was woken, once for each, until it took one or passed the wake-up on.
    called: Vec<WorkspaceKey>,
    gone: bool,
    /// Why it was passed over what was ready when it was tried last.
    passed: Option<String>,
}

/// A client that was told what it has got, until it is seen to have heard it.
struct Answered {
    lines: Lines,
    caller: Caller,
    agent: Option<AgentName>,
    claimed: ClaimReport,
}

impl Bell {
    fn ring(&self, told: Told) {
        // A room that has ended has nobody to tell.
        if self.tell.send(told).is_ok() {
            let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        }
    }
}

impl Room {
    /// Opens the room.
    ///
    /// # Errors
    /// Where there is no descriptor or thread left.
    pub fn open(service: &Arc<Service>) -> io::Result<Room> {
        let (tell, told) = unbounded();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let bell = Bell { tell, wake };
        let watched = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&watched, bell.wake.as_fd(), EventData::new_u64(TOLD), EventFlags::IN)?;
        let (jobs, work) = unbounded();
        let mut workers = Vec::new();
        for nth in 0..CLAIM_WORKERS {
            let (work, service, bell) = (work.clone(), Arc::clone(service), bell.clone());
            let worker = std::thread::Builder::new().name(format!("claims-{nth}"));
            let started = worker.stack_size(1 << 20).spawn(move || serve(&work, &service, &bell));
            workers.push(started?);
        }
        let (service, own) = (Arc::clone(service), bell.clone());
        let (clients, answered) = (HashMap::new(), HashMap::new());
        let (ends, shares) = (BTreeSet::new(), Shares::of(spare::places(CLAIM_WAITERS_MAX)));
        let keeper = Keeper {
            service,
            bell: own,
            jobs,
            queued: work,
            workers,
            watched,
            clients,
            answered,
            shares,
            ends,
            last: TOLD,
        };
        let thread = std::thread::Builder::new().name("waiting".into()).stack_size(1 << 20);
        let (ends, over) = bounded(0);
        thread.spawn(move || {
            keeper.run(&told);
            drop(ends);
        })?;
        Ok(Room { bell, over })
    }

    /// Lets a client wait for what it asks for.
    pub fn enter(&self, service: &Service, caller: Caller, args: ClaimArgs, mut lines: Lines) {
        let wish = match service::claim_wish(service, &caller, &args) {
            Ok(wish) => wish,
            Err(failure) => {
                // Who is gone does not hear it.
                let _ = lines.send_at_once(&Answer::Reply(Reply::Error(failure)));
                return;
            }
        };
        let place = service.engine.line().place(wish);
        let until = Instant::now() + Duration::from_millis(args.wait_ms.unwrap_or_default());
        let client = Client {
            lines,
            caller,
            registered: service.is_registered(args.agent.as_ref()),
            args: ClaimArgs { wait_ms: None, ..args },
            until,
            place,
            trying: false,
            again: false,
            called: Vec::new(),
            gone: false,
            passed: None,
        };
        self.bell.ring(Told::Enter(Box::new(client)));
    }

    /// Sends all away; does not wait until they are.
    pub fn close(&self) {
        self.bell.ring(Told::End);
    }

    /// Waits, not for long, until who was to hear of a claim has heard, or it is given back: of a room that
    /// was closed.
    pub fn finish(self, patience: Duration) {
        if self.over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("claims for those who wait are still being made");
        }
    }
}

/// The room's own thread.
struct Keeper {
    service: Arc<Service>,
    bell: Bell,
    jobs: Sender<Job>,
    /// The other end of `jobs`.
    queued: Receiver<Job>,
    workers: Vec<JoinHandle<()>>,
    watched: OwnedFd,
    clients: HashMap<u64, Client>,
    answered: HashMap<u64, Answered>,
    shares: Shares,
    /// When each has waited long enough.
    ends: BTreeSet<(Instant, u64)>,
    last: u64,
}

impl Keeper {
    fn run(mut self, told: &Receiver<Told>) {
        'open: loop {
            let first =
                self.ends.first().map(|(at, _)| at.saturating_duration_since(Instant::now()));
            let timeout = first.and_then(|left| Timespec::try_from(left.min(SLEEP_MAX)).ok());
            if let Err(error) = self.hear_clients(timeout.as_ref()) {
                tracing::error!(%error, "the waiting room closes");
                break;
            }
            while let Ok(told) = told.try_recv() {
                match told {
                    Told::Enter(client) => self.enters(*client),
                    Told::Ready(number, workspace) => self.woken(number, workspace),
                    Told::Tried(number, reply) => self.tried(number, reply),
                    Told::End => break 'open,
                }
            }
            self.look_at_the_clock();
        }
        self.end(told);
    }

    /// Waits until something was told, or clients hung up, which leave; says whether there was any of it.
    fn hear_clients(&mut self, timeout: Option<&Timespec>) -> rustix::io::Result<bool> {
        let mut events = Vec::with_capacity(64);
        match epoll::wait(&self.watched, rustix::buffer::spare_capacity(&mut events), timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        for event in &events {
            match event.data.u64() {
                TOLD => {
                    let _ = rustix::io::read(&*self.bell.wake, &mut [0u8; 8]);
                }
                number => self.stirs(number),
            }
        }
        Ok(!events.is_empty())
    }

    /// Makes no claim that was not begun; whoever one is being made for hears of it, or it is given back.
    fn end(mut self, told: &Receiver<Told>) {
        for job in self.queued.try_iter().collect::<Vec<_>>() {
            match job {
                Job::Claim { number, .. } => {
                    self.clients.entry(number).and_modify(|client| client.trying = false);
                }
                // For this the workers are still there.
                Job::GiveBack(..) => drop(self.jobs.send(job)),
            }
        }
        while self.clients.values().any(|client| client.trying) {
            let Ok(told) = told.recv() else { break };
            let Told::Tried(number, reply) = told else { continue };
            if let Some(client) = self.clients.get_mut(&number) {
                // Nobody tries again, and there is nobody to pass a wake-up on to.
                client.again = false;
                client.called.clear();
            }
            self.tried(number, reply);
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        while self.hear_clients(Some(&now)).unwrap_or(false) {}
        drop(self.jobs);
        for worker in self.workers {
            if worker.join().is_err() {
                tracing::error!("a thread that makes claims panicked");
            }
        }
    }

    fn enters(&mut self, mut client: Client) {
        let uid = client.caller.uid;
        if let Err(why) = self.shares.take(uid) {
            let failure = no_place(uid, why, "clients that wait for a record");
            let _ = client.lines.send_at_once(&Answer::Failed(failure));
            return;
        }
        self.last += 1;
        let number = self.last;
        let watched = EventFlags::RDHUP | EventFlags::IN;
        let data = EventData::new_u64(number);
        if let Err(error) = epoll::add(&self.watched, client.lines.stream(), data, watched) {
            tracing::warn!(%error, "a client cannot wait");
            self.shares.give_back(uid);
            let failure = Failure::io("waiting for a record", &error.into());
            let _ = client.lines.send_at_once(&Answer::Failed(failure));
            return;
        }
        self.ends.insert((client.until, number));
        self.clients.insert(number, client);
        self.try_for(number);
    }

    /// Tries to claim for a client, which waits in the line meanwhile.
    fn try_for(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        client.trying = true;
        let bell = self.bell.clone();
        self.service
            .engine
            .line()
            .wait(&client.place, move |workspace| bell.ring(Told::Ready(number, workspace)));
        // The workers live as long as this thread.
        let Client { caller, args, registered, .. } = client;
        let (caller, args, registered) = (caller.clone(), args.clone(), *registered);
        let _ = self.jobs.send(Job::Claim { number, caller, args, registered });
    }

    fn woken(&mut self, number: u64, workspace: WorkspaceKey) {
        let Some(client) = self.clients.get_mut(&number) else {
            // It has what it wanted, or wants no more: this is for the next.
            return self.service.engine.line().pass_on(workspace);
        };
        client.called.push(workspace);
        if client.trying {
            client.again = true;
        } else {
            self.try_for(number);
        }
    }

    fn tried(&mut self, number: u64, reply: Reply) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        client.trying = false;
        let nothing = match &reply {
            Reply::Error(failure) => service::waits_on(failure),
            _ => false,
        };
        if nothing && !client.gone {
            client.passed = match &reply {
                Reply::Error(failure) if failure.rule.is_some() => Some(failure.reason.clone()),
                _ => None,
            };
            if std::mem::take(&mut client.again) {
                return self.try_for(number);
            }
            let (place, called) = (client.place.clone(), std::mem::take(&mut client.called));
            for workspace in called.into_iter().filter(|workspace| self.is_any_left(*workspace)) {
                self.service.engine.line().pass_behind(&place, workspace);
            }
            return;
        }
        let Some(mut client) = self.take(number) else { return };
        for workspace in self.not_used_up(&mut client, reply.claimed()) {
            self.service.engine.line().pass_on(workspace);
        }
        let heard =
            !client.gone && client.lines.send_at_once(&Answer::Reply(reply.clone())).is_ok();
        if let Some(claimed) = reply.claimed().cloned() {
            let Client { lines, caller, args, .. } = client;
            let answered = Answered { lines, caller, agent: args.agent, claimed };
            if heard {
                self.await_read(number, answered);
            } else {
                self.give_back(answered);
            }
        }
    }

    /// The wake-ups that are still others', of a client that has got this, or nothing: each was for one record, and
    /// it may have taken one of another workspace. One that came while it was tried may be for what it took, or not.
    fn not_used_up(&self, client: &mut Client, claimed: Option<&ClaimReport>) -> Vec<WorkspaceKey> {
        let mut called = std::mem::take(&mut client.called);
        let before = called.len().saturating_sub(usize::from(client.again));
        if let Some(claimed) = claimed.filter(|_| before > 0) {
            // Where that cannot be read somebody looks in vain.
            let from = service::workspace_of(&self.service, &client.caller, claimed).ok();
            let used = called.iter().take(before).position(|called| Some(*called) == from);
            if let Some(used) = used {
                called.remove(used);
            }
        }
        called
    }

    /// What was sent lies in the client's socket, and it may go without having read it, as one that was stopped
    /// before and is killed then. It is sent nothing more.
    fn await_read(&mut self, number: u64, answered: Answered) {
        let stream = answered.lines.stream();
        let _ = stream.shutdown(Shutdown::Write);
        // Once for each thing that it does: one that sends no more has hung up from now on.
        let watched = EventFlags::RDHUP | EventFlags::IN | EventFlags::ET;
        let (uid, data) = (answered.caller.uid, EventData::new_u64(number));
        // It just had a place there.
        if epoll::add(&self.watched, stream, data, watched).is_ok() && self.shares.take(uid).is_ok()
        {
            self.answered.insert(number, answered);
        }
    }

    /// A client that was answered is gone, or talks on; that it hears nothing more it knows by then.
    fn has_read(&mut self, answered: Answered) {
        self.shares.give_back(answered.caller.uid);
        if socket::has_left_unread(answered.lines.stream()) {
            self.give_back(answered);
        }
    }

    fn give_back(&self, Answered { caller, agent, claimed, .. }: Answered) {
        tracing::info!(id = claimed.id, "whoever waited for this record is gone");
        let _ = self.jobs.send(Job::GiveBack(caller, agent, claimed));
    }

    /// Whether a record of the workspace can be claimed, though not by the one that was woken for it.
    fn is_any_left(&self, workspace: WorkspaceKey) -> bool {
        service::is_any_left(&self.service, workspace).unwrap_or_else(|failure| {
            tracing::warn!(%failure, "whether anything is ready cannot be read");
            false
        })
    }

    /// A client hung up, or talks instead of waiting: either way it does not wait. Who only sends no more does.
    fn stirs(&mut self, number: u64) {
        let answered = self.answered.get(&number);
        if answered.is_some_and(|answered| socket::may_read_yet(answered.lines.stream())) {
            // That it goes is told all the same.
            return;
        }
        let waiting = self.clients.get(&number).map(|client| &client.lines);
        let lines = waiting.or_else(|| self.answered.get(&number).map(|answered| &answered.lines));
        let stream = lines.map(Lines::stream).filter(|stream| socket::only_sends_no_more(stream));
        if let Some(stream) = stream {
            // That it hangs up is told all the same.
            let data = EventData::new_u64(number);
            if epoll::modify(&self.watched, stream, data, EventFlags::empty()).is_ok() {
                return;
            }
        }
        self.leaves(number);
    }

    /// A client hung up.
    fn leaves(&mut self, number: u64) {
        if let Some(answered) = self.answered.remove(&number) {
            return self.has_read(answered);
        }
        let Some(client) = self.clients.get_mut(&number) else { return };
        client.gone = true;
        let _ = epoll::delete(&self.watched, client.lines.stream());
        if !client.trying {
            self.take(number);
        }
    }

    /// Takes a client out of the room and out of the line.
    fn take(&mut self, number: u64) -> Option<Client> {
        let client = self.clients.remove(&number)?;
        self.shares.give_back(client.caller.uid);
        self.ends.remove(&(client.until, number));
        self.service.engine.line().leave(&client.place);
        if !client.gone {
            let _ = epoll::delete(&self.watched, client.lines.stream());
        }
        Some(client)
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        while let Some((at, number)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.ends.remove(&(at, number));
            let Some(client) = self.clients.get(&number) else { continue };
            if client.trying {
                // It may just get one. It is looked at again in a moment.
                let later = now + Duration::from_millis(10);
                let Some(client) = self.clients.get_mut(&number) else { continue };
                client.until = later;
                self.ends.insert((later, number));
                continue;
            }
            if let Some(mut client) = self.take(number) {
                let failure = service::waited_in_vain(client.passed.as_deref());
                let _ = client.lines.send_at_once(&Answer::Reply(Reply::Error(failure)));
            }
        }
    }
}
