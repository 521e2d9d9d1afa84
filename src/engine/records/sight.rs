//! What a writer has seen: whoever has not read what is there does not replace it.

use std::sync::Arc;

use serde_json::Value;

use crate::engine::change::turn::Lookback;
use crate::engine::lease::over;
use crate::engine::places::governed::Home;
use crate::engine::{Stop, Text, Turn};
use crate::limits::HISTORY_STEPS_MAX;
use crate::names::{AgentName, TreePath};
use crate::numbers::{Attempt, RecordKey, Version};
use crate::refusal::{Refusal, Rule};
use crate::store::{Record, StoreError};

/// Which version a save was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The writer never opened the record: it may replace it.
    Unseen,
    /// The version that the writer, or who was started by it, saw last.
    Seen(Version),
    /// The version that was seen last by who started the writer, which saw none. It may be stale by
    /// that, and may still not know what the record says: a late writer's sibling knows it, too.
    Heard(Version),
    /// The writer saw what it said, and nobody else has changed that since.
    Current,
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
        self.of(record.key).require_current(record, home)
    }
}

impl Base {
    /// Whether the writer knows what the record says now.
    pub(super) fn knows(self, record: &Record) -> bool {
        self == Base::Current || self == Base::Seen(record.version)
    }

    /// Refuses a save that was made from another version than the record's current one.
    ///
    /// # Errors
    /// [`Rule::Stale`].
    pub fn require_current(self, record: &Record, home: &Home) -> Result<(), Refusal> {
        match self {
            Base::Seen(seen) | Base::Heard(seen) if seen != record.version => {
                Err(stale(home, seen, record.version))
            }
            Base::Seen(_) | Base::Heard(_) | Base::Unseen | Base::Current => Ok(()),
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

impl Turn<'_> {
    /// Refuses a text that would move `record`, which lies at `lies`, by being written at `home`, and
    /// was not made from what it says now. Whoever never read it may write it anew where it becomes his; but one who
    /// had it before and lost it writes late, and what does not say whose text it is, where the
    /// record does, is none of it. Into nobody's directory it is the text of something else, which
    /// was given an id that is in use.
    pub(super) fn require_made_of(
        &self,
        record: &Record,
        (lies, home): (&TreePath, &Home),
        (sight, text): (&Sight, &Text),
    ) -> Result<(), Stop> {
        let base = sight.of(record.key);
        if base.knows(record) {
            return Ok(());
        }
        let refuse = |refusal| Stop::rejected(refusal, home.file_path(), Arc::clone(&text.bytes));
        let before = self.content(record)?;
        if before[..] != text.bytes[..] {
            if let Some(late) = self.late_by(record, home.owner.as_ref())? {
                return Err(refuse(late));
            }
            let is_nobodys =
                || record.owner.is_none() && is_nobodys(home, text, &Text::new(before));
            if is_blind(record, home, base) || is_nobodys() {
                return Err(refuse(no_text_of(lies, home)));
            }
        }
        sight.require_current(record, home).map_err(refuse)
    }

    /// The refusal of what `owner` writes of a record that it had before and has no more, however that ended.
    pub(super) fn late_by(
        &self,
        record: &Record,
        owner: Option<&AgentName>,
    ) -> Result<Option<Refusal>, StoreError> {
        let Some(owner) = owner else { return Ok(None) };
        if record.lapsed.as_ref() == Some(owner) {
            return Ok(Some(over(record, owner)));
        }
        if record.owner.is_some() || record.attempt == Attempt(0) {
            return Ok(None);
        }
        let had = self.past_of(record, |line| {
            line.pointer("/payload/owner").and_then(Value::as_str) == Some(owner.as_str())
        })?;
        Ok(match had {
            Lookback::HasIt => Some(over(record, owner)),
            Lookback::HasNot => None,
            // Who never had it loses nothing by reading it first; what who had it writes late would be lost.
            Lookback::TooLong => Some(perhaps_over(record, owner)),
        })
    }
}

/// The refusal where the record's past is too long to tell whether the writer had it.
fn perhaps_over(record: &Record, owner: &AgentName) -> Refusal {
    let id = &record.id;
    Refusal::new(
        Rule::LeaseOver,
        format!(
            "whether {owner} had `{id}` before, and writes late, cannot be told: it has over {HISTORY_STEPS_MAX} events"
        ),
        "claim it by `mv`, or read it, then write what you make of that",
    )
}

/// Whether who writes at `home` has read nothing of a record that lay at rest, or that would come to
/// a directory of nobody's by it: that is no claim.
pub(super) fn is_blind(record: &Record, home: &Home, base: Base) -> bool {
    let kind = home.kind();
    let rests = || {
        let from = kind.state_named(record.state.as_str()).map(|from| kind.state(from));
        from.is_none_or(|from| !from.initial && from.lease.is_none())
    };
    base == Base::Unseen && (home.owner.is_none() || rests())
}

/// The refusal of a text at `home` that is not the one of the record which lies at `lies`.
pub(super) fn no_text_of(lies: &TreePath, home: &Home) -> Refusal {
    let (from, to) = (lies.in_shell(), home.governed.dir_path().in_shell());
    Refusal::new(
        Rule::Taken,
        format!("`{lies}` is there already, and this is no text of it"),
        format!("if it is: move it first, mv {from} {to}/, then write; else take another id"),
    )
}

/// Whether a text does not say whose it is, where the record's own does.
fn is_nobodys(home: &Home, text: &Text, before: &Text) -> bool {
    let id = &home.kind().fields().id;
    let says_id = |text: &Text| {
        text.parsed.as_ref().map(|said| said.value().get(id).is_some()).unwrap_or(true)
    };
    !says_id(text) && says_id(before)
}

pub(super) fn stale(home: &Home, seen: Version, current: Version) -> Refusal {
    let name = &home.name;
    Refusal::new(
        Rule::Stale,
        format!("`{name}` is at version {current}; you read version {seen}"),
        format!("read `{name}` again, make your change to what it says now, and save that"),
    )
}
