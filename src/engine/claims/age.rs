//! How old a record is whose text does not say so: as old as its making.
//!
//! What must stay true: no text that is not the record's any more says how old it is, and no save makes it younger.
//! A claim asks nothing here, and a save looks at no more than the text before it, but where that said an age.
//! Deliberately not here: what a text says (`kind/lifecycle/order`).

use super::links::Links;
use crate::engine::{Text, Turn, event_of_record};
use crate::kind::Kind;
use crate::numbers::UnixNanos;
use crate::store::{Record, Standing, StoreError, earlier};

impl Turn<'_> {
    /// The age of a record whose text, which is written already, says none.
    pub(super) fn own_age(&self, record: &Record, kind: &Kind) -> Result<UnixNanos, StoreError> {
        let noted = record.readiness.since;
        if noted == UnixNanos(0) {
            return Ok(self.now);
        }
        let is_there = record.standing != Standing::Gone;
        if is_there && kind.order().tells_age() && self.was_told_age(record, kind)? {
            return self.made_at(record);
        }
        Ok(noted)
    }

    /// Notes anew how old a record is whose text says nothing of it, where other rules read it otherwise.
    pub(in crate::engine) fn age_anew(
        &self,
        record: &mut Record,
        links: &Links,
    ) -> Result<(), StoreError> {
        if links.wants.since.is_none() {
            record.readiness.since = self.made_at(record)?;
        }
        Ok(())
    }

    /// Whether the text that counted before the present one may have said an age: a flagged one counts for nothing.
    fn was_told_age(&self, record: &Record, kind: &Kind) -> Result<bool, StoreError> {
        let mut at = record.version_g;
        loop {
            let Some(version) = self.txn.version(at)? else { return Ok(false) };
            at = earlier(at, version.before_g)?;
            let Some(before) = self.txn.version(at)? else { return Ok(false) };
            let text = Text::new(before.content);
            let is_told = |said: &_| kind.wants(said).since.is_some();
            if text.parsed.as_ref().map_or(true, |document| is_told(document.value())) {
                return Ok(true);
            }
            let event = self.txn.event(at)?.map(|row| row.said());
            let is_flagged = event.is_some_and(|said| said.pointer("/payload/flagged").is_some());
            if !is_flagged {
                return Ok(false);
            }
        }
    }

    /// When a record was made: by its first event, or by the first since it was last removed.
    fn made_at(&self, record: &Record) -> Result<UnixNanos, StoreError> {
        let (mut at, mut made) = (record.last_g, None);
        while let Some(event) = event_of_record(self.txn, at)?.filter(|event| !event.is_end) {
            at = event.before;
            made = Some(event);
        }
        let Some(made) = made else { return Ok(self.now) };
        let version = self.txn.version(made.row.g)?;
        Ok(version.map_or_else(|| made.at(), |version| version.at))
    }
}
