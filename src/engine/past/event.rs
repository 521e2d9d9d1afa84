//! The events of a path: those of the plain files and directories that lay there; and those of a record.
//!
//! What must stay true: an event by which something was renamed belongs to both paths: to the one
//! where it went, to which `before_g` leads, and to the one that it left, to which `from_before_g`
//! in the event does. In ledgers from before that field a path's end is known only by removals.

use serde_json::Value;

use crate::ledger::{EventName, Via, field, is_transition, only_tells};
use crate::names::TreePath;
use crate::numbers::{G, UnixNanos};
use crate::store::{EventRow, Read, StoreError, earlier};

/// An event of a path, or of a record.
pub struct PastEvent {
    /// As it is stored.
    pub row: EventRow,
    /// What it says.
    pub event: Value,
    /// The event of the same before it.
    pub before: G,
    /// It took away what lay there: by a removal, or to another path (a record: out of its workspace).
    pub is_end: bool,
    /// It is one of this path since that was left by it. After an exchange, whose two events both paths have,
    /// something lies there all the same.
    pub is_left: bool,
}

/// Where an event leaves the record that it is about.
pub enum Leaves {
    /// At this path, as the ledger writes it.
    At(String),
    /// Without a file: its name, at this path, went to a backup.
    Parked(String),
    /// Without a file for good.
    Nowhere,
}

impl PastEvent {
    /// Where it leaves the record that it is about; `None` if it only tells of it.
    #[must_use]
    pub fn leaves(&self) -> Option<Leaves> {
        let stays = self.event.pointer("/payload/stays") == Some(&Value::Bool(true));
        if only_tells(&self.says("/event"), is_transition(&self.event), stays) {
            return None;
        }
        let path = self.says("/payload/path");
        Some(match self.event.pointer("/payload/to") {
            _ if self.is_end => Leaves::Nowhere,
            Some(_) => Leaves::Parked(path),
            None => Leaves::At(path),
        })
    }

    /// Where what lay there went, if it was not removed, as the ledger writes it.
    #[must_use]
    pub fn to(&self) -> Option<&str> {
        let renamed = self.event.get("event").and_then(Value::as_str)?;
        let pointer =
            if renamed == EventName::RENAMED.as_str() { "/payload/path" } else { "/payload/to" };
        self.event.pointer(pointer)?.as_str()
    }

    /// When it happened.
    #[must_use]
    pub fn at(&self) -> UnixNanos {
        UnixNanos::parse_rfc3339(&self.says("/at")).unwrap_or(UnixNanos(0))
    }

    /// What it says there; nothing where it says nothing.
    #[must_use]
    pub fn says(&self, pointer: &str) -> String {
        field(&self.event, pointer)
    }

    /// Whether it tells what lies there after it.
    #[must_use]
    pub fn tells(&self) -> bool {
        let says = |pointer| self.event.pointer(pointer).is_some();
        !(self.is_end || self.is_left) && (says("/payload/size") || says("/payload/type"))
    }

    /// Whether it is one of the two of an exchange.
    pub(super) fn is_exchange(&self) -> bool {
        self.says("/payload/via") == Via::Exchange.as_str()
    }
}

/// The event `g` of a path.
///
/// # Errors
/// A failure of the store.
pub fn event_of(read: &dyn Read, path: &TreePath, g: G) -> Result<Option<PastEvent>, StoreError> {
    let Some(row) = read.event(g)? else { return Ok(None) };
    let event = row.said();
    let is_here = field(&event, "/payload/path") == path.to_string();
    let left = event.pointer("/payload/from_before_g").and_then(Value::as_u64);
    Ok(Some(match left {
        Some(before) if !is_here && before < g.0 => {
            let left = PastEvent { row, event, before: G(before), is_end: false, is_left: true };
            PastEvent { is_end: !left.is_exchange(), ..left }
        }
        _ => {
            // A lock that nobody renewed is gone, too.
            let name = field(&event, "/event");
            let is_end =
                [EventName::REMOVED, EventName::EXPIRED].iter().any(|end| end.as_str() == name);
            let before = earlier(g, row.before_g)?;
            PastEvent { row, event, before, is_end, is_left: false }
        }
    }))
}

/// The event `g` of a record.
///
/// # Errors
/// A failure of the store.
pub fn event_of_record(read: &dyn Read, g: G) -> Result<Option<PastEvent>, StoreError> {
    let Some(row) = read.event(g)? else { return Ok(None) };
    let event = row.said();
    let name = field(&event, "/event");
    let is_end = !is_transition(&event)
        && [EventName::REMOVED, EventName::LEFT].iter().any(|end| end.as_str() == name);
    let before = earlier(g, row.before_g)?;
    Ok(Some(PastEvent { row, event, before, is_end, is_left: false }))
}

/// The last event of a path.
///
/// # Errors
/// A failure of the store.
pub fn last_of(read: &dyn Read, path: &TreePath) -> Result<Option<PastEvent>, StoreError> {
    match read.history(path)? {
        Some(history) => event_of(read, path, history.last_g),
        None => Ok(None),
    }
}

/// The last event that belongs to a moment, from `last` on back, and the next after it; `event` gives those before.
///
/// # Errors
/// A failure of the store.
pub fn until(
    last: Option<PastEvent>,
    includes: impl Fn(&PastEvent) -> bool,
    event: impl Fn(G) -> Result<Option<PastEvent>, StoreError>,
) -> Result<(Option<PastEvent>, Option<G>), StoreError> {
    let (mut at, mut after) = (last, None);
    while let Some(found) = at {
        if includes(&found) {
            return Ok((Some(found), after));
        }
        after = Some(found.row.g);
        at = event(found.before)?;
    }
    Ok((None, after))
}

/// The last event, from event `since` on, of those that belong to a moment, which tells what lies at `path`.
///
/// # Errors
/// A failure of the store.
pub(super) fn last_told(
    read: &dyn Read,
    path: &TreePath,
    since: G,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<Option<PastEvent>, StoreError> {
    let mut at = last_of(read, path)?;
    while let Some(event) = at.filter(|event| event.row.g >= since) {
        if includes(&event) && event.tells() {
            return Ok(Some(event));
        }
        at = event_of(read, path, event.before)?;
    }
    Ok(None)
}
