//! What can be asked for. The form is JSON's: `{"show":{"what":"X"}}`, `"status"`.
//!
//! `what` is an id, or a path from the root of the tree (`work/inbox/X.yaml`). An id that several
//! workspaces have is refused with the paths that it could be.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::kind::Role;
use crate::names::AgentName;
use crate::numbers::{G, Version};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// A record, a draft or a file: text, state, owner, version, history.
    Show(ShowArgs),
    /// Records and drafts.
    List(ListArgs),
    /// What can be claimed now.
    Ready(ReadyArgs),
    /// Takes a record for an agent.
    Claim(ClaimArgs),
    /// Moves a record to where finished ones lie.
    Done(DoneArgs),
    /// Marks a record as failed; it stays with its owner.
    Fail(FailArgs),
    /// Gives a record back.
    Release(ReleaseArgs),
    /// Events.
    Log(LogArgs),
    /// Events as they happen.
    Watch(WatchArgs),
    /// Refusals, and what is wrong with drafts.
    Why(WhyArgs),
    /// Renews leases.
    Heartbeat(HeartbeatArgs),
    /// The registered agents.
    Agents,
    /// Registers an agent, or changes what is registered of it.
    AgentAdd(AgentAddArgs),
    /// Takes an agent from the register.
    AgentRemove(AgentRemoveArgs),
    /// Counts and sizes.
    Status,
    /// Takes a plain directory in.
    Import(ImportArgs),
    /// Gives a plain directory back.
    Export(ExportArgs),
    /// Checks the tree, the records and the ledger.
    Fsck,
    /// Checks the environment.
    Doctor,
    /// Lets old projects go, or says which would.
    Gc(GcArgs),
    /// Makes a project's directories in the scratchpad.
    ProjectNew(ProjectNewArgs),
    /// Makes a record or a plain file what it was.
    Rewind(RewindArgs),
    /// Copies the store while it is in use.
    Backup(BackupArgs),
}

impl Request {
    /// Whether it goes on until its client is gone, so that nothing waits for its end.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        match self {
            Request::Log(args) => args.follow,
            Request::Watch(_) => true,
            _ => false,
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Request::Show(_) => "show",
            Request::List(_) => "list",
            Request::Ready(_) => "ready",
            Request::Claim(_) => "claim",
            Request::Done(_) => "done",
            Request::Fail(_) => "fail",
            Request::Release(_) => "release",
            Request::Log(_) => "log",
            Request::Watch(_) => "watch",
            Request::Why(_) => "why",
            Request::Heartbeat(_) => "heartbeat",
            Request::Agents => "agent list",
            Request::AgentAdd(_) => "agent add",
            Request::AgentRemove(_) => "agent remove",
            Request::Status => "status",
            Request::Import(_) => "import",
            Request::Export(_) => "export",
            Request::Fsck => "fsck",
            Request::Doctor => "doctor",
            Request::Gc(_) => "gc",
            Request::ProjectNew(_) => "project",
            Request::Rewind(_) => "restore",
            Request::Backup(_) => "backup",
        }
    }

    /// The agent that the caller wants to act for.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Request::Claim(args) => Some(&args.agent),
            Request::Done(args) => args.agent.as_ref(),
            Request::Fail(args) => args.agent.as_ref(),
            Request::Release(args) => args.agent.as_ref(),
            Request::Heartbeat(args) => args.agent.as_ref(),
            Request::AgentAdd(args) => args.agent.as_ref(),
            Request::AgentRemove(args) => args.agent.as_ref(),
            Request::Import(args) => args.agent.as_ref(),
            Request::Gc(args) => args.agent.as_ref(),
            Request::ProjectNew(args) => args.agent.as_ref(),
            Request::Rewind(args) => args.agent.as_ref(),
            Request::Show(_)
            | Request::List(_)
            | Request::Ready(_)
            | Request::Log(_)
            | Request::Watch(_)
            | Request::Why(_)
            | Request::Agents
            | Request::Status
            | Request::Export(_)
            | Request::Fsck
            | Request::Doctor
            | Request::Backup(_) => None,
        }
    }

    /// Where a request that changes the tree or the register says whom it acts for, if it leaves that
    /// open. Whoever has a mount's or an environment's agent to tell puts it here.
    pub fn agent_left_open(&mut self) -> Option<&mut Option<AgentName>> {
        let agent = match self {
            Request::Done(args) => &mut args.agent,
            Request::Fail(args) => &mut args.agent,
            Request::Release(args) => &mut args.agent,
            Request::Heartbeat(args) => &mut args.agent,
            Request::AgentAdd(args) => &mut args.agent,
            Request::AgentRemove(args) => &mut args.agent,
            Request::Import(args) => &mut args.agent,
            Request::Gc(args) if args.delete => &mut args.agent,
            Request::ProjectNew(args) => &mut args.agent,
            Request::Rewind(args) => &mut args.agent,
            Request::Claim(_)
            | Request::Show(_)
            | Request::List(_)
            | Request::Ready(_)
            | Request::Log(_)
            | Request::Watch(_)
            | Request::Why(_)
            | Request::Agents
            | Request::Status
            | Request::Export(_)
            | Request::Fsck
            | Request::Doctor
            | Request::Gc(_)
            | Request::Backup(_) => return None,
        };
        agent.is_none().then_some(agent)
    }

    /// Whether a user who is bound to an agent may ask this: nothing that reads or writes outside
    /// the tree with the daemon's rights, or that changes the register.
    #[must_use]
    pub fn is_an_agents(&self) -> bool {
        match self {
            Request::Show(_)
            | Request::List(_)
            | Request::Ready(_)
            | Request::Claim(_)
            | Request::Done(_)
            | Request::Fail(_)
            | Request::Release(_)
            | Request::Heartbeat(_)
            | Request::Log(_)
            | Request::Watch(_)
            | Request::ProjectNew(_)
            | Request::Why(_)
            | Request::Agents
            | Request::Status => true,
            Request::AgentAdd(_)
            | Request::AgentRemove(_)
            | Request::Import(_)
            | Request::Export(_)
            | Request::Fsck
            | Request::Doctor
            | Request::Gc(_)
            // It asks no permissions of a plain file.
            | Request::Rewind(_)
            | Request::Backup(_) => false,
        }
    }
}

/// See [`Request::Show`].
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

/// See [`Request::List`].
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

/// See [`Request::Ready`].
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

/// See [`Request::Claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimArgs {
    /// Id or path; if absent the first by priority, then by age.
    #[serde(default)]
    pub what: Option<String>,
    /// For whom.
    pub agent: AgentName,
    /// Where to look for one if `what` is absent; all workspaces if absent.
    #[serde(default)]
    pub workspace: Option<String>,
    /// How long to wait for one if there is none; not at all if absent. Only a daemon lets wait.
    #[serde(default)]
    pub wait_ms: Option<u64>,
}

/// See [`Request::Done`].
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

/// See [`Request::Fail`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailArgs {
    /// Id or path.
    pub what: String,
    /// What went wrong, for the field that the kind names (`error.message` of a task).
    pub message: String,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`Request::Release`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseArgs {
    /// Id or path.
    pub what: String,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`Request::Log`].
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

/// See [`Request::Watch`].
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
    /// Lines are the ledger's own; else readable ones.
    #[serde(default)]
    pub json: bool,
}

/// See [`Request::Why`].
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

/// See [`Request::Heartbeat`].
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

/// See [`Request::AgentAdd`].
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

/// See [`Request::AgentRemove`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRemoveArgs {
    /// Its name.
    pub name: AgentName,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`Request::Import`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportArgs {
    /// The directory, absolute. It must not lie inside a mount of the same store: whoever knows
    /// the mounts sees to that.
    pub from: PathBuf,
    /// Where it goes, from the root of the tree; made where it is missing.
    pub to: String,
    /// For whom; the caller if absent.
    #[serde(default)]
    pub agent: Option<AgentName>,
}

/// See [`Request::Export`].
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

/// See [`Request::Gc`].
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

/// See [`Request::ProjectNew`].
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

/// See [`Request::Rewind`].
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

/// See [`Request::Backup`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupArgs {
    /// The file to make, absolute; it must not be there.
    pub file: PathBuf,
}
