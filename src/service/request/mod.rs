//! What can be asked for. The form is JSON's: `{"show":{"what":"X"}}`, `"status"`.
//!
//! `what` is an id, or a path from the root of the tree (`work/inbox/X.yaml`). An id that several
//! workspaces have is refused with the paths that it could be.
//!
//! What must stay true: what a request is stands in its row of the one table, and nowhere else.

mod args;
pub(super) mod caller;
pub(super) mod part;
pub(super) mod permitted;
pub(super) mod refused;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::names::AgentName;

pub use args::*;

/// What a request is, whatever it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does.
    pub effect: Effect,
    /// Who may ask it.
    pub by: By,
    /// What it is about.
    pub of: Of,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It tells something, and can be asked again.
    Reads,
    /// It tells what happens until its client is gone, so that nothing waits for its end.
    Follows,
    /// It makes files outside of the tree.
    Makes,
    /// It renews leases, and changes nothing else.
    Renews,
    /// It changes the tree or the register.
    Changes,
}

/// Who may ask a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A user who is bound to an agent, too.
    Agents,
    /// Whoever runs the store or has its file: it asks no permissions of a plain file, or changes the
    /// register.
    Owner,
    /// Root, and the user that the daemon runs as: it acts outside of the tree with that user's rights.
    Runner,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The tree, or the part of it that is in sight.
    Tree,
    /// The store as a whole.
    Store,
}

/// A row is a request's form, its name on the command line, what it does, who may ask it, what it is
/// about and, where it acts for somebody, the arguments that say for whom.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident $(($args:ident: $type:ty))?
        = $word:literal, $effect:expr, $by:ident, $of:ident $(, for $who:ident)?;)*) => {
        /// A request.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum Request { $($(#[$doc])* $name $(($type))?,)* }

        #[expect(unused_variables, reason = "most rows do not look at their arguments")]
        impl Request {
            /// What it is.
            #[must_use]
            pub fn properties(&self) -> Properties {
                match self {
                    $(Request::$name $(($args))? => {
                        let (by, of) = (By::$by, Of::$of);
                        Properties { name: $word, effect: $effect, by, of }
                    })*
                }
            }

            /// The agent that the caller wants to act for.
            #[must_use]
            pub fn agent(&self) -> Option<&AgentName> {
                match self {
                    $(Request::$name $(($args))? => None$(.or($who.agent.as_ref()))?,)*
                }
            }

            fn agent_field(&mut self) -> Option<&mut Option<AgentName>> {
                match self {
                    $(Request::$name $(($args))? => None$(.or(Some(&mut $who.agent)))?,)*
                }
            }
        }
    };
}

requests! {
    /// A record, a draft or a file: text, state, owner, version, history.
    Show(args: ShowArgs) = "show", Effect::Reads, Agents, Tree;
    /// Records and drafts.
    List(args: ListArgs) = "list", Effect::Reads, Agents, Tree;
    /// What can be claimed now.
    Ready(args: ReadyArgs) = "ready", Effect::Reads, Agents, Tree;
    /// Takes a record for an agent.
    Claim(args: ClaimArgs) = "claim", Effect::Changes, Agents, Tree, for args;
    /// Moves a record to where finished ones lie.
    Done(args: DoneArgs) = "done", Effect::Changes, Agents, Tree, for args;
    /// Marks a record as failed; it stays with its owner.
    Fail(args: FailArgs) = "fail", Effect::Changes, Agents, Tree, for args;
    /// Gives a record back.
    Release(args: ReleaseArgs) = "release", Effect::Changes, Agents, Tree, for args;
    /// Events.
    Log(args: LogArgs) = "log", reading(args.follow), Agents, Tree;
    /// Events as they happen.
    Watch(args: WatchArgs) = "watch", Effect::Follows, Agents, Tree;
    /// Refusals, and what is wrong with drafts.
    Why(args: WhyArgs) = "why", Effect::Reads, Agents, Tree;
    /// Renews leases.
    Heartbeat(args: HeartbeatArgs) = "heartbeat", Effect::Renews, Agents, Tree, for args;
    /// The registered agents.
    Agents = "agent list", Effect::Reads, Agents, Store;
    /// Registers an agent, or changes what is registered of it.
    AgentAdd(args: AgentAddArgs) = "agent add", Effect::Changes, Owner, Store, for args;
    /// Takes an agent from the register.
    AgentRemove(args: AgentRemoveArgs) = "agent remove", Effect::Changes, Owner, Store, for args;
    /// Counts and sizes.
    Status = "status", Effect::Reads, Agents, Store;
    /// What `.workfs/metrics` says.
    Metrics = "status --metrics", Effect::Reads, Agents, Store;
    /// Takes a plain directory in.
    Import(args: ImportArgs) = "import", Effect::Changes, Runner, Tree, for args;
    /// Gives a plain directory back.
    Export(args: ExportArgs) = "export", Effect::Makes, Runner, Tree;
    /// Checks the tree, the records and the ledger.
    Fsck = "fsck", Effect::Reads, Owner, Store;
    /// Checks the environment.
    Doctor = "doctor", Effect::Reads, Owner, Store;
    /// Lets old projects go, or says which would.
    Gc(args: GcArgs) = "gc", changing(args.delete), Owner, Store, for args;
    /// Makes a project's directories in the scratchpad.
    ProjectNew(args: ProjectNewArgs) = "project", Effect::Changes, Agents, Store, for args;
    /// Makes a record or a plain file what it was.
    Rewind(args: RewindArgs) = "restore", Effect::Changes, Agents, Tree, for args;
    /// Copies the store while it is in use.
    Backup(args: BackupArgs) = "backup", Effect::Makes, Runner, Store;
}

fn reading(goes_on: bool) -> Effect {
    if goes_on { Effect::Follows } else { Effect::Reads }
}

fn changing(does_it: bool) -> Effect {
    if does_it { Effect::Changes } else { Effect::Reads }
}

impl Request {
    /// The place outside of the tree that it reads or writes.
    #[must_use]
    pub fn outside(&self) -> Option<&Path> {
        match self {
            Request::Import(args) => Some(&args.from),
            Request::Export(args) => Some(&args.to),
            Request::Backup(args) => Some(&args.file),
            _ => None,
        }
    }

    /// The record or file that it would change, by an id or a path.
    #[must_use]
    pub fn what(&self) -> Option<&str> {
        match self {
            Request::Claim(args) => args.what.as_deref(),
            Request::Done(args) => Some(&args.what),
            Request::Fail(args) => Some(&args.what),
            Request::Release(args) => Some(&args.what),
            Request::Heartbeat(args) => args.what.as_deref(),
            Request::Rewind(args) => Some(&args.what),
            _ => None,
        }
    }

    /// Where a request that acts for somebody says for whom, if it leaves that open. Whoever has a
    /// mount's or an environment's agent to tell puts it here.
    pub fn agent_left_open(&mut self) -> Option<&mut Option<AgentName>> {
        let acts = match self.properties().effect {
            Effect::Changes | Effect::Renews => true,
            Effect::Reads | Effect::Follows | Effect::Makes => false,
        };
        self.agent_field().filter(|agent| acts && agent.is_none())
    }
}
