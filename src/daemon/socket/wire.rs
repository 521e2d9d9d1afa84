//! What is said over the control socket: one JSON value a line.
//!
//! The client sends an [`Ask`], the daemon sends [`Answer`]s, the last of which is final; then the
//! client may ask again. Before that it can only interrupt ([`Ask::Interrupt`]). What must stay true: a client of another protocol is told so. Deliberately not
//! here: how lines are carried (`lines`), and how an ask is served.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::daemon::failure::{Cause, Failure};
use crate::names::{Shown, ShownPath, TreePath, printable_start, shell_word};
use crate::service::{Caller, Part, Reply, Request};

/// The protocol's number; it changes when an older client would misunderstand.
pub const PROTOCOL: u32 = 1;

/// A line of the client.
#[derive(Debug, Serialize, Deserialize)]
pub struct AskLine<A> {
    /// See [`PROTOCOL`].
    pub workfs: u32,
    /// What is asked.
    pub ask: A,
}

/// What can be asked of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Mount on a directory.
    Mount(MountAsk),
    /// Unmount a directory.
    Unmount(UnmountAsk),
    /// What is mounted?
    Ps,
    /// Unmount all and end.
    Stop,
    /// One of the commands on what the store holds.
    Do(Request),
    /// The same for somebody in a mount that shows a part of the tree, or whose agent only reads.
    Within(WithinAsk),
    /// While a command is done: do no more of it, and say how far it came. It has no answer of its own: it
    /// may come when that of the command is on its way already. It is refused where nothing was asked yet.
    Interrupt,
}

/// See [`Ask::Within`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithinAsk {
    /// The directory of the tree that is all there is; what the request names lies below it.
    pub root: ShownPath,
    /// The agent that it acts for only reads in its own mount, as one that was removed does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observes: bool,
    /// What is asked.
    #[serde(rename = "do")]
    pub request: Request,
}

/// See [`Ask::Mount`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountAsk {
    /// The directory, absolute and resolved.
    pub dir: String,
    /// What `-o` said.
    #[serde(default)]
    pub options: String,
    /// For which agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// In which role.
    #[serde(default)]
    pub role: Option<String>,
    /// The directory of the tree that is shown.
    #[serde(default)]
    pub root: Option<String>,
    /// The directory may have files.
    #[serde(default)]
    pub nonempty: bool,
    /// The mount lives as long as the connection; its end is answered with [`Answer::Ended`].
    #[serde(default)]
    pub hold: bool,
    /// The directory was made for this mount and goes with it.
    #[serde(default)]
    pub temporary: bool,
    /// The client mounts in a name space of its own and sends the connection, when it hears
    /// [`Answer::SendConnection`].
    #[serde(default)]
    pub private: bool,
    /// The daemon goes on from then on without mounts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linger: bool,
}

impl MountAsk {
    /// What `workfs mount` is to be called with to ask for the same.
    pub fn words(&self) -> String {
        let named = [("--agent", &self.agent), ("--role", &self.role), ("--root", &self.root)];
        let options = Some(&self.options).filter(|options| !options.is_empty());
        let named = named.into_iter().map(|(flag, value)| (flag, value.as_ref()));
        let said = named.chain([("-o", options)]).filter_map(|(flag, value)| Some((flag, value?)));
        let mut words: Vec<String> =
            said.map(|(flag, value)| format!("{flag} {}", shell_word(value.as_bytes()))).collect();
        words.extend(self.nonempty.then(|| "--nonempty".to_owned()));
        words.push(shell_word(self.dir.as_bytes()));
        words.join(" ")
    }
}

/// See [`Ask::Unmount`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnmountAsk {
    /// The directory, absolute and resolved.
    pub dir: String,
    /// Take it from sight also when it is in use.
    #[serde(default)]
    pub lazy: bool,
}

/// One mount of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountInfo {
    /// Its number.
    pub mount: u32,
    /// Where.
    pub dir: String,
    /// For which agent.
    pub agent: Option<String>,
    /// In which role whoever uses it acts.
    pub role: String,
    /// The directory of the tree that is shown; empty for all of it.
    pub root: ShownPath,
    /// What `-o` said.
    pub options: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// The user who mounted it.
    pub uid: u32,
    /// Taken from sight, but still in use.
    pub detached: bool,
    /// Seen only in a name space of its own (`workfs exec`).
    pub private: bool,
    /// The device number of its files, wherever they are seen; none where the daemon does not see them.
    pub device: Option<u64>,
}

/// A daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Its store.
    pub store: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// What a commit survives: `full` or `normal`.
    pub sync: String,
    /// The store's file was removed, or another one has its name.
    #[serde(default)]
    pub is_removed: bool,
}

impl DaemonInfo {
    /// Fails where the daemon's store is none that anybody finds any more: what is written there ends with the
    /// daemon.
    ///
    /// # Errors
    /// If it was removed.
    pub fn expect_store(&self) -> Result<(), Failure> {
        if !self.is_removed {
            return Ok(());
        }
        let (store, pid) = (self.store.shown(), self.pid);
        let reason = format!(
            "process {pid} serves a store that is not {store} any more: that file was removed or replaced, and what \
             is in it ends with that process"
        );
        let remedy = "`workfs backup FILE` saves it, `workfs unmount --all` ends the process";
        Err(Failure::new(Cause::Held, reason, remedy))
    }
}

/// What a daemon answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Of a command: progress, lines, at last a report or an error.
    Reply(Reply),
    /// To a private mount: the client is to make it and to send its connection to the kernel.
    SendConnection,
    /// It is mounted.
    Mounted {
        /// The mount.
        mount: MountInfo,
        /// It was before.
        already: bool,
        /// What else is to be told.
        notes: Vec<String>,
    },
    /// It is unmounted.
    Unmounted {
        /// It was the last one: the daemon ends, and closes the connection when it has.
        ending: bool,
    },
    /// What is mounted.
    Mounts {
        /// The daemon.
        daemon: DaemonInfo,
        /// Its mounts.
        mounts: Vec<MountInfo>,
    },
    /// The daemon ends, and closes the connection when it has.
    Stopping,
    /// The held mount has ended.
    Ended,
    /// It was not done.
    Failed(Failure),
}

impl WithinAsk {
    /// The caller, as it asks from there.
    ///
    /// # Errors
    /// If its root is no path.
    pub fn of(&self, caller: Caller) -> Result<Caller, Failure> {
        let part = part_of(&self.root).ok_or_else(|| {
            let root = printable_start(self.root.as_bytes());
            let reason = format!("`{root}` is no path of the tree");
            Failure::new(Cause::Usage, reason, "name it as `ps` shows it")
        })?;
        Ok(Caller { observes: self.observes, ..caller }.seeing(part))
    }
}

/// The part of the tree at a path of a report.
#[must_use]
pub fn part_of(root: &ShownPath) -> Option<Part> {
    TreePath::asked(root.as_bytes()).ok().map(Part::below)
}

impl Answer {
    /// Whether nothing more follows.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Answer::Reply(reply) => matches!(reply, Reply::Report(_) | Reply::Error(_)),
            Answer::SendConnection
            | Answer::Mounted { .. }
            | Answer::Unmounted { .. }
            | Answer::Mounts { .. }
            | Answer::Stopping
            | Answer::Ended
            | Answer::Failed(_) => true,
        }
    }
}

impl Ask {
    /// What somebody asks who sees this of the tree; `observes` as in [`WithinAsk`].
    #[must_use]
    pub fn of(part: &Part, observes: bool, request: Request) -> Ask {
        if part.is_whole() && !observes {
            return Ask::Do(request);
        }
        Ask::Within(WithinAsk { root: part.root().into(), observes, request })
    }

    /// What a line asks that was received; the error is to be answered.
    ///
    /// # Errors
    /// If it is of another protocol, or nothing that can be asked.
    pub fn of_line(line: &[u8]) -> Result<Ask, Failure> {
        // What another protocol can ask is nothing that can be read here.
        let head: AskLine<IgnoredAny> = read(line)?;
        if head.workfs != PROTOCOL {
            return Err(other_protocol(head.workfs));
        }
        Ok(read::<AskLine<Ask>>(line)?.ask)
    }

    /// The line to send.
    #[must_use]
    pub fn line(&self) -> AskLine<&Ask> {
        AskLine { workfs: PROTOCOL, ask: self }
    }
}

/// Reads it as the type that it is to be, and not by way of a value, which would take the last of a key that
/// is there twice.
fn read<A: DeserializeOwned>(line: &[u8]) -> Result<A, Failure> {
    serde_json::from_slice(line).map_err(|error| misunderstood(&error))
}

fn misunderstood(error: &serde_json::Error) -> Failure {
    let reason = format!("the daemon does not understand the request: {error}");
    Failure::new(Cause::Usage, reason, "use the workfs that the daemon was started from")
}

fn other_protocol(theirs: u32) -> Failure {
    let pid = std::process::id();
    Failure::new(
        Cause::Mount,
        format!("the daemon (process {pid}) speaks protocol {PROTOCOL}, this workfs {theirs}"),
        "unmount with the older workfs and mount again with the newer one",
    )
}
