//! Of which events all kernels have surely taken in what they were told.
//!
//! A kernel walks a path, and asks us to open the inode that it came to; meanwhile a record may get a new version, and
//! with it another name. Whoever opens by what the kernel believed then would find under a name what never lay there,
//! and be told the size of another version. So who opens a version of which kernels were told only a moment ago is
//! sent to look again (`handles/overtaken`).
//!
//! What must stay true: an event counts as taken in only a while after it was told, in which whoever was under way by
//! then has come to us, and the reply to whoever made it has come to his kernel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::numbers::G;

/// How long that takes at most, but for a machine that stands still: on a busy one a thread waits for its processor for
/// tens of milliseconds.
const TAKEN_IN_WITHIN: Duration = Duration::from_millis(100);

/// See the head of this file.
#[derive(Default)]
pub(in crate::tree) struct TakenIn {
    /// What was told and may not be taken in yet, oldest first.
    told: Mutex<VecDeque<(Instant, G)>>,
    /// The last event that is taken in.
    last: AtomicU64,
}

impl TakenIn {
    /// Kernels were told of all events up to this one.
    pub fn told(&self, g: G) {
        let mut told = self.told.lock();
        self.forget_old(&mut told);
        told.push_back((Instant::now(), g));
    }

    /// Whether kernels have taken in this event, which is committed.
    pub fn has(&self, g: G) -> bool {
        g.0 <= self.last.load(Ordering::Acquire) || self.now_has(g)
    }

    fn now_has(&self, g: G) -> bool {
        self.forget_old(&mut self.told.lock());
        g.0 <= self.last.load(Ordering::Acquire)
    }

    fn forget_old(&self, told: &mut VecDeque<(Instant, G)>) {
        while let Some((at, last)) = told.front()
            && at.elapsed() >= TAKEN_IN_WITHIN
        {
            self.last.fetch_max(last.0, Ordering::Release);
            told.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_taken_in_a_while_after_it_was_told() {
        let taken_in = TakenIn::default();
        assert!(taken_in.has(G(0)) && !taken_in.has(G(1)), "it was not told");
        taken_in.told(G(2));
        let begin = Instant::now();
        while !taken_in.has(G(2)) {
            assert!(begin.elapsed() < TAKEN_IN_WITHIN * 100);
        }
        assert!(begin.elapsed() + Duration::from_millis(1) >= TAKEN_IN_WITHIN);
        assert!(taken_in.has(G(1)) && !taken_in.has(G(3)));
    }
}
