//! Judging content: the kind's rules and the workspace's policy, with the place in the text.

use std::sync::Arc;

use crate::engine::Turn;
use crate::engine::places::governed::{Home, path_of};
use crate::kind::{Fault, Kind, Role};
use crate::ledger::Trace;
use crate::names::RecordId;
use crate::record::{Document, Flaw};
use crate::refusal::{Refusal, Rule};
use crate::store::{Read, Record, Standing, StoreError};

/// A whole text, parsed before it comes to the writer, so that the writer does not wait for it.
#[derive(Clone, Debug)]
pub struct Text {
    /// The bytes as they were written.
    pub bytes: Arc<[u8]>,
    /// What they say, or what is wrong with them.
    pub parsed: Result<Document, Flaw>,
}

impl Text {
    /// Parses `bytes`.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let parsed = Document::parse(&bytes);
        Text { bytes, parsed }
    }

    /// The text that a record has now.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn of(read: &dyn Read, record: &Record) -> Result<Self, StoreError> {
        let version = read.version(record.version_g)?;
        Ok(Text::new(version.map(|version| version.content).unwrap_or_default()))
    }

    /// A text that is known to be right and need not be read.
    pub(in crate::engine) fn unread(bytes: Vec<u8>) -> Self {
        let why = "this text was not read";
        let parsed = Err(Flaw {
            rule: Rule::Store,
            reason: why.to_owned(),
            remedy: String::new(),
            place: None,
            at_end: false,
        });
        Text { bytes: bytes.into(), parsed }
    }

    /// The status that it says, in the kind of `home`.
    pub(in crate::engine) fn status(&self, home: &Home) -> Option<String> {
        self.status_in(home.kind())
    }

    /// The status that it says, as a record of `kind`.
    #[must_use]
    pub fn status_in(&self, kind: &Kind) -> Option<String> {
        let document = self.parsed.as_ref().ok()?;
        kind.status_of(document.value()).map(str::to_owned)
    }

    /// The step of a larger piece of work that the text says it continues, in the words of W3C's trace
    /// context: `traceparent: 00-<trace>-<span>-<flags>`. What is none is left alone, as W3C asks.
    pub(super) fn sender(&self) -> Option<Trace> {
        let document = self.parsed.as_ref().ok()?;
        Trace::parse(document.value().get("traceparent")?.as_str()?).ok()
    }

    /// The id that it says, in the kind of `home`.
    pub(super) fn says_id(&self, home: &Home) -> Option<&str> {
        self.parsed.as_ref().ok()?.value().get(&home.kind().fields().id)?.as_str()
    }

    /// What the text says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn document(&self) -> Result<&Document, Refusal> {
        self.parsed.as_ref().map_err(|flaw| Refusal::from(flaw.clone()))
    }

    /// A fault of the kind's rules as a refusal, with its line and column.
    #[must_use]
    pub fn refusal(&self, fault: Fault) -> Refusal {
        let place = self
            .parsed
            .as_ref()
            .ok()
            .and_then(|document| document.place_of(&self.bytes, &fault.pointer));
        Refusal { place, ..Refusal::from(fault) }
    }

    /// Judges the text as the content of a record at `home`.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn judge(&self, home: &Home) -> Result<(), Refusal> {
        let document = self.document()?;
        let judged = home.governed.binding.judge(document.value(), &home.id, home.state);
        judged.map_err(|fault| self.refusal(fault))
    }

    /// Judges the text as the next version of a record of which `before` is the status that counts.
    ///
    /// # Errors
    /// That the move of status is not the role's, whatever else is wrong; else the first rule that it
    /// breaks.
    pub fn judge_next(&self, home: &Home, before: Option<&str>, role: Role) -> Result<(), Refusal> {
        let judged = self.judge(home);
        let to = self.status(home);
        let moved = home.kind().judge_status_move(home.state, before, to.as_deref(), role);
        match moved {
            Err(fault) if fault.rule == Rule::Forbidden => Err(self.refusal(fault)),
            moved => judged.and_then(|()| moved.map_err(|fault| self.refusal(fault))),
        }
    }
}

impl Turn<'_> {
    /// The refusal of a text that says another record's id, as it is where that lies somewhere: who
    /// copied it there, perhaps through a link, wanted to move it.
    pub(super) fn told_whose(
        &self,
        text: &Text,
        home: &Home,
        refusal: Refusal,
    ) -> Result<Refusal, StoreError> {
        if refusal.rule != Rule::IdDiffers {
            return Ok(refusal);
        }
        let said = text.says_id(home).and_then(|id| RecordId::new(id).ok());
        let other = said.map(|id| self.txn.record_named(home.governed.workspace, &id));
        let Some(Record { id, standing: Standing::Live { dir, name, .. }, .. }) =
            other.transpose()?.flatten()
        else {
            return Ok(refusal);
        };
        let (from, to) = (path_of(self.txn, dir, &name)?, home.governed.dir_path());
        let reason = format!("this is the text of `{id}`, in the file of `{}`", home.id);
        // Beside the file that was written there is nothing to move.
        let remedy = if dir == home.dir {
            format!("say `id: {}` in it, or save it as `{from}`", home.id)
        } else {
            let (from, to) = (from.in_shell(), to.in_shell());
            format!("a copy moves nothing: mv {from} {to}/; or say `id: {}` in it", home.id)
        };
        Ok(Refusal { reason, remedy, ..refusal })
    }
}
