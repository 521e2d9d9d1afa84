//! The events of a path: those of the plain files and directories that lay there, and of the record
//! that did.
//!
//! What must stay true: an event by which something was renamed belongs to both paths: to the one
//! where it went, to which `before_g` leads, and to the one that it left, to which `from_before_g`
//! in the event does. In ledgers from before that field a path's end is known only by removals.

use serde_json::Value;

use super::{PAGE, field};
use crate::config::Config;
use crate::ledger::{EventName, Via, is_transition};
use crate::names::TreePath;
use crate::numbers::{G, UnixNanos};
use crate::service::{Exit, Failure, Part};
use crate::store::{EventRow, FileVersion, Read, Record, WorkspaceRow, earlier};

/// An event of a path, or of a record.
pub(in crate::service) struct PastEvent {
    pub row: EventRow,
    pub event: Value,
    /// The event of the same before it.
    pub before: G,
    /// It took away what lay there: by a removal, or to another path (a record: out of its workspace).
    pub is_end: bool,
    /// It is one of this path since that was left by it. After an exchange, whose two events both paths have,
    /// something lies there all the same.
    pub is_left: bool,
}

impl PastEvent {
    /// Where what lay there went, if it was not removed.
    fn to(&self) -> Option<&str> {
        let renamed = self.event.get("event").and_then(Value::as_str)?;
        let pointer =
            if renamed == EventName::RENAMED.as_str() { "/payload/path" } else { "/payload/to" };
        self.event.pointer(pointer)?.as_str()
    }

    /// How it took away what lay there.
    pub fn how(&self, part: &Part) -> String {
        let g = self.row.g;
        match self.to().map(|to| part.show_text(to)) {
            Some(to) => format!("event {g} moved it to `{to}`"),
            None => format!("event {g} removed it"),
        }
    }

    /// How it took away what lay in the directory `dir`, of which it is.
    pub fn how_with(&self, dir: &TreePath, part: &Part) -> String {
        let (g, shown) = (self.row.g, part.show(dir));
        match self.to().map(|to| part.show_text(to)) {
            Some(to) => format!("event {g} moved `{shown}` to `{to}`"),
            None => format!("event {g} removed `{shown}`"),
        }
    }

    /// When it happened.
    pub fn at(&self) -> UnixNanos {
        UnixNanos::parse_rfc3339(&field(&self.event, "/at")).unwrap_or(UnixNanos(0))
    }
}

/// The event `g` of a path.
///
/// # Errors
/// A failure of the store.
pub(in crate::service) fn event_of(
    read: &dyn Read,
    path: &TreePath,
    g: G,
) -> Result<Option<PastEvent>, Failure> {
    let Some(row) = read.event(g)? else { return Ok(None) };
    let event = row.said();
    let is_here = field(&event, "/payload/path") == path.to_string();
    let left = event.pointer("/payload/from_before_g").and_then(Value::as_u64);
    Ok(Some(match left {
        Some(before) if !is_here && before < g.0 => {
            let is_end = !is_exchange(&event);
            PastEvent { row, event, before: G(before), is_end, is_left: true }
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

/// Whether an event is one of the two of an exchange.
pub(super) fn is_exchange(event: &Value) -> bool {
    field(event, "/payload/via") == Via::Exchange.as_str()
}

/// The event `g` of a record.
fn event_of_record(read: &dyn Read, g: G) -> Result<Option<PastEvent>, Failure> {
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
pub(super) fn last_of(read: &dyn Read, path: &TreePath) -> Result<Option<PastEvent>, Failure> {
    match read.history(path)? {
        Some(history) => event_of(read, path, history.last_g),
        None => Ok(None),
    }
}

/// The record that lay at a path, as its own events say, with its workspace: also where the directory is
/// gone, too.
///
/// # Errors
/// A failure of the store.
pub(super) fn lay_there(
    (read, config): (&dyn Read, &Config),
    path: &TreePath,
) -> Result<Option<(Record, WorkspaceRow)>, Failure> {
    let Some((_, name)) = path.split_last() else { return Ok(None) };
    for workspace in read.workspaces()? {
        let binding =
            config.bind(&workspace.path).filter(|_| path.below(&workspace.path).is_some());
        let Some(id) = binding.and_then(|binding| binding.kind.record_id(name)) else { continue };
        if let Some(record) = read.record_named(workspace.key, &id)?
            && lay_at(read, &record, path)?
        {
            return Ok(Some((record, workspace)));
        }
    }
    Ok(None)
}

fn lay_at(read: &dyn Read, record: &Record, path: &TreePath) -> Result<bool, Failure> {
    let mut at = read.event(record.last_g)?;
    while let Some(row) = at {
        let event = row.said();
        if field(&event, "/payload/path") == path.to_string() {
            return Ok(true);
        }
        at = read.event(earlier(row.g, row.before_g)?)?;
    }
    Ok(false)
}

/// Whether a draft lay at the path `what`, of which the ledger tells: its events are linked to nothing.
pub(super) fn draft_past_of(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    what: &str,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Option<TreePath>, Failure> {
    let path = part.path(what)?;
    let Some((dir, name)) = path.split_last() else { return Ok(None) };
    let workspaces = read.workspaces()?;
    let could_be = workspaces.iter().any(|row| {
        let relative = dir.names().strip_prefix(row.path.names());
        config.bind(&row.path).zip(relative).is_some_and(|(binding, relative)| {
            binding.kind.place(relative).is_state() && binding.kind.record_id(name).is_some()
        })
    });
    if !could_be {
        return Ok(None);
    }
    let drafted = [EventName::DRAFTED, EventName::PUT_ASIDE];
    let (name, shown) = (name.to_string(), path.to_string());
    let mut g = read.last_event()?.map_or(G(0), |row| row.g);
    while let Some(row) = read.event(g)? {
        // Most lines are of other files, and cheap to tell.
        if row.line.contains(&name) {
            let event = row.said();
            let is_here = field(&event, "/payload/path") == shown;
            let is_of_draft = drafted.iter().any(|one| one.as_str() == field(&event, "/event"));
            if is_here && is_of_draft {
                return Ok(Some(path));
            }
        }
        g = G(g.0.saturating_sub(1));
        // Who asked is told now and then that it is still looked for.
        if g.0.is_multiple_of(PAGE) && !goes_on() {
            return Ok(None);
        }
    }
    Ok(None)
}

/// Whether the version that event `g` made was of this user's: its file, or where the event names no other
/// owner, its deed.
///
/// # Errors
/// A failure of the store.
pub(super) fn was_of(read: &dyn Read, g: G, uid: u32) -> Result<bool, Failure> {
    let Some(row) = read.event(g)? else { return Ok(false) };
    let event = row.said();
    let of = event.pointer("/payload/owner_uid").or_else(|| event.get("uid"));
    Ok(of.and_then(Value::as_u64) == Some(u64::from(uid)))
}

/// Whether the file at `path` had the content of a version at a moment, to which `includes` belongs what happened
/// until then: of what was saved after it none may be kept, as it was too large.
///
/// # Errors
/// A failure of the store.
pub(super) fn was_last(
    read: &dyn Read,
    path: &TreePath,
    version: &FileVersion,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<bool, Failure> {
    let told = last_told(read, path, G(version.g.0 + 1), &includes)?;
    let hash = told.map(|told| field(&told.event, "/payload/content_sha256"));
    Ok(hash.is_none_or(|hash| hash == version.sha256.to_string()))
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
) -> Result<Option<PastEvent>, Failure> {
    let mut at = last_of(read, path)?;
    while let Some(event) = at.filter(|event| event.row.g >= since) {
        let tells = ["/payload/size", "/payload/type"];
        if includes(&event)
            && !(event.is_end || event.is_left)
            && tells.iter().any(|tells| event.event.pointer(tells).is_some())
        {
            return Ok(Some(event));
        }
        at = event_of(read, path, event.before)?;
    }
    Ok(None)
}

/// Fails where a record was gone at a moment, to which `includes` belongs what happened until then: event
/// `version` made what it had been before.
///
/// # Errors
/// It was gone, or a failure of the store.
pub(super) fn require_record_there(
    (read, part): (&dyn Read, &Part),
    record: &Record,
    version: G,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<(), Failure> {
    let event = |g| event_of_record(read, g);
    let (found, after) = until(event(record.last_g)?, includes, event)?;
    match found.filter(|found| found.is_end) {
        Some(end) => Err(was_gone(record.id.as_str(), &end.how(part), (version, after))),
        None => Ok(()),
    }
}

/// The last event that belongs to a moment, from `last` on back, and the next after it.
pub(super) fn until(
    last: Option<PastEvent>,
    includes: impl Fn(&PastEvent) -> bool,
    event: impl Fn(G) -> Result<Option<PastEvent>, Failure>,
) -> Result<(Option<PastEvent>, Option<G>), Failure> {
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

pub(super) fn was_gone(what: &str, how: &str, (version, after): (G, Option<G>)) -> Failure {
    let next = after.map_or_else(String::new, |g| format!(", event {g} the next after it"));
    let reason = format!("there was no `{what}` then: {how}");
    let remedy = format!("event {version} made the last version before that{next}");
    Failure::new(Exit::Absent, reason, remedy)
}
