//! The end of a lease: the warning before it, and what then becomes of the record.

use std::time::Duration;

use crate::kind::{OnExpiry, Retries, StateIx};
use crate::ledger::{EventName, Field, Payload, Via};
use crate::numbers::{Attempt, Lapses, RecordKey, UnixNanos};
use crate::record::{Edit, patch, patch_at};
use crate::store::{LeaseRow, Node, Record, Standing, StoreError};

use super::super::governed::Home;
use super::super::record::{Moving, Step};
use super::super::save::home_of;
use super::super::setattr::gone;
use super::super::sight::{Base, Sight};
use super::super::turn::Happening;
use super::super::{Command, Effect, Rename, RenameMode, Slot, Stop, Text, Turn};
use super::LeaseNote;

/// Tells that a lease will end soon.
pub(in crate::engine) struct Warn {
    pub record: RecordKey,
    pub attempt: Attempt,
}

/// Ends a lease that nobody renewed.
pub(in crate::engine) struct Expire {
    pub record: RecordKey,
    pub attempt: Attempt,
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
        turn.txn.put_record_lease(&LeaseRow { warned: true, ..row })?;
        let left = row.until.0.saturating_sub(turn.lease_now.0);
        let left_s = Field::Integer((left / 1_000_000_000).cast_signed());
        lease_event(turn, record, EventName::LEASE_ENDING, ("left_s", left_s))?;
        Ok(())
    }
}

/// An event of a lease that changes nothing of its record.
fn lease_event(
    turn: &mut Turn<'_>,
    mut record: Record,
    name: EventName,
    more: (&'static str, Field<'_>),
) -> Result<(), Stop> {
    let home = home_of(turn, &record)?;
    let expected = record.expected();
    let owner = record.owner.as_ref().map_or(Field::Absent, |o| Field::Text(o.as_str()));
    let attempt = Field::Integer(record.attempt.0.cast_signed());
    let path = home.file_path().to_string();
    let mut fields = [("attempt", attempt), ("owner", owner), ("path", Field::Text(&path)), more];
    fields.sort_by_key(|(key, _)| *key);
    let happening = Happening {
        name,
        kind: Some(home.kind().name()),
        workspace: Some(&home.governed.path),
        before: Some(record.version),
        after: Some(record.version),
        payload: Payload::of(&fields),
    };
    record.last_g = turn.append(Some(&record), happening)?;
    turn.txn.update_record(&record, &expected)?;
    Ok(())
}

impl Command for Expire {
    /// Whether it had really ended.
    type Out = bool;

    fn operation(&self) -> &'static str {
        "expire"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let Some((mut record, row)) = leased(turn, self.record, self.attempt)? else {
            turn.effect(Effect::Lease(LeaseNote::Ended(self.record)));
            return Ok(false);
        };
        // Somebody may have shown life after it was looked at.
        if row.until > turn.lease_now {
            return Ok(false);
        }
        record.lapses = record.lapses.next();
        let Standing::Live { .. } = record.standing else {
            // Its name went to a backup; what is in nobody's directory is in nobody's way. Should it come
            // back, that is a new attempt with a lease of its own.
            end(turn, self.record)?;
            let expected = record.expected();
            let record = Record { attempt: record.attempt.next(), ..record };
            turn.txn.update_record(&record, &expected)?;
            return Ok(true);
        };
        let lies = home_of(turn, &record)?;
        let kind = lies.kind().clone();
        let state = kind.state(lies.state);
        let Some(lease) = &state.lease else {
            end(turn, self.record)?;
            return Ok(true);
        };
        let mut node = turn.txn.node(record.ino().ok_or_else(gone)?)?.ok_or_else(gone)?;
        match &lease.on_expiry {
            OnExpiry::Event => {
                end(turn, self.record)?;
                lease_event(turn, record, EventName::EXPIRED, ("stays", Field::Flag(true)))?;
            }
            OnExpiry::Status(status) => stay(turn, record, &lies, &mut node, Some(status))?,
            OnExpiry::State(to) => {
                let spent =
                    state.retries.as_ref().filter(|r| record.lapses.0 >= u64::from(r.attempts));
                let to = spent.map_or(*to, |retries| retries.exhausted);
                let wait = match (&state.retries, spent) {
                    (Some(retries), None) => Some(back_off(turn, retries, record.lapses)),
                    _ => None,
                };
                let home = home_in(turn, &lies, to)?.filter(|_| record.is_valid());
                match home {
                    Some(home) => fall_back(turn, record, (&lies, &home), &mut node, wait)?,
                    None => stay(turn, record, &lies, &mut node, None)?,
                }
            }
        }
        Ok(true)
    }
}

fn end(turn: &mut Turn<'_>, record: RecordKey) -> Result<(), StoreError> {
    turn.txn.delete_record_lease(record)?;
    turn.effect(Effect::Lease(LeaseNote::Ended(record)));
    Ok(())
}

/// How long a record is left alone before its next attempt.
fn back_off(turn: &Turn<'_>, retries: &Retries, lapses: Lapses) -> Duration {
    let doublings = u32::try_from(lapses.0.saturating_sub(1)).unwrap_or(u32::MAX).min(20);
    let wait = retries.first.saturating_mul(1 << doublings).min(retries.longest);
    let mut random = [0; 2];
    (turn.doors.random)(&mut random);
    let part = u32::from(u16::from_le_bytes(random)) * u32::from(retries.jitter_percent) / 65_536;
    wait.saturating_add(wait.saturating_mul(part) / 100)
}

/// Where the record at `lies` lies in another state, whose directory is made where it is missing;
/// `None` where there is no place for it.
pub(super) fn home_in(turn: &mut Turn<'_>, lies: &Home, to: StateIx) -> Result<Option<Home>, Stop> {
    let Some(at) = turn.state_dir(&lies.governed, to, None)? else { return Ok(None) };
    let taken = turn.txn.lookup(at, &lies.name)?.is_some();
    Ok(match turn.slot(at, &lies.name)? {
        Slot::Record(home) if !taken => Some(*home),
        _ => None,
    })
}

/// Back to where it can be claimed, or to where it has ended.
fn fall_back(
    turn: &mut Turn<'_>,
    mut record: Record,
    (lies, home): (&Home, &Home),
    node: &mut Node,
    wait: Option<Duration>,
) -> Result<(), Stop> {
    let kind = home.kind();
    let owner = record.owner.clone();
    let who = owner.as_ref().map_or("nobody", |owner| owner.as_str());
    let reason = format!("the lease of {who} ran out (attempt {})", record.attempt);
    let not_before = wait.map(|wait| {
        let wait = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        UnixNanos(turn.now.0.saturating_add(wait)).rfc3339_seconds()
    });
    let mut edits = Vec::new();
    if let (Some(field), Some(value)) = (kind.not_before_field(), &not_before) {
        edits.push(Edit { field, value });
    }
    if let Some(field) = &kind.fields().reason {
        edits.push(Edit { field, value: &reason });
    }
    let bytes = turn.content(&record)?;
    // A text that cannot be changed in place says nothing of it; the ledger does.
    let bytes = patch(&bytes, &edits).unwrap_or(bytes);
    let text = Text::new(bytes);
    record.lapsed = owner;
    let rename = Rename {
        parent: lies.dir,
        name: lies.name.clone(),
        new_parent: home.dir,
        new_name: home.name.clone(),
        mode: RenameMode::NoReplace,
        sight: Sight::Known(Base::Unseen),
    };
    turn.transition(record, home, node, Moving::New(&text), Some(Via::Expiry))?;
    rename.relink(turn, node, None)?;
    Ok(())
}

/// It stays where it is, and its owner may not change it any more.
fn stay(
    turn: &mut Turn<'_>,
    mut record: Record,
    lies: &Home,
    node: &mut Node,
    status: Option<&str>,
) -> Result<(), Stop> {
    let owner = record.owner.clone();
    let who = owner.as_ref().map_or("nobody", |owner| owner.as_str());
    let reason = format!("the lease of {who} ran out (attempt {})", record.attempt);
    let text = match status {
        Some(status) => failed_text(turn, &record, lies, status, &reason)?,
        None => None,
    };
    (record.lapsed, record.attempt) = (owner, record.attempt.next());
    let links = match &text {
        Some(text) => {
            record.status = text.status(lies);
            turn.links(lies, text)?
        }
        None => None,
    };
    let step = Step {
        event: EventName::EXPIRED,
        from: None,
        content: text.as_ref().map(|text| &text.bytes[..]),
        valid: record.is_valid(),
        via: Some(Via::Expiry),
        links: links.as_ref(),
    };
    turn.step(record, lies, node, step)?;
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
