//! What is ready, and why the rest is not.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::engine::{PARKED, UNPARK, explain, path_of_backup, unwritable};
use crate::names::ShownPath;
use crate::numbers::{UnixNanos, WorkspaceKey};
use crate::service::find::{path_of, workspace};
use crate::service::reply::rows::{Rows, each};
use crate::service::request::permitted::may_read;
use crate::service::{Caller, Exit, Failure, Part, ReadyArgs, Report, Service, Sink};
use crate::store::{OrderKey, Read, Record, Standing, Visit, When, WorkspaceRow};

/// So many records are read at a time, of all workspaces together, but of each some.
const READY_AT_ONCE: usize = 1024;
const READY_OF_EACH_MIN: usize = 16;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyRow {
    /// Its id.
    pub id: String,
    /// Where it lies.
    pub path: ShownPath,
    /// Its workspace.
    pub workspace: ShownPath,
    /// Whether it can be claimed now.
    pub ready: bool,
    /// Why not; of what is ready, with `--explain`: why nobody can claim it all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Its place by priority: the least comes first.
    pub priority: i64,
    /// Its age, RFC 3339: among equals the oldest comes first.
    pub since: String,
}

/// See [`crate::service::Request::Ready`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyReport {
    /// What is ready, best first; then, if asked for, what is not, by workspace and id.
    pub rows: Vec<ReadyRow>,
}

impl ReadyReport {
    /// A path a line; what is not ready with its reason.
    #[must_use]
    pub fn human(&self) -> String {
        let lines = self.rows.iter().map(|row| match &row.why {
            None => row.path.to_string(),
            Some(why) => format!("{}: {why}", row.path),
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { "nothing is ready".to_owned() } else { lines.join("\n") }
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.rows.iter().any(|row| row.ready) { Exit::Done } else { Exit::Nothing }
    }
}

/// Lists.
///
/// # Errors
/// A workspace that there is not, or a failure of the store.
pub(in crate::service) fn ready(
    service: &Service,
    caller: &Caller,
    args: &ReadyArgs,
    sink: Sink<'_>,
) -> Result<Report, Failure> {
    let (config, now) = (service.engine.config(), service.engine.now());
    let part = &caller.part;
    // What a record waits for is in its text.
    let is_told = |read: &dyn Read, record: &Record| match record.standing {
        Standing::Parked { .. } => Ok(true),
        Standing::Live { .. } | Standing::Gone => match path_of(read, record)? {
            Some(path) => may_read((service, read), caller, &path),
            None => Ok(true),
        },
    };
    service.read(|read| {
        let workspaces = match &args.workspace {
            Some(path) => vec![workspace(read, part, path)?],
            None => part.workspaces(read)?,
        };
        let bound = workspaces.into_iter().filter(|workspace| workspace.dir.is_some());
        let bound = bound.filter_map(|row| config.bind(&row.path).map(|binding| (row, binding)));
        let bound: Vec<_> = bound.collect();
        let mut rows = Rows::new(sink, |rows| Report::Ready(ReadyReport { rows }));
        let at_once = (READY_AT_ONCE / bound.len().max(1)).max(READY_OF_EACH_MIN);
        let lines = bound.iter().map(|(row, _)| InOrder::of(row.key, at_once));
        let mut lines: Vec<_> = lines.collect();
        while let Some((nth, record)) = best(read, &mut lines)? {
            let (workspace, binding) = &bound[nth];
            let found = row((read, part), workspace, &record, None)?;
            let Some(mut found) = found else { continue };
            if args.explain
                && is_told(read, &record)?
                && let Some(flaw) = unwritable(read, &binding.kind, &record, now)?
            {
                found.why = Some(format!("nobody can claim it: {}", flaw.reason));
            }
            rows.push(found)?;
        }
        for (workspace, binding) in bound.iter().filter(|_| args.explain) {
            let inbox = binding.kind.state(binding.kind.initial()).name.clone();
            let all = |visit: Visit<'_, Record>| read.records(workspace.key, visit);
            each(all, |record| {
                if record.state != inbox {
                    return Ok(());
                }
                let why = match record.standing {
                    Standing::Gone => return Ok(()),
                    Standing::Parked { .. } => Some(format!("{PARKED}; {UNPARK}")),
                    Standing::Live { .. } if record.readiness.when == When::Now => return Ok(()),
                    Standing::Live { .. } if !is_told(read, &record)? => Some(
                        "what it waits for is in its text, which this user may not read".to_owned(),
                    ),
                    // Its time may have come this very moment.
                    Standing::Live { .. } => explain(read, &binding.kind, &record, now)?,
                };
                row((read, part), workspace, &record, why)?.map_or(Ok(()), |row| rows.push(row))
            })?;
        }
        Ok(rows.end())
    })
}

/// The ready records of a workspace, best first: so many of them at a time.
struct InOrder {
    workspace: WorkspaceKey,
    at_once: usize,
    page: VecDeque<Record>,
    /// The last one of the page; none before the first page.
    last: Option<OrderKey>,
    is_end: bool,
}

impl InOrder {
    fn of(workspace: WorkspaceKey, at_once: usize) -> Self {
        InOrder { workspace, at_once, page: VecDeque::new(), last: None, is_end: false }
    }

    /// The best that has not been taken.
    fn first(&mut self, read: &dyn Read) -> Result<Option<&Record>, Failure> {
        if self.page.is_empty() && !self.is_end {
            let (page, at_once) = (&mut self.page, self.at_once);
            read.ready(self.workspace, self.last, &mut |record| {
                page.push_back(record);
                page.len() < at_once
            })?;
            self.is_end = page.len() < at_once;
            self.last = page.back().map(Record::order_key);
        }
        Ok(self.page.front())
    }
}

/// Takes the best of all workspaces, and says which one's it is: the one that a claim takes.
fn best(read: &dyn Read, lines: &mut [InOrder]) -> Result<Option<(usize, Record)>, Failure> {
    let mut best = None;
    for (nth, line) in lines.iter_mut().enumerate() {
        if let Some(record) = line.first(read)? {
            let key = record.order_key();
            if best.is_none_or(|(other, _)| key < other) {
                best = Some((key, nth));
            }
        }
    }
    Ok(best.and_then(|(_, nth)| Some((nth, lines.get_mut(nth)?.page.pop_front()?))))
}

/// A record's row, if it is in sight.
fn row(
    (read, part): (&dyn Read, &Part),
    workspace: &WorkspaceRow,
    record: &Record,
    why: Option<String>,
) -> Result<Option<ReadyRow>, Failure> {
    let UnixNanos(since) = record.readiness.since;
    let path = match record.standing {
        Standing::Parked { .. } => path_of_backup(read, record)?,
        Standing::Live { .. } | Standing::Gone => path_of(read, record)?,
    };
    let Some(path) = path.filter(|path| part.has(path)) else { return Ok(None) };
    Ok(Some(ReadyRow {
        id: record.id.to_string(),
        path: part.show(&path),
        workspace: part.show(&workspace.path),
        ready: why.is_none(),
        why,
        priority: record.readiness.priority,
        since: UnixNanos(since).rfc3339(),
    }))
}
