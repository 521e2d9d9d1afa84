//! What the ledger says of earlier times: when events happened, and which was the last.

use crate::ledger::{EventName, is_transition};
use crate::numbers::{G, UnixNanos};
use crate::store::{Read, StoreError, earlier};

/// In the event that a record does not go on: no line tells of it yet.
pub(super) const UNLOGGED: &str = "unlogged";

/// When an event happened.
pub(super) fn time_of(read: &dyn Read, g: G) -> Result<UnixNanos, StoreError> {
    let said = read.event(g)?.map(|row| row.parsed()).transpose()?;
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

/// What the events since something happened to a record say of its not going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    /// Nothing.
    Not,
    /// That it does not, where the line that says so could not be written.
    Unlogged,
    /// That it does not, as a line does.
    Logged,
}

/// The last event of a record by which something happened to it; and what was told of it since. That
/// its lease will end soon and that it does not go on is about it, and nothing that happens to it.
pub(super) fn last_activity(read: &dyn Read, last: G) -> Result<(G, Told), StoreError> {
    let (mut at, mut told) = (last, Told::Not);
    while let Some(row) = read.event(at)? {
        let said = row.parsed()?;
        if is_transition(&said) {
            break;
        }
        if said["event"] == EventName::ESCALATED.as_str() {
            let is_unlogged = said["payload"][UNLOGGED] == true;
            told = told.max(if is_unlogged { Told::Unlogged } else { Told::Logged });
        } else if said["event"] != EventName::LEASE_ENDING.as_str() {
            break;
        }
        at = earlier(at, row.before_g)?;
    }
    Ok((at, told))
}
