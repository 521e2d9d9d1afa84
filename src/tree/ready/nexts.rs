//! Where `.next` leads: in each lane to what came by it last, in `ready/` to the best.
//!
//! What must stay true: what is remembered is as of the last commit. Deliberately not here: what is best (the engine's
//! `claims/ready`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::engine::{Effect, Origin};
use crate::limits::NEXTS_MAX;
use crate::names::FileName;
use crate::numbers::Ino;
use crate::tree::Answer;

/// Where `.next` leads: in each lane to what came by it last, in `ready/` to the best. Both are looked up
/// before each claim by `.next`, by all agents at once, so that they are known without reading.
#[derive(Default)]
pub(in crate::tree) struct Nexts {
    /// What each lane got last and still has.
    last: Mutex<Last>,
    /// How many commits there were.
    commits: AtomicU64,
    best: Mutex<Option<Best>>,
}

#[derive(Default)]
struct Last {
    /// With how many had come before.
    lanes: HashMap<Ino, (u64, FileName)>,
    count: u64,
}

/// The best ready record of the workspace at `dir`, as of a commit or a later one.
struct Best {
    commits: u64,
    dir: Ino,
    name: Option<FileName>,
}

impl Nexts {
    pub(super) fn note_last(&self, lane: Ino, name: FileName) {
        let Last { lanes, count } = &mut *self.last.lock();
        if lanes.len() >= NEXTS_MAX && !lanes.contains_key(&lane) {
            let mut all: Vec<u64> = lanes.values().map(|(nth, _)| *nth).collect();
            let (_, middle, _) = all.select_nth_unstable(NEXTS_MAX / 2);
            lanes.retain(|_, (nth, _)| *nth >= *middle);
        }
        lanes.insert(lane, (*count, name));
        *count += 1;
    }

    /// Takes note of a commit, before anybody is told of it: names that went are no lane's any more.
    pub fn note(&self, effects: &[(Origin, Effect)]) {
        self.commits.fetch_add(1, Ordering::AcqRel);
        let lanes = &mut self.last.lock().lanes;
        if lanes.is_empty() {
            return;
        }
        for (_, effect) in effects {
            if let Effect::Name { parent, name, .. } = effect
                && lanes.get(parent).is_some_and(|(_, last)| last == name)
            {
                lanes.remove(parent);
            }
        }
    }

    pub(super) fn forget(&self, lane: Ino) {
        self.last.lock().lanes.remove(&lane);
    }

    pub(super) fn last(&self, lane: Ino) -> Option<FileName> {
        self.last.lock().lanes.get(&lane).map(|(_, name)| name.clone())
    }

    /// The best as of the last commit, if that was asked for since; else what `find` says.
    pub(super) fn best(
        &self,
        dir: Ino,
        find: impl FnOnce() -> Answer<Option<FileName>>,
    ) -> Answer<Option<FileName>> {
        let commits = self.commits.load(Ordering::Acquire);
        if let Some(best) = &*self.best.lock()
            && (best.commits, best.dir) == (commits, dir)
        {
            return Ok(best.name.clone());
        }
        let name = find()?;
        *self.best.lock() = Some(Best { commits, dir, name: name.clone() });
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // P9.6
    #[test]
    fn of_too_many_lanes_those_that_got_something_last_have_their_link() {
        let nexts = Nexts::default();
        let name = FileName::new(b"t-1.yaml").unwrap();
        let lanes = NEXTS_MAX as u64;
        (0..lanes).for_each(|lane| nexts.note_last(Ino(lane), name.clone()));
        nexts.note_last(Ino(0), name.clone());
        nexts.note_last(Ino(lanes), name.clone());
        let has = |lane| nexts.last(Ino(lane)).is_some();
        assert!(has(0) && has(lanes - 1) && has(lanes), "they got it last");
        assert!(!has(1), "the oldest made room");
    }
}
