//! The arguments of each request.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::kind::Role;
use crate::names::AgentName;
use crate::numbers::{G, Version};

/// See [`super::Request::Show`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowArgs {
    /// Id or path.
    pub what: String,
    /// A version of it; the current one if absent.
    #[serde(default)]
    pub at: Option<Version>,
    /// As it was after this event; not together with `at`.
    #[serde(default)]
    pub g: Option<G>,
}

/// See [`super::Request::List`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListArgs {
    /// A workspace's path; all if absent.
    #[serde(default)]
    pub workspace: Option<String>,
    /// Only those in this state.
    #[serde(default)]
    pub state: Option<String>,
    /// Only those of this owner.
    #[serde(default)]
    pub owner: Option<AgentName>,
}

/// See [`super::Request::Ready`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyArgs {
    /// A workspace's path; all if absent.
    #[serde(default)]
    pub workspace: Option<String>,
    /// Also those in the initial state that are not ready, and why.
    #[serde(default)]
    pub explain: bool,
}

/// See [`super::Request::Claim`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimArgs {
    /// Id or path; if absent the first by priority, then by age.
    #[serde(default)]
    pub what: Option<String>,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
    /// Where to look for one if `what` is absent; all workspaces if absent.
    #[serde(default)]
    pub workspace: Option<String>,
    /// How long to wait for one if there is none; not at all if absent. Only a daemon lets wait.
    #[serde(default)]
    pub wait_ms: Option<u64>,
}

/// See [`super::Request::Done`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoneArgs {
    /// Id or path.
    pub what: String,
    /// What came out of it, for the field that the kind names (`result.summary` of a task).
    #[serde(default)]
    pub summary: Option<String>,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::Fail`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailArgs {
    /// Id or path.
    pub what: String,
    /// What went wrong, for the field that the kind names (`error.message` of a task); none where it names
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::Release`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseArgs {
    /// Id or path.
    pub what: String,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::Log`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogArgs {
    /// A record's id or path, or a directory's path; everything if absent.
    #[serde(default)]
    pub what: Option<String>,
    /// Go on with events as they happen, until the client is gone.
    #[serde(default)]
    pub follow: bool,
    /// Only events after this one.
    #[serde(default)]
    pub since: Option<G>,
    /// Only so many, the newest.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Lines are the ledger's own; else readable ones.
    #[serde(default)]
    pub json: bool,
}

/// See [`super::Request::Watch`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchArgs {
    /// Which files, from the root of the tree: `scratchpad/**`.
    pub glob: String,
    /// For how long; until the client is gone if absent.
    #[serde(default)]
    pub timeout_s: Option<u64>,
    /// Until there were so many events.
    #[serde(default)]
    pub count: Option<u64>,
    /// Only events after this one; those to come if absent.
    #[serde(default)]
    pub since: Option<G>,
    /// Lines are the ledger's events, with names as they are; else readable ones.
    #[serde(default)]
    pub json: bool,
}

/// See [`super::Request::Why`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhyArgs {
    /// Id or path; the last refusals of all if absent.
    #[serde(default)]
    pub what: Option<String>,
    /// At most so many, the newest first; 10 if absent.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// See [`super::Request::Heartbeat`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatArgs {
    /// Id or path; all that the caller has if absent.
    #[serde(default)]
    pub what: Option<String>,
    /// Whose they are; the caller's if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::AgentAdd`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAddArgs {
    /// Its name.
    pub name: AgentName,
    /// Its role; agent, or the one that it has, if absent.
    #[serde(default)]
    pub role: Option<Role>,
    /// The user who is this agent, whatever a mount says; the one that it has if absent.
    #[serde(default)]
    pub uid: Option<u32>,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::AgentRemove`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRemoveArgs {
    /// Its name.
    pub name: AgentName,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::Import`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportArgs {
    /// The directory, absolute. It must not lie inside a mount of the same store: whoever knows
    /// the mounts sees to that.
    pub from: PathBuf,
    /// Where it goes, from the root of the tree; made where it is missing.
    pub to: String,
    /// What the mode of such a directory lacks, as umask(2) has it; the usual 022 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// What a new directory's mode lacks where nobody says otherwise.
pub const USUAL_UMASK: u32 = 0o022;

/// See [`super::Request::Export`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportArgs {
    /// The directory to fill, absolute; made where it is missing, else it must be empty.
    pub to: PathBuf,
    /// What to export, from the root of the tree; all of it if absent.
    #[serde(default)]
    pub path: Option<String>,
    /// The directory may have files. None of them is overwritten even so.
    #[serde(default)]
    pub force: bool,
    /// The versions that are kept, too.
    #[serde(default)]
    pub versions: bool,
}

/// See [`super::Request::Gc`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GcArgs {
    /// Only projects of which nothing was changed for so long.
    pub older_than_s: u64,
    /// Only those of one of these statuses.
    pub status: Vec<String>,
    /// Do it.
    #[serde(default)]
    pub delete: bool,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::ProjectNew`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectNewArgs {
    /// Its id; the next free number if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::Rewind`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewindArgs {
    /// Id or path; of a plain file that is gone, too.
    pub what: String,
    /// An event's number, or a time (RFC 3339).
    pub at: String,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`super::Request::Backup`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupArgs {
    /// The file to make, absolute; it must not be there.
    pub file: PathBuf,
}
