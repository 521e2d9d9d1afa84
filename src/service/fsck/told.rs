//! What the ledger says of a record: its row says the same.
//!
//! This needs no rules: an event says in which state and place it put the record, and under which claim,
//! whatever the configuration was then.

use std::sync::Arc;

use super::super::Failure;
use super::one::{One, Told};
use crate::engine::{Slot, path_of, slot};
use crate::ledger::{EventName, only_tells};
use crate::numbers::{Attempt, G};
use crate::store::Standing;

/// Where a record stands, without the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Valid,
    Flagged,
    Parked,
    Gone,
}

impl Stands {
    fn of(standing: &Standing) -> Stands {
        match standing {
            Standing::Live { valid: true, .. } => Stands::Valid,
            Standing::Live { valid: false, .. } => Stands::Flagged,
            Standing::Parked { .. } => Stands::Parked,
            Standing::Gone => Stands::Gone,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Stands::Valid => "valid",
            Stands::Flagged => "flagged",
            Stands::Parked => "parked",
            Stands::Gone => "gone",
        }
    }
}

impl Told {
    /// Where the event put the record, if it put it somewhere.
    fn stands(&self) -> Option<Stands> {
        // As `ledger::is_transition` has it, of a payload that is read here already.
        let is_transition = self.payload.from.is_some();
        let is = |events: &[EventName]| {
            !is_transition && events.iter().any(|event| event.as_str() == self.event)
        };
        // Older workfs left the attempt out where a file was taken from it, and the state where it only told.
        let tells = only_tells(&self.event, is_transition, self.payload.stays);
        if tells || self.payload.state.is_none() {
            None
        } else if is(&[EventName::REMOVED, EventName::LEFT]) {
            Some(Stands::Gone)
        } else if is(&[EventName::RENAMED]) && self.payload.to.is_some() {
            Some(Stands::Parked)
        } else {
            self.payload.attempt?;
            Some(if self.payload.flagged { Stands::Flagged } else { Stands::Valid })
        }
    }
}

impl One<'_, '_> {
    /// Its last event is the ledger's last event of it, and its row says what its last events say. If so, gives
    /// the one that put it where it is.
    pub fn told(&mut self) -> Result<Option<G>, Failure> {
        let said = self.record.last_g;
        let known = self.ledger.of(&self.workspace.path.to_string(), self.record.id.as_str());
        if self.ledger.is_whole && known != Some(said) {
            let known = known.map_or_else(|| "none".to_owned(), |g| g.to_string());
            self.problem(format!("says event {said} is its last; the ledger says {known}"));
            return Ok(None);
        }
        let (mut at, mut step, mut claim) = (said, None, None);
        while at > G(0) && (step.is_none() || claim.is_none()) {
            let Some(told) = self.event(at)? else { break };
            if let Some(attempt) = told.payload.attempt {
                claim.get_or_insert((at, attempt, told.payload.owner.clone()));
            }
            if let Some(stands) = told.stands() {
                step.get_or_insert((at, stands, Arc::clone(&told)));
            }
            if told.before >= at {
                break;
            }
            at = told.before;
        }
        let before = self.check.report.count;
        if let Some((g, attempt, owner)) = claim {
            self.claim(g, Attempt(attempt), owner.as_deref());
        }
        let Some((g, stands, told)) = step else { return Ok(None) };
        self.step(g, stands, &told)?;
        if self.check.report.count == before {
            self.home(g)?;
        }
        Ok((self.check.report.count == before).then_some(g))
    }

    fn claim(&mut self, g: G, attempt: Attempt, owner: Option<&str>) {
        let noted = self.record.owner.as_ref().map(|owner| owner.as_str());
        if noted != owner {
            let [noted, owner] = [noted, owner].map(|name| name.unwrap_or("nobody"));
            self.problem(format!("is noted as {noted}'s, and event {g} says {owner}"));
        }
        if self.record.attempt != attempt {
            let noted = self.record.attempt;
            self.problem(format!("is noted at attempt {noted}, and event {g} says {attempt}"));
        }
    }

    fn step(&mut self, g: G, stands: Stands, told: &Told) -> Result<(), Failure> {
        let noted = Stands::of(&self.record.standing);
        if noted != stands {
            let [noted, stands] = [noted, stands].map(Stands::word);
            self.problem(format!("is noted as {noted}, and event {g} says {stands}"));
        }
        let state = told.payload.state.as_deref().unwrap_or_default();
        if state != self.record.state.as_str() {
            let noted = &self.record.state;
            self.problem(format!("is noted in state {noted}, and event {g} says {state}"));
        }
        let Standing::Live { dir, name, .. } = &self.record.standing else { return Ok(()) };
        let path = path_of(self.read, *dir, name);
        let Some(path) = self.got(path)? else { return Ok(()) };
        if told.payload.path.as_ref().is_some_and(|told| *told != path.to_string()) {
            self.problem(format!("lies at {path}, and not where event {g} says"));
        }
        Ok(())
    }

    /// Its directory is that of its state and its owner, if event `g` put it there by the present rules. What
    /// another layout makes of the directory since is `doctor`'s.
    fn home(&mut self, g: G) -> Result<(), Failure> {
        let Standing::Live { dir, name, .. } = &self.record.standing else { return Ok(()) };
        let Some((rules, _)) = self.rules.filter(|(rules, _)| rules.held_at(g)) else {
            return Ok(());
        };
        let slot = slot(self.read, rules.config, *dir, name);
        let Some(Slot::Record(home)) = self.got(slot)? else { return Ok(()) };
        let state = &home.kind().state(home.state).name;
        if *state != self.record.state || home.owner != self.record.owner {
            let owner = home.owner.as_ref().map_or("nobody", |owner| owner.as_str());
            self.problem(format!("lies where records of {owner} in state {state} lie"));
        }
        Ok(())
    }
}
