//! Records that are being written: a claim, by copy too, waits for the writer to finish, but not for long.
//!
//! What must stay true: no thread sleeps; a waiting change is started by the flush that ends the
//! writing, or refused by the timer; what was written under a claim that is over hinders nobody, since
//! it is not taken any more.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::engine::Fence;
use crate::limits::BUSY_WAIT;
use crate::numbers::Ino;
use crate::store::Record;

/// A change that waits; told whether the record is still busy.
type Waiting = Box<dyn FnOnce(bool) + Send>;

#[derive(Default)]
struct State {
    /// The claim that each handle writes under.
    writers: HashMap<Ino, Vec<Option<Fence>>>,
    /// Those of which somebody was told that they are being written, and who left them for it.
    left: HashSet<Ino>,
    waiting: Vec<(Ino, Instant, Waiting)>,
    timer: bool,
}

/// Inodes with unjudged writes, and the changes that wait for them.
pub(super) struct Busy {
    state: Mutex<State>,
    changed: Condvar,
    /// Starts the timer's thread.
    start: fn(Arc<Busy>) -> io::Result<()>,
}

impl Default for Busy {
    fn default() -> Busy {
        let start = |busy: Arc<Busy>| {
            let thread = std::thread::Builder::new().name("busy".into());
            thread.spawn(move || busy.time()).map(drop)
        };
        Busy { state: Mutex::default(), changed: Condvar::new(), start }
    }
}

impl Busy {
    /// A handle of `ino` has unjudged writes now.
    pub fn begin(&self, ino: Ino, under: Option<Fence>) {
        self.state.lock().writers.entry(ino).or_default().push(under);
    }

    /// A handle of `ino` has none any more. Says whether somebody left the record for that, who may look
    /// again: what others still write may be under a claim that is over.
    pub fn end(&self, ino: Ino, under: Option<&Fence>) -> bool {
        let (ready, was_left) = {
            let mut state = self.state.lock();
            if let Some(writers) = state.writers.get_mut(&ino) {
                if let Some(at) = writers.iter().position(|own| own.as_ref() == under) {
                    writers.swap_remove(at);
                }
                if !writers.is_empty() {
                    return state.left.remove(&ino);
                }
                state.writers.remove(&ino);
            }
            let waiting = std::mem::take(&mut state.waiting);
            let (ready, still) = waiting.into_iter().partition(|(of, ..)| *of == ino);
            state.waiting = still;
            (ready, state.left.remove(&ino))
        };
        run(ready, false);
        was_left
    }

    /// Whether a handle of `ino` has unjudged writes that may still be taken, where it is this record's
    /// file.
    pub fn is_written(&self, ino: Ino, record: Option<&Record>) -> bool {
        let mut state = self.state.lock();
        let Some(writers) = state.writers.get(&ino) else { return false };
        let is_over = |under: &Option<Fence>| match (under, record) {
            (Some(fence), Some(record)) => fence.is_over(record),
            _ => false,
        };
        let is_written = !writers.iter().all(is_over);
        if is_written && record.is_some() {
            state.left.insert(ino);
        }
        is_written
    }

    /// Whether nothing but `ino` is being written: the usual case, asked where that may move a record.
    pub fn is_idle_but(&self, ino: Ino) -> bool {
        self.state.lock().writers.keys().all(|of| *of == ino)
    }

    /// Whether nothing at all is being written: the usual case, asked on every rename.
    pub fn is_idle(&self) -> bool {
        self.state.lock().writers.is_empty()
    }

    /// Runs `change` when nothing of `ino` is unjudged, or with `true` after [`BUSY_WAIT`]; at once, where
    /// there is no thread to see to that.
    pub fn when_idle(self: &Arc<Self>, ino: Ino, change: Waiting) {
        let mut state = self.state.lock();
        if !state.writers.contains_key(&ino) {
            drop(state);
            return change(false);
        }
        if !state.timer {
            if let Err(error) = (self.start)(Arc::clone(self)) {
                drop(state);
                tracing::warn!(%error, "no thread to wait for a writer");
                return change(true);
            }
            state.timer = true;
        }
        state.waiting.push((ino, Instant::now() + BUSY_WAIT, change));
        drop(state);
        self.changed.notify_one();
    }

    /// The timer thread: refuses what has waited too long; ends when nothing waits.
    fn time(&self) {
        let mut state = self.state.lock();
        while let Some(next) = state.waiting.iter().map(|(_, until, _)| *until).min() {
            let now = Instant::now();
            if next > now {
                self.changed.wait_until(&mut state, next);
                continue;
            }
            let waiting = std::mem::take(&mut state.waiting);
            let (late, still) = waiting.into_iter().partition(|(_, until, _)| *until <= now);
            state.waiting = still;
            parking_lot::MutexGuard::unlocked(&mut state, || run(late, true));
        }
        state.timer = false;
    }
}

fn run(waiting: Vec<(Ino, Instant, Waiting)>, busy: bool) {
    for (_, _, change) in waiting {
        change(busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_thread_is_to_be_had_nothing_waits_for_ever() {
        let start = |_| Err(io::Error::from(io::ErrorKind::WouldBlock));
        let busy = Arc::new(Busy { start, ..Busy::default() });
        busy.begin(Ino(7), None);
        let (tell, told) = std::sync::mpsc::channel();
        busy.when_idle(Ino(7), Box::new(move |is_busy| tell.send(is_busy).unwrap()));
        assert_eq!(told.try_recv(), Ok(true), "refused at once");
        // When there is one again it is waited as before.
        let busy = Arc::new(Busy::default());
        busy.begin(Ino(7), None);
        let (tell, told) = std::sync::mpsc::channel();
        busy.when_idle(Ino(7), Box::new(move |is_busy| tell.send(is_busy).unwrap()));
        busy.end(Ino(7), None);
        assert_eq!(told.recv(), Ok(false));
    }
}
