//! What a writer has seen: nothing is replaced by who has not read it.

use std::sync::Arc;

use crate::numbers::{RecordKey, Version};
use crate::refusal::{Refusal, Rule};
use crate::store::Record;

use super::governed::Home;

/// Which version a save was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The writer never opened the record: it may replace it.
    Unseen,
    /// The version that the writer saw last.
    Seen(Version),
}

/// How the engine learns which version a save was made from.
#[derive(Clone)]
pub enum Sight {
    /// It is known: the handle was opened with it.
    Known(Base),
    /// The door remembers what its caller saw of each record. Asked only where a save turns out to
    /// be one of a record that exists, so that a claim does not pay for it.
    Ask(Arc<dyn Fn(RecordKey) -> Base + Send + Sync>),
}

impl Sight {
    /// What was seen of a record.
    #[must_use]
    pub fn of(&self, record: RecordKey) -> Base {
        match self {
            Sight::Known(base) => *base,
            Sight::Ask(ask) => ask(record),
        }
    }

    /// Refuses a save that was made from another version than the record's current one.
    pub(super) fn require_current(&self, record: &Record, home: &Home) -> Result<(), Refusal> {
        match self.of(record.key) {
            Base::Seen(seen) if seen != record.version => Err(stale(home, seen, record.version)),
            Base::Seen(_) | Base::Unseen => Ok(()),
        }
    }
}

impl std::fmt::Debug for Sight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Sight::Known(base) => base.fmt(f),
            Sight::Ask(_) => f.write_str("Ask"),
        }
    }
}

pub(super) fn stale(home: &Home, seen: Version, current: Version) -> Refusal {
    let name = &home.name;
    Refusal::new(
        Rule::Stale,
        format!("`{name}` is at version {current}; you read version {seen}"),
        format!("read `{name}` again, make your change to what it says now, and save that"),
    )
}
