//! What a writer has seen: nothing is replaced by who has not read it.

use std::sync::Arc;

use serde_json::Value;

use crate::names::AgentName;
use crate::numbers::{Attempt, RecordKey, Version};
use crate::refusal::{Refusal, Rule};
use crate::store::{Record, StoreError};

use super::governed::Home;
use super::lease::over;
use super::{Stop, Text, Turn};

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

impl Turn<'_> {
    /// Refuses a text that would move `record`, by being written at `home`, and was not made from
    /// what it says now. Whoever never read it may write it anew; but one who had it before and lost
    /// it writes late, and what does not say whose text it is, where the record does, is none of it.
    pub(super) fn require_made_of(
        &self,
        record: &Record,
        (lies, home): (&Home, &Home),
        (sight, text): (&Sight, &Text),
    ) -> Result<(), Stop> {
        if sight.of(record.key) == Base::Seen(record.version) {
            return Ok(());
        }
        let refuse = |refusal| Stop::rejected(refusal, home.file_path(), Arc::clone(&text.bytes));
        let before = self.content(record)?;
        if before[..] != text.bytes[..]
            && let Some(owner) = &home.owner
        {
            if self.has_lost(record, owner)? {
                return Err(refuse(over(record, owner)));
            }
            let id = &home.kind().fields().id;
            let says_id = |text: &Text| {
                text.parsed.as_ref().map(|said| said.value().get(id).is_some()).unwrap_or(true)
            };
            if record.owner.is_none() && !says_id(text) && says_id(&Text::new(before)) {
                let (lies, to) = (lies.file_path(), home.governed.dir_path());
                let reason = format!("`{lies}` is there already, and this is no text of it");
                let remedy = format!("move it first: mv {lies} {to}/; then write");
                return Err(refuse(Refusal::new(Rule::Taken, reason, remedy)));
            }
        }
        sight.require_current(record, lies).map_err(refuse)
    }

    /// Whether `owner` had the record before and has it no more, however that ended.
    fn has_lost(&self, record: &Record, owner: &AgentName) -> Result<bool, StoreError> {
        if record.lapsed.as_ref() == Some(owner) {
            return Ok(true);
        }
        if record.owner.is_some() || record.attempt == Attempt(0) {
            return Ok(false);
        }
        let had = self.find_event(record, |line| {
            line.pointer("/payload/owner").and_then(Value::as_str) == Some(owner.as_str())
        })?;
        Ok(had.is_some())
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
