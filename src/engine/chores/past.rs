//! What the ledger says of a record that does not go on: what happened to it last, and what was told of it since.

use crate::ledger::{EventName, is_transition};
use crate::numbers::G;
use crate::store::{Read, StoreError, earlier};

/// In the event that a record does not go on: no line tells of it yet.
pub(super) const UNLOGGED: &str = "unlogged";

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
