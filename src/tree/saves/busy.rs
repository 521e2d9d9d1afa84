//! Records that are being written: a claim, by copy too, waits for the writer to finish, but not
//! for long.
//!
//! What must stay true: no thread sleeps; a waiting change is started by the flush that ends the
//! writing, or refused by the timer; what is written under a claim that is over holds nobody up,
//! since it will not be taken; whoever writes a record counts as its writer, whichever file the
//! record has by now.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::engine::Fence;
use crate::limits::BUSY_WAIT;
use crate::numbers::{Ino, RecordKey, Version};
use crate::store::Record;
use crate::tree::start::Start;

/// A change that waits; told whether the record is still busy.
type Waiting = Box<dyn FnOnce(bool) + Send>;

/// What is written by a handle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tree) struct Writer {
    /// The record that its file was when it was opened, or became by a save of its own: it may have another
    /// file by now.
    pub record: Option<RecordKey>,
    /// The claim that it writes under.
    pub under: Option<Fence>,
    /// The version that it goes by, if it goes by one.
    pub saw: Option<Version>,
}

impl Writer {
    /// Whether what it writes to this record is refused in any case: the claim is over that it writes under, or
    /// the record has another version in a file of its own.
    fn is_late(&self, record: &Record, by_own_file: bool) -> bool {
        let is_over = self.under.as_ref().is_some_and(|fence| fence.is_over(record));
        is_over || !by_own_file && self.saw.is_some_and(|version| version != record.version)
    }
}

/// A file, and the record that it is.
pub(in crate::tree) type Of = (Ino, Option<RecordKey>);

struct Wait {
    of: Of,
    until: Instant,
    change: Waiting,
}

#[derive(Default)]
struct State {
    /// Who writes each file.
    writers: HashMap<Ino, Vec<Writer>>,
    /// The files by which each record is written, one for each who does.
    files: HashMap<RecordKey, Vec<Ino>>,
    /// Those of which somebody was told that they are being written, and who left them for it.
    left: HashSet<(Ino, RecordKey)>,
    waiting: Vec<Wait>,
    timer: bool,
}

impl State {
    /// Each with whether it writes by the file itself, and not by one that the record had before.
    fn writers_of(&self, (ino, record): Of) -> impl Iterator<Item = (bool, &Writer)> {
        let own = self.writers.get(&ino).into_iter().flatten();
        let files = record.and_then(|record| self.files.get(&record)).into_iter().flatten();
        let before = files.filter(move |file| **file != ino);
        let before = before.filter_map(|file| self.writers.get(file)).flatten();
        let before = before.filter(move |writer| writer.record == record);
        own.map(|writer| (true, writer)).chain(before.map(|writer| (false, writer)))
    }

    fn is_written(&self, of: Of) -> bool {
        self.writers_of(of).next().is_some()
    }

    fn remove(&mut self, ino: Ino, writer: &Writer) {
        if let Some(writers) = self.writers.get_mut(&ino)
            && let Some(at) = writers.iter().position(|own| own == writer)
        {
            writers.swap_remove(at);
            if writers.is_empty() {
                self.writers.remove(&ino);
            }
        }
        let Some(record) = writer.record else { return };
        if let Some(files) = self.files.get_mut(&record)
            && let Some(at) = files.iter().position(|file| *file == ino)
        {
            files.swap_remove(at);
            if files.is_empty() {
                self.files.remove(&record);
            }
        }
    }
}

/// Inodes with unjudged writes, and the changes that wait for them.
#[derive(Default)]
pub(in crate::tree) struct Busy {
    state: Mutex<State>,
    changed: Condvar,
    start: Start,
}

impl Busy {
    /// A handle of `ino` has unjudged writes now.
    pub fn begin(&self, ino: Ino, writer: Writer) {
        let mut state = self.state.lock();
        if let Some(record) = writer.record {
            state.files.entry(record).or_default().push(ino);
        }
        state.writers.entry(ino).or_default().push(writer);
    }

    /// A handle of `ino` has none any more. Says whether somebody left its record for that, who may look
    /// again: what others still write may be under a claim that is over. What waited goes on by this, so that
    /// the caller has nothing locked that a change may want.
    pub fn end(&self, ino: Ino, writer: &Writer) -> bool {
        let (ready, was_left) = {
            let mut state = self.state.lock();
            state.remove(ino, writer);
            let waiting = std::mem::take(&mut state.waiting);
            let (still, ready) = waiting.into_iter().partition(|wait| state.is_written(wait.of));
            state.waiting = still;
            let left = state.left.len();
            state.left.retain(|(file, record)| *file != ino && Some(*record) != writer.record);
            (ready, state.left.len() < left)
        };
        run(ready, false);
        was_left
    }

    /// Whether a handle has unjudged writes of `ino`, or of the record that this is, by another file too, which
    /// may still be taken.
    pub fn is_written(&self, ino: Ino, record: Option<&Record>) -> bool {
        let mut state = self.state.lock();
        if state.writers.is_empty() {
            return false;
        }
        let key = record.map(|record| record.key);
        let is_late = |(by_own_file, writer): (bool, &Writer)| {
            record.is_some_and(|record| writer.is_late(record, by_own_file))
        };
        let is_written = !state.writers_of((ino, key)).all(is_late);
        if let Some(key) = key.filter(|_| is_written) {
            state.left.insert((ino, key));
        }
        is_written
    }

    /// Whether a handle has unjudged writes, whatever becomes of them.
    pub fn is_any(&self, of: Of) -> bool {
        self.state.lock().is_written(of)
    }

    /// Whether nothing but `ino` is being written: the usual case, asked where that may move a record.
    pub fn is_idle_but(&self, ino: Ino) -> bool {
        self.state.lock().writers.keys().all(|of| *of == ino)
    }

    /// Whether nothing at all is being written: the usual case, asked on every rename.
    pub fn is_idle(&self) -> bool {
        self.state.lock().writers.is_empty()
    }

    /// Runs `change` when nothing of this is unjudged, or with `true` after [`BUSY_WAIT`]; at once, where
    /// there is no thread to see to that.
    pub fn when_idle(self: &Arc<Self>, of: Of, change: Waiting) {
        let mut state = self.state.lock();
        if !state.is_written(of) {
            drop(state);
            return change(false);
        }
        if !state.timer {
            let timer = Arc::clone(self);
            if let Err(error) = self.start.thread("busy", move || timer.time()) {
                drop(state);
                tracing::warn!(%error, "no thread to wait for a writer");
                return change(true);
            }
            state.timer = true;
        }
        state.waiting.push(Wait { of, until: Instant::now() + BUSY_WAIT, change });
        drop(state);
        self.changed.notify_one();
    }

    /// The timer thread: refuses what has waited too long; ends when nothing waits.
    fn time(&self) {
        let mut state = self.state.lock();
        while let Some(next) = state.waiting.iter().map(|wait| wait.until).min() {
            let now = Instant::now();
            if next > now {
                self.changed.wait_until(&mut state, next);
                continue;
            }
            let waiting = std::mem::take(&mut state.waiting);
            let (late, still) = waiting.into_iter().partition(|wait| wait.until <= now);
            state.waiting = still;
            parking_lot::MutexGuard::unlocked(&mut state, || run(late, true));
        }
        state.timer = false;
    }
}

fn run(waiting: Vec<Wait>, busy: bool) {
    for wait in waiting {
        (wait.change)(busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITER: Writer = Writer { record: None, under: None, saw: None };

    #[test]
    fn where_no_thread_is_to_be_had_nothing_waits_for_ever() {
        let busy = Arc::new(Busy { start: Start::none(), ..Busy::default() });
        busy.begin(Ino(7), WRITER);
        let (tell, told) = std::sync::mpsc::channel();
        busy.when_idle((Ino(7), None), Box::new(move |is_busy| tell.send(is_busy).unwrap()));
        assert_eq!(told.try_recv(), Ok(true), "refused at once");
        // When there is one again it is waited as before.
        let busy = Arc::new(Busy::default());
        busy.begin(Ino(7), WRITER);
        let (tell, told) = std::sync::mpsc::channel();
        busy.when_idle((Ino(7), None), Box::new(move |is_busy| tell.send(is_busy).unwrap()));
        busy.end(Ino(7), &WRITER);
        assert_eq!(told.recv(), Ok(false));
    }
}
