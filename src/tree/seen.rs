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
use crate::limits::{SEEN_LOOKS_MAX, SEEN_READERS_MAX, SEEN_RECORDS_MAX};
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
    looks: Mutex<Looks>,
    /// Of those who looked, and of who closes what another opened.
    pub lineages: Lineages,
}

#[derive(Default)]
struct Looks {
    of: HashMap<RecordKey, Vec<Look>>,
    /// How many they are.
    count: usize,
}

impl Looks {
    fn add(&mut self, record: RecordKey, look: Look) {
        let is_new = !self.of.contains_key(&record);
        if is_new && self.of.len() >= SEEN_RECORDS_MAX {
            self.forget_older_half();
        }
        if self.count >= SEEN_LOOKS_MAX {
            while self.count > SEEN_LOOKS_MAX / 2 {
                self.forget_older_half();
            }
        }
        let looks = self.of.entry(record).or_default();
        self.count -= looks.len();
        looks.retain(|other| other.who.thread() != look.who.thread());
        if looks.len() >= SEEN_READERS_MAX {
            let superseded = |nth: &usize| is_superseded(&looks[*nth], &looks[nth + 1..]);
            looks.remove((0..looks.len()).find(superseded).unwrap_or(0));
        }
        looks.push(look);
        self.count += looks.len();
    }

    fn forget_older_half(&mut self) {
        let newest = |looks: &Vec<Look>| looks.last().map(|look| look.at);
        let mut times: Vec<_> = self.of.values().filter_map(newest).collect();
        times.sort_unstable();
        if let Some(middle) = times.get(times.len() / 2).copied() {
            self.of.retain(|_, looks| newest(looks).is_some_and(|at| at > middle));
        }
        self.count = self.of.values().map(Vec::len).sum();
    }
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
            self.looks.lock().add(record, Look { who, version, moved, at });
        }
    }

    /// What the process of `thread` has seen last.
    pub fn base(&self, record: RecordKey, thread: u32) -> Base {
        let looks = match self.looks.lock().of.get(&record) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_looks_are_remembered_of_however_many_records_and_the_last_ones_stay() {
        let mut looks = Looks::default();
        // No thread has such a number, and nothing is known of it.
        let nobody = |nth| Lineages::default().of(u32::MAX - nth);
        let readers: Vec<Lineage> = (0..=SEEN_READERS_MAX as u32).map(nobody).collect();
        for record in 0..2 * SEEN_RECORDS_MAX as u64 {
            for who in &readers {
                let (who, version) = (*who, Version(1));
                let look = Look { who, version, moved: None, at: Instant::now() };
                looks.add(RecordKey(record), look);
                assert!(looks.count <= SEEN_LOOKS_MAX && looks.of.len() <= SEEN_RECORDS_MAX);
            }
            let last = &looks.of[&RecordKey(record)];
            assert_eq!(last.len(), SEEN_READERS_MAX);
        }
        assert_eq!(looks.count, looks.of.values().map(Vec::len).sum::<usize>());
        assert!(looks.count > SEEN_LOOKS_MAX / 4, "{}", looks.count);
    }
}
