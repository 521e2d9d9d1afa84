//! Who saw which version of a record last: what makes a save stale.
//!
//! A program sees what it opens. A script sees by the programs that it starts (`s=$(cat X)`), and
//! writes by others (`sed … X > t; mv t X`): so who opened nothing itself has seen what those did
//! that it started, and else what was seen by who started it. What must stay true: bounded; who is
//! of no such family is not held to anything; what was seen by a process that ended is not taken
//! for what its successor under the same number saw.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::Base;
use crate::limits::{SEEN_READERS_MAX, SEEN_RECORDS_MAX};
use crate::numbers::{RecordKey, Version};

use super::lineage::{Lineage, Lineages, age, is_there, parent_of};

#[derive(Clone, Copy)]
struct Look {
    who: Lineage,
    version: Version,
    at: Instant,
}

/// Versions seen, by record.
#[derive(Default)]
pub(super) struct Seen {
    looks: Mutex<HashMap<RecordKey, Vec<Look>>>,
    lineages: Lineages,
}

impl Seen {
    /// `thread` has read or made `version`.
    pub fn note(&self, record: RecordKey, thread: u32, version: Version) {
        if thread != 0 {
            let (who, at) = (self.lineages.of(thread), Instant::now());
            self.add(record, Look { who, version, at });
        }
    }

    fn add(&self, record: RecordKey, look: Look) {
        let mut records = self.looks.lock();
        if records.len() >= SEEN_RECORDS_MAX && !records.contains_key(&record) {
            forget_older_half(&mut records);
        }
        let looks = records.entry(record).or_default();
        looks.retain(|other| other.who.thread() != look.who.thread());
        if looks.len() >= SEEN_READERS_MAX {
            let superseded = |nth: &usize| is_superseded(&looks[*nth], &looks[nth + 1..]);
            looks.remove((0..looks.len()).find(superseded).unwrap_or(0));
        }
        looks.push(look);
    }

    /// `thread` moved the record, which made version `after` of `before`. Whoever started it to do so
    /// knows that, if it had seen what was moved: a script goes on writing after its `mv`.
    pub fn note_of_ancestors(
        &self,
        record: RecordKey,
        thread: u32,
        (before, after): (Version, Version),
    ) {
        let saw = |look: &&Look| {
            look.version == before && look.who.thread() != thread && is_there(look.who.thread())
        };
        let who_saw: Vec<Look> = match self.looks.lock().get(&record) {
            Some(looks) => looks.iter().filter(saw).copied().collect(),
            None => return,
        };
        if who_saw.is_empty() || thread == 0 {
            return;
        }
        let ancestors = std::iter::successors(parent_of(thread), |process| parent_of(*process));
        let ancestors: Vec<u32> = ancestors.take(MOVERS_ANCESTORS_MAX).collect();
        for look in who_saw {
            let process = look.who.process().filter(|process| ancestors.contains(process));
            if process.is_some_and(|process| was_there(process, look.at)) {
                self.add(record, Look { version: after, at: Instant::now(), ..look });
            }
        }
    }

    /// What the process of `thread` saw last, itself or by those whom it started; and else what was
    /// seen by who started it.
    pub fn base(&self, record: RecordKey, thread: u32) -> Base {
        let looks = match self.looks.lock().get(&record) {
            Some(looks) if thread != 0 => looks.clone(),
            _ => return Base::Unseen,
        };
        let writer = self.lineages.of(thread);
        let own = looks.iter().rev().find(|look| look.who.is_same_process(&writer));
        if let Some(look) = own
            && writer.process().is_none_or(|process| was_there(process, look.at))
        {
            return Base::Seen(look.version);
        }
        let of_family = |process: u32| {
            let look = looks.iter().rev().find(|look| look.who.is_of(process));
            Some(look.filter(|look| was_there(process, look.at))?.version)
        };
        let seen = writer.process().and_then(of_family).map(Base::Seen);
        let heard = || writer.ancestors().find_map(of_family).map(Base::Heard);
        seen.or_else(heard).unwrap_or(Base::Unseen)
    }
}

/// How far up one looks for who started a process that moves a record.
const MOVERS_ANCESTORS_MAX: usize = 16;

/// A process that is younger than a look is another one under the same number.
fn was_there(process: u32, at: Instant) -> bool {
    age(process).is_none_or(|age| age + SLACK >= at.elapsed())
}

/// `/proc` counts the start of a process in ticks of 10 ms.
const SLACK: Duration = Duration::from_millis(20);

/// Whether a look says nothing any more: who looked has ended, and another whom the same process
/// started has looked since.
fn is_superseded(look: &Look, later: &[Look]) -> bool {
    let parent = look.who.ancestors().next();
    let again = |later: &Look| later.who.ancestors().next() == parent;
    parent.is_some() && later.iter().any(again) && !is_there(look.who.thread())
}

fn forget_older_half(records: &mut HashMap<RecordKey, Vec<Look>>) {
    let newest = |looks: &Vec<Look>| looks.last().map(|look| look.at);
    let mut times: Vec<_> = records.values().filter_map(newest).collect();
    times.sort_unstable();
    if let Some(middle) = times.get(times.len() / 2).copied() {
        records.retain(|_, looks| newest(looks).is_some_and(|at| at > middle));
    }
}
