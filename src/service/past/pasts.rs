//! What of the past somebody means, and in words what it tells: of records and drafts that lay at a path, of
//! what took them away, and whose they were.

use serde_json::Value;

use super::PAGE;
use crate::config::Config;
use crate::engine::{PastEvent, event_of_record, until};
use crate::kind::{Kind, Place};
use crate::ledger::{EventName, field};
use crate::names::{FileName, TreePath};
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

/// Whether a path, as the ledger writes it, is `above` or lies below that.
pub(super) fn lies_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a draft lay at the path `what`, or it was a workspace, a directory of one or a lane, of which the ledger
/// tells: those events are linked to nothing.
pub(super) fn governed_past_of(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    what: &str,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Option<TreePath>, Failure> {
    let path = part.path(what)?;
    let Some((dir, name)) = path.split_last() else { return Ok(None) };
    let workspaces = read.workspaces()?;
    let within = |path: &TreePath, holds: &dyn Fn(&Kind, &[FileName]) -> bool| {
        workspaces.iter().any(|row| {
            let relative = path.names().strip_prefix(row.path.names());
            config.bind(&row.path).zip(relative).is_some_and(|(by, names)| holds(&by.kind, names))
        })
    };
    let could_be_draft =
        within(&dir, &|kind, names| kind.place(names).is_state() && kind.record_id(name).is_some());
    let could_be_dir = within(&path, &|kind, names| {
        names.is_empty() || matches!(kind.place(names), Place::State { .. } | Place::Prefix)
    });
    if !could_be_draft && !could_be_dir {
        return Ok(None);
    }
    let drafted = [EventName::DRAFTED, EventName::PUT_ASIDE];
    let (name, shown) = (name.to_string(), path.to_string());
    let mut g = read.last_event()?.map_or(G(0), |row| row.g);
    while let Some(row) = read.event(g)? {
        // Most lines are of other files, and cheap to tell.
        if row.line.contains(&name) {
            let event = row.said();
            let there = field(&event, "/payload/path");
            let is_of_draft = drafted.iter().any(|one| one.as_str() == field(&event, "/event"));
            if (there == shown && is_of_draft) || (could_be_dir && lies_below(&there, &shown)) {
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
