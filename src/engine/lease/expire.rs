//! The end of a lease: the warning before it, and what then becomes of the record.

use super::LeaseNote;
use super::back::{Had, Way, goes_to, ran_out};
use crate::engine::change::happening::Happening;
use crate::engine::places::governed::Home;
use crate::engine::records::record::Step;
use crate::engine::{Command, Effect, Stop, Terms, Text, Turn};
use crate::kind::{OnExpiry, StateIx};
use crate::ledger::{EventName, Field, Payload, Via};
use crate::numbers::{Attempt, RecordKey};
use crate::record::{Edit, patch, patch_at};
use crate::store::{LeaseRow, LeaseTold, Record, StoreError};

/// Tells that a lease will end soon.
pub(in crate::engine) struct Warn {
    pub record: RecordKey,
    pub attempt: Attempt,
}

/// Why a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Cause {
    /// Nobody renewed it.
    RanOut,
    /// The descriptor that held its record is gone: whatever the kind says of silent owners, the record
    /// goes back.
    LetGo,
}

/// Ends a lease.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) struct Expire {
    pub record: RecordKey,
    pub attempt: Attempt,
    pub cause: Cause,
    /// The disk is full: the end is written, which takes as little as a removal, and the way back is left
    /// for later.
    pub is_tight: bool,
}

impl Expire {
    /// Where there is room.
    pub fn now(record: RecordKey, attempt: Attempt, cause: Cause) -> Expire {
        Expire { record, attempt, cause, is_tight: false }
    }
}

/// The record of a lease, if it is still the same lease.
fn leased(
    turn: &Turn<'_>,
    key: RecordKey,
    attempt: Attempt,
) -> Result<Option<(Record, LeaseRow)>, StoreError> {
    let row = turn.txn.lease(key)?.filter(|row| row.attempt == attempt);
    Ok(turn.txn.record(key)?.zip(row))
}

impl Command for Warn {
    type Out = ();

    fn operation(&self) -> &'static str {
        "warn"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let Some((record, row)) = leased(turn, self.record, self.attempt)? else { return Ok(()) };
        turn.effect(Effect::Lease(LeaseNote::Warned(self.record)));
        if row.told != LeaseTold::Nothing {
            return Ok(());
        }
        turn.txn.put_record_lease(&LeaseRow { told: LeaseTold::Warning, ..row })?;
        let Some(had) = Had::find(turn, record)? else { return Ok(()) };
        let left = row.until.0.saturating_sub(turn.lease_now.0);
        let left_s = Field::Integer((left / 1_000_000_000).cast_signed());
        lease_event(turn, had, EventName::LEASE_ENDING, ("left_s", left_s))?;
        Ok(())
    }
}

/// An event of a lease that changes nothing of its record's text and place.
fn lease_event(
    turn: &mut Turn<'_>,
    had: Had,
    name: EventName,
    more: (&'static str, Field<'_>),
) -> Result<(), Stop> {
    let Had { mut record, governed, path, .. } = had;
    let expected = record.expected();
    let owner = Field::from(record.owner.as_ref());
    let attempt = Field::Integer(record.attempt.0.cast_signed());
    let (path, state) = (path.to_string(), record.state.clone());
    let (at, state) = (("path", Field::Text(&path)), ("state", Field::Text(state.as_str())));
    let mut fields = [("attempt", attempt), ("owner", owner), at, state, more];
    fields.sort_by_key(|(key, _)| *key);
    let happening = Happening {
        name,
        kind: Some(governed.binding.kind.name()),
        workspace: Some(&governed.path),
        before: Some(record.version),
        after: Some(record.version),
        payload: Payload::of(&fields),
    };
    record.last_g = turn.append(Some(&record), happening)?;
    turn.put_record(&record, &expected)?;
    Ok(())
}

impl Command for Expire {
    /// Whether it had really ended.
    type Out = bool;

    fn operation(&self) -> &'static str {
        "expire"
    }

    fn terms(&self) -> Terms {
        Terms { needs_no_room: self.is_tight, ..Terms::USUAL }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let Some((mut record, row)) = leased(turn, self.record, self.attempt)? else {
            turn.effect(Effect::Lease(LeaseNote::Ended(self.record)));
            return Ok(false);
        };
        if self.cause == Cause::RanOut && !row.runs() {
            turn.effect(Effect::Lease(LeaseNote::Told(self.record)));
            return Ok(false);
        }
        // Somebody may have shown life after it was looked at.
        if self.cause == Cause::RanOut && row.until > turn.lease_now {
            if let Some(owner) = record.owner {
                turn.effect(Effect::Lease(LeaseNote::Runs(row, owner)));
            }
            return Ok(false);
        }
        record.lapses = record.lapses.next();
        let had = match Had::find(turn, record) {
            // It lies where it is no workspace's now, and nobody changes it as its owner.
            Err(Stop::Refused(_)) => {
                turn.effect(Effect::Lease(LeaseNote::Left(self.record)));
                return Ok(false);
            }
            found => found?,
        };
        let Some(had) = had else {
            turn.end_lease(self.record)?;
            return Ok(true);
        };
        let kind = had.governed.binding.kind.clone();
        let Some(lease) = &kind.state(had.state).lease else {
            turn.end_lease(self.record)?;
            return Ok(true);
        };
        match (&lease.on_expiry, self.cause) {
            (OnExpiry::State(_), _) | (_, Cause::LetGo) => {
                let to = goes_to(&kind, &lease.on_expiry);
                self.send_back(turn, had, to)?;
            }
            (OnExpiry::Event, Cause::RanOut) => {
                turn.txn.put_record_lease(&LeaseRow { told: LeaseTold::End, ..row })?;
                turn.effect(Effect::Lease(LeaseNote::Told(self.record)));
                lease_event(turn, had, EventName::EXPIRED, ("stays", Field::Flag(true)))?;
            }
            (OnExpiry::Status(_), Cause::RanOut) if self.is_tight => return Err(full().into()),
            (OnExpiry::Status(status), Cause::RanOut) => stay(turn, had, Some(status))?,
        }
        Ok(true)
    }
}

impl Expire {
    /// Back to this state; or it stays, its owner's no more, until nothing is in its way.
    fn send_back(&self, turn: &mut Turn<'_>, had: Had, to: StateIx) -> Result<(), Stop> {
        let way = match self.is_tight {
            true => Way::Blocked(full().to_string()),
            false => had.way_back(turn, to, had.record.attempt)?,
        };
        match way {
            Way::Open(way) => had.go_back(turn, *way),
            Way::Blocked(why) => {
                turn.txn.put_return(self.record, &why)?;
                turn.effect(Effect::Lease(LeaseNote::Blocked(self.record)));
                stay(turn, had, None)
            }
        }
    }
}

/// What is in the way of a new text on a full disk.
fn full() -> StoreError {
    StoreError::Full("the disk is full".to_owned())
}

/// It stays where it is, and its owner may not change it any more.
fn stay(turn: &mut Turn<'_>, mut had: Had, status: Option<&str>) -> Result<(), Stop> {
    let owner = had.record.owner.clone();
    let reason = ran_out(&had.record, had.record.attempt);
    (had.record.lapsed, had.record.attempt) = (owner, had.record.attempt.next());
    let Some((lies, mut node)) = had.file.take() else {
        // It has no file to say anything.
        turn.end_lease(had.record.key)?;
        return lease_event(turn, had, EventName::EXPIRED, ("stays", Field::Flag(true)));
    };
    let mut record = had.record;
    let mut text = match status {
        Some(status) => failed_text(turn, &record, &lies, status, &reason)?,
        None => None,
    };
    let links = match text.as_ref().map(|text| turn.links(&lies, text)) {
        None => None,
        Some(Ok(links)) => links,
        // What it says of others cannot be any more: its text stays as it is, too.
        Some(Err(Stop::Refused(_))) => {
            text = None;
            None
        }
        Some(Err(stop)) => return Err(stop),
    };
    if let Some(text) = &text {
        record.status = text.status(&lies);
    }
    let step = Step {
        content: text.as_ref().map(|text| &text.bytes[..]),
        // The text that the daemon wrote was judged.
        valid: text.is_some() || record.is_valid(),
        via: Some(Via::Expiry),
        links: links.as_ref(),
        ..Step::of(EventName::EXPIRED)
    };
    turn.step(record, &lies, &mut node, step)?;
    Ok(())
}

/// The text with the status of failure and the reason, where it can be written and is valid.
fn failed_text(
    turn: &Turn<'_>,
    record: &Record,
    home: &Home,
    status: &str,
    reason: &str,
) -> Result<Option<Text>, StoreError> {
    let bytes = turn.content(record)?;
    let fields = home.kind().fields();
    let mut edits = Vec::new();
    if let Some(field) = &fields.status {
        edits.push(Edit { field, value: status });
    }
    if let Some(field) = &fields.reason {
        edits.push(Edit { field, value: reason });
    }
    let Ok(bytes) = patch(&bytes, &edits) else { return Ok(None) };
    let text = Text::new(bytes);
    let Ok(document) = text.document() else { return Ok(None) };
    // What the kind wants to know with that status is why.
    let required = home.kind().required_with(home.state, status);
    let mut missing = required.filter(|path| !path.is_in(document.value()));
    let filled = missing
        .try_fold(text.bytes.to_vec(), |bytes, path| patch_at(&bytes, path.first_way(), reason));
    let Ok(bytes) = filled else { return Ok(None) };
    let text = Text::new(bytes);
    Ok(text.judge(home).is_ok().then_some(text))
}
