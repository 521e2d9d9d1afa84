//! What can go wrong in a store, by cause.

use crate::refusal::{Refusal, Rule};

/// A failure of the store itself (a broken rule is a [`Refusal`]).
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space for the change; nothing of it was kept.
    #[error("no space left for the store: {}", or_too_long(.0))]
    Full(String),
    /// The store's file cannot be written.
    #[error("the store cannot be written: {0}")]
    ReadOnly(String),
    /// There is no descriptor left to open its files with.
    #[error("the store cannot be opened: {0} ({limit})", limit = descriptors())]
    NoDescriptors(String),
    /// Another file, or none, has its name by now: no further connection to it can be made.
    #[error("{0} was removed, moved or replaced while it is served")]
    Moved(String),
    /// There can be no thread that it needs.
    #[error("a thread that the store needs cannot be started: {0}")]
    NoThread(String),
    /// Nor can it be read.
    #[error("the store cannot be read: {0}")]
    Unreadable(String),
    /// Nor can what lies at the name of one of its files beside it be opened.
    #[error("the store cannot be opened: {why}")]
    Beside {
        /// Which, and why.
        why: String,
        /// The way out.
        remedy: String,
    },
    /// Another process held the store's write lock for too long; nothing of the change was kept.
    #[error("another process holds the store's write lock: {0}")]
    Busy(String),
    /// Someone holds the store.
    #[error("the store {path} is held by process {pid}")]
    Held {
        /// The store's file.
        path: String,
        /// The daemon.
        pid: u32,
    },
    /// Someone holds the store under another name, or in another place.
    #[error(
        "the store {path} is the same file as one that process {pid} holds by another name or in \
         another place"
    )]
    HeldElsewhere {
        /// The store's file, as it was named here.
        path: String,
        /// The daemon; 0 where it cannot be told.
        pid: u32,
    },
    /// Processes that may not write it read it.
    #[error("the store {path} is being read by a process that may not write it")]
    BeingRead {
        /// The store's file.
        path: String,
    },
    /// A store of an earlier version of workfs, which cannot be written.
    #[error(
        "the store has schema {found}, older than {known}: it must be brought up to date where it can \
         be written"
    )]
    Older {
        /// Its schema.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// A store of a later version of workfs.
    #[error("the store has schema {found}, this workfs knows up to {known}")]
    Newer {
        /// Its schema.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// Not a store of workfs.
    #[error("{0} is not a workfs store")]
    NotAStore(String),
    /// On a network file system, where locks and mmap cannot be trusted.
    #[error("the store {path} is on a network file system ({fs})")]
    Network {
        /// The store's file.
        path: String,
        /// The file system's type.
        fs: String,
    },
    /// A row that cannot be.
    #[error("the store is damaged: {0}")]
    Impossible(String),
    /// Anything else from the engine below.
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// The cause of a system call at the store's files that failed, while they were to be written.
    pub(crate) fn of_writing(what: &str, error: &std::io::Error) -> StoreError {
        let text = format!("{what}: {error}");
        match error.raw_os_error() {
            _ if wants_descriptors(error) => StoreError::NoDescriptors(text),
            _ if is_full(error.kind()) => StoreError::Full(text),
            // The disk failed: it is no matter of what may be written.
            Some(libc::EIO) => StoreError::Failed(text),
            _ => StoreError::ReadOnly(text),
        }
    }
}

/// Whether there are too few descriptors left for a connection. SQLite does not say so; it has up to four
/// files open for one, and has closed them when it fails.
pub(crate) fn lacks_descriptors() -> bool {
    use rustix::fs::{Mode, OFlags, open};
    let one = |_| open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let four: Result<Vec<_>, _> = (0..4).map(one).collect();
    matches!(four, Err(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

fn descriptors() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let of_process = limit
        .map(|limit| format!("`ulimit -n`, which is {limit} for process {}", std::process::id()));
    of_process.unwrap_or_else(|| "the system has no file left".to_owned())
}

/// The way out where a store's place is somebody else's.
pub const OWN_STORE: &str = "use a store of your own (`--store`), or its owner's account";

/// The way out where a process, or the system, may open no more files.
pub const MORE_DESCRIPTORS: &str = "raise the limit (`ulimit -n`), or close some files";

/// The way out where a user, or a group of processes, may have no more threads.
pub const MORE_THREADS: &str =
    "raise the limit of processes (`ulimit -u`, or that of the container), or end some";

/// Whether a system call failed for want of a descriptor: of this process, or of the system.
#[must_use]
pub fn wants_descriptors(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Whether a system call failed for want of space: the disk's, a quota's, or under the limit of this process
/// on the length of files, which ends a write as a full disk does.
#[must_use]
pub fn is_full(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind as K;
    matches!(kind, K::StorageFull | K::QuotaExceeded | K::FileTooLarge)
}

/// What to say of want of space: names the limit on the length of files, where this process has one, since
/// `df` shows nothing of it.
#[must_use]
pub fn or_too_long(what: &str) -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    let Some(bytes) = limit else { return what.to_owned() };
    let own = std::process::id();
    format!(
        "{what} (or a file may not be longer: process {own} was started with `ulimit -f`, {bytes} bytes)"
    )
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        let reason = error.to_string();
        match error {
            StoreError::Full(_) => Refusal::new(
                Rule::NoSpace,
                reason,
                "free space where the store lies, then try again, and mount it again if it was mounted \
                 read-only: nothing was changed",
            ),
            StoreError::ReadOnly(_) => Refusal::new(
                Rule::ReadOnly,
                reason,
                "make the store's file and directory writable, and mount it again if it was mounted \
                 read-only: nothing was changed",
            ),
            StoreError::NoDescriptors(_) => Refusal::new(
                Rule::TooManyHandles,
                reason,
                "raise the limit, or close some files, then try again: nothing was changed",
            ),
            StoreError::NoThread(_) => Refusal::new(
                Rule::Deadline,
                reason,
                "raise the limit of processes, or end some, then try again: nothing was changed",
            ),
            StoreError::Busy(_) => Refusal::new(
                Rule::Deadline,
                reason,
                "end what writes to the store's file, then try again: nothing was changed",
            ),
            StoreError::Beside { remedy, .. } => Refusal::new(Rule::Store, reason, remedy),
            StoreError::Unreadable(_)
            | StoreError::Held { .. }
            | StoreError::HeldElsewhere { .. }
            | StoreError::BeingRead { .. }
            | StoreError::Older { .. }
            | StoreError::NotAStore(_)
            | StoreError::Network { .. }
            | StoreError::Moved(_)
            | StoreError::Failed(_) => Refusal::new(
                Rule::Store,
                reason,
                "see the daemon's log and run `workfs doctor`: nothing was changed",
            ),
            StoreError::Newer { .. } => {
                Refusal::new(Rule::Store, reason, "use a newer workfs: nothing was changed")
            }
            StoreError::Impossible(_) => Refusal::new(
                Rule::Damaged,
                reason,
                "`workfs fsck` says what is damaged: nothing was changed",
            ),
        }
    }
}
