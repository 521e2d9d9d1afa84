//! The ledger, line by line.

use std::ops::ControlFlow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PAGE;
use super::pasts::{governed_past_of, lay_there, lies_below};
use super::places::is_about;
use crate::engine::{Whence, event_of, last_of, node_at, whence};
use crate::ledger::field;
use crate::names::{TreePath, printable};
use crate::numbers::G;
use crate::service::find::{Found, find_past, has_past_below, past_of};
use crate::service::reply::text::seconds;
use crate::service::{Exit, Failure, LogArgs, Part, Reply, Service, Sink};
use crate::store::{EventRow, NodeType, Read, Record, WorkspaceRow, earlier};

/// After how long without an event the client is asked whether it is still there.
pub(in crate::service) const IDLE_AFTER: Duration = Duration::from_millis(500);

/// See [`crate::service::Request::Log`]. The lines went before it, each as a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogReport {
    /// Lines that were given.
    pub events: u64,
    /// The last event that was looked at: where `--since` goes on.
    pub last_g: G,
}

impl LogReport {
    /// Nothing: the lines were it.
    #[must_use]
    pub fn human(&self) -> String {
        String::new()
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Which events are wanted.
enum Filter {
    All,
    /// A record's: its workspace and id, as the ledger writes them.
    Record(String, String),
    /// Those at or below a path, as the ledger writes it, and these.
    Below(String, Vec<G>),
}

impl Filter {
    fn wants(&self, read: &dyn Read, row: &EventRow) -> Result<bool, Failure> {
        let parsed = || serde_json::from_str::<Value>(&row.line).unwrap_or_default();
        Ok(match self {
            Filter::All => true,
            Filter::Record(workspace, id) => {
                // Most lines are of other records, and cheap to tell.
                row.line.contains(id.as_str()) && {
                    let event = parsed();
                    field(&event, "/id") == *id && field(&event, "/workspace") == *workspace
                }
            }
            Filter::Below(_, brought) if brought.contains(&row.g) => true,
            Filter::Below(path, _) => {
                is_about(read, row, &parsed(), |there| path.is_empty() || lies_below(there, path))?
            }
        })
    }
}

/// Gives the events to `sink`.
///
/// # Errors
/// Nothing is meant by `what`, or a failure of the store.
pub(in crate::service) fn log(
    service: &Service,
    part: &Part,
    args: &LogArgs,
    sink: Sink<'_>,
) -> Result<LogReport, Failure> {
    let since = args.since.unwrap_or(G(0));
    let (last, Wanted { filter, gs }) = service.read(|read| {
        let last = read.last_event()?.map_or(G(0), |row| row.g);
        Ok((last, wanted((service, part), read, args, sink)?))
    })?;
    let mut report = LogReport { events: 0, last_g: since };
    match (&gs, args.limit) {
        (Some(gs), _) => {
            for page in gs.chunks(PAGE as usize) {
                let page = lines((service, part), page.iter().copied(), &Filter::All)?;
                if give((part, args), page, &mut report, sink).is_break() {
                    return Ok(report);
                }
            }
        }
        (None, Some(limit)) => {
            let found = newest((service, part), (since, last), limit, &filter, sink)?;
            let Some(found) = found else { return Ok(report) };
            if give((part, args), found, &mut report, sink).is_break() {
                return Ok(report);
            }
        }
        (None, None) => {
            let mut at = since;
            while at < last {
                let end = G(last.0.min(at.0 + PAGE));
                let page = lines((service, part), (at.0 + 1..=end.0).map(G), &filter)?;
                if give((part, args), page, &mut report, sink).is_break() {
                    return Ok(report);
                }
                at = end;
                report.last_g = end;
            }
        }
    }
    report.last_g = last.max(since);
    if args.follow {
        follow((service, part), args, &filter, &mut report, sink)?;
    }
    Ok(report)
}

/// Which events are asked for.
struct Wanted {
    /// What tells whether one that comes is.
    filter: Filter,
    /// Those that there are, where they are linked.
    gs: Option<Vec<G>>,
}

/// The events of what `args` name, whether it is there or was.
fn wanted(
    (service, part): (&Service, &Part),
    read: &dyn Read,
    args: &LogArgs,
    sink: Sink<'_>,
) -> Result<Wanted, Failure> {
    let config = service.engine.config();
    let since = args.since.unwrap_or(G(0));
    let Some(what) = &args.what else { return Ok(Wanted { filter: Filter::All, gs: None }) };
    let of_record = |record: &Record, workspace: &WorkspaceRow| {
        let gs = linked(read, (record.last_g, None), since, args.limit)?;
        let filter = Filter::Record(workspace.path.to_string(), record.id.to_string());
        Ok(Wanted { filter, gs: Some(gs) })
    };
    let of_path = |path: &TreePath, gs| of_path(read, args, path, gs);
    match find_past(read, &config, part, what) {
        Ok(Found::Record(found)) => of_record(&found.record, &found.workspace),
        Ok(Found::Draft(path, ..) | Found::Node(path, _)) => {
            of_path(&path, history_of(read, &path, since, args.limit)?)
        }
        Err(failure) if failure.exit == Exit::Absent => {
            if let Some((record, workspace)) = lay_there((read, &config), &part.path(what)?)? {
                return of_record(&record, &workspace);
            }
            // A plain file that is gone has its past all the same, and so has what lay in a directory that is.
            let Some(path) = past_of(read, part, what)? else {
                let goes_on = &mut || sink(Reply::Idle);
                let past = governed_past_of(read, &config, part, what, goes_on)?;
                return past.map_or(Err(failure), |path| of_path(&path, None));
            };
            let gs = match was_dir(read, &path)? {
                true => None,
                false => history_of(read, &path, since, args.limit)?,
            };
            of_path(&path, gs)
        }
        Err(failure) => Err(failure),
    }
}

/// The events at or below `path`, of which `gs` are those of the path itself where they are linked; and those by
/// which what lies there came with a directory above.
fn of_path(
    read: &dyn Read,
    args: &LogArgs,
    path: &TreePath,
    mut gs: Option<Vec<G>>,
) -> Result<Wanted, Failure> {
    let brought = brought(read, path, gs.as_deref())?;
    if let Some(gs) = &mut gs {
        gs.extend(brought.iter().filter(|by| args.since.is_none_or(|since| **by > since)));
        gs.sort_unstable();
        gs.dedup();
        let limit = args.limit.and_then(|limit| usize::try_from(limit).ok());
        gs.drain(..gs.len().saturating_sub(limit.unwrap_or(usize::MAX)));
    }
    Ok(Wanted { filter: Filter::Below(path.to_string(), brought), gs })
}

/// Gives the wanted lines of a page. Of one that has none the client hears, too: it may be gone, and there
/// may be many of them.
fn give(
    (part, args): (&Part, &LogArgs),
    page: Vec<(G, String)>,
    report: &mut LogReport,
    sink: Sink<'_>,
) -> ControlFlow<()> {
    let mut tell = |reply| match sink(reply) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    if page.is_empty() {
        return tell(Reply::Idle);
    }
    for (g, line) in page {
        report.events += 1;
        report.last_g = g;
        tell(Reply::Line(if args.json { line } else { readable(part, &line) }))?;
    }
    ControlFlow::Continue(())
}

/// The events of one thing after `since`, in their order: linked from the last one back; those of the
/// path, where it is one.
fn linked(
    read: &dyn Read,
    (last, path): (G, Option<&TreePath>),
    since: G,
    limit: Option<u64>,
) -> Result<Vec<G>, Failure> {
    let mut gs = Vec::new();
    let mut at = last;
    while at > since && limit.is_none_or(|limit| (gs.len() as u64) < limit) {
        gs.push(at);
        at = match path {
            Some(path) => event_of(read, path, at)?.map_or(G(0), |event| event.before),
            None => match read.event(at)? {
                Some(row) => earlier(at, row.before_g)?,
                None => G(0),
            },
        };
    }
    gs.reverse();
    Ok(gs)
}

/// The events of the plain file at `path`, if its changes ever counted.
fn history_of(
    read: &dyn Read,
    path: &TreePath,
    since: G,
    limit: Option<u64>,
) -> Result<Option<Vec<G>>, Failure> {
    let is_dir = node_at(read, path)?.is_some_and(|node| node.node_type == NodeType::Directory);
    match read.history(path)? {
        Some(history) if !is_dir => {
            linked(read, (history.last_g, Some(path)), since, limit).map(Some)
        }
        _ => Ok(None),
    }
}

/// The events by which what lies at `path` came with a directory above: they tell under which path what happened
/// before is. `own` are those of the path itself, of which the first may be one since.
fn brought(read: &dyn Read, path: &TreePath, own: Option<&[G]>) -> Result<Vec<G>, Failure> {
    let first = own.and_then(|own| own.first().copied());
    let mut found = Vec::new();
    for until in std::iter::once(G(u64::MAX)).chain(first) {
        if let Whence::Brought { by, from: Some(_), .. } =
            whence(read, path, |_| true, |event| event.row.g < until)?
        {
            found.push(by);
        }
    }
    Ok(found)
}

/// Whether a directory lay at the path `path`, where nothing is now.
fn was_dir(read: &dyn Read, path: &TreePath) -> Result<bool, Failure> {
    let mut was = has_past_below(read, path)?;
    // Nothing may have lain in it.
    let mut at = last_of(read, path)?;
    while let Some(event) = at.filter(|_| !was) {
        was = event.says("/payload/type") == "directory";
        at = event_of(read, path, event.before)?;
    }
    Ok(was)
}

/// The wanted lines among the events `gs`, from one snapshot.
fn lines(
    (service, part): (&Service, &Part),
    gs: impl Iterator<Item = G>,
    filter: &Filter,
) -> Result<Vec<(G, String)>, Failure> {
    service.read(|read| {
        let mut found = Vec::new();
        for g in gs {
            if let Some(row) = read.event(g)?
                && part.hears(read, &row)?
                && filter.wants(read, &row)?
            {
                found.push((g, row.line));
            }
        }
        Ok(found)
    })
}

/// The newest `limit` wanted lines after `since`, in their order; `None` if the client is gone.
fn newest(
    asked: (&Service, &Part),
    (since, last): (G, G),
    limit: u64,
    filter: &Filter,
    sink: Sink<'_>,
) -> Result<Option<Vec<(G, String)>>, Failure> {
    let mut found: Vec<(G, String)> = Vec::new();
    let mut end = last.0;
    while end > since.0 && (found.len() as u64) < limit {
        let start = since.0.max(end.saturating_sub(PAGE));
        let mut page = lines(asked, (start + 1..=end).map(G), filter)?;
        page.append(&mut found);
        found = page;
        end = start;
        if !sink(Reply::Idle) {
            return Ok(None);
        }
    }
    let surplus = found.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Some(found.split_off(surplus)))
}

/// Goes on with events as they happen, until the client is gone.
fn follow(
    (service, part): (&Service, &Part),
    args: &LogArgs,
    filter: &Filter,
    report: &mut LogReport,
    sink: Sink<'_>,
) -> Result<(), Failure> {
    let last = |read: &dyn Read| Ok(read.last_event()?.map_or(G(0), |row| row.g));
    let news = service.engine.bell().subscribe();
    loop {
        let end = service.read(last)?;
        if end <= report.last_g {
            if !news.wait(end, IDLE_AFTER) && !sink(Reply::Idle) {
                return Ok(());
            }
            continue;
        }
        let end = G(end.0.min(report.last_g.0 + PAGE));
        let page = lines((service, part), (report.last_g.0 + 1..=end.0).map(G), filter)?;
        if give((part, args), page, report, sink).is_break() {
            return Ok(());
        }
        report.last_g = end;
    }
}

/// An event as one line for people who see this of the tree.
pub(in crate::service) fn readable(part: &Part, line: &str) -> String {
    let event: Value = serde_json::from_str(line).unwrap_or_default();
    let names_paths = ["/payload/path", "/payload/from_path", "/payload/to"];
    let text = |pointer: &str| {
        let text = field(&event, pointer);
        let is_path = names_paths.contains(&pointer) && !text.is_empty();
        if is_path { part.show_text(&text).to_string() } else { text }
    };
    let number = |pointer: &str| event.pointer(pointer).and_then(Value::as_u64);
    let mut out = format!("{} g{} ", seconds(&text("/at")), number("/g").unwrap_or(0));
    out.push_str(&text("/event"));
    let subjects = ["/payload/path", "/id", "/payload/agent"].map(text);
    let subject = subjects.iter().find(|subject| !subject.is_empty());
    out.push_str(&format!(" {}", subject.map_or("", String::as_str)));
    match number("/version_after").or_else(|| number("/version_before")) {
        Some(version) => out.push_str(&format!(" v{version} by {}", text("/actor"))),
        None => out.push_str(&format!(" by {}", text("/actor"))),
    }
    for (word, pointer) in [
        ("from", "/payload/from"),
        ("from", "/payload/from_path"),
        ("to", "/payload/to"),
        ("via", "/payload/via"),
        ("rule", "/payload/rule"),
    ] {
        let said = text(pointer);
        if !said.is_empty() {
            out.push_str(&format!(" {word} {said}"));
        }
    }
    if event.pointer("/payload/flagged") == Some(&Value::Bool(true)) {
        out.push_str(" flagged");
    }
    // A hostile line cannot steer the terminal.
    printable(out.as_bytes())
}
