//! The desk, where all changes are made: batches, savepoints, one commit, then the answers.
//!
//! Around it lies what it needs: who sits at it (`writer`), what waits for it (`queue`), how others hear
//! (`announcer`, `bell`), when it looks at the clocks (`alarm`), and what becomes of space (`nameless`, `reclaim`,
//! `trouble`).
//!
//! What must stay true: nobody hears of a change before its commit; a change that breaks a rule
//! undoes itself alone, and so does one that meets damage; a store that fails answers every change of the
//! batch. Deliberately not here: what any one change does.

mod alarm;
mod announcer;
pub(super) mod bell;
mod nameless;
mod queue;
mod reclaim;
pub(super) mod sync;
pub(super) mod tally;
pub(super) mod trouble;
pub(super) mod writer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::config::Config;
use crate::engine::actors::agents::Registry;
use crate::engine::change::queued::{Finish, Queued};
use crate::engine::change::refuse::keep_refusal;
use crate::engine::change::turn::Head;
use crate::engine::claims::ready::{Ripen, Ripened};
use crate::engine::lease::{Book, LeaseClock, LetGo, Signs, Tended};
use crate::engine::{
    Audience, Context, Doors, Effect, Ends, Fate, FaultPoint, Origin, Ranks, Scopes, Silence, Stop,
    Turn, Undone, or_abort,
};
use crate::ledger::EventName;
use crate::limits::{BATCH_CHANGES_MAX, CLOCK_LOOK, TOLD_APART_MIN};
use crate::names::Dentry;
use crate::numbers::{G, Ino, LeaseTime, UnixNanos};
use crate::store::{Durability, NodeType, Readers, Result, StoreError, Txn, Writer};
use alarm::{Alarm, Wall};
use announcer::{Announcer, News};
use nameless::Nameless;
use queue::Queue;
use tally::{Outcome, Tally};
use trouble::Trouble;

/// What the one who writes needs: the store's one writer and the end of the ledger. Whoever holds it
/// writes, the others wait in the queue.
struct Desk {
    pub writer: Box<dyn Writer>,
    pub readers: Arc<dyn Readers>,
    pub config: Arc<RwLock<Arc<Config>>>,
    pub agents: Arc<RwLock<Arc<Registry>>>,
    pub sync: Durability,
    pub doors: Doors,
    pub audience: Arc<dyn Audience>,
    pub announcer: Announcer,
    pub head: Head,
    pub nameless: Nameless,
    pub scopes: Scopes,
    pub ranks: Ranks,
    pub undone: Arc<Undone>,
    pub clock: LeaseClock,
    pub leases: Book,
    /// When the next record becomes ready by itself.
    pub due: Option<UnixNanos>,
    /// What the last [`Ripen`] found, until the desk takes it over.
    pub ripened: Arc<Mutex<Option<Ripened>>>,
    pub wall: Wall,
    /// Records that were held and could not be given back.
    pub let_go: Arc<LetGo>,
    /// Whether there is room, and the store takes what is written, as those are told who do not sit here.
    pub trouble: Arc<Trouble>,
    pub tally: Arc<Tally>,
}

/// What a batch leaves to be done after its commit.
#[derive(Default)]
struct Batch {
    finishes: Vec<Finish>,
    /// How each change ended.
    outcomes: Vec<Outcome>,
    /// What the ledger says of them.
    happened: Vec<EventName>,
    effects: Vec<(Origin, Effect)>,
    follows: Vec<Queued>,
    nameless: Vec<Ino>,
    /// What the commit must survive, as far as a turn found it out.
    durability: Durability,
    /// One of its changes is not told apart: the desk itself answers them all.
    is_told_here: bool,
}

impl Batch {
    /// Whether the next changes may be made while this is told.
    fn is_told_apart(&self) -> bool {
        // What lies below a directory that moved has other paths, for the next change, too.
        let moved = |(_, effect): &(Origin, Effect)| *effect == Effect::DirectoryMoved;
        !self.is_told_here && !self.effects.iter().any(moved)
    }
}

impl Desk {
    /// How long to wait for a change before the clocks are looked at; zero where something is due.
    pub fn patience(&self) -> Option<Duration> {
        let ripe = self.ripens_in();
        let look = self
            .leases
            .next_look()
            .map(|look| Duration::from_nanos(look.0.saturating_sub(self.clock.now().0)));
        [ripe, look, self.nameless.left()].into_iter().flatten().min()
    }

    /// How long it is until a record becomes ready by itself, or until that is looked at again.
    fn ripens_in(&self) -> Option<Duration> {
        let due = self.due?;
        let left = due.0.saturating_sub((self.doors.clock)().0);
        Some(CLOCK_LOOK.min(Duration::from_nanos(u64::try_from(left).unwrap_or(0))))
    }

    /// The moments that the writer's thread waits for.
    pub fn alarm(&self) -> Alarm {
        Alarm { ripe: self.due, look: self.leases.next_look(), nameless: self.nameless.due() }
    }

    /// Makes what waits, at most one batch, and answers. One change alone does not wait for
    /// company: only what waits already is taken.
    pub fn work(&mut self, waiting: &Queue<Queued>) {
        let is_tight = self.writer.is_tight() && !self.writer.find_room();
        let mut jobs = Vec::new();
        if self.wall.was_set_back((self.doors.clock)()) {
            jobs.push(self.ripen());
        }
        jobs.extend(waiting.take(BATCH_CHANGES_MAX));
        // What a clock says comes first: nobody acts on a lease that is over.
        self.note_ends(&jobs);
        let tended = self.tend(is_tight);
        if self.ripens_in() == Some(Duration::ZERO) {
            jobs.push(self.ripen());
        }
        if tended.is_empty() && jobs.is_empty() {
            return;
        }
        or_abort("the writer", || self.make(is_tight, tended, jobs));
        self.note_ends(&[]);
    }

    /// Makes what must be made of leases, and then what else there is.
    fn make(&mut self, mut is_tight: bool, tended: Tended, jobs: Vec<Queued>) {
        let Tended { others, ends, ends_again } = tended;
        if is_tight && !(ends.is_empty() && ends_again.is_empty()) {
            is_tight = !self.make_room();
        }
        // Ends that could not be written before are tried in a transaction of their own, so that they hold
        // nobody else up. While they are not written the others are made one by one, since those are to be
        // refused who have lost a record by such an end.
        is_tight |= !self.end_apart(ends_again);
        if is_tight {
            self.end_apart(ends);
            self.commit_tightly(others.into_iter().chain(jobs).collect());
        } else {
            self.commit(others.into_iter().chain(ends).chain(jobs).collect());
        }
    }

    /// The changes of leases that must be made now.
    fn tend(&mut self, is_tight: bool) -> Tended {
        let now = self.clock.now();
        if self.leases.next_look().is_none_or(|look| look > now) {
            return Tended::default();
        }
        let signs = Signs::of(&*self.audience, &self.agents.read(), &self.clock);
        let mut due = self.leases.due(now, &signs);
        due.unheard.iter().for_each(|agent| signs.listen_for(agent));
        due.over.iter_mut().chain(&mut due.again).for_each(|end| end.is_tight = is_tight);
        due.changes(&self.clock)
    }

    /// Takes note of records that were let go of and could not be given back, and of leases that are to end
    /// before these changes are made.
    fn note_ends(&mut self, jobs: &[Queued]) {
        let now = self.clock.now();
        for (record, attempt) in self.let_go.take() {
            self.leases.let_go(record, attempt, now);
        }
        if self.leases.has_ends() {
            for queued in jobs {
                self.leases.end_before(&queued.context.actor.name, now);
            }
        }
    }

    /// The change that makes those ready whose time has come; see [`Ripen`].
    fn ripen(&mut self) -> Queued {
        // Should it fail, it is tried again after a moment.
        self.due = Some((self.doors.clock)().after(CLOCK_LOOK));
        let ripened = Arc::clone(&self.ripened);
        let ripen = Ripen { was_set_back: self.wall.is_behind, clock: self.clock.clone() };
        Queued::new(Context::daemon(), ripen, move |ran| *ripened.lock() = ran.ok())
    }

    /// Makes these in one transaction; says whether that was committed.
    pub(super) fn commit(&mut self, jobs: Vec<Queued>) -> bool {
        let wanted =
            jobs.iter().map(|job| job.terms.durability).max().unwrap_or(Durability::Process);
        let head_before = self.head;
        let config = Arc::clone(&self.config.read());
        let mut jobs = VecDeque::from(jobs);
        let (now, lease_now) = ((self.doors.clock)(), self.clock.now());
        for queued in &jobs {
            if queued.context.origin != Origin::Daemon {
                self.leases.note_agent(&queued.context.actor.name, lease_now);
            }
        }
        let (sync, audience, ends) = (self.sync, &self.audience, self.leases.ends());
        let is_seen_whole = jobs.iter().any(|job| job.terms.is_seen_whole);
        if !jobs.iter().all(|job| job.terms.is_told_apart) {
            // These changes may go by what earlier answers have noted.
            self.announcer.await_idle();
        }
        let mut silence = None;
        let mut round = Round {
            now,
            lease_now,
            lease_clock: &self.clock,
            config: &config,
            doors: &self.doors,
            scopes: &self.scopes,
            ranks: &self.ranks,
            undone: &self.undone,
            ends: &ends,
            audience: &*self.audience,
            head: &mut self.head,
            batch: Batch::default(),
        };
        let began = Instant::now();
        let committed = self.writer.transaction(&mut |txn| {
            while let Some(queued) = jobs.pop_front() {
                round.run(txn, queued)?;
                // What follows from a change comes before the next one.
                round.batch.follows.drain(..).rev().for_each(|follow| jobs.push_front(follow));
            }
            if is_seen_whole {
                silence = Some(audience.silence(&round.batch.effects));
            }
            (round.doors.fault)(FaultPoint::BeforeCommit);
            Ok(match wanted.max(round.batch.durability) {
                Durability::Flush => Durability::Flush,
                durability => durability.min(sync),
            })
        });
        let batch = round.batch;
        match committed {
            Ok(()) => {
                self.trouble.note_written();
                self.tally.note(&batch.outcomes, &batch.happened, began.elapsed());
                self.settle(batch, (head_before.g, silence), lease_now);
                true
            }
            Err(error) => {
                drop(silence);
                self.tally.note_failed();
                self.head = head_before;
                self.fail(batch, jobs, error);
                false
            }
        }
    }

    /// Answers all that a store failed: those that were made, and those that did not get their turn.
    fn fail(&self, batch: Batch, jobs: VecDeque<Queued>, error: StoreError) {
        self.scopes.forget();
        self.ranks.forget();
        tracing::error!(%error, changes = batch.finishes.len(), "a commit failed");
        let refusal = self.trouble.note_failed(error);
        for finish in batch.finishes {
            finish(Err(refusal.clone()));
        }
        for queued in jobs {
            (queued.job)(Err(refusal.clone()));
        }
    }

    /// Notes and tells what was committed after this event. Mounts may be silent until it is noted.
    fn settle(
        &mut self,
        batch: Batch,
        (before, silence): (G, Option<Box<dyn Silence>>),
        lease_now: LeaseTime,
    ) {
        (self.doors.fault)(FaultPoint::AfterCommit);
        let is_told_apart = batch.is_told_apart();
        let Batch { finishes, effects, nameless, .. } = batch;
        if effects.iter().any(|(_, effect)| *effect == Effect::Agents) {
            self.reload_agents();
        }
        let is_forgotten = silence.is_some();
        // Kernels ask again from here on, and are answered by the agents who are registered now.
        drop(silence);
        let mut first_due = None;
        for (_, effect) in &effects {
            match effect {
                // Before the answers: whoever has renewed a lease must not find it over.
                Effect::Lease(note) => self.leases.note(note, lease_now),
                Effect::Due(at) => first_due = first_due.into_iter().chain([*at]).min(),
                Effect::Attr { .. }
                | Effect::Rights { .. }
                | Effect::Times(_)
                | Effect::Data(_)
                | Effect::Name { .. }
                | Effect::Appeared { .. }
                | Effect::Made { .. }
                | Effect::Counts(_)
                | Effect::DirectoryMoved
                | Effect::Ready(..)
                | Effect::Agents
                | Effect::Modes => {}
            }
        }
        let newest = (self.head.g > before).then_some(self.head.g);
        let is_worth_it = finishes.len() >= TOLD_APART_MIN || !self.announcer.is_idle();
        let news = News { effects, is_forgotten, finishes, newest };
        if is_told_apart && is_worth_it {
            self.announcer.hand(news);
        } else {
            self.announcer.await_idle();
            self.announcer.tell(news);
        }
        self.nameless.add(nameless);
        if let Some(ripened) = self.ripened.lock().take() {
            (self.due, self.wall.is_behind) = (ripened.next, false);
        }
        self.due = self.due.into_iter().chain(first_due).min();
    }

    /// Whoever registers an agent finds it registered when its call returns.
    fn reload_agents(&self) {
        match crate::store::read(&*self.readers, |snapshot| Registry::load(snapshot)) {
            Ok(registry) => *self.agents.write() = Arc::new(registry),
            Err(error) => tracing::error!(%error, "the registered agents cannot be read"),
        }
    }

    /// Looks for room where there was none, and tells the others what it found.
    pub fn look_for_room(&mut self) {
        self.trouble.note_tight(self.writer.is_tight() && !self.writer.find_room());
    }

    /// Writes what is written now and then in any case, to see whether the store takes it again.
    pub fn try_to_write(&mut self) {
        let (clock, now) = (self.clock.clone(), (self.doors.clock)());
        let written = self.writer.transaction(&mut |txn| {
            clock.keep(txn, now)?;
            Ok(Durability::Process)
        });
        match written {
            Ok(()) => self.trouble.note_written(),
            Err(error) => drop(self.trouble.note_failed(error)),
        }
    }

    /// Whether there is something for [`rest`](Self::rest) to do now.
    pub fn has_chores(&self) -> bool {
        self.nameless.is_due() || self.writer.wants_checkpoint()
    }

    /// Whether those can wait no longer for a moment in which nobody wants anything.
    pub fn must_rest(&self) -> bool {
        self.writer.needs_checkpoint()
    }

    /// Chores that no caller waits for: nameless inodes without handles go, the log is moved.
    pub fn rest(&mut self) {
        if self.nameless.is_due() {
            self.reclaim();
        }
        if let Err(error) = self.writer.checkpoint() {
            tracing::warn!(%error, "the log could not be moved into the store");
        }
    }

    /// At the end nobody opens anything any more: what has not rested yet goes, too.
    pub fn leave(&mut self) {
        self.end_the_rest();
        self.announcer.await_idle();
        let signs = Signs::of(&*self.audience, &self.agents.read(), &self.clock);
        let last = self.leases.last_signs(&signs).filter(|_| !self.writer.is_tight());
        if let Some(last) = last {
            self.commit(vec![last]);
        }
        self.reclaim();
        while self.reclaim() {}
    }

    /// Before the daemon ends: the next one knows nothing of leases whose end is not written.
    fn end_the_rest(&mut self) {
        self.note_ends(&[]);
        if self.leases.has_ends() {
            self.leases.end_all(self.clock.now());
            let is_tight = self.writer.is_tight() && !self.writer.find_room();
            let tended = self.tend(is_tight);
            self.make(is_tight, tended, Vec::new());
        }
    }
}

/// The changes of one transaction, as they are made one after the other.
struct Round<'d> {
    now: UnixNanos,
    lease_now: LeaseTime,
    lease_clock: &'d LeaseClock,
    config: &'d Config,
    doors: &'d Doors,
    scopes: &'d Scopes,
    ranks: &'d Ranks,
    undone: &'d Arc<Undone>,
    ends: &'d Ends,
    audience: &'d dyn Audience,
    head: &'d mut Head,
    batch: Batch,
}

impl Round<'_> {
    /// Makes one change, or undoes what it did and keeps why.
    fn run(&mut self, txn: &mut dyn Txn, queued: Queued) -> Result<()> {
        let Queued { context, operation, terms, trace, job } = queued;
        self.batch.is_told_here |= !terms.is_told_apart;
        txn.savepoint()?;
        self.ranks.begin();
        let mut turn = Turn {
            txn: &mut *txn,
            now: self.now,
            lease_now: self.lease_now,
            lease_clock: self.lease_clock,
            context: &context,
            operation,
            config: self.config,
            trace,
            continues: None,
            doors: self.doors,
            scopes: self.scopes,
            ranks: self.ranks,
            undone: self.undone,
            ends: self.ends,
            audience: self.audience,
            head: *self.head,
            happened: Vec::new(),
            effects: Vec::new(),
            nameless: Vec::new(),
            durability: Durability::default(),
            follows: Vec::new(),
        };
        let ran = job(Ok(&mut turn));
        let Turn { head, happened, effects, nameless, durability, follows, .. } = turn;
        let Some((finish, result)) = ran else { return txn.release() };
        let batch = &mut self.batch;
        batch.finishes.push(finish);
        batch.durability = batch.durability.max(durability);
        match result {
            Ok(()) => {
                batch.outcomes.push((operation, None));
                txn.release()?;
                *self.head = head;
                batch.happened.extend(happened);
                for effect in &effects {
                    if let Effect::Name { parent, name, ino, fate, .. } = effect
                        && matches!(fate, Fate::Moved { node_type: NodeType::Directory, .. })
                    {
                        self.audience.moves_away(context.origin, Dentry::of(*parent, name), *ino);
                    }
                }
                batch.effects.extend(effects.into_iter().map(|effect| (context.origin, effect)));
                batch.nameless.extend(nameless);
                batch.follows.extend(follows);
            }
            Err(Stop::Store(error)) => return Err(error),
            Err(Stop::Refused(why)) => {
                batch.outcomes.push((operation, Some(why.refusal.rule)));
                txn.rollback()?;
                self.ranks.undo();
                // The move was undone: what was remembered of the directory at its new place is wrong.
                if effects.contains(&Effect::DirectoryMoved) {
                    self.scopes.forget();
                }
                if why.kept {
                    let made = (operation, self.now);
                    keep_refusal(txn, &context, made, *why, &mut batch.follows)?;
                }
            }
        }
        Ok(())
    }
}
