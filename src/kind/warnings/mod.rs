//! What in a definition is sound, and yet hardly meant.
//!
//! What must stay true: whoever sets up a store is told of it, and nothing is refused for it: a
//! lifecycle need not have claims. Deliberately not here: what cannot be meant, which `load`
//! refuses.

mod unmet;

#[cfg(test)]
mod warnings_test;

use super::definition::KindForm;
use super::lifecycle::order::CLAIMED;
use super::lifecycle::pattern::Pattern;
use super::lifecycle::state::{State, Statuses};
use super::load::commands::set_statuses;
use super::yaml::{self, line};
use super::{Kind, KindError, other_draft};
use crate::units;

impl Kind {
    /// What is hardly meant in its definition, each with its line and the way out.
    #[must_use]
    pub fn warnings(&self) -> Vec<KindError> {
        let form: Option<KindForm> = yaml::read(&self.source.definition).ok();
        let form = form.as_ref();
        let found = [self.no_claim(), self.no_end(form), self.nothing_is_done()];
        let told = |(line, reason)| KindError { file: self.file.clone(), line, reason };
        let found = found.into_iter().flatten().chain(self.idle_retries(form));
        let found = found.chain(self.idle_commands(form)).chain(self.idle_leases(form));
        let unmet = |form| self.ends_unmet(form).into_iter().chain(self.unmet_handoff(form));
        let found = found.chain(form.into_iter().flat_map(unmet));
        let homeless = self.homeless_statuses().map(|why| (self.source.line_of("states"), why));
        let found = found.chain(homeless).map(told);
        let draft = other_draft(&self.source.schema).map(|reason| KindError {
            file: self.schema_name.clone(),
            line: None,
            reason,
        });
        found.chain(draft).collect()
    }

    /// Leases where nobody has what is claimed.
    fn idle_leases(&self, form: Option<&KindForm>) -> Vec<(Option<u32>, String)> {
        let mut found = Vec::new();
        // Else nothing is claimed at all, which is told.
        let form = form.filter(|_| self.claim().is_some());
        for (name, state) in form.iter().flat_map(|form| &form.states.0) {
            let is_owned = |state: &State| state.dirs.iter().any(Pattern::has_owner);
            let built = self.state_named(&name.value).map(|state| self.state(state));
            if let Some(lease) = &state.lease
                && !built.is_some_and(is_owned)
            {
                let reason = format!(
                    "the `lease` of `{}` has no effect: a lease is an owner's, and no directory there names \
                     one by `{{owner}}`",
                    name.value
                );
                found.push((line(&lease.ttl), reason));
            }
        }
        found
    }

    /// `retries`, and their `to`, that change nothing.
    fn idle_retries(&self, form: Option<&KindForm>) -> Vec<(Option<u32>, String)> {
        let mut found = Vec::new();
        for (name, state) in form.iter().flat_map(|form| &form.states.0) {
            let Some(retries) = &state.retries else { continue };
            let times = [&retries.first, &retries.longest].map(|time| units::duration(&time.value));
            if let [Ok(first), Ok(longest)] = times
                && longest < first
            {
                let reason = format!(
                    "the `retries` of `{}` never wait for `first`, which is longer than `longest`",
                    name.value
                );
                found.push((line(&retries.longest), reason));
            }
            let back = state.lease.as_ref().map(|lease| &lease.on_expiry.value);
            match back.filter(|back| self.state_named(back).is_some()) {
                None => {
                    let reason = format!(
                        "the `retries` of `{}` have no effect: they count leases that run out where \
                         `on_expiry` is a state",
                        name.value
                    );
                    found.push((line(&retries.attempts), reason));
                }
                // Nothing waits between attempts, and nothing ends them.
                Some(back)
                    if *back == retries.exhausted.value && self.not_before_field().is_none() =>
                {
                    let reason = format!(
                        "the `retries` of `{}` have no effect: `exhausted` leads to `{back}`, as \
                         `on_expiry` does, and no `order: {{ not_before: FIELD }}`, at the top of a \
                         record, makes it wait",
                        name.value
                    );
                    found.push((line(&retries.exhausted), reason));
                }
                Some(back) => {
                    let other = retries.to.as_ref().filter(|to| to.value != *back);
                    found.extend(other.map(|to| {
                        let reason = format!(
                            "`to: {}` has no effect: a record goes to `{back}`, as `on_expiry` says; \
                             leave it out",
                            to.value
                        );
                        (line(to), reason)
                    }));
                }
            }
        }
        found
    }

    /// Commands that set a status which a record cannot get that was claimed, nor one of any state that lists
    /// its statuses: what `any` leaves, such as an archive, is hardly what they are for.
    fn idle_commands(&self, form: Option<&KindForm>) -> Vec<(Option<u32>, String)> {
        let Some(claim) = self.claim() else { return Vec::new() };
        let is_work = |ix, state: &State| ix == claim.to || state.status != Statuses::Any;
        let mut found = Vec::new();
        for (command, status) in form.iter().flat_map(|form| set_statuses(&form.commands)) {
            let set = status.value.as_str();
            if !self.states().any(|(ix, state)| is_work(ix, state) && state.lets_become(set)) {
                let reason = format!(
                    "`{command}` of a record that was claimed is always refused: in `{}` no status can \
                     become `{set}`. Let it, or name with `to` the state that the record goes to",
                    self.state(claim.to).name
                );
                found.push((line(status), reason));
            }
        }
        found
    }

    fn no_claim(&self) -> Option<(Option<u32>, String)> {
        if self.claim().is_some() {
            return None;
        }
        let reason = format!(
            "nothing of this kind can be claimed, by `workfs claim` or else: no transition from `{}` \
             gives an owner. If it is to be, let one lead to a state with `{{owner}}` in its \
             directories, or call it `event: {CLAIMED}`",
            self.state(self.initial).name,
        );
        Some((self.source.line_of("transitions"), reason))
    }

    fn no_end(&self, form: Option<&KindForm>) -> Option<(Option<u32>, String)> {
        let claim = self.claim()?;
        let ends = |to| to != claim.to && to != claim.from;
        if self.transitions.iter().any(|way| way.from == claim.to && ends(way.to)) {
            return None;
        }
        let ways = form.map_or(&[][..], |form| &form.transitions);
        let at = ways.iter().find(|way| way.value.event == claim.event).and_then(line);
        let reason = format!(
            "what is claimed can only go back: no transition leads on from `{}`. If it is to end, add \
             one to a state for what is finished",
            self.state(claim.to).name
        );
        Some((at, reason))
    }

    fn nothing_is_done(&self) -> Option<(Option<u32>, String)> {
        let order = &self.order;
        if (order.after.is_empty() && order.before.is_empty()) || !order.done.is_empty() {
            return None;
        }
        let reason = "what depends on another record waits for ever, since no state counts as done: \
                      say which do, as in `order: { done: { STATE: any } }`";
        Some((self.source.line_of("order"), reason.to_owned()))
    }
}
