//! Why the daemon, or what starts and asks it, could not do something: by cause.
//!
//! What must stay true: a failure names the thing and the way out; it crosses the socket as it is.
//! Deliberately not here: exit codes (`cli::exit`), and refusals of rules (`service::Failure`).

use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, Subject};
use crate::names::Shown;
use crate::refusal::{Refusal, Rule};
use crate::store::{
    MORE_DESCRIPTORS, MORE_THREADS, OWN_STORE, StoreError, is_full, wants_descriptors,
};

/// What kind of failure it is; the command line makes an exit code of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The request makes no sense.
    Usage,
    /// A store, directory or mount is not there.
    Absent,
    /// In use, taken, not empty.
    Conflict,
    /// The operating system or the daemon does not let the caller.
    Denied,
    /// Mounting does not work here, or the daemon cannot be reached.
    Mount,
    /// Another process holds the store.
    Held,
    /// The store is newer than this program, damaged, or none.
    Store,
    /// A disk is full.
    NoSpace,
    /// A limit or a deadline: worth another try.
    Busy,
    /// Anything else.
    Other,
}

/// The way out where a layout is wrong.
pub(super) const LAYOUT_SHOWN: &str = "`workfs init --help` shows one";

/// Something that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    /// Its kind.
    pub cause: Cause,
    /// What is wrong, naming the thing.
    pub reason: String,
    /// The way out; empty where the reason says it.
    pub remedy: String,
    /// The rule that refused it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The line in the file that the reason names, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Failure {
    /// A failure with its way out.
    pub fn new(cause: Cause, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (reason, remedy) = (reason.into(), remedy.into());
        Failure { cause, reason, remedy, rule: None, line: None }
    }

    /// A failure of a system call while doing `what`.
    pub fn io(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        if wants_descriptors(error) {
            return Failure::new(Cause::Busy, format!("{what}: {error}"), MORE_DESCRIPTORS);
        }
        let cause = match error.kind() {
            ErrorKind::PermissionDenied => Cause::Denied,
            ErrorKind::NotFound => Cause::Absent,
            ErrorKind::NotADirectory | ErrorKind::IsADirectory => Cause::Usage,
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Cause::Busy,
            kind if is_full(kind) => Cause::NoSpace,
            _ => Cause::Other,
        };
        Failure::new(cause, format!("{what}: {error}"), "")
    }

    /// A thread or a process could not be started for `what`.
    pub fn start(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        let failure = Failure::io(what, error);
        match error.kind() {
            std::io::ErrorKind::WouldBlock => {
                Failure { remedy: MORE_THREADS.to_owned(), ..failure }
            }
            _ => failure,
        }
    }

    /// The same, with this way out where the system does not let the caller.
    #[must_use]
    pub fn if_denied(self, remedy: &str) -> Self {
        match self.cause {
            Cause::Denied => Failure { remedy: remedy.to_owned(), ..self },
            _ => self,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let cause = match refusal.rule {
            Rule::Forbidden | Rule::ReadOnly => Cause::Denied,
            Rule::BadName | Rule::NameTooLong => Cause::Usage,
            Rule::NoSpace => Cause::NoSpace,
            Rule::Damaged => Cause::Store,
            _ => Cause::Other,
        };
        // Whoever shows it shows the rule's code beside the reason.
        let rule = Some(refusal.rule);
        Failure { rule, ..Failure::new(cause, refusal.reason, refusal.remedy) }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let ConfigError { file, line, reason, subject } = error;
        let reason = format!("{}: {reason}", file.shown());
        let remedy = match subject {
            Subject::Layout => LAYOUT_SHOWN,
            Subject::Kind => {
                "`.workfs/kinds/` of a mount has those that come with workfs, to go by"
            }
        };
        Failure { line, ..Failure::new(Cause::Usage, reason, remedy) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (cause, remedy) = match &error {
            StoreError::Full(_) => (Cause::NoSpace, "free space where the store lies"),
            StoreError::ReadOnly(text) if !text.contains("ermission denied") => {
                (Cause::Denied, "make the store's file and directory writable")
            }
            StoreError::ReadOnly(_) | StoreError::Unreadable(_) => (Cause::Denied, OWN_STORE),
            StoreError::Beside { remedy, .. } => (Cause::Denied, remedy.as_str()),
            StoreError::NoDescriptors(_) => (Cause::Busy, MORE_DESCRIPTORS),
            StoreError::NoThread(_) => (Cause::Busy, MORE_THREADS),
            StoreError::Busy(_) => (Cause::Busy, "end what writes to the store's file"),
            StoreError::Held { pid, .. } => {
                let remedy = format!(
                    "use that daemon, or end it first; if it listens to nobody, since its socket is \
                     gone: `workfs unmount DIR` ends it with its last mount, and so does `kill {pid}`"
                );
                return Failure::new(Cause::Held, error.to_string(), remedy);
            }
            StoreError::HeldElsewhere { .. } => {
                (Cause::Held, "use that daemon by the name that it has, or end it first")
            }
            StoreError::BeingRead { .. } => (Cause::Held, "end that process first"),
            StoreError::Older { .. } => {
                (Cause::Store, "make its file and directory writable, then run any command on it")
            }
            StoreError::Newer { .. } => (Cause::Store, "use a newer workfs"),
            StoreError::NotAStore(_) => {
                (Cause::Store, "name the store's file with `--store`; this one was left alone")
            }
            StoreError::Network { .. } => (Cause::Store, "put it on a local disk"),
            StoreError::Impossible(_) => {
                let remedy = "`workfs fsck` says what is damaged; restore a backup: `workfs restore FILE \
                              --force`, which keeps this one";
                (Cause::Store, remedy)
            }
            StoreError::Moved(_) | StoreError::Failed(_) => (Cause::Other, "see `workfs doctor`"),
        };
        Failure::new(cause, error.to_string(), remedy)
    }
}

impl From<workfs_mount::MountError> for Failure {
    fn from(error: workfs_mount::MountError) -> Self {
        use workfs_mount::MountError as E;
        if let E::Other { source: why, .. } | E::NoFuseDevice(why) = &error {
            let (is_short, remedy) = match why.raw_os_error() {
                Some(libc::EAGAIN) => (true, MORE_THREADS),
                _ => (wants_descriptors(why), MORE_DESCRIPTORS),
            };
            if is_short {
                return Failure::new(Cause::Busy, error.to_string(), remedy);
            }
        }
        let cause = match &error {
            E::NotFound(_) => Cause::Absent,
            E::NotADirectory(_) => Cause::Usage,
            E::NotPermitted { .. } | E::OthersRefused => Cause::Denied,
            E::TooMany { .. } => Cause::Busy,
            E::NoFuseDevice(_)
            | E::DeviceRefused(_)
            | E::NoFusermount
            | E::DeadMount(_)
            | E::Other { .. } => Cause::Mount,
        };
        let remedy = error.remedy().unwrap_or_else(|| "see `workfs doctor`".to_owned());
        Failure::new(cause, error.to_string(), remedy)
    }
}
