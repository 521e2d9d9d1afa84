//! How much there is of what.

use serde::{Deserialize, Serialize};

use super::find::state_dirs;
use super::{Exit, Failure, Service};
use crate::config::Config;
use crate::engine::{node_at, parked_records, running_leases};
use crate::kind::State;
use crate::ledger::path_of_ledger;
use crate::names::{Shown, ShownPath};
use crate::numbers::G;
use crate::service::reply::text::{seconds, size};
use crate::store::{Class, Read};
use crate::units::counted;

/// Records of one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCount {
    /// The state.
    pub state: String,
    /// Records in it.
    pub records: u64,
    /// Drafts in its directories.
    pub drafts: u64,
}

/// One workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceStatus {
    /// Its path.
    pub path: ShownPath,
    /// The kind of its records.
    pub kind: String,
    /// Its states, in the kind's order.
    pub states: Vec<StateCount>,
    /// Records that lie in no directory: their names went to backups.
    pub parked: u64,
}

/// A directory with a quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaStatus {
    /// Its name.
    pub path: ShownPath,
    /// Bytes of plain files in it.
    pub bytes: u64,
    /// How many there may be.
    pub bytes_limit: Option<u64>,
    /// Files, directories and links in it.
    pub inodes: u64,
    /// How many there may be.
    pub inodes_limit: Option<u64>,
}

impl QuotaStatus {
    fn human(&self) -> String {
        let bytes = self.bytes_limit.map(|of| format!("{} of {}", size(self.bytes), size(of)));
        let inodes = self.inodes_limit.map(|of| format!("{} of {of} inodes", self.inodes));
        let both: Vec<String> = [bytes, inodes].into_iter().flatten().collect();
        format!("quota of {}/: {}\n", self.path, both.join(", "))
    }
}

/// See [`super::Request::Status`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The store's file.
    pub store: String,
    /// Its size, with the log that belongs to it.
    pub store_bytes: u64,
    /// The last event.
    pub last_g: G,
    /// When it happened, RFC 3339.
    pub last_at: Option<String>,
    /// Running leases.
    pub leases: u64,
    /// Chores that could not be done in the last round: the path, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<(String, String)>,
    /// The workspaces that have a directory.
    pub workspaces: Vec<WorkspaceStatus>,
    /// The directories with a quota.
    pub quotas: Vec<QuotaStatus>,
}

impl StatusReport {
    /// One line a workspace, and one for the store.
    #[must_use]
    pub fn human(&self) -> String {
        let mut out = String::new();
        for workspace in &self.workspaces {
            let count = |one: &StateCount| match one.drafts {
                0 => format!("{} {}", one.state, one.records),
                drafts => format!("{} {} (+{})", one.state, one.records, counted(drafts, "draft")),
            };
            let parked = (workspace.parked > 0).then(|| format!("parked {}", workspace.parked));
            let states: Vec<String> = workspace.states.iter().map(count).chain(parked).collect();
            out.push_str(&format!(
                "{}/ ({}): {}\n",
                workspace.path,
                workspace.kind,
                states.join(", ")
            ));
        }
        if self.workspaces.is_empty() {
            out.push_str("no workspace yet\n");
        }
        out.extend(self.quotas.iter().map(QuotaStatus::human));
        let at = self.last_at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
        if self.leases > 0 {
            out.push_str(&format!("leases: {}\n", self.leases));
        }
        for (path, why) in &self.undone {
            out.push_str(&format!("a chore waits: {path}: {why}\n"));
        }
        out.push_str(&format!("last event: {}{at}\n", self.last_g));
        out.push_str(&format!("store: {} ({})", self.store.shown(), size(self.store_bytes)));
        out
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Counts.
///
/// # Errors
/// A failure of the store.
pub(super) fn status(service: &Service) -> Result<StatusReport, Failure> {
    let config = service.engine.config();
    service.read(|read| {
        let last = read.last_event()?;
        let last_at = last.as_ref().and_then(|row| Some(seconds(row.said().get("at")?.as_str()?)));
        Ok(StatusReport {
            store: service.store.to_string_lossy().into_owned(),
            store_bytes: service.engine.readers().figures().bytes,
            last_g: last.map_or(G(0), |row| row.g),
            last_at,
            leases: running_leases(read)?,
            workspaces: workspaces(read, &config)?,
            quotas: quotas(read, &config)?,
            undone: chores_that_wait(service, read)?,
        })
    })
}

/// What chores could not do when it was last tried, but for what has left its path since: a change may have done it.
pub(super) fn chores_that_wait(
    service: &Service,
    read: &dyn Read,
) -> Result<Vec<(String, String)>, Failure> {
    let mut waiting = Vec::new();
    for (path, why) in service.engine.undone().told() {
        let lies = path_of_ledger(&path).map(|path| node_at(read, &path)).transpose()?;
        if !matches!(lies, Some(None)) {
            waiting.push((path, why));
        }
    }
    Ok(waiting)
}

/// See [`super::Request::Metrics`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsReport {
    /// What `.workfs/metrics` says.
    pub text: String,
}

impl MetricsReport {
    /// The text.
    #[must_use]
    pub fn human(&self) -> String {
        self.text.trim_end().to_owned()
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// What `.workfs/metrics` says, also where nothing is mounted.
///
/// # Errors
/// A failure of the store.
pub(super) fn metrics(service: &Service) -> Result<MetricsReport, Failure> {
    service.read(|read| Ok(MetricsReport { text: service.engine.metrics(read)? }))
}

/// The records and drafts of each workspace, state by state.
fn workspaces(read: &dyn Read, config: &Config) -> Result<Vec<WorkspaceStatus>, Failure> {
    let mut workspaces = Vec::new();
    for workspace in read.workspaces()?.iter().filter(|row| row.dir.is_some()) {
        let Some(binding) = config.bind(&workspace.path) else { continue };
        let zero =
            |state: &State| StateCount { state: state.name.to_string(), records: 0, drafts: 0 };
        let mut states: Vec<StateCount> =
            binding.kind.states().map(|(_, state)| zero(state)).collect();
        for place in state_dirs(read, config, workspace)? {
            let name = binding.kind.state(place.state).name.as_str();
            let Some(count) = states.iter_mut().find(|one| one.state == name) else { continue };
            read.list(place.dir, None, &mut |(_, node)| {
                match node.class {
                    Class::Record => count.records += 1,
                    Class::Draft => count.drafts += 1,
                    Class::Plain => {}
                }
                true
            })?;
        }
        let (path, kind) = (ShownPath::from(&workspace.path), binding.kind.name().to_string());
        let parked = parked_records(read, workspace)?;
        workspaces.push(WorkspaceStatus { path, kind, states, parked });
    }
    Ok(workspaces)
}

/// What each quota has left.
fn quotas(read: &dyn Read, config: &Config) -> Result<Vec<QuotaStatus>, Failure> {
    let mut quotas = Vec::new();
    for (dir, charged) in read.quotas()? {
        let Some(name) = read.dir_name(dir)? else { continue };
        let Some(limits) = config.quota(&name) else { continue };
        quotas.push(QuotaStatus {
            path: ShownPath::from(&name),
            bytes: charged.bytes,
            bytes_limit: limits.bytes,
            inodes: charged.inodes,
            inodes_limit: limits.inodes,
        });
    }
    Ok(quotas)
}
