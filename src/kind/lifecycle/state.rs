//! What a lifecycle is made of, once it is known to make sense.

use std::time::Duration;

use super::pattern::Pattern;
use super::role::Role;
use crate::kind::field_path::FieldPath;
use crate::names::{AgentName, StateName};

/// A state's index in its kind. Only the kind that gave it knows what it means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StateIx(pub(in crate::kind) u8);

impl StateIx {
    pub(in crate::kind) fn at(self) -> usize {
        usize::from(self.0)
    }
}

/// Which values the status field may have in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statuses {
    /// The directory does not care: any value of the schema's enumeration, never touched.
    Any,
    /// One of these; the first is what the daemon writes when it must.
    Listed(Vec<String>),
}

impl Statuses {
    /// May a record of this status lie here?
    #[must_use]
    pub fn contains(&self, status: &str) -> bool {
        match self {
            Statuses::Any => true,
            Statuses::Listed(all) => all.iter().any(|one| one == status),
        }
    }

    /// What the daemon writes.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        match self {
            Statuses::Any => None,
            Statuses::Listed(all) => all.first().map(String::as_str),
        }
    }
}

/// A move of the status field that a save may make within one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMove {
    /// Before.
    pub from: String,
    /// After.
    pub to: String,
    /// Who may.
    pub by: Vec<Role>,
}

/// How long a claim holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Until when, from the claim or the last heartbeat.
    pub ttl: Duration,
    /// How often the owner shows that it lives.
    pub heartbeat: Option<Duration>,
    /// What becomes of a record whose lease has run out.
    pub on_expiry: OnExpiry,
}

/// What becomes of a record whose lease has run out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnExpiry {
    /// It goes to this state.
    State(StateIx),
    /// It stays and gets this status; its owner may not change it any more.
    Status(String),
    /// It stays with its owner; only the ledger tells.
    Event,
}

/// How often a record is tried again, and how soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often in all.
    pub attempts: u32,
    /// The first wait; each next one is twice as long.
    pub first: Duration,
    /// No wait is longer.
    pub longest: Duration,
    /// Up to this much is added at random.
    pub jitter_percent: u32,
    /// Where it goes when the attempts are spent.
    pub exhausted: StateIx,
}

/// One state of a lifecycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its name.
    pub name: StateName,
    /// Its directories; the first is where the daemon puts things, the others are accepted.
    pub dirs: Vec<Pattern>,
    /// The values of the status field here; `Any` where the kind has no such field.
    pub status: Statuses,
    /// The legal moves of the status here; `None`: all.
    pub moves: Option<Vec<StatusMove>>,
    /// What a record must have to lie here.
    pub requires: Vec<FieldPath>,
    /// What a record must have while its status is this.
    pub status_requires: Vec<(String, Vec<FieldPath>)>,
    /// New records start here.
    pub initial: bool,
    /// Work on a record has ended here; only operators take it out again.
    pub terminal: bool,
    /// How long a claim holds.
    pub lease: Option<Lease>,
    /// How a failed record is tried again.
    pub retries: Option<Retries>,
    /// A record cannot lie here without an owner: no directory of the definition is without one.
    pub needs_owner: bool,
}

impl State {
    /// Its canonical directory as people read it: `assigned/<agent>/`, or `assigned/bob/`.
    #[must_use]
    pub fn shown(&self, owner: Option<&AgentName>) -> String {
        self.dirs.first().map_or_else(|| self.name.to_string(), |dir| dir.shown(owner))
    }

    /// Can a status become this one while a record lies here? The same again is no change.
    #[must_use]
    pub fn lets_become(&self, status: &str) -> bool {
        match (&self.status, &self.moves) {
            (Statuses::Any, _) => true,
            (Statuses::Listed(all), None) => all.len() > 1 && self.status.contains(status),
            (Statuses::Listed(_), Some(moves)) => {
                moves.iter().any(|one| one.to == status && one.from != status)
            }
        }
    }

    /// Does its canonical directory name an owner?
    #[must_use]
    pub fn has_owner(&self) -> bool {
        self.dirs.first().is_some_and(Pattern::has_owner)
    }
}

/// When a transition writes a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampWhen {
    /// Each time, over what is there.
    Always,
    /// Only where the field is absent or null.
    IfAbsent,
}

/// A time stamp that a transition writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The top-level field.
    pub field: String,
    /// When.
    pub when: StampWhen,
}

/// A way from one state to another, or from one directory of a state to another of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// From here.
    pub from: StateIx,
    /// To there.
    pub to: StateIx,
    /// What the ledger calls it: `claimed`.
    pub event: String,
    /// Who may; never empty.
    pub by: Vec<Role>,
    /// The time stamps it writes.
    pub stamps: Vec<Stamp>,
    /// What a record must have for it, besides what the target requires.
    pub requires: Vec<FieldPath>,
}

/// The longest time that a kind can name: as milliseconds it is far from any overflow.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64 * 86_400);

/// A kind has no use for no time at all.
pub(in crate::kind) fn some_time(time: Duration) -> Result<Duration, String> {
    match time {
        Duration::ZERO => Err("nothing is no time: `1s` is the least".to_owned()),
        time if time > LONGEST => Err("what never ends is no time: name a shorter one".to_owned()),
        time => Ok(time),
    }
}
