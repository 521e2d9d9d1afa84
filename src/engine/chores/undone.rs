//! What chores could not do: tried again in each round, and told of until it is done.
//!
//! What must stay true: `why` has each failure once, not each round; what is told is bounded. It is in
//! memory: the next daemon finds out for itself; what follows from changes and could not be done it knows
//! from `why`.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use crate::limits::{CHORES_AT_ONCE, UNDONE_TOLD_MAX};
use crate::names::TreePath;
use crate::refusal::Refusal;
use crate::store::StoreError;

use super::super::{Refused, Turn};
use super::follow::Follow;

/// See the module.
#[derive(Default)]
pub struct Undone(Mutex<State>);

#[derive(Default)]
struct State {
    /// As the last whole round found it: paths, and why.
    told: BTreeMap<String, String>,
    /// The same of what was tried since: by the round that is made, or by changes.
    found: BTreeMap<String, String>,
    /// What followed from changes and could not be done.
    owed: BTreeSet<Follow>,
}

impl Undone {
    /// What could not be done when it was last tried, and why, by path.
    #[must_use]
    pub fn told(&self) -> Vec<(String, String)> {
        let state = self.0.lock();
        let mut all = state.told.clone();
        all.extend(state.found.clone());
        all.into_iter().collect()
    }

    /// A round begins, which tries all of it again: what changes found before it is told until its end.
    pub(super) fn begin_round(&self) {
        let mut state = self.0.lock();
        let found = std::mem::take(&mut state.found);
        state.told.extend(found);
    }

    pub(super) fn found(&self, path: &str, why: &str) {
        let found = &mut self.0.lock().found;
        if found.len() < UNDONE_TOLD_MAX {
            found.insert(path.to_owned(), why.to_owned());
        }
    }

    /// A round is over.
    pub(super) fn end_round(&self) {
        let mut state = self.0.lock();
        state.told = std::mem::take(&mut state.found);
    }

    /// That is to be tried again.
    pub(super) fn try_later(&self, follow: Follow) {
        let owed = &mut self.0.lock().owed;
        if owed.len() < CHORES_AT_ONCE {
            owed.insert(follow);
        }
    }

    pub(super) fn owed(&self) -> Vec<Follow> {
        self.0.lock().owed.iter().copied().collect()
    }

    pub(super) fn is_settled(&self, follow: Follow) {
        self.0.lock().owed.remove(&follow);
    }
}

impl Turn<'_> {
    /// Notes that a chore cannot be done; `why` is told of it where it was not yet.
    pub(super) fn leave_undone(
        &self,
        path: TreePath,
        refusal: Refusal,
    ) -> Result<Refused, StoreError> {
        self.undone.found(&path.to_string(), &refusal.reason);
        self.told_once(path, refusal)
    }

    /// The same, where it does not wait.
    pub(super) fn told_once(
        &self,
        path: TreePath,
        refusal: Refusal,
    ) -> Result<Refused, StoreError> {
        let last = self.txn.last_refusal_of(&path.to_bytes())?;
        let is_told = last.is_some_and(|last| {
            last.actor == self.context.actor.name && last.why.reason == refusal.reason
        });
        Ok(Refused { refusal, path, rejected: None, kept: !is_told })
    }
}
