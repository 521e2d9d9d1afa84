//! What of the past somebody means, and in words what it tells: of records and drafts that lay at a path, of
//! what took them away, and whose they were.

use serde_json::Value;

use super::PAGE;
use crate::config::Config;
use crate::engine::{PastEvent, event_of_record, until};
use crate::ledger::{EventName, field};
use crate::names::TreePath;
use crate::numbers::G;
use crate::service::{Exit, Failure, Part};
use crate::store::{Read, Record, WorkspaceRow, earlier};

/// How an event took away what lay at its path.
pub(in crate::service) fn how(event: &PastEvent, part: &Part) -> String {
    let g = event.row.g;
    match event.to().map(|to| part.show_text(to)) {
        Some(to) => format!("event {g} moved it to `{to}`"),
        None => format!("event {g} removed it"),
    }
}

/// How it took away what lay in the directory `dir`, of which it is.
pub(super) fn how_with(event: &PastEvent, dir: &TreePath, part: &Part) -> String {
    let (g, shown) = (event.row.g, part.show(dir));
    match event.to().map(|to| part.show_text(to)) {
        Some(to) => format!("event {g} moved `{shown}` to `{to}`"),
        None => format!("event {g} removed `{shown}`"),
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
        Some(end) => Err(was_gone(record.id.as_str(), &how(&end, part), (version, after))),
        None => Ok(()),
    }
}

pub(super) fn was_gone(what: &str, how: &str, (version, after): (G, Option<G>)) -> Failure {
    let next = after.map_or_else(String::new, |g| format!(", event {g} the next after it"));
    let reason = format!("there was no `{what}` then: {how}");
    let remedy = format!("event {version} made the last version before that{next}");
    Failure::new(Exit::Absent, reason, remedy)
}
