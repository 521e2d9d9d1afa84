//! Changes of files and records as they happen, by the bell and not by looking.
//!
//! What must stay true: every event after the beginning is given once, in order; a client that
//! does not read holds up nobody. What no event tells of (plain files for which no rule of the
//! configuration counts) is not seen here.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::past::PAGE;
use super::past::log::{IDLE_AFTER, readable};
use super::past::places::{is_about, moves_directory};
use super::{Exit, Failure, Part, Reply, Service, Sink, WatchArgs};
use crate::config::FileGlob;
use crate::ledger::path_of_ledger;
use crate::names::{json_path, path_of_text, shell_word};
use crate::numbers::G;
use crate::store::{EventRow, Read};

/// See [`super::Request::Watch`]. The lines went before it, each as a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchReport {
    /// Lines that were given.
    pub events: u64,
    /// The last event that was looked at: where `--since` goes on.
    pub last_g: G,
    /// The time was over before there were as many as were wanted.
    pub timed_out: bool,
}

impl WatchReport {
    /// Nothing: the lines were it.
    #[must_use]
    pub fn human(&self) -> String {
        String::new()
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.timed_out && self.events == 0 { Exit::Nothing } else { Exit::Done }
    }
}

/// Gives the events whose path the glob matches to `sink`, until the time is over, there were
/// enough, or the client is gone.
///
/// # Errors
/// No glob, or a failure of the store.
pub(super) fn watch(
    service: &Service,
    part: &Part,
    args: &WatchArgs,
    sink: Sink<'_>,
) -> Result<WatchReport, Failure> {
    let glob = FileGlob::parse(&args.glob).map_err(|why| {
        Failure::new(Exit::Usage, why, "give a glob from the root of the mount: 'scratchpad/**'")
    })?;
    if args.glob.ends_with('/') {
        let reason = format!("`{}` names a directory, and events are of files", args.glob);
        let all = shell_word(format!("{}**", args.glob).as_bytes());
        let remedy = format!("for all files below it: {all}");
        return Err(Failure::new(Exit::Usage, reason, remedy));
    }
    let news = service.engine.bell().subscribe();
    let since = args.since.unwrap_or_else(|| news.last());
    let mut report = WatchReport { events: 0, last_g: since, timed_out: false };
    // A time that no clock reaches is none.
    let until =
        args.timeout_s.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    // Whoever asked knows by this that nothing is missed from now on.
    if !sink(Reply::Idle) {
        return Ok(report);
    }
    loop {
        let (lines, last) = service.read(|read| {
            let mut lines = Vec::new();
            let last = read.last_event()?.map_or(G(0), |row| row.g);
            let end = G(last.0.min(report.last_g.0.saturating_add(PAGE)));
            // None, where who asks begins after all that has happened.
            for before in (report.last_g.0..end.0).map(G) {
                if let Some(row) = read.event(before.next())?
                    && tells_of(read, (&glob, part), &row)?
                {
                    lines.push(row.line);
                }
            }
            Ok((lines, end.max(report.last_g)))
        })?;
        let (all_read, told) = (last == report.last_g, report.events);
        report.last_g = last;
        for line in lines {
            report.events += 1;
            if !sink(Reply::Line(if args.json { named(line) } else { readable(part, &line) })) {
                return Ok(report);
            }
            if args.count.is_some_and(|count| report.events >= count) {
                return Ok(report);
            }
        }
        let left = until.map_or(IDLE_AFTER, |at| at.saturating_duration_since(Instant::now()));
        // Who gives no time at all wants what there is.
        if left.is_zero() && (all_read || args.timeout_s != Some(0)) {
            report.timed_out = true;
            return Ok(report);
        }
        if !all_read {
            // In a long past there may be nothing to tell for long.
            if report.events == told && !sink(Reply::Idle) {
                return Ok(report);
            }
            continue;
        }
        if !news.wait(report.last_g, left.min(IDLE_AFTER)) && !sink(Reply::Idle) {
            return Ok(report);
        }
    }
}

/// An event's line with the paths in it as JSON has them everywhere but in the ledger, whose text is
/// normalized and hashed. One in which no name needs an escape stays byte for byte.
fn named(line: String) -> String {
    if !line.contains('\\') {
        return line;
    }
    let mut event: Value = serde_json::from_str(&line).unwrap_or_default();
    let mut is_changed = false;
    for pointer in
        ["/workspace", "/payload/path", "/payload/from_path", "/payload/to", "/payload/to_path"]
    {
        if let Some(Value::String(text)) = event.pointer_mut(pointer)
            && let Some(bytes) = path_of_text(text)
        {
            let name = json_path(&bytes);
            is_changed |= name != *text;
            *text = name;
        }
    }
    if is_changed { event.to_string() } else { line }
}

/// Whether an event is about a file that the glob matches, or may be: of a directory that is moved it tells alone.
fn tells_of(
    read: &dyn Read,
    (glob, part): (&FileGlob, &Part),
    row: &EventRow,
) -> Result<bool, Failure> {
    let event = row.said();
    let brings_all_below = moves_directory(&event);
    is_about(read, row, &event, |text| {
        let path = path_of_ledger(text).and_then(|path| path.below(part.root()));
        path.is_some_and(|path| {
            glob.matches(&path) || (brings_all_below && glob.may_lie_below(path.names()))
        })
    })
}
