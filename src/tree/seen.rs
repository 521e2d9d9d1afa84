//! Who saw which version of a record last: what makes a save stale.
//!
//! A program sees what it opens. A script sees by the programs that it starts (`s=$(cat X)`), and
//! writes by others (`sed … X > t; mv t X`), though it also opens files itself (`echo … > X`). So who
//! opened nothing itself has seen what those did that it started, and else what was seen by who
//! started it; and a shell that did has seen also what those read or saved after that, once they have
//! ended. Who runs beside it shows it nothing, and no program that reads and writes itself sees by
//! others: what its agents changed while it had the text is not overwritten. A move reads nothing:
//! who started it has seen it, if it had seen what was moved. What must stay true: bounded; who is of
//! no such family is not held to anything; what was seen by a process that ended is not taken for
//! what its successor under the same number saw.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use workfs_mount::thread_here;

use crate::engine::Base;
use crate::limits::{SEEN_READERS_MAX, SEEN_RECORDS_MAX};
use crate::numbers::{RecordKey, Version};

use super::lineage::{Lineage, Lineages, age, has_ended, is_shell, is_there};

#[derive(Clone, Copy)]
struct Look {
    who: Lineage,
    version: Version,
    /// The version that this one was made of by a move, which reads nothing.
    moved: Option<Version>,
    at: Instant,
}

/// Versions seen, by record.
#[derive(Default)]
pub(super) struct Seen {
    looks: Mutex<HashMap<RecordKey, Vec<Look>>>,
    /// Of those who looked, and of who closes what another opened.
    pub lineages: Lineages,
}

impl Seen {
    /// `thread` has read `version`, or saved it.
    pub fn note(&self, record: RecordKey, thread: u32, version: Version) {
        self.note_made(record, thread, version, None);
    }

    /// `thread` has made `version`; by a move of the version `moved`, if that is given.
    pub fn note_made(
        &self,
        record: RecordKey,
        thread: u32,
        version: Version,
        moved: Option<Version>,
    ) {
        if let Some(thread) = thread_here(thread) {
            let (who, at) = (self.lineages.of(thread), Instant::now());
            self.add(record, Look { who, version, moved, at });
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

    /// What the process of `thread` has seen last.
    pub fn base(&self, record: RecordKey, thread: u32) -> Base {
        let looks = match self.looks.lock().get(&record) {
            Some(looks) if thread_here(thread).is_some() => looks.clone(),
            _ => return Base::Unseen,
        };
        let writer = self.lineages.of(thread);
        let Some(process) = writer.process() else {
            let own = looks.iter().rev().find(|look| look.who.is_same_process(&writer));
            return own.map_or(Base::Unseen, |look| Base::Seen(look.version));
        };
        let seen = of_family(process, &looks, is_shell).map(Base::Seen);
        let heard = |ancestor| of_family(ancestor, &looks, |_| true).map(Base::Heard);
        seen.or_else(|| writer.ancestors().find_map(heard)).unwrap_or(Base::Unseen)
    }
}

/// What `process` has seen, itself or by those whom it started; `sees_by_others`: also where it opened
/// the record itself.
fn of_family(process: u32, looks: &[Look], sees_by_others: fn(u32) -> bool) -> Option<Version> {
    let is_of = |look: &Look| look.who.is_of(process);
    if !looks.iter().any(is_of) {
        return None;
    }
    let age = age(process);
    let first = looks.iter().position(|look| is_within(age, look.at))?;
    let looks = &looks[first..];
    let own = looks.iter().rposition(|look| look.who.process() == Some(process));
    let by_others = match own {
        None => true,
        Some(own) => looks[own + 1..].iter().any(is_of) && sees_by_others(process),
    };
    seen_by(process, looks, by_others)
}

/// What `process` has seen of `looks`, of which the last one is the newest; `by_others`: it sees what
/// those see that it started.
fn seen_by(process: u32, looks: &[Look], by_others: bool) -> Option<Version> {
    let (look, earlier) = looks.split_last()?;
    if look.who.process() == Some(process) {
        return Some(look.version);
    }
    if !look.who.is_of(process) {
        return seen_by(process, earlier, by_others);
    }
    let is_over = look.is_over_for(process);
    if is_over && by_others && look.moved.is_none() {
        return Some(look.version);
    }
    match seen_by(process, earlier, by_others) {
        // It goes on writing after its `mv`, if it had seen what was moved.
        Some(before) if !is_over || look.moved != Some(before) => Some(before),
        _ => Some(look.version),
    }
}

impl Look {
    /// Whether all have ended through whom `process` started who looked.
    fn is_over_for(&self, process: u32) -> bool {
        self.who.started_by(process).all(|one| has_ended(one) || !was_there(one, self.at))
    }
}

/// A process that is younger than a look is another one under the same number.
fn was_there(process: u32, at: Instant) -> bool {
    is_within(age(process), at)
}

fn is_within(age: Option<Duration>, at: Instant) -> bool {
    age.is_none_or(|age| age + SLACK >= at.elapsed())
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
