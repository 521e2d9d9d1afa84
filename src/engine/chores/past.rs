//! What the ledger says of the time before: when events happened, and what the last one was.

use serde_json::Value;

use crate::ledger::EventName;
use crate::numbers::{G, UnixNanos};
use crate::store::{Read, StoreError};

/// In the event that a record does not go on: no line tells of it yet.
pub(super) const UNLOGGED: &str = "unlogged";

/// One event, as its line says it.
fn event(read: &dyn Read, g: G) -> Result<Option<Value>, StoreError> {
    let Some(row) = read.event(g)? else { return Ok(None) };
    let said = serde_json::from_str(&row.line);
    said.map(Some).map_err(|why| StoreError::Impossible(format!("event {g}: {why}")))
}

/// When an event happened.
pub(super) fn time_of(read: &dyn Read, g: G) -> Result<UnixNanos, StoreError> {
    let said = event(read, g)?;
    let at = said.as_ref().and_then(|said| UnixNanos::parse_rfc3339(said["at"].as_str()?));
    at.ok_or_else(|| StoreError::Impossible(format!("event {g} has no time")))
}

/// The last event that had happened at `time`. Where the wall clock was set back, events that are
/// numbered later may have happened before; then it is one of those about that time.
pub(super) fn last_before(read: &dyn Read, time: UnixNanos) -> Result<G, StoreError> {
    let (mut low, mut high) = (0, read.last_event()?.map_or(0, |last| last.g.0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if time_of(read, G(middle))? <= time { low = middle } else { high = middle - 1 }
    }
    Ok(G(low))
}

/// Whether an event is about a record, and nothing that happened to it: that its lease will end soon,
/// or that it does not go on, where the line that says so could not be written.
fn is_notice(said: &Value) -> bool {
    said["event"] == EventName::LEASE_ENDING.as_str() || is_unlogged(said)
}

fn is_unlogged(said: &Value) -> bool {
    said["event"] == EventName::ESCALATED.as_str() && said["payload"][UNLOGGED] == true
}

/// The last event of a record by which something happened to it; and whether it was told of since
/// without a line.
pub(super) fn last_activity(read: &dyn Read, last: G) -> Result<(G, bool), StoreError> {
    let (mut at, mut unlogged) = (last, false);
    while let Some(said) = event(read, at)?.filter(is_notice) {
        unlogged |= is_unlogged(&said);
        let Some(row) = read.event(at)? else { break };
        at = row.before_g;
    }
    Ok((at, unlogged))
}

/// Whether the event tells already that a record does not go on.
pub(super) fn is_told(read: &dyn Read, g: G) -> Result<bool, StoreError> {
    let said = event(read, g)?;
    Ok(said.is_some_and(|said| said["event"] == EventName::ESCALATED.as_str()))
}
