//! What chores could not do: tried again in each round, and told of until it is done.
//!
//! What must stay true: `why` has a failure once, not each round; what is told is bounded. It is in
//! memory: the next daemon finds out for itself; what follows from changes and could not be done it knows
//! from `why`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use parking_lot::Mutex;

use crate::engine::{Refused, Turn};
use crate::limits::{CHORES_AT_ONCE, OWED_MAX, UNDONE_TOLD_MAX};
use crate::names::TreePath;
use crate::refusal::Refusal;
use crate::store::StoreError;

use super::follow::Follow;

/// See the module.
#[derive(Default)]
pub struct Undone(Mutex<State>);

#[derive(Default)]
struct State {
    /// As the last whole round found it: paths, and why, and how many rounds ago.
    told: BTreeMap<String, (String, usize)>,
    /// The same of what was tried since: by the round that is made, or by changes.
    found: BTreeMap<String, String>,
    /// So many rounds before the one that is made have tried what it does not, in turn.
    rounds: usize,
    /// What followed from changes and could not be done.
    owed: BTreeSet<Follow>,
    /// The last of it that a round has tried.
    tried: Option<Follow>,
}

impl Undone {
    /// What could not be done when it was last tried, and why, by path.
    #[must_use]
    pub fn told(&self) -> Vec<(String, String)> {
        let state = self.0.lock();
        let told = state.told.iter().map(|(path, (why, _))| (path.clone(), why.clone()));
        let mut all: BTreeMap<_, _> = told.collect();
        all.extend(state.found.clone());
        all.into_iter().collect()
    }

    /// A round begins, which tries all of it again: what changes found before it is told until its end.
    pub(super) fn begin_round(&self) {
        let mut state = self.0.lock();
        let found = std::mem::take(&mut state.found);
        state.told.extend(found.into_iter().map(|(path, why)| (path, (why, 0))));
        state.rounds = 0;
    }

    /// Notes it; says whether there was room for it.
    pub(super) fn found(&self, path: &str, why: &str) -> bool {
        let found = &mut self.0.lock().found;
        let has_room = found.len() < UNDONE_TOLD_MAX || found.contains_key(path);
        if has_room {
            found.insert(path.to_owned(), why.to_owned());
        }
        has_room
    }

    /// The round goes on behind what so many before it have tried.
    pub(super) fn goes_on(&self, rounds: usize) {
        let mut state = self.0.lock();
        state.rounds = state.rounds.max(rounds);
    }

    /// A round is over. What was not its turn waits as it did, as far as there is room to tell of it.
    pub(super) fn end_round(&self) {
        let mut state = self.0.lock();
        let found = std::mem::take(&mut state.found);
        let found = found.into_iter().map(|(path, why)| (path, (why, 0))).collect();
        let before = std::mem::replace(&mut state.told, found);
        for (path, (why, ago)) in before {
            if ago < state.rounds && state.told.len() < UNDONE_TOLD_MAX {
                state.told.entry(path).or_insert((why, ago + 1));
            }
        }
    }

    /// That is to be tried again.
    pub(super) fn try_later(&self, follow: Follow) {
        let owed = &mut self.0.lock().owed;
        if owed.len() < OWED_MAX {
            owed.insert(follow);
        }
    }

    /// Whether anything is to be tried again.
    pub(super) fn owes(&self) -> bool {
        !self.0.lock().owed.is_empty()
    }

    /// Whether this is.
    pub(super) fn has_to_follow(&self, follow: Follow) -> bool {
        self.0.lock().owed.contains(&follow)
    }

    /// What of it this round is to try: where that is not all, the next goes on behind it.
    pub(super) fn turn_of_owed(&self) -> Vec<Follow> {
        let mut state = self.0.lock();
        let behind = state.tried.map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.owed.range((behind, Bound::Unbounded)).chain(&state.owed);
        let count = state.owed.len();
        let turn: Vec<Follow> = all.take(count.min(CHORES_AT_ONCE)).copied().collect();
        state.tried = turn.last().copied();
        state.rounds = state.rounds.max(count.div_ceil(CHORES_AT_ONCE).saturating_sub(1));
        turn
    }

    pub(super) fn is_settled(&self, follow: Follow) {
        self.0.lock().owed.remove(&follow);
    }
}

impl Turn<'_> {
    /// Notes that a chore cannot be done; `why` is told of it where it was not yet, and of no more than is noted: else
    /// very many that wait, tried again and again, would take the room of all other refusals. Of all it is told
    /// that the next daemon is to know of by it.
    pub(super) fn leave_undone(
        &self,
        path: TreePath,
        refusal: Refusal,
        is_recalled: bool,
    ) -> Result<Refused, StoreError> {
        let is_noted = self.undone.found(&path.to_string(), &refusal.reason);
        let refused = self.told_once(path, refusal)?;
        Ok(Refused { kept: refused.kept && (is_noted || is_recalled), ..refused })
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
