//! Leases: an owner keeps what it has for as long as it shows life, and no longer.
//!
//! A claim makes a lease; the end of ownership ends it. Signs of life are noted in memory and
//! written in batches (`book`); time is the store's own (`clock`). What must stay true: a lease's
//! row is there exactly as long as the lease runs, and an owner whose lease has run out changes
//! nothing any more, except where a kind only tells of the end; expiry is decided on the rows, in
//! the transaction; an end that was found is not undone by what is heard after it, also where it
//! cannot be written yet. Deliberately not here: readiness.

mod back;
mod book;
mod clock;
mod ends;
mod expire;
mod heartbeat;
mod hold;
mod signs;

pub use clock::LeaseClock;
pub use ends::Ends;
pub use heartbeat::Heartbeat;

pub(super) use back::Return;
pub(super) use book::{Book, Tended};
pub(super) use expire::{Cause, Expire, Warn};
pub(super) use heartbeat::Renew;
pub(super) use hold::{LetGo, ReleaseHold};
pub(super) use signs::Signs;

use std::time::Duration;

use crate::engine::places::governed::Home;
use crate::engine::{Context, Effect, Turn};
use crate::kind::{Kind, Lease, OnExpiry};
use crate::names::AgentName;
use crate::numbers::{Attempt, LeaseTime, RecordKey};
use crate::refusal::{Refusal, Rule};
use crate::store::{Expected, LeaseRow, LeaseTold, Read, Record, Standing, StoreError};

/// What happened to a lease, for the writer's book.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeaseNote {
    /// It runs, as this row says, for this owner.
    Runs(LeaseRow, AgentName),
    /// It has ended.
    Ended(RecordKey),
    /// It is over, and its record cannot go back yet.
    Blocked(RecordKey),
    /// The record went back, or need not any more.
    Returned(RecordKey),
    /// The store has that it runs until then.
    Written(RecordKey, LeaseTime),
    /// It is over, and its record is no workspace's now: it is looked at again.
    Left(RecordKey),
    /// Its owner was warned of its end.
    Warned(RecordKey),
    /// Its owner showed life.
    Seen(RecordKey),
    /// It has ended, and its kind only tells of that: its owner goes on.
    Told(RecordKey),
}

/// A claim: whoever writes with it may do so as long as the record is still claimed so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Who has the record.
    pub owner: AgentName,
    /// The fencing token.
    pub attempt: Attempt,
}

impl Fence {
    /// The claim that a record is under.
    #[must_use]
    pub fn of(record: &Record) -> Option<Fence> {
        let owner = record.owner.clone()?;
        Some(Fence { owner, attempt: record.attempt })
    }

    /// Whether the record is under another claim now, or under none.
    #[must_use]
    pub fn is_over(&self, record: &Record) -> bool {
        self.require(record).is_err()
    }

    /// Refuses who writes under this claim at `home` if the record is under another one now; who acts for others may go
    /// on where an owner's lease ran out.
    ///
    /// # Errors
    /// [`Rule::LeaseOver`].
    pub fn allows(&self, writer: &Context, record: &Record, home: &Home) -> Result<(), Refusal> {
        if writer.acts_for_others(home.kind()) {
            // It is another's to claim it again.
            self.require_same(record)
                .map_err(|over| Refusal { remedy: READ_ANEW.to_owned(), ..over })
        } else {
            self.require(record)
        }
    }

    /// Refuses what was begun under another claim than the record is under now.
    pub(super) fn require(&self, record: &Record) -> Result<(), Refusal> {
        self.require_same(record)?;
        if record.is_lapsed() { Err(over(record, &self.owner)) } else { Ok(()) }
    }

    fn require_same(&self, record: &Record) -> Result<(), Refusal> {
        let same = record.owner.as_ref() == Some(&self.owner) && record.attempt == self.attempt;
        if same { Ok(()) } else { Err(over(record, &self.owner)) }
    }
}

/// What who acts for others does where the claim that was written under is over.
const READ_ANEW: &str = "read what the record says now, and write it anew from there";

/// The refusal for whoever had a record and has it no more.
pub(super) fn over(record: &Record, owner: &AgentName) -> Refusal {
    let again = "claim it again, if it is to be had, and begin from what it says then";
    let (now, remedy) = match &record.owner {
        Some(now) if now != owner => (format!("{now} has it now"), again),
        Some(_) if record.is_lapsed() => (
            "its lease ran out where it lies".to_owned(),
            "where it does not go back by itself (its `.why` tells), ask who acts for others, such as an \
             operator, to give it back with `mv`, or to go on with it",
        ),
        Some(_) => (format!("{owner} claimed it anew"), again),
        None => (format!("it is in {} now", record.state), again),
    };
    Refusal::new(
        Rule::LeaseOver,
        format!("{owner}'s claim of `{}` is over: {now}", record.id),
        remedy,
    )
}

/// What is told of a record whose lease is over and that cannot go back yet; `None` of any other.
///
/// # Errors
/// A failure of the store.
pub fn told_of_return(read: &dyn Read, record: &Record) -> Result<Option<String>, StoreError> {
    if !record.is_lapsed() || record.standing == Standing::Gone {
        return Ok(None);
    }
    let told = "it goes back when nothing is in its way";
    Ok(read.in_the_way(record.key)?.map(|why| match why.as_str() {
        "" => told.to_owned(),
        why => format!("{told} ({why})"),
    }))
}

/// What is said of a record whose lease ran out, and of which this is told.
pub(super) fn ran_out(record: &Record, told: &str) -> String {
    format!("it is in {}; its lease ran out, and {told}", record.state)
}

/// How many leases run.
///
/// # Errors
/// A failure of the store.
pub fn running_leases(read: &dyn Read) -> Result<u64, StoreError> {
    let mut leases = 0;
    read.leases(&mut |(row, _)| {
        leases += u64::from(row.runs());
        true
    })?;
    Ok(leases)
}

/// The lease that a record's state gives to its owner, where it has one whose lease has not run out.
#[must_use]
pub fn lease_of<'k>(kind: &'k Kind, record: &Record) -> Option<&'k Lease> {
    if record.owner.is_none() || record.standing == Standing::Gone || record.is_lapsed() {
        return None;
    }
    let state = kind.state_named(record.state.as_str())?;
    kind.state(state).lease.as_ref()
}

/// For how long a record's owner has it: as it asks itself, or as its state gives it.
fn ttl_ns(record: &Record, lease: &Lease) -> u64 {
    let asked = record.lease_s.map(|seconds| Duration::from_secs(u64::from(seconds)));
    nanos(asked.unwrap_or(lease.ttl))
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Context {
    /// Refuses a change of a record whose owner's lease ran out where it lies, unless the caller
    /// acts for others (`true`).
    ///
    /// # Errors
    /// [`Rule::LeaseOver`].
    pub fn revives(&self, record: &Record, home: &Home) -> Result<bool, Refusal> {
        match &record.owner {
            Some(_) if record.is_lapsed() && self.acts_for_others(home.kind()) => Ok(true),
            Some(owner) if record.is_lapsed() => Err(over(record, owner)),
            _ => Ok(false),
        }
    }
}

impl Turn<'_> {
    /// Makes, keeps or ends the lease of `record`, which was `before` and asked for `asked_s`.
    pub(super) fn settle_lease(
        &mut self,
        record: &mut Record,
        (before, asked_s): (&Expected, Option<u32>),
        kind: &Kind,
    ) -> Result<(), StoreError> {
        let row = match &before.owner {
            Some(_) if !before.gone => self.txn.lease(record.key)?,
            _ => None,
        };
        let Some(lease) = lease_of(kind, record) else {
            return if row.is_some() { self.end_lease(record.key) } else { Ok(()) };
        };
        let ttl_ns = ttl_ns(record, lease);
        let runs = |row: LeaseRow| {
            // Another state may give it for longer, or not for so long.
            row.attempt == record.attempt && (before.state == record.state || row.ttl_ns == ttl_ns)
        };
        if before.owner == record.owner && row.is_some_and(runs) && asked_s == record.lease_s {
            return self.runs_on(record, row);
        }
        // One that is over is not begun anew by another time that is asked for.
        let is_over =
            |row: &LeaseRow| row.attempt == record.attempt && row.runs() && self.ends.has(row);
        if let Some(row) = row.filter(is_over) {
            return self.runs_on(record, Some(row));
        }
        record.lapsed = None;
        self.put_lease(record, lease)
    }

    /// A sign of life about this very record. A lease that runs is renewed by the book, with others; one whose
    /// end was told of runs again from here on, so that nobody hears that it is over after this.
    pub(super) fn note_life(&mut self, record: &Record) -> Result<(), StoreError> {
        let row = self.txn.lease(record.key)?;
        self.runs_on(record, row)
    }

    /// The same, of one whose lease is `row`.
    fn runs_on(&mut self, record: &Record, row: Option<LeaseRow>) -> Result<(), StoreError> {
        let over = row.filter(|row| !row.runs());
        let Some((row, owner)) = over.zip(record.owner.clone()) else {
            self.effect(Effect::Lease(LeaseNote::Seen(record.key)));
            return Ok(());
        };
        self.run_on(row, owner).map(drop)
    }

    /// Lets a lease run for all its time from now on.
    fn run_on(&mut self, row: LeaseRow, owner: AgentName) -> Result<LeaseTime, StoreError> {
        let (until, told) = (self.lease_now.after(row.ttl_ns), LeaseTold::Nothing);
        let row = LeaseRow { until, told, ..row };
        self.txn.put_record_lease(&row)?;
        self.effect(Effect::Lease(LeaseNote::Runs(row, owner)));
        Ok(until)
    }

    /// Where other rules made the lease of a record, or none: somebody who has it by these has a lease from
    /// now on, if none runs, and what gives none by these ends it. One that runs is not renewed by that.
    pub(super) fn lease_anew(&mut self, record: &Record, kind: &Kind) -> Result<(), StoreError> {
        match (lease_of(kind, record), self.txn.lease(record.key)?) {
            (Some(lease), None) => self.put_lease(record, lease),
            // The rules before only told of its end. By these it is to go back, and would stay for ever.
            (Some(lease), Some(row)) if !row.runs() && lease.on_expiry != OnExpiry::Event => {
                self.put_lease(record, lease)
            }
            (None, Some(_)) => self.end_lease(record.key),
            (Some(_), Some(_)) | (None, None) => Ok(()),
        }
    }

    /// Makes a new lease of a record that somebody has.
    fn put_lease(&mut self, record: &Record, lease: &Lease) -> Result<(), StoreError> {
        let Some(owner) = record.owner.clone() else { return Ok(()) };
        let ttl_ns = ttl_ns(record, lease);
        let (record, attempt) = (record.key, record.attempt);
        let (until, told) = (self.lease_now, LeaseTold::Nothing);
        self.run_on(LeaseRow { record, attempt, ttl_ns, until, told }, owner).map(drop)
    }

    /// A record has no lease any more.
    fn end_lease(&mut self, record: RecordKey) -> Result<(), StoreError> {
        self.txn.delete_record_lease(record)?;
        self.effect(Effect::Lease(LeaseNote::Ended(record)));
        Ok(())
    }

    /// As [`Context::revives`], of who makes this change.
    pub(super) fn revives(&self, record: &Record, home: &Home) -> Result<bool, Refusal> {
        self.context.revives(record, home)
    }

    /// Somebody who acts for others saves a record whose owner's lease ran out where it lies. What waits
    /// for its way back goes it now, if its text was in the way: nobody has a lease again by that. Of what
    /// is to stay there, the owner begins anew.
    pub(super) fn take_up(&mut self, record: &mut Record) -> Result<(), StoreError> {
        if self.txn.in_the_way(record.key)?.is_some() {
            self.follow(Return { record: record.key });
        } else {
            (record.lapsed, record.attempt) = (None, record.attempt.next());
        }
        Ok(())
    }
}
