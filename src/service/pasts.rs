//! The events of a path: of the plain files and directories that lay there; and the record that did.
//!
//! What must stay true: an event by which something was renamed is one of both paths: of that where it
//! went, to which `before_g` leads, and of that which it left, to which `from_before_g` in the event
//! does. Ledgers from before that field know a path's end only by removals.

use serde_json::Value;

use crate::config::Config;
use crate::ledger::EventName;
use crate::names::TreePath;
use crate::numbers::{G, UnixNanos};
use crate::store::{EventRow, Read, Record, WorkspaceRow};

use super::log::field;
use super::{Exit, Failure, Part};

/// An event of a path.
pub(super) struct PastEvent {
    pub row: EventRow,
    pub event: Value,
    /// The event of the path before it.
    pub before: G,
    /// It took away what lay there: by a removal, or to another path.
    pub is_end: bool,
}

impl PastEvent {
    /// Where what lay there went, if it was not removed.
    fn to(&self) -> Option<&str> {
        let renamed = self.event.get("event").and_then(Value::as_str)?;
        let pointer =
            if renamed == EventName::RENAMED.as_str() { "/payload/path" } else { "/payload/to" };
        self.event.pointer(pointer)?.as_str()
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
pub(super) fn event_of(
    read: &dyn Read,
    path: &TreePath,
    g: G,
) -> Result<Option<PastEvent>, Failure> {
    let Some(row) = read.event(g)? else { return Ok(None) };
    let event: Value = serde_json::from_str(&row.line).unwrap_or_default();
    let is_here = field(&event, "/payload/path") == path.to_string();
    let left = event.pointer("/payload/from_before_g").and_then(Value::as_u64);
    let (before, is_end) = match left {
        Some(before) if !is_here => (G(before), true),
        _ => (row.before_g, field(&event, "/event") == EventName::REMOVED.as_str()),
    };
    Ok(Some(PastEvent { row, event, before, is_end }))
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
        let event: Value = serde_json::from_str(&row.line).unwrap_or_default();
        if field(&event, "/payload/path") == path.to_string() {
            return Ok(true);
        }
        at = read.event(row.before_g)?;
    }
    Ok(false)
}

/// Fails where the file at `path` was gone at a moment, to which `includes` belongs what happened until
/// then: event `version` made what it had been before.
///
/// # Errors
/// It was gone, or a failure of the store.
pub(super) fn require_there(
    (read, part): (&dyn Read, &Part),
    path: &TreePath,
    version: G,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<(), Failure> {
    let (found, after) = until(read, path, &includes)?;
    let since = found.as_ref().map_or(version, |found| found.row.g);
    if let Some(end) = found.filter(|found| found.is_end) {
        let went = end.to().map(|to| part.show_text(to));
        let how = match went {
            Some(to) => format!("event {} moved it to `{to}`", end.row.g),
            None => format!("event {} removed it", end.row.g),
        };
        return Err(was_gone((path, part), &how, (version, after)));
    }
    // With a directory above it went, too.
    let mut above = path.split_last().map(|(above, _)| above);
    while let Some(dir) = above.filter(|dir| !dir.names().is_empty()) {
        let (mut at, _) = until(read, &dir, &includes)?;
        while let Some(event) = at.filter(|event| event.row.g > since) {
            if event.is_end {
                let shown = part.show(&dir);
                let went =
                    event.to().map(|to| format!(" moved `{shown}` to `{}`", part.show_text(to)));
                let how = went.unwrap_or_else(|| format!(" removed `{shown}`"));
                return Err(was_gone(
                    (path, part),
                    &format!("event {}{how}", event.row.g),
                    (version, after),
                ));
            }
            // What came there may be what had gone.
            if field(&event.event, "/event") == EventName::RENAMED.as_str() {
                break;
            }
            at = event_of(read, &dir, event.before)?;
        }
        above = dir.split_last().map(|(above, _)| above);
    }
    Ok(())
}

/// The last event of a path that belongs to a moment, and the next after it.
fn until(
    read: &dyn Read,
    path: &TreePath,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<(Option<PastEvent>, Option<G>), Failure> {
    let (mut at, mut after) = (last_of(read, path)?, None);
    while let Some(event) = at {
        if includes(&event) {
            return Ok((Some(event), after));
        }
        after = Some(event.row.g);
        at = event_of(read, path, event.before)?;
    }
    Ok((None, after))
}

fn was_gone(
    (path, part): (&TreePath, &Part),
    how: &str,
    (version, after): (G, Option<G>),
) -> Failure {
    let next = after.map_or_else(String::new, |g| format!(", event {g} the next after it"));
    let reason = format!("there was no `{}` then: {how}", part.show(path));
    let remedy = format!("event {version} made the last version before that{next}");
    Failure::new(Exit::Absent, reason, remedy)
}
