//! Who saw which version of a record last: what makes a save stale.
//!
//! - A program has seen what it opened.
//! - A process that opened nothing itself (a script that reads by `s=$(cat X)`, and writes by `sed
//!   … X > t; mv t X`) has seen what the processes have that it started; if these saw nothing, what
//!   the one has that started it.
//! - A shell that opened files itself (`echo … > X`) has also seen what those that it started read
//!   or saved after that, once they have ended.
//! - A process that runs beside it shows it nothing. A program that reads and writes itself sees
//!   nothing through others, so that what its agents changed while it had the text is not
//!   overwritten.
//! - A move reads nothing: whoever started it has seen what was moved, if it had before.
//!
//! What must stay true: bounded; a process that belongs to no such family is not held to anything;
//! what was seen by a process that ended is not taken for what its successor under the same number
//! saw.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use workfs_mount::{has_ended, thread_here};

use crate::engine::Base;
use crate::limits::{
    LINEAGES_KEPT_FOR, SEEN_LOOKS_MAX, SEEN_READERS_LOOKED_AT_MIN, SEEN_READERS_MAX,
};
use crate::numbers::{RecordKey, Version};

use super::lineage::{Lineage, Lineages, age, is_shell, is_there};

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
pub(in crate::tree) struct Seen {
    looks: Mutex<Looks>,
    /// Of those who looked, and of who closes what another opened.
    pub lineages: Lineages,
}

#[derive(Default)]
struct Looks {
    of: HashMap<RecordKey, Readers>,
    /// How many they are.
    count: usize,
}

/// The looks at one record, the newest last.
struct Readers {
    looks: Vec<Look>,
    /// How many were left when they were looked through last.
    left: usize,
}

/// Which threads and processes are there, each asked once.
#[derive(Default)]
struct Living(HashMap<u32, bool>);

impl Looks {
    fn add(&mut self, record: RecordKey, look: Look) {
        if self.count >= SEEN_LOOKS_MAX {
            self.make_room();
        }
        // Most records have one reader.
        let none = || Readers { looks: Vec::with_capacity(1), left: 0 };
        let readers = self.of.entry(record).or_insert_with(none);
        self.count -= readers.looks.len();
        readers.add(look);
        self.count += readers.looks.len();
    }

    /// Forgets what says nothing any more, and else first what whoever has looked at most saw before the rest: who
    /// searches all records takes no other's look.
    fn make_room(&mut self) {
        let mut living = Living::default();
        self.of.values_mut().for_each(|readers| readers.forget_void(&mut living));
        let mut all: Vec<(Instant, u32)> = Vec::new();
        all.extend(self.looks().map(|look| (look.at, look.by())));
        all.sort_unstable_by_key(|(at, _)| Reverse(*at));
        let mut counts: HashMap<u32, usize> = HashMap::new();
        let mut ranked: Vec<_> = Vec::new();
        for (at, by) in all {
            let later = counts.entry(by).or_default();
            ranked.push((*later, Reverse(at), by));
            *later += 1;
        }
        ranked.sort_unstable();
        let mut until: HashMap<u32, Instant> = HashMap::new();
        for (_, Reverse(at), by) in ranked.into_iter().skip(SEEN_LOOKS_MAX / 2) {
            let until = until.entry(by).or_insert(at);
            *until = (*until).max(at);
        }
        let is_kept = |look: &Look| until.get(&look.by()).is_none_or(|until| look.at > *until);
        self.of.retain(|_, readers| {
            readers.looks.retain(is_kept);
            !readers.looks.is_empty()
        });
        self.count = self.looks().count();
    }

    fn looks(&self) -> impl Iterator<Item = &Look> {
        self.of.values().flat_map(|readers| &readers.looks)
    }
}

impl Readers {
    fn add(&mut self, look: Look) {
        self.looks.retain(|other| other.who.thread() != look.who.thread());
        // So each is looked at as often as one is added, on average.
        if self.looks.len() >= (2 * self.left).clamp(SEEN_READERS_LOOKED_AT_MIN, SEEN_READERS_MAX) {
            self.forget_void(&mut Living::default());
            let surplus = self.looks.len().saturating_sub(SEEN_READERS_MAX / 2);
            self.looks.drain(..surplus);
            self.left = self.looks.len();
        }
        self.looks.push(look);
    }

    /// Forgets what says nothing any more: nobody is left who could go by it, or who looked has ended, and another
    /// whom the same process started has read since.
    fn forget_void(&mut self, living: &mut Living) {
        let mut again = HashSet::new();
        self.looks.reverse();
        self.looks.retain(|look| {
            let parent = look.who.ancestors().next();
            let is_superseded = parent.is_some_and(|parent| again.contains(&parent))
                && !living.has(look.who.thread());
            // A move reads nothing.
            again.extend(parent.filter(|_| look.moved.is_none()));
            !is_superseded && (look.at.elapsed() < LINEAGES_KEPT_FOR || look.concerns_any(living))
        });
        self.looks.reverse();
    }
}

impl Living {
    fn has(&mut self, number: u32) -> bool {
        *self.0.entry(number).or_insert_with(|| is_there(number))
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
            Some(readers) if thread_here(thread).is_some() => readers.looks.clone(),
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
    /// Who looked: the process, if it is known.
    fn by(&self) -> u32 {
        self.who.process().unwrap_or(self.who.thread())
    }

    /// Whether anybody is left who may go by it.
    fn concerns_any(&self, living: &mut Living) -> bool {
        [self.who.thread(), self.by()]
            .into_iter()
            .chain(self.who.ancestors())
            .any(|one| living.has(one))
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    /// No thread has such a number, and nothing is known of it.
    fn nobody(nth: u32) -> Lineage {
        Lineages::default().of(u32::MAX - nth)
    }

    fn look(who: Lineage) -> Look {
        Look { who, version: Version(1), moved: None, at: Instant::now() }
    }

    fn has(looks: &Looks, record: u64, who: Lineage) -> bool {
        let readers = looks.of.get(&RecordKey(record));
        readers.is_some_and(|readers| readers.looks.iter().any(|look| look.who == who))
    }

    #[test]
    fn only_so_many_looks_are_remembered_of_however_many_records_and_the_last_ones_stay() {
        let mut looks = Looks::default();
        let readers: Vec<Lineage> = (0..=SEEN_READERS_MAX as u32).map(nobody).collect();
        for record in 0..2 * (SEEN_LOOKS_MAX / SEEN_READERS_MAX) as u64 {
            for who in &readers {
                looks.add(RecordKey(record), look(*who));
                assert!(looks.count <= SEEN_LOOKS_MAX);
            }
            let last = &looks.of[&RecordKey(record)].looks;
            assert!((SEEN_READERS_MAX / 2..=SEEN_READERS_MAX).contains(&last.len()));
            assert!(
                readers
                    .iter()
                    .rev()
                    .take(SEEN_READERS_MAX / 2)
                    .all(|who| has(&looks, record, *who))
            );
        }
        assert_eq!(looks.count, looks.looks().count());
        assert!(looks.count > SEEN_LOOKS_MAX / 4, "{}", looks.count);
    }

    #[test]
    fn who_looks_at_all_records_takes_no_other_s_look() {
        let (mut looks, searcher) = (Looks::default(), nobody(0));
        let one = Lineages::default().of(std::process::id());
        looks.add(RecordKey(0), look(one));
        for record in 0..3 * SEEN_LOOKS_MAX as u64 {
            looks.add(RecordKey(record), look(searcher));
            assert!(looks.count <= SEEN_LOOKS_MAX);
        }
        assert!(has(&looks, 0, one));
        assert!(has(&looks, 3 * SEEN_LOOKS_MAX as u64 - 1, searcher));
    }

    #[test]
    fn what_concerns_nobody_any_more_goes_first() {
        let mut looks = Looks::default();
        let here = Lineages::default().of(std::process::id());
        // They looked so long ago that they may be forgotten.
        let at = Instant::now().checked_sub(LINEAGES_KEPT_FOR).unwrap();
        looks.add(RecordKey(0), Look { at, ..look(here) });
        for nth in 0..SEEN_READERS_LOOKED_AT_MIN as u32 - 1 {
            looks.add(RecordKey(0), Look { at, ..look(nobody(nth)) });
        }
        looks.add(RecordKey(0), look(nobody(u32::MAX / 2)));
        assert_eq!(looks.of[&RecordKey(0)].looks.len(), 2);
        assert!(has(&looks, 0, here));
    }

    #[test]
    fn whose_number_was_another_s_before_has_seen_nothing_of_that() {
        let me = std::process::id();
        let who = Lineages::default().of(me);
        let before = Instant::now().checked_sub(Duration::from_secs(86_400)).unwrap();
        let seen = |at| of_family(me, &[Look { at, ..look(who) }], |_| true);
        assert_eq!((seen(before), seen(Instant::now())), (None, Some(Version(1))));
    }
}
