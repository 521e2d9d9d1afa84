//! What is ready, and why the rest is not.

use serde::{Deserialize, Serialize};

use crate::engine::{PARKED, UNPARK, explain, path_of_backup, unwritable};
use crate::names::ShownPath;
use crate::numbers::UnixNanos;
use crate::service::find::{path_of, workspace};
use crate::service::reply::rows::{Rows, each};
use crate::service::request::permitted::may_read;
use crate::service::{Caller, Exit, Failure, Part, ReadyArgs, Report, Service, Sink};
use crate::store::{Read, Record, Standing, Visit, When, WorkspaceRow};

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
    /// What is ready, best first in each workspace; then, if asked for, what is not.
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
        let mut rows = Rows::new(sink, |rows| Report::Ready(ReadyReport { rows }));
        let bound = workspaces.iter().filter(|workspace| workspace.dir.is_some());
        for workspace in bound {
            let Some(binding) = config.bind(&workspace.path) else { continue };
            let ready = |visit: Visit<'_, Record>| read.ready(workspace.key, None, visit);
            each(ready, |record| {
                let found = row((read, part), workspace, &record, None)?;
                let Some(mut found) = found else { return Ok(()) };
                if args.explain
                    && is_told(read, &record)?
                    && let Some(flaw) = unwritable(read, &binding.kind, &record, now)?
                {
                    found.why = Some(format!("nobody can claim it: {}", flaw.reason));
                }
                rows.push(found)
            })?;
            if !args.explain {
                continue;
            }
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
