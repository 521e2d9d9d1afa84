//! One round of the chores that a clock brings: what has ended is put away, what does not go on is
//! told of, drafts that nobody mends are put aside. Only the leader makes it.
//!
//! What must stay true: what is to be done is found in a snapshot, by a reader, and done by a command
//! each, which looks again. So a round holds up no writer, and one that is interrupted is gone on
//! with by the next.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::archive::PutAway;
use super::chore::{Chore, attempt};
use super::drafts::PutAside;
use super::escalate::Escalate;
use super::follow::{Duty, Follow, left_by_others};
use super::past::{Told, last_activity};
use crate::config::Binding;
use crate::engine::{Command, Context, Engine, Stop, Terms, Turn, last_before, lease_nanos};
use crate::kind::{StateIx, Statuses};
use crate::limits::{CHORES_AT_ONCE, LEADER_LEASE};
use crate::names::FileName;
use crate::numbers::{Ino, LeaderFence, UnixNanos, WorkspaceKey};
use crate::refusal::Refusal;
use crate::store::{Read, Record, StoreError, WorkspaceRow};

/// Who makes the rounds of a store, as long as it is the leader.
pub struct Chores {
    engine: Engine,
    holder: Arc<str>,
    /// Whether it was looked for what an earlier daemon could not do.
    recalled: AtomicBool,
    /// How many records of a sort were tried in vain by the rounds before, which came to no end of them, and how
    /// many rounds these were: the next goes on with those after them, so that what cannot be done keeps nothing
    /// else from being done.
    in_vain: Mutex<HashMap<Sort, (usize, usize)>>,
    /// Drafts that this round is to put aside.
    drafts: Mutex<Result<HashMap<WorkspaceKey, Vec<Ino>>, Refusal>>,
    /// Whether the process ends: then nothing more is begun.
    is_over: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Records that are looked for together: of a workspace, those of a state to be put away, or to be told of by
/// this entry of what is stuck.
type Sort = (WorkspaceKey, Option<usize>);

/// What became of a chore.
type Tried = Result<Option<bool>, Refusal>;

/// Records of a workspace to which nothing has happened for long.
struct Idle<'a> {
    workspace: WorkspaceKey,
    binding: &'a Binding,
    /// Which entry of what is stuck they are looked for by, as in [`Sort`].
    which: Option<usize>,
    /// Where they lie, and with which status.
    state: StateIx,
    status: &'a Statuses,
    /// For how long nothing has.
    after: Duration,
}

impl Chores {
    /// The rounds of one process; `name` tells it from all others that serve the store.
    #[must_use]
    pub fn new(engine: &Engine, name: &str) -> Chores {
        let (recalled, in_vain) = Default::default();
        let drafts = Mutex::new(Ok(HashMap::new()));
        let (engine, holder, is_over) = (engine.clone(), name.into(), Box::new(|| false));
        Chores { engine, holder, recalled, in_vain, drafts, is_over }
    }

    /// The same of a process that ends when this says so: a round is broken off then, and what it did not come to
    /// the next makes.
    #[must_use]
    pub fn until(self, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Chores {
        Chores { is_over: Box::new(is_over), ..self }
    }

    /// Makes a round, if this process leads or can take the lead; says what it did.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn round(&self) -> Result<u64, Refusal> {
        if let Err(error) = self.recall() {
            tracing::warn!(%error, "what an earlier daemon could not do is looked for later");
        }
        // Where no clock brings anything an idle daemon writes nothing.
        if !self.engine.config().has_rounds() && !self.engine.undone().owes() {
            return Ok(0);
        }
        let lead = self.engine.run(Context::daemon(), Lead { holder: Arc::clone(&self.holder) })?;
        let Some(fence) = lead else { return Ok(0) };
        self.engine.undone().begin_round();
        let readers = self.engine.readers();
        let workspaces = crate::store::read(&**readers, |read| read.workspaces());
        let workspaces = workspaces?;
        *self.drafts.lock() = self.old_drafts(&workspaces);
        let mut done = 0;
        for workspace in workspaces {
            let binding = self.engine.config().bind(&workspace.path);
            let (Some(dir), Some(binding)) = (workspace.dir, binding) else { continue };
            let parts = [Chores::archive, Chores::escalate, Chores::put_aside];
            for part in parts {
                // What keeps one sort from being found keeps no other.
                match part(self, &workspace, dir, &binding) {
                    Ok(count) => done += count,
                    Err(refusal) => {
                        let path = workspace.path.to_string();
                        tracing::warn!(%refusal, path, "chores are left for later");
                        self.engine.undone().found(&path, &refusal.reason);
                    }
                }
            }
        }
        match self.follow() {
            Ok(count) => done += count,
            Err(refusal) => tracing::warn!(%refusal, "what follows from changes is left for later"),
        }
        self.engine.undone().end_round();
        if done > 0 {
            tracing::info!(%fence, done, "chores");
        }
        Ok(done)
    }

    /// Lets somebody else lead.
    pub fn resign(&self) {
        let resign = Resign { holder: Arc::clone(&self.holder) };
        if let Err(refusal) = self.engine.run(Context::daemon(), resign) {
            tracing::warn!(%refusal, "the lead ends by itself");
        }
    }

    fn archive(&self, row: &WorkspaceRow, dir: Ino, binding: &Binding) -> Result<u64, Refusal> {
        let archive = binding.kind.chores().archive.as_ref();
        let Some(archive) = archive.filter(|_| binding.chores.archive) else { return Ok(0) };
        let (state, status, after) = (archive.from, &Statuses::Any, archive.after);
        let idle = Idle { workspace: row.key, binding, which: None, state, status, after };
        self.each_idle(
            &idle,
            |_| true,
            |record| {
                let (key, duty) = (record.key, Duty::HandOver);
                // Put away, it would make its follow-up no more.
                if self.engine.undone().has_to_follow(Follow { record: key, duty }) {
                    return Ok(0);
                }
                self.act(dir, PutAway { record: key, last_g: record.last_g, to: archive.to })
            },
        )
    }

    fn escalate(&self, row: &WorkspaceRow, dir: Ino, binding: &Binding) -> Result<u64, Refusal> {
        let escalate = binding.kind.chores().escalate.as_ref();
        let Some(escalate) = escalate.filter(|_| binding.chores.escalate) else { return Ok(0) };
        let mut done = 0;
        for (nth, stuck) in escalate.stuck.iter().enumerate() {
            let (state, status, after) = (stuck.state, &stuck.status, stuck.after);
            let idle = Idle { workspace: row.key, binding, which: Some(nth), state, status, after };
            let untold = |told| told != Told::Logged;
            done += self.each_idle(&idle, untold, |record| {
                let file = escalate.file.clone();
                self.act(dir, Escalate { dir, file, record })
            })?;
        }
        Ok(done)
    }

    fn put_aside(&self, row: &WorkspaceRow, dir: Ino, binding: &Binding) -> Result<u64, Refusal> {
        let Some((since, into)) = self.old_from(binding) else { return Ok(0) };
        let drafts = match &mut *self.drafts.lock() {
            Ok(all) => all.remove(&row.key).unwrap_or_default(),
            Err(refusal) => return Err(refusal.clone()),
        };
        let mut done = 0;
        for ino in drafts {
            let into = into.clone();
            done += self.act(dir, PutAside { ino, since, dir, into })?;
        }
        Ok(done)
    }

    /// Since when nobody has written to a draft of such a workspace that is put aside, and where it goes.
    fn old_from(&self, binding: &Binding) -> Option<(UnixNanos, FileName)> {
        let drafts = binding.kind.chores().drafts.as_ref().filter(|_| binding.chores.drafts)?;
        Some((self.ago(drafts.after), drafts.dir.clone()))
    }

    /// What follows from changes and could not be done then is tried again.
    fn follow(&self) -> Result<u64, Refusal> {
        let undone = self.engine.undone();
        let mut done = 0;
        for follow in undone.turn_of_owed() {
            let dir = crate::store::read(&**self.engine.readers(), |read| {
                let Some(record) = read.record(follow.record)? else { return Ok(None) };
                Ok(read.workspace(record.workspace)?.and_then(|workspace| workspace.dir))
            })?;
            // It is done, or need not be any more; else it is tried again in the next round.
            let tried = dir.map_or(Ok(Ok(Some(false))), |dir| self.attempt(dir, follow))?;
            if let Ok(Some(did)) = tried {
                undone.is_settled(follow);
                done += u64::from(did);
            }
        }
        Ok(done)
    }

    /// Looks, once, for what an earlier daemon could not do.
    fn recall(&self) -> Result<(), StoreError> {
        if self.recalled.load(Ordering::Relaxed) {
            return Ok(());
        }
        let config = self.engine.config();
        let readers = self.engine.readers();
        let left = crate::store::read(&**readers, |read| left_by_others(read, &config))?;
        left.into_iter().for_each(|follow| self.engine.undone().try_later(follow));
        self.recalled.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Does one thing for the workspace at `dir`; what is refused is tried again in the next round.
    fn act(&self, dir: Ino, chore: impl Chore) -> Result<u64, Refusal> {
        Ok(u64::from(matches!(self.attempt(dir, chore)?, Ok(Some(true)))))
    }

    /// Tries one thing for the workspace at `dir`, whose owner's the files are that it makes; whether it did
    /// anything (`None`: somebody else leads, or the process ends), or what is in its way.
    fn attempt(&self, dir: Ino, chore: impl Chore) -> Result<Tried, Refusal> {
        if (self.is_over)() {
            return Ok(Ok(None));
        }
        let mut context = Context::daemon();
        if let Some(node) = crate::store::read(&**self.engine.readers(), |read| read.node(dir))? {
            (context.actor.uid, context.gid) = (node.uid, node.gid);
        }
        let command = AsLeader { holder: Arc::clone(&self.holder), chore };
        Ok(self.engine.run(context, command).inspect_err(|refusal| {
            tracing::debug!(rule = refusal.rule.code(), "a chore was refused");
        }))
    }

    fn ago(&self, time: Duration) -> UnixNanos {
        self.engine.now().before(time)
    }

    /// Does something for idle records of which what was told since is `fit`; for as many as one round sees to.
    fn each_idle(
        &self,
        idle: &Idle<'_>,
        fit: impl Fn(Told) -> bool,
        act: impl Fn(Record) -> Result<u64, Refusal>,
    ) -> Result<u64, Refusal> {
        let sort = (idle.workspace, idle.which);
        let (in_vain, rounds) = self.in_vain.lock().remove(&sort).unwrap_or_default();
        self.engine.undone().goes_on(rounds);
        let found = self.find_idle(idle, in_vain, fit)?;
        let (mut done, count) = (0, found.len());
        for record in found {
            done += act(record)?;
        }
        if count == CHORES_AT_ONCE {
            let failed = count.saturating_sub(usize::try_from(done).unwrap_or(count));
            self.in_vain.lock().insert(sort, (in_vain + failed, rounds + 1));
        }
        Ok(done)
    }

    /// They, but for the first `skipped`.
    fn find_idle(
        &self,
        &Idle { workspace, binding, state, status, after, .. }: &Idle<'_>,
        skipped: usize,
        fit: impl Fn(Told) -> bool,
    ) -> Result<Vec<Record>, Refusal> {
        let stuck = binding.kind.chores().escalate.as_ref().filter(|_| binding.chores.escalate);
        let is_told_of = stuck.is_some_and(|all| all.stuck.iter().any(|one| one.state == state));
        let state = binding.kind.state(state);
        let since = self.ago(after);
        let find = |read: &dyn Read| {
            let mut found: Vec<Record> = Vec::new();
            let (mut skipped, mut failed) = (skipped, None);
            let old = last_before(read, since)?;
            // Where there are leases, or it is told of what does not go on, the last event may be no more
            // than a notice.
            let newest = match state.lease.is_some() || is_told_of {
                true => read.last_event()?.map_or(old, |event| event.g),
                false => old,
            };
            read.idle(workspace, &state.name, newest, &mut |record| {
                let fits = match (status, record.status.as_deref()) {
                    (Statuses::Any, _) => true,
                    (Statuses::Listed(_), has) => has.is_some_and(|has| status.contains(has)),
                };
                let is_due = || {
                    // A parked one has no file to be moved or told of.
                    if record.ino().is_none() {
                        return Ok(false);
                    }
                    let (last, told) = last_activity(read, record.last_g)?;
                    Ok(last <= old && fit(told))
                };
                match if fits { is_due() } else { Ok(false) } {
                    Ok(true) if skipped > 0 => skipped -= 1,
                    Ok(true) => found.push(record),
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
                failed.is_none() && found.len() < CHORES_AT_ONCE && !(self.is_over)()
            })?;
            failed.map_or(Ok(found), Err)
        };
        Ok(crate::store::read(&**self.engine.readers(), find)?)
    }

    /// Drafts that are to be put aside, by workspace. All old ones are looked at once: however many one workspace
    /// has, they keep none of another's from being found.
    fn old_drafts(
        &self,
        workspaces: &[WorkspaceRow],
    ) -> Result<HashMap<WorkspaceKey, Vec<Ino>>, Refusal> {
        let config = self.engine.config();
        let since = |row: &WorkspaceRow| {
            let binding = config.bind(&row.path).filter(|_| row.dir.is_some())?;
            Some((row.key, self.old_from(&binding)?.0))
        };
        let since: HashMap<WorkspaceKey, UnixNanos> = workspaces.iter().filter_map(since).collect();
        let Some(newest) = since.values().max().copied() else { return Ok(HashMap::new()) };
        let find = |read: &dyn Read| {
            let mut found: HashMap<WorkspaceKey, Vec<Ino>> = HashMap::new();
            let mut failed = None;
            let whose = |ino| {
                let Some(draft) = read.draft(ino)? else { return Ok(None) };
                let place = read.place(draft.dir)?;
                let old =
                    place.and_then(|place| Some((place.workspace, since.get(&place.workspace)?)));
                let Some((workspace, since)) = old else { return Ok(None) };
                let is_old = read.node(ino)?.is_some_and(|node| node.mtime <= *since);
                Ok(is_old.then_some(workspace))
            };
            read.old_drafts(newest, &mut |ino| {
                match whose(ino) {
                    Ok(Some(workspace)) => {
                        let all = found.entry(workspace).or_default();
                        if all.len() < CHORES_AT_ONCE {
                            all.push(ino);
                        }
                    }
                    Ok(None) => {}
                    Err(error) => failed = Some(error),
                }
                failed.is_none() && !(self.is_over)()
            })?;
            failed.map_or(Ok(found), Err)
        };
        Ok(crate::store::read(&**self.engine.readers(), find)?)
    }
}

/// Takes or renews the lead.
struct Lead {
    holder: Arc<str>,
}

fn lead(turn: &mut Turn<'_>, holder: &str) -> Result<Option<LeaderFence>, StoreError> {
    let until = turn.lease_now.after(lease_nanos(LEADER_LEASE));
    turn.txn.lead(holder, turn.lease_now, until)
}

impl Command for Lead {
    type Out = Option<LeaderFence>;

    fn operation(&self) -> &'static str {
        "lead"
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Option<LeaderFence>, Stop> {
        Ok(lead(turn, &self.holder)?)
    }
}

/// Ends the lead.
struct Resign {
    holder: Arc<str>,
}

impl Command for Resign {
    type Out = ();

    fn operation(&self) -> &'static str {
        "resign"
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        Ok(turn.txn.resign(&self.holder)?)
    }
}

/// A chore that is done only while its process leads: who lost the lead meanwhile does nothing more.
struct AsLeader<C> {
    holder: Arc<str>,
    chore: C,
}

impl<C: Chore> Command for AsLeader<C> {
    /// Whether it did anything; `None`: somebody else leads.
    type Out = Option<bool>;

    fn operation(&self) -> &'static str {
        self.chore.operation()
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Option<bool>, Stop> {
        if lead(turn, &self.holder)?.is_none() {
            return Ok(None);
        }
        attempt(self.chore, turn).map(Some)
    }
}
