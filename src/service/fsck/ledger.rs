//! The ledger: dense, chained, and each record's events linked.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use serde_json::Value;

use crate::engine::FILE_KIND;
use crate::ledger::Verifier;
use crate::numbers::G;
use crate::store::Read;

use super::super::Failure;
use super::Check;

/// The last event of each record, found by workspace and id. Their hash stands for them: a million
/// records need 32 MB, and a collision (1 in 10^7 then) shows as a wrong link.
pub(super) struct LastEvents {
    keys: RandomState,
    last: HashMap<u64, G>,
}

impl LastEvents {
    fn key(&self, workspace: &str, id: &str) -> u64 {
        self.keys.hash_one((workspace, id))
    }

    /// The last event of a plain file.
    pub fn of_file(&self, path: &str) -> Option<G> {
        self.of("", path)
    }

    /// The last event of a record.
    pub fn of(&self, workspace: &str, id: &str) -> Option<G> {
        self.last.get(&self.key(workspace, id)).copied()
    }
}

pub(super) fn check(read: &dyn Read, check: &mut Check<'_>) -> Result<LastEvents, Failure> {
    let mut events = LastEvents { keys: RandomState::new(), last: HashMap::new() };
    let Some(last) = read.last_event()? else { return Ok(events) };
    let mut verifier = Verifier::new();
    let mut whole = true;
    let mut end = 0;
    for g in (1..=last.g.0).map(G) {
        if !check.tick(g.0, last.g.0, "events") {
            break;
        }
        let thing = || format!("event {g}");
        let Some(row) = read.event(g)? else {
            check.problem(thing(), "is missing");
            whole = false;
            continue;
        };
        check.report.events += 1;
        // After the first break all that follows is off the chain: one problem, not thousands.
        if whole && let Err(error) = verifier.push(&row.line) {
            check.problem(thing(), error.what.to_string());
            whole = false;
        }
        let wanted = end + row.line.len() as u64 + 1;
        if row.end != wanted {
            check.problem(thing(), format!("ends at byte {}, not at {wanted}", row.end));
        }
        end = row.end;
        link(&row.line, g, row.before_g, &mut events, check);
    }
    let checked = verifier.checked();
    check.report.last_g = checked.last_g;
    check.report.last_hash = checked.last_hash.to_string();
    Ok(events)
}

/// An event of a record points to the record's event before it.
fn link(line: &str, g: G, before: G, events: &mut LastEvents, check: &mut Check<'_>) {
    let Ok(event) = serde_json::from_str::<Value>(line) else { return };
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    let known = match (text("workspace"), text("id")) {
        (Some(workspace), Some(id)) => {
            let key = events.key(workspace, id);
            events.last.insert(key, g).unwrap_or(G(0))
        }
        // A plain file is known by its path.
        _ if text("kind") == Some(FILE_KIND) => {
            let path = event.pointer("/payload/path").and_then(Value::as_str).unwrap_or_default();
            let key = events.key("", path);
            // A rename is an event of the path that it left, too.
            let left = event.pointer("/payload/from_before_g").and_then(Value::as_u64);
            let from = event.pointer("/payload/from_path").and_then(Value::as_str);
            let before = events.last.insert(key, g).unwrap_or(G(0));
            if let (Some(left), Some(from)) = (left, from) {
                let key = events.key("", from);
                let known = events.last.insert(key, g).unwrap_or(G(0));
                if G(left) != known {
                    let what = format!(
                        "points to event {left} as the one before it of `{from}`, not to {known}"
                    );
                    check.problem(format!("event {g}"), what);
                }
            }
            before
        }
        _ => G(0),
    };
    if before != known {
        let what = format!("points to event {before} as the one before it, not to {known}");
        check.problem(format!("event {g}"), what);
    }
}
