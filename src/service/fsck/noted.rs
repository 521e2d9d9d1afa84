//! What a record's row has noted of its text and of when it is ready: it is what they say.
//!
//! By the rules that held when it was noted; rows that older rules made are left alone. The rules
//! themselves are the kind's and the engine's.

use std::sync::Arc;
use std::time::Duration;

use super::super::Failure;
use super::one::{One, Told};
use crate::engine::{Text, counts_as_done, lease_of, when};
use crate::kind::{Kind, Wants};
use crate::ledger::Via;
use crate::limits::LEASE_MAX;
use crate::numbers::{G, UnixNanos};
use crate::store::{Edge, Record, Sides, Standing, When};

/// What is known of a record's last changes.
pub(super) struct Last {
    /// The event that put it where it is.
    pub step: Option<G>,
    /// Its text.
    pub content: Option<Vec<u8>>,
}

/// The ways on which a transition takes a whole text, and looks at what that says.
const WITH_TEXT: [Via; 3] = [Via::Copy, Via::Backup, Via::Expiry];

impl One<'_, '_> {
    pub fn noted(&mut self, last: Last) -> Result<(), Failure> {
        let Some((rules, binding)) = self.rules else { return Ok(()) };
        let kind = &*binding.kind;
        let is_removed = self.record.standing == Standing::Gone;
        if let Some(content) = last.content
            && rules.held_at(self.record.version_g)
        {
            let text = Text::new(content);
            // That of a flagged text counts for nothing.
            let flags = |told: Arc<Told>| told.payload.flagged;
            if !self.event(self.record.version_g)?.is_some_and(flags) {
                self.status(kind, &text);
            }
            if !is_removed {
                self.text(kind, text)?;
            }
        }
        if !last.step.is_some_and(|step| rules.held_at(step)) {
            return Ok(());
        }
        if is_removed {
            // What it said of others went with it.
            if let Some(noted) = self.wants()? {
                self.misnoted(&kind.misnoted(&Wants::default(), &noted));
            }
        }
        if self.record.readiness.done != counts_as_done(kind, self.record) {
            let noted = if self.record.readiness.done { "done" } else { "not done" };
            self.problem(format!("is noted as {noted} for those that wait for it"));
        }
        self.turn(kind);
        if lease_of(kind, self.record).is_some() {
            let lease = self.read.lease(self.record.key);
            if self.got(lease)?.is_some_and(|lease| lease.is_none()) {
                self.problem("is somebody's, and no lease says until when");
            }
        }
        Ok(())
    }

    fn status(&mut self, kind: &Kind, text: &Text) {
        let said = text.status_in(kind);
        if said != self.record.status {
            let noted = self.record.status.clone();
            let [noted, said] = [noted, said].map(|s| s.unwrap_or_else(|| "none".to_owned()));
            self.problem(format!("is noted with status {noted}, and its text says {said}"));
        }
    }

    /// What its last text says that was taken for valid, and that was not just a transition's work.
    fn text(&mut self, kind: &Kind, newest: Text) -> Result<(), Failure> {
        let Some(noted) = self.wants()? else { return Ok(()) };
        let (mut at, mut text, mut first) = (self.record.version_g, newest, None);
        loop {
            let Some(told) = self.event(at)? else { return Ok(()) };
            // A flag that was taken away since was one of a text that is right.
            let is_mended = at == self.record.version_g && self.record.is_valid();
            if is_mended || !told.payload.flagged {
                let Ok(document) = text.document() else { return Ok(()) };
                let differing = kind.misnoted(&kind.wants(document.value()), &noted);
                if differing.is_empty() {
                    return Ok(());
                }
                first.get_or_insert(differing);
                let via = told.payload.via.as_deref();
                let has_text = WITH_TEXT.iter().any(|way| via == Some(way.as_str()));
                // `done` writes a text and moves it; `mv` alone writes what the transition does.
                if told.payload.from.is_none() || has_text {
                    break;
                }
            }
            let row = self.read.version(at);
            let Some(Some(row)) = self.got(row)? else { return Ok(()) };
            if row.before_g >= at || !self.rules.is_some_and(|(it, _)| it.held_at(row.before_g)) {
                return Ok(());
            }
            at = row.before_g;
            let row = self.read.version(at);
            let Some(Some(row)) = self.got(row)? else { return Ok(()) };
            text = Text::new(row.content);
        }
        self.misnoted(&first.unwrap_or_default());
        Ok(())
    }

    fn misnoted(&mut self, differing: &[&str]) {
        if !differing.is_empty() {
            let what = differing.join(", ");
            self.problem(format!("is noted otherwise than its text says: {what}"));
        }
    }

    /// What is noted of its text.
    fn wants(&mut self) -> Result<Option<Wants>, Failure> {
        let Record { workspace, id, readiness, lease_s, .. } = self.record;
        let after = self.read.dependencies(*workspace, id);
        let before = self.read.dependants(*workspace, id);
        let Some((after, before)) = self.got(after)?.zip(self.got(before)?) else {
            return Ok(None);
        };
        let declared = |edges: Vec<Edge>, by: fn(Sides) -> bool| {
            let own = edges.into_iter().filter(|edge| by(edge.sides));
            own.map(|edge| (edge.other, String::new())).collect()
        };
        Ok(Some(Wants {
            after: declared(after, |sides| sides.dependant),
            before: declared(before, |sides| sides.dependency),
            priority: readiness.priority,
            since: Some(readiness.since),
            not_before: readiness.not_before,
            fit: readiness.fit,
            lease_s: *lease_s,
        }))
    }

    /// When its turn comes follows from what is noted. Whether its time has come is left open: a clock may be
    /// set back after it had, and nobody may have looked since it has.
    fn turn(&mut self, kind: &Kind) {
        let noted = self.record.readiness.when;
        let wanted = when(kind, self.record, UnixNanos(i64::MIN));
        let problem = match (noted, wanted) {
            (noted, wanted) if noted == wanted => return,
            (When::Now, When::At(_)) => return,
            // That needs no rules to be seen.
            (When::Now, _) if self.record.readiness.open > 0 || !self.record.is_valid() => return,
            (When::Now, _) => "is noted as ready and is not",
            (_, When::Now) => "is ready and is not noted as that",
            _ => "is noted to become ready at another time than it says",
        };
        self.problem(problem);
    }

    /// How it stands in the order of work is what the edges and its own row say.
    pub fn order(&mut self) -> Result<(), Failure> {
        let Record { workspace, id, readiness, .. } = self.record;
        let open = self.read.open_dependencies(*workspace, id);
        let Some(open) = self.got(open)? else { return Ok(()) };
        if readiness.open != open {
            self.problem(format!("is noted with {} open dependencies, not {open}", readiness.open));
        }
        if readiness.when == When::Now && (open > 0 || !self.record.is_valid()) {
            self.problem("is noted as ready and is not");
        }
        Ok(())
    }

    /// Only what somebody has is leased, and under the claim that it has.
    pub fn lease(&mut self) -> Result<(), Failure> {
        let lease = self.read.lease(self.record.key);
        let Some(row) = self.got(lease)?.flatten() else { return Ok(()) };
        let is_owned = self.record.owner.is_some() && self.record.standing != Standing::Gone;
        if !is_owned || row.attempt != self.record.attempt || self.record.is_lapsed() {
            self.problem(format!("has a lease of attempt {}, which is over", row.attempt));
        }
        let ttl = Duration::from_nanos(row.ttl_ns);
        if ttl > LEASE_MAX || ttl.is_zero() {
            self.problem(format!("has a lease of {} s, and no lease is so long", ttl.as_secs()));
        }
        Ok(())
    }
}
