//! Threads of a mount for what takes long: the two that take its requests go on meanwhile.
//!
//! What must stay true: what was taken is done, also where no thread can be had, and before the session has ended;
//! a mount of which nothing long is asked has no such thread. Deliberately not here: what takes long.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// At most so many things are done at once; what comes meanwhile waits for its turn.
const THREADS_MAX: usize = 2;

/// How long a thread waits for more: a long listing is told in many pieces.
const PATIENCE: Duration = Duration::from_secs(1);

type Work = Box<dyn FnOnce() + Send>;

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Aside {
    state: Mutex<State>,
    /// Something came, or no more does.
    came: Condvar,
    /// A thread has ended.
    left: Condvar,
}

#[derive(Default)]
struct State {
    works: VecDeque<Work>,
    threads: usize,
    /// Those of them that wait.
    idle: usize,
    is_ending: bool,
}

impl Aside {
    /// Has `work` done by one of the threads; by the caller's own where there is none, and none can be had.
    pub(crate) fn run(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        state.works.push_back(Box::new(work));
        if state.works.len() > state.idle && state.threads < THREADS_MAX {
            let own = Arc::clone(self);
            match Builder::new().name("aside".into()).spawn(move || own.work()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    tracing::warn!(%error, "no thread for what takes long: the mount's own does it");
                    let works = std::mem::take(&mut state.works);
                    drop(state);
                    works.into_iter().for_each(|work| work());
                    return;
                }
                Err(_) => {}
            }
        }
        drop(state);
        self.came.notify_one();
    }

    /// Waits until all that came is done and no thread is left; nothing comes any more.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.is_ending = true;
        self.came.notify_all();
        while state.threads > 0 {
            self.left.wait(&mut state);
        }
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.works.pop_front() {
                drop(state);
                // A panic must not leave a thread counted for which `end` would wait for ever.
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    tracing::error!("what takes long panicked");
                }
                state = self.state.lock();
                continue;
            }
            if state.is_ending {
                break;
            }
            state.idle += 1;
            let waited = self.came.wait_for(&mut state, PATIENCE);
            state.idle -= 1;
            if waited.timed_out() && state.works.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        self.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_keeps_neither_the_next_nor_the_end_from_coming() {
        let (aside, (tell, told)) = (Arc::new(Aside::default()), crossbeam_channel::unbounded());
        for nth in 0..8 {
            let tell = tell.clone();
            aside.run(move || {
                assert!(nth % 2 == 0, "a panic that the test asked for");
                tell.send(nth).unwrap();
            });
        }
        aside.end();
        let mut done: Vec<_> = told.try_iter().collect();
        done.sort_unstable();
        assert_eq!(done, [0, 2, 4, 6]);
        assert_eq!(aside.state.lock().threads, 0);
    }
}
