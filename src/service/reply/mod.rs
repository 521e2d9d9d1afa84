//! What is answered: progress, lines, and at the end a report or a failure.

pub(super) mod pace;
pub(super) mod rows;
pub(super) mod text;

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    AgentsReport, BackupReport, ClaimReport, DoctorReport, ExportReport, FsckReport, GcReport,
    HeartbeatReport, ImportReport, ListReport, LogReport, MetricsReport, MoveReport, ProjectReport,
    ReadyReport, RestoreReport, RewindReport, ShowReport, StatusReport, WatchReport, WhyReport,
};
use crate::names::Shown;
use crate::refusal::{Grounds, Refusal, Rule, TextPlace};
use crate::store::{MORE_DESCRIPTORS, StoreError, is_full, wants_descriptors};

/// Where replies go; false means that the client is gone.
pub type Sink<'s> = &'s mut dyn FnMut(Reply) -> bool;

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// How far it is.
    Progress {
        /// Done so far.
        done: u64,
        /// Of so many; 0 where that is not known.
        total: u64,
        /// Of what: `files`, `pages`, `events`.
        what: String,
    },
    /// One line of `log`, without its newline.
    Line(String),
    /// Nothing to say, and a question: is the client still there? Not to be shown.
    Idle,
    /// What it found so far; the next has what came after that. See [`super::Whole`].
    Part(Box<Report>),
    /// It is done.
    Report(Box<Report>),
    /// It is not done.
    Error(Failure),
}

impl Reply {
    /// What was claimed, if it says that.
    #[must_use]
    pub fn claimed(&self) -> Option<&ClaimReport> {
        match self {
            Reply::Report(report) => match &**report {
                Report::Claim(claimed) => Some(claimed),
                _ => None,
            },
            _ => None,
        }
    }
}

/// How a command ends, and the exit status that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Done.
    Done,
    /// The store, the daemon or the environment failed.
    Failed,
    /// The request makes no sense.
    Usage,
    /// There is nothing to claim.
    Nothing,
    /// There was nothing to claim until the time to wait was over.
    TimedOut,
    /// Something is in the way, such as a file or a store that is not empty.
    Refused,
    /// The lifecycle, a role or the operating system does not let the caller.
    Denied,
    /// The content is not valid.
    Invalid,
    /// A disk is full.
    NoSpace,
    /// A limit or a deadline.
    Busy,
    /// Another process holds the store.
    Held,
    /// The store, or what was to become one, is newer, damaged or none.
    Store,
    /// There is no such record, path, version or workspace.
    Absent,
    /// Someone else was faster: another version or another owner.
    Lost,
    /// `fsck` or `doctor` found something, or `import` or `export` left something out.
    Problems,
}

impl From<Rule> for Exit {
    /// What a refusal by this rule is.
    fn from(rule: Rule) -> Exit {
        match rule.grounds() {
            Grounds::Absent => Exit::Absent,
            Grounds::Lost => Exit::Lost,
            Grounds::Usage => Exit::Usage,
            Grounds::Content | Grounds::Size => Exit::Invalid,
            Grounds::Denied => Exit::Denied,
            Grounds::Limit => Exit::Busy,
            Grounds::NoSpace => Exit::NoSpace,
            Grounds::Failed => Exit::Failed,
            Grounds::Damage => Exit::Store,
        }
    }
}

impl From<std::io::ErrorKind> for Exit {
    /// Of a file outside of the store.
    fn from(kind: std::io::ErrorKind) -> Exit {
        use std::io::ErrorKind as K;
        match kind {
            K::NotFound => Exit::Absent,
            K::NotADirectory | K::IsADirectory => Exit::Usage,
            K::PermissionDenied | K::ReadOnlyFilesystem => Exit::Denied,
            kind if is_full(kind) => Exit::NoSpace,
            _ => Exit::Failed,
        }
    }
}

/// Why a command was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// The rule that refused it, where one did; its code is in `docs/errors.md`.
    pub rule: Option<Rule>,
    /// What is wrong, naming the thing.
    pub reason: String,
    /// The way out.
    pub remedy: String,
    /// Where in the content, if it is about content.
    pub place: Option<TextPlace>,
}

impl Failure {
    /// A failure that no rule of the tree made.
    pub(super) fn new(exit: Exit, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Failure { exit, rule: None, reason: reason.into(), remedy: remedy.into(), place: None }
    }

    /// A failure of a system call at a file outside of the store. Whatever is the way out for that file, there is
    /// another one where it only wants a descriptor.
    pub(super) fn of_file(
        what: impl std::fmt::Display,
        error: &std::io::Error,
        remedy: &str,
    ) -> Self {
        let (exit, remedy) = match wants_descriptors(error) {
            true => (Exit::Busy, MORE_DESCRIPTORS),
            false => (error.kind().into(), remedy),
        };
        Failure::new(exit, format!("{what}: {error}"), remedy)
    }

    /// Refuses a path of the host that would be another one to the daemon than to who names it.
    pub(super) fn unless_absolute(path: &Path) -> Result<(), Self> {
        if path.is_absolute() {
            return Ok(());
        }
        let reason = format!("{} is no absolute path", path.shown());
        Err(Failure::new(Exit::Usage, reason, "name it from the root of the host"))
    }

    /// A failure that a rule made, found before the tree was asked.
    pub(super) fn by(rule: Rule, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Refusal::new(rule, reason, remedy).into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let Refusal { rule, reason, remedy, place } = refusal;
        let exit = rule.into();
        Failure { exit, rule: Some(rule), reason, remedy, place }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let exit = match &error {
            StoreError::Held { .. }
            | StoreError::HeldElsewhere { .. }
            | StoreError::BeingRead { .. } => Some(Exit::Held),
            StoreError::Older { .. }
            | StoreError::Newer { .. }
            | StoreError::NotAStore(_)
            | StoreError::Network { .. } => Some(Exit::Store),
            StoreError::Unreadable(_) | StoreError::Beside { .. } => Some(Exit::Denied),
            StoreError::Full(_)
            | StoreError::ReadOnly(_)
            | StoreError::NoDescriptors(_)
            | StoreError::NoThread(_)
            | StoreError::Busy(_)
            | StoreError::Impossible(_)
            | StoreError::Moved(_)
            | StoreError::Failed(_) => None,
        };
        let failure = Failure::from(Refusal::from(error));
        Failure { exit: exit.unwrap_or(failure.exit), ..failure }
    }
}

macro_rules! reports {
    ($($(#[$doc:meta])* $name:ident($inner:ty),)*) => {
        /// What a command did or found.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Report { $($(#[$doc])* $name($inner),)* }

        impl Report {
            /// For a terminal: lines, the last without a newline at its end.
            #[must_use]
            pub fn human(&self) -> String {
                match self { $(Report::$name(report) => report.human(),)* }
            }

            /// How the process ends.
            #[must_use]
            pub fn exit(&self) -> Exit {
                match self { $(Report::$name(report) => report.exit(),)* }
            }
        }
    };
}

impl Report {
    /// Whether it tells of a command that whoever asked interrupted.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        match self {
            Report::Import(report) => report.interrupted,
            Report::Export(report) => report.interrupted,
            Report::Gc(report) => report.interrupted,
            Report::Fsck(report) => report.interrupted,
            _ => false,
        }
    }

    /// The report of which this is a part, and that what follows.
    pub(super) fn followed_by(self, more: Report) -> Report {
        match (self, more) {
            (Report::List(mut first), Report::List(more)) => {
                first.rows.extend(more.rows);
                Report::List(first)
            }
            (Report::Ready(mut first), Report::Ready(more)) => {
                first.rows.extend(more.rows);
                Report::Ready(first)
            }
            // No other is told in parts.
            (_, whole) => whole,
        }
    }

    /// What ended the command after it had done what it tells.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Report::Import(report) => report.failure.as_ref(),
            _ => None,
        }
    }
}

reports! {
    /// See [`ShowReport`].
    Show(ShowReport),
    /// See [`ListReport`].
    List(ListReport),
    /// See [`ReadyReport`].
    Ready(ReadyReport),
    /// See [`ClaimReport`].
    Claim(ClaimReport),
    /// See [`MoveReport`].
    Move(MoveReport),
    /// See [`LogReport`].
    Log(LogReport),
    /// See [`WatchReport`].
    Watch(WatchReport),
    /// See [`WhyReport`].
    Why(WhyReport),
    /// See [`HeartbeatReport`].
    Heartbeat(HeartbeatReport),
    /// See [`AgentsReport`].
    Agents(AgentsReport),
    /// See [`StatusReport`].
    Status(StatusReport),
    /// See [`MetricsReport`].
    Metrics(MetricsReport),
    /// See [`ImportReport`].
    Import(ImportReport),
    /// See [`ExportReport`].
    Export(ExportReport),
    /// See [`FsckReport`].
    Fsck(FsckReport),
    /// See [`DoctorReport`].
    Doctor(DoctorReport),
    /// See [`BackupReport`].
    Backup(BackupReport),
    /// See [`RestoreReport`].
    Restore(RestoreReport),
    /// See [`GcReport`].
    Gc(GcReport),
    /// See [`ProjectReport`].
    Project(ProjectReport),
    /// See [`RewindReport`].
    Rewind(RewindReport),
}

impl Report {
    /// Its own fields as JSON, without the name around them: for `--json`.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let whole = serde_json::to_value(self).unwrap_or_default();
        match whole {
            serde_json::Value::Object(fields) => {
                fields.into_iter().next().map(|(_, inner)| inner).unwrap_or_default()
            }
            other => other,
        }
    }
}
