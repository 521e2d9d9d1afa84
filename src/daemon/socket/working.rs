//! Requests that the daemon's end waits for, and whether it may end because none is left.
//!
//! What must stay true: where a request begins while the daemon is about to end, at least one of
//! the two hears of the other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_channel::Sender;

use crate::daemon::Event;

/// What is being served.
#[derive(Debug)]
pub(super) struct Work {
    /// All but those that never end.
    requests: AtomicUsize,
    /// The daemon ends, unless there are any.
    ending: AtomicBool,
    wake: Sender<Event>,
}

impl Work {
    /// Nothing; `wake` hears when something is done.
    pub fn new(wake: Sender<Event>) -> Work {
        Work { requests: AtomicUsize::new(0), ending: AtomicBool::new(false), wake }
    }

    /// Something is served, which `counts` if it will end by itself.
    pub fn begin(&self, counts: bool) -> Working<'_> {
        self.requests.fetch_add(usize::from(counts), Ordering::SeqCst);
        Working { work: self, counts }
    }

    /// Whether a request is being served that the end should wait for.
    pub fn is_any(&self) -> bool {
        self.requests.load(Ordering::SeqCst) > 0
    }

    /// Whether the daemon is about to end; who asks after it began something need not be waited for.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Ends it, if there is none.
    pub fn end_idle(&self) -> bool {
        self.ending.store(true, Ordering::SeqCst);
        // Who counted before it could see that is seen here.
        let is_idle = !self.is_any();
        self.ending.store(is_idle, Ordering::SeqCst);
        is_idle
    }
}

/// A request, as long as it is served.
pub(super) struct Working<'w> {
    work: &'w Work,
    counts: bool,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.work.requests.fetch_sub(usize::from(self.counts), Ordering::SeqCst);
        // The daemon may have waited for this one. A full queue wakes it all the same.
        let _ = self.work.wake.try_send(Event::MountsChanged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_only_when_nothing_that_counts_is_served() {
        let work = Work::new(crossbeam_channel::bounded(1).0);
        let (counts, endless) = (work.begin(true), work.begin(false));
        assert!(work.is_any() && !work.end_idle() && !work.is_ending());
        drop(counts);
        assert!(!work.is_any() && work.end_idle() && work.is_ending());
        drop(endless);
        assert!(!work.is_any());
    }

    #[test]
    fn who_begins_and_who_ends_never_both_go_on() {
        for _ in 0..2_000 {
            let work = Work::new(crossbeam_channel::bounded(1).0);
            let (begins, ends) = std::thread::scope(|threads| {
                let begins = threads.spawn(|| {
                    let working = work.begin(true);
                    (!work.is_ending()).then_some(working)
                });
                let ends = threads.spawn(|| work.end_idle());
                (begins.join().unwrap(), ends.join().unwrap())
            });
            assert!(!(begins.is_some() && ends));
        }
    }
}
