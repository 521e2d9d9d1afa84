//! Which process saw which version of a record last: what makes a stale save one.
//!
//! What must stay true: bounded; a process that never opened the record is not held to anything;
//! the memory of a dead process is not taken for that of its successor under the same number.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::engine::Base;
use crate::limits::{SEEN_READERS_MAX, SEEN_RECORDS_MAX};
use crate::numbers::{RecordKey, Version};

struct Look {
    /// The thread that opened it, and the process it belongs to once that was asked.
    thread: u32,
    version: Version,
    at: Instant,
}

/// Versions seen, by record and thread.
#[derive(Default)]
pub(super) struct Seen(Mutex<HashMap<RecordKey, Vec<Look>>>);

impl Seen {
    /// Notes that `thread` saw `version`.
    pub fn note(&self, record: RecordKey, thread: u32, version: Version) {
        if thread == 0 {
            return;
        }
        let mut records = self.0.lock();
        if records.len() >= SEEN_RECORDS_MAX && !records.contains_key(&record) {
            forget_older_half(&mut records);
        }
        let looks = records.entry(record).or_default();
        looks.retain(|look| look.thread != thread);
        if looks.len() >= SEEN_READERS_MAX {
            looks.remove(0);
        }
        looks.push(Look { thread, version, at: Instant::now() });
    }

    /// `thread` moved the record, which made version `after` of `before`. Whoever started it to do so
    /// knows that, if it had seen what was moved: a script goes on writing after its `mv`.
    pub fn note_of_ancestors(
        &self,
        record: RecordKey,
        thread: u32,
        (before, after): (Version, Version),
    ) {
        let saw =
            |look: &&Look| look.version == before && look.thread != thread && is_alive(look.thread);
        let who_saw: Vec<(u32, Instant)> = match self.0.lock().get(&record) {
            Some(looks) => looks.iter().filter(saw).map(|look| (look.thread, look.at)).collect(),
            None => return,
        };
        if who_saw.is_empty() || thread == 0 {
            return;
        }
        let ancestors = std::iter::successors(parent_of(thread), |process| parent_of(*process));
        let ancestors: Vec<u32> = ancestors.take(ANCESTORS_MAX).collect();
        for (one, at) in who_saw {
            let process = process_of(one).filter(|process| ancestors.contains(process));
            if process.is_some_and(|process| was_there(process, at)) {
                self.note(record, one, after);
            }
        }
    }

    /// What the process of `thread` saw last.
    pub fn base(&self, record: RecordKey, thread: u32) -> Base {
        let records = self.0.lock();
        let Some(looks) = records.get(&record).filter(|_| thread != 0) else {
            return Base::Unseen;
        };
        let process = process_of(thread);
        let mut own = looks.iter().rev().filter(|look| {
            look.thread == thread || (process.is_some() && process_of(look.thread) == process)
        });
        let last = own.next();
        let last = last.filter(|look| process.is_none_or(|process| was_there(process, look.at)));
        last.map_or(Base::Unseen, |look| Base::Seen(look.version))
    }
}

/// How far up one looks for who started a process.
const ANCESTORS_MAX: usize = 16;

/// A process that is younger than a look is another one under the same number.
fn was_there(process: u32, at: Instant) -> bool {
    age(process).is_none_or(|age| age + SLACK >= at.elapsed())
}

fn is_alive(thread: u32) -> bool {
    let pid = i32::try_from(thread).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// `/proc` counts the start of a process in ticks of 10 ms.
const SLACK: std::time::Duration = std::time::Duration::from_millis(20);

fn forget_older_half(records: &mut HashMap<RecordKey, Vec<Look>>) {
    let newest = |looks: &Vec<Look>| looks.last().map(|look| look.at);
    let mut times: Vec<_> = records.values().filter_map(newest).collect();
    times.sort_unstable();
    if let Some(middle) = times.get(times.len() / 2).copied() {
        records.retain(|_, looks| newest(looks).is_some_and(|at| at > middle));
    }
}

/// The process that a thread belongs to.
pub(super) fn process_of(thread: u32) -> Option<u32> {
    status_field(thread, "Tgid:")
}

/// The parent of a thread's process.
pub(super) fn parent_of(thread: u32) -> Option<u32> {
    status_field(thread, "PPid:")
}

/// Whether a process has ended, waited for or not.
pub(super) fn has_ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, None | Some('Z' | 'X'))
}

/// Whether a thread runs a program that only removes files.
pub(super) fn removes_files(thread: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
    matches!(name.trim_end(), "rm" | "unlink")
}

fn status_field(thread: u32, field: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(field))?.trim().parse().ok()
}

/// How long a process has lived.
fn age(process: u32) -> Option<std::time::Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything; the start time is the 20th field after it.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let started = std::time::Duration::from_secs_f64(ticks as f64 / per_second as f64);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let up = std::time::Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32);
    Some(up.saturating_sub(started))
}
