//! How the process ends: the one table of exit codes.
//!
//! What must stay true: every failure that a user can meet has one code here, chosen by cause, and
//! `docs/cli.md` and `README.md` have the same table. Deliberately not here: what is printed, and which
//! rule is which cause (`service`).

use crate::daemon::Cause;
use crate::service;

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $means:literal;)*) => {
        /// How the process ends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Exit { $($(#[$doc])* $name = $code,)* }

        impl Exit {
            /// All, in the order of their codes.
            pub const ALL: &'static [Exit] = &[$(Exit::$name),*];

            /// What the code means, for `--help` and `docs/cli.md`.
            #[must_use]
            pub fn means(self) -> &'static str {
                match self { $(Exit::$name => $means,)* }
            }
        }
    };
}

table! {
    /// Done.
    Done = 0, "done";
    /// None of those below.
    Failed = 1, "it failed for a reason that is none of those below";
    /// The command line or the configuration makes no sense.
    Usage = 2, "the command line, an option or a configuration is wrong";
    /// Nothing to claim, to wait for or to list.
    Nothing = 3, "there is nothing to claim, to renew or to tell of, or nothing is mounted";
    /// A record, path, directory, mount or store is not there.
    Absent = 4, "the record, path, directory, mount or store is not there";
    /// Somebody else was faster or is using it.
    Conflict = 5, "taken, changed by someone else, or in use";
    /// The lifecycle, a role or the operating system forbids it.
    Denied = 6, "not permitted";
    /// The content is not valid.
    Invalid = 7, "the content is not valid";
    /// No FUSE, no mount, or no answer of the daemon.
    Mount = 8, "mounting does not work here, or the daemon cannot be reached";
    /// Another process holds the store.
    Held = 9, "another process holds the store";
    /// The store is newer, damaged, or none.
    Store = 10, "the store is newer than this workfs, damaged, or not a store";
    /// What was checked has problems.
    Problems = 11, "fsck, doctor, import, export, init or restore found problems";
    /// A full disk, of the store or of what is written outside of it.
    NoSpace = 12, "no space is left on a disk";
    /// A limit or a deadline.
    Busy = 75, "a limit or a deadline was met: try again";
    /// `claim --wait` waited in vain. The code is that of timeout(1).
    TimedOut = 124, "there was nothing to claim until the time to wait was over";
    /// A command that is run: as env(1) and shells have it.
    NotRun = 126, "`exec`, `txn`: the command cannot be run";
    /// The same.
    NotFound = 127, "`exec`, `txn`: the command was not found";
    /// Ctrl-C.
    Interrupted = 130, "interrupted";
}

/// The variables that commands go by, and what for.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("WORKFS_STORE", "--store"),
    ("WORKFS_AGENT", "for whom: --agent"),
    ("WORKFS_LOG", "what the daemon logs"),
    ("NO_COLOR", "no colours"),
];

impl Exit {
    /// The exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Lines for `--help`.
    #[must_use]
    pub fn help() -> String {
        let mut text = String::from("Exit codes:\n");
        for exit in Exit::ALL {
            text.push_str(&format!("{:>5}  {}\n", exit.code(), exit.means()));
        }
        let variables = ENVIRONMENT.iter().map(|(name, means)| format!("{name} ({means})"));
        text.push_str(&format!("\nEnvironment: {}.", variables.collect::<Vec<_>>().join(", ")));
        text
    }
}

impl From<Cause> for Exit {
    fn from(cause: Cause) -> Exit {
        match cause {
            Cause::Usage => Exit::Usage,
            Cause::Absent => Exit::Absent,
            Cause::Conflict => Exit::Conflict,
            Cause::Denied => Exit::Denied,
            Cause::Mount => Exit::Mount,
            Cause::Held => Exit::Held,
            Cause::Store => Exit::Store,
            Cause::Busy => Exit::Busy,
            Cause::NoSpace => Exit::NoSpace,
            Cause::Other => Exit::Failed,
        }
    }
}

impl From<service::Exit> for Exit {
    fn from(exit: service::Exit) -> Exit {
        match exit {
            service::Exit::Done => Exit::Done,
            service::Exit::Failed => Exit::Failed,
            service::Exit::Usage => Exit::Usage,
            service::Exit::Nothing => Exit::Nothing,
            service::Exit::TimedOut => Exit::TimedOut,
            service::Exit::Refused | service::Exit::Lost => Exit::Conflict,
            service::Exit::Denied => Exit::Denied,
            service::Exit::Invalid => Exit::Invalid,
            service::Exit::NoSpace => Exit::NoSpace,
            service::Exit::Busy => Exit::Busy,
            service::Exit::Held => Exit::Held,
            service::Exit::Store => Exit::Store,
            service::Exit::Absent => Exit::Absent,
            service::Exit::Problems => Exit::Problems,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_documented() {
        let codes: std::collections::BTreeSet<u8> =
            Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes.len(), Exit::ALL.len());
        let rows = Exit::ALL.iter().map(|exit| format!("| {} | {} |\n", exit.code(), exit.means()));
        let table = format!("| code | means |\n|---|---|\n{}\n", rows.collect::<String>());
        for (name, text) in [
            ("docs/cli.md", include_str!("../../docs/cli.md")),
            ("README.md", include_str!("../../README.md")),
        ] {
            assert!(text.contains(&table), "{name} has another table than this:\n{table}");
        }
    }
}
