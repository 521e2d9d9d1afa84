//! What the writer remembers of all running leases, by the time at which each must be looked at.
//!
//! A lease is looked at when half of it is over, before its end, and at its end: signs of life cost
//! nothing until then, and who gave none by the half is listened for, since kernels answer much from
//! their caches. What must stay true: it says what the rows say after the last commit, but for signs of
//! life that are not written yet. Deliberately not here: transactions.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::Context;
use crate::engine::change::queued::Queued;
use crate::limits::{LEASE_BATCH, LEASE_CHANGES_MAX, LEASE_WARNING_MAX, LEASE_WARNING_MIN};
use crate::names::AgentName;
use crate::numbers::{Attempt, LeaseTime, Presence, RecordKey};
use crate::refusal::Refusal;
use crate::store::{LeaseRow, LeaseTold, Read, Result};

use super::{Cause, Ends, Expire, LeaseClock, LeaseNote, Renew, Return, Signs, Warn, nanos};

/// A warning or an end that was to come and did not, and a way back that was blocked, is tried again after
/// this; so long it may take to hear of an owner again who was told of the end.
const AGAIN_NS: u64 = 30_000_000_000;

/// Later than all that is.
const FOR_EVER: LeaseTime = LeaseTime(u64::MAX);

/// What is to be done about leases now.
#[derive(Debug, Default)]
pub(in crate::engine) struct Due {
    /// These run on, until then.
    pub renewed: Vec<LeaseRow>,
    /// Of these owners nothing was seen, and half of a lease is over; or it is their last warning.
    pub unheard: BTreeSet<AgentName>,
    /// The owners of these are to be warned.
    pub warned: Vec<(RecordKey, Attempt)>,
    /// These are over.
    pub over: Vec<Expire>,
    /// These were over before, and the store does not say so yet.
    pub again: Vec<Expire>,
    /// These could not go back when they were over: perhaps they can now.
    pub back: Vec<RecordKey>,
}

/// The same, as changes: an end comes after what its lease ran on for.
#[derive(Default)]
pub(in crate::engine) struct Tended {
    pub others: Vec<Queued>,
    pub ends: Vec<Queued>,
    pub ends_again: Vec<Queued>,
}

impl Tended {
    pub fn is_empty(&self) -> bool {
        self.others.is_empty() && self.ends.is_empty() && self.ends_again.is_empty()
    }
}

struct Entry {
    row: LeaseRow,
    owner: AgentName,
    /// Its end as the store has it: the row here may have more, which a new daemon gave it.
    written: LeaseTime,
    /// The last sign of life.
    seen: LeaseTime,
    /// When it is looked at next.
    look: LeaseTime,
    /// It is over, whatever is heard of its owner after that.
    over: Option<Cause>,
}

impl Entry {
    /// Until when it runs by the signs of life of its own and by those that `others` tells of, which is asked for
    /// the last one up to some moment. While it runs none counts that came after its end: whoever looks late, since
    /// the daemon stood still, finds such.
    fn runs_until(&self, others: impl Fn(LeaseTime) -> Option<LeaseTime>) -> LeaseTime {
        let mut end = if self.row.runs() { self.row.until } else { FOR_EVER };
        loop {
            let seen = Some(self.seen).filter(|seen| *seen <= end).max(others(end));
            let until = seen.unwrap_or_default().after(self.row.ttl_ns);
            if until <= end {
                return until;
            }
            end = until;
        }
    }
}

impl Due {
    /// What is to be done, as changes.
    pub fn changes(self, clock: &LeaseClock) -> Tended {
        let daemon = Context::daemon;
        let end = |end| Queued::new(daemon(), end, |ran| tell("expire", ran));
        let ends = self.over.into_iter().map(end).collect();
        let ends_again = self.again.into_iter().map(end).collect();
        let mut others = Vec::new();
        if !self.renewed.is_empty() {
            let renew = Renew { leases: self.renewed, clock: clock.clone() };
            others.push(Queued::new(daemon(), renew, |ran| tell("renew", ran)));
        }
        for (record, attempt) in self.warned {
            let warn = Warn { record, attempt };
            others.push(Queued::new(daemon(), warn, |ran| tell("warn", ran)));
        }
        for record in self.back {
            others.push(Queued::new(daemon(), Return { record }, |ran| tell("return", ran)));
        }
        Tended { others, ends, ends_again }
    }
}

/// Nobody waits for these changes; what fails is tried again.
fn tell<T>(what: &'static str, ran: std::result::Result<T, Refusal>) {
    if let Err(refusal) = ran {
        tracing::warn!(%refusal, what, "a lease was not tended");
    }
}

/// See the module.
#[derive(Default)]
pub(in crate::engine) struct Book {
    entries: HashMap<RecordKey, Entry>,
    looks: BTreeSet<(LeaseTime, RecordKey)>,
    /// Those that are over, of which the store does not say so yet.
    ends: Arc<Ends>,
    /// Those that could not go back, by when each is tried again.
    returns: BTreeSet<(LeaseTime, RecordKey)>,
    tries: HashMap<RecordKey, LeaseTime>,
    /// When agents were seen to change anything.
    agents: HashMap<AgentName, Presence>,
}

impl Book {
    /// All leases of a store at the start of its daemon. Those that end about now get some time.
    pub fn load(read: &dyn Read, clock: &LeaseClock) -> Result<Book> {
        let (mut book, now) = (Book::default(), clock.now());
        read.leases(&mut |(mut row, owner)| {
            let written = row.until;
            row.until = clock.end_of(&row);
            let record = row.record;
            book.put(row, owner, LeaseTime(0), now);
            if let Some(entry) = book.entries.get_mut(&record) {
                entry.written = written;
            }
            true
        })?;
        for record in read.returns()? {
            book.try_at(record, now);
        }
        Ok(book)
    }

    fn put(&mut self, row: LeaseRow, owner: AgentName, seen: LeaseTime, now: LeaseTime) {
        self.remove(row.record);
        let look = next_look(&row, now);
        self.looks.insert((look, row.record));
        let entry = Entry { row, owner, written: row.until, seen, look, over: None };
        self.entries.insert(row.record, entry);
    }

    /// When a lease is looked at next.
    fn look_at(&mut self, record: RecordKey, look: LeaseTime) {
        if let Some(entry) = self.entries.get_mut(&record) {
            self.looks.remove(&(entry.look, record));
            entry.look = look;
            self.looks.insert((look, record));
        }
    }

    /// When a record that could not go back is tried again.
    fn try_at(&mut self, record: RecordKey, at: LeaseTime) {
        self.try_no_more(record);
        self.returns.insert((at, record));
        self.tries.insert(record, at);
    }

    fn try_no_more(&mut self, record: RecordKey) {
        if let Some(at) = self.tries.remove(&record) {
            self.returns.remove(&(at, record));
        }
    }

    fn remove(&mut self, record: RecordKey) {
        if let Some(entry) = self.entries.remove(&record) {
            self.looks.remove(&(entry.look, record));
            self.ends.remove(record);
        }
        if self.entries.is_empty() {
            self.agents.clear();
        }
    }

    /// Takes note of what a committed change did.
    pub fn note(&mut self, note: &LeaseNote, now: LeaseTime) {
        match note {
            LeaseNote::Runs(row, owner) => self.put(*row, owner.clone(), now, now),
            LeaseNote::Ended(record) => self.remove(*record),
            LeaseNote::Blocked(record) => self.try_at(*record, now.after(AGAIN_NS)),
            LeaseNote::Returned(record) => self.try_no_more(*record),
            LeaseNote::Written(record, until) => {
                if let Some(entry) = self.entries.get_mut(record) {
                    entry.written = *until;
                }
            }
            LeaseNote::Left(record) => self.ends.remove(*record),
            LeaseNote::Warned(record) => {
                let Some(entry) = self.entries.get_mut(record) else { return };
                if entry.row.told == LeaseTold::Nothing {
                    entry.row.told = LeaseTold::Warning;
                    let look = next_look(&entry.row, now);
                    self.look_at(*record, look);
                }
            }
            LeaseNote::Seen(record) => {
                let Some(entry) = self.entries.get_mut(record) else { return };
                let runs = entry.row.runs();
                // After its end it is none, and would hide the one before.
                if !runs || now <= entry.row.until {
                    entry.seen = now;
                }
                if !runs {
                    self.look_at(*record, now);
                }
            }
            LeaseNote::Told(record) => {
                let Some(entry) = self.entries.get_mut(record) else { return };
                (entry.row.told, entry.over) = (LeaseTold::End, None);
                self.ends.remove(*record);
                self.look_at(*record, now.after(AGAIN_NS));
            }
        }
    }

    /// Takes note that a record was let go of that could not be given back: its lease is over.
    pub fn let_go(&mut self, record: RecordKey, attempt: Attempt, now: LeaseTime) {
        let entry = self.entries.get_mut(&record);
        if let Some(entry) = entry.filter(|entry| entry.row.attempt == attempt) {
            entry.over = Some(Cause::LetGo);
            self.ends.add(record, attempt);
            self.look_at(record, now);
        }
    }

    /// All that is over is to end now.
    pub fn end_all(&mut self, now: LeaseTime) {
        for record in self.ends.records() {
            self.look_at(record, now);
        }
    }

    /// The ends that are not written yet, for whoever tells of leases.
    pub fn ends(&self) -> Arc<Ends> {
        Arc::clone(&self.ends)
    }

    /// Whether there are such.
    pub fn has_ends(&self) -> bool {
        !self.ends.is_empty()
    }

    /// What an agent has lost, and still has as the store says.
    fn lost_by(&self, agent: &AgentName) -> impl Iterator<Item = RecordKey> {
        let is_its = |key: &RecordKey| self.entries.get(key).is_some_and(|e| e.owner == *agent);
        self.ends.records().into_iter().filter(is_its)
    }

    /// Whether there is such a thing.
    pub fn has_lost(&self, agent: &AgentName) -> bool {
        self.lost_by(agent).next().is_some()
    }

    /// An agent wants to change something: what it has lost is to end before.
    pub fn end_before(&mut self, agent: &AgentName, now: LeaseTime) {
        for record in self.lost_by(agent).collect::<Vec<_>>() {
            self.look_at(record, now);
        }
    }

    /// Takes note that an agent changes something, or tries to.
    pub fn note_agent(&mut self, agent: &AgentName, now: LeaseTime) {
        if self.entries.is_empty() {
            return;
        }
        match self.agents.get_mut(agent) {
            Some(seen) => seen.note(now.0),
            None => self.agents.entry(agent.clone()).or_default().note(now.0),
        }
    }

    /// When a lease, or what could not go back after one, must be looked at.
    pub fn next_look(&self) -> Option<LeaseTime> {
        let firsts = [self.looks.first(), self.returns.first()];
        firsts.into_iter().flatten().map(|(look, _)| *look).min()
    }

    /// At the daemon's end: for how long leases run on whose owners were heard of since that was
    /// written, and where the clock is. The next daemon is to know; it has seen nobody. `None` where
    /// there are no leases.
    pub fn last_signs(&self, signs: &Signs<'_>) -> Option<Queued> {
        if self.entries.is_empty() {
            return None;
        }
        let renew = Renew { leases: self.unwritten(signs), clock: signs.clock.clone() };
        Some(Queued::new(Context::daemon(), renew, |ran| tell("renew", ran)))
    }

    /// The leases that run longer than the store says.
    fn unwritten(&self, signs: &Signs<'_>) -> Vec<LeaseRow> {
        let now = signs.clock.now();
        let mut leases = Vec::new();
        for entry in self.entries.values().filter(|entry| entry.over.is_none()) {
            let held = |by| signs.is_held(&entry.row, by).then_some(now);
            let until = entry
                .runs_until(|by| last_seen(&self.agents, signs, &entry.owner, by).max(held(by)));
            // What the owner was told of the end that it has here was of that end.
            if until > entry.row.until {
                leases.push(LeaseRow { until, told: LeaseTold::Nothing, ..entry.row });
            } else if until > entry.written && entry.row.runs() {
                leases.push(LeaseRow { until, ..entry.row });
            }
        }
        leases
    }

    /// What is to be done at `now`.
    pub fn due(&mut self, now: LeaseTime, signs: &Signs<'_>) -> Due {
        let mut due = Due::default();
        let mut asked = HashMap::new();
        for _ in 0..LEASE_CHANGES_MAX {
            let Some((look, record)) = self.looks.first().copied() else { break };
            if look > now {
                break;
            }
            self.looks.pop_first();
            let Some(entry) = self.entries.get_mut(&record) else { continue };
            if let Some(cause) = entry.over {
                due.again.push(Expire::now(record, entry.row.attempt, cause));
                self.ends.add(record, entry.row.attempt);
                entry.look = now.after(AGAIN_NS);
                self.looks.insert((entry.look, record));
                continue;
            }
            let seen = |by| last_seen(&self.agents, signs, &entry.owner, by);
            let latest = *asked.entry(entry.owner.clone()).or_insert_with(|| seen(FOR_EVER));
            let owner = |by| if latest <= Some(by) { latest } else { seen(by) };
            let held = |by| signs.is_held(&entry.row, by).then_some(now);
            let until = entry.runs_until(|by| owner(by).max(held(by)));
            let row = &mut entry.row;
            if until > row.until {
                (row.until, row.told) = (until, LeaseTold::Nothing);
                due.renewed.push(*row);
                entry.look = next_look(row, now);
            } else if !row.runs() {
                entry.look = now.after(AGAIN_NS);
            } else if now >= row.until {
                entry.over = Some(Cause::RanOut);
                due.over.push(Expire::now(record, row.attempt, Cause::RanOut));
                self.ends.add(record, row.attempt);
                entry.look = now.after(AGAIN_NS);
            } else {
                // At the warning, too: its half may have been slept through, on a machine that stood still for
                // a moment.
                due.unheard.insert(entry.owner.clone());
                entry.look = if row.told == LeaseTold::Nothing && now >= warning(row) {
                    due.warned.push((record, row.attempt));
                    now.after(AGAIN_NS).min(row.until)
                } else {
                    next_look(row, now)
                };
            }
            self.looks.insert((entry.look, record));
        }
        for _ in 0..LEASE_CHANGES_MAX {
            let Some((at, record)) = self.returns.first().copied() else { break };
            if at > now {
                break;
            }
            due.back.push(record);
            self.try_at(record, now.after(AGAIN_NS));
        }
        due
    }
}

/// When an agent was last seen, but not after `by`: by its mounts, and by what it changed.
fn last_seen(
    agents: &HashMap<AgentName, Presence>,
    signs: &Signs<'_>,
    agent: &AgentName,
    by: LeaseTime,
) -> Option<LeaseTime> {
    let changed = agents.get(agent).and_then(|seen| seen.last_by(by.0));
    signs.last_seen(agent, by).max(changed.map(LeaseTime))
}

/// When the owner is to be warned.
fn warning(row: &LeaseRow) -> LeaseTime {
    let ahead = (row.ttl_ns / 10).clamp(nanos(LEASE_WARNING_MIN), nanos(LEASE_WARNING_MAX));
    row.until.before(ahead.min(row.ttl_ns / 4))
}

/// When a lease is to be looked at next. Looks at the half of long leases are put together, so
/// that their renewals share a commit.
fn next_look(row: &LeaseRow, now: LeaseTime) -> LeaseTime {
    let half = row.until.before(row.ttl_ns / 2);
    let batch = nanos(LEASE_BATCH);
    if half > now {
        let together = row.ttl_ns > 16 * batch;
        return if together { LeaseTime(half.0.div_ceil(batch) * batch) } else { half };
    }
    let warning = warning(row);
    if row.told == LeaseTold::Nothing && warning > now { warning } else { row.until }
}

#[cfg(test)]
#[path = "book_test.rs"]
mod tests;
