//! The bell: rung after each commit that made events, for all who wait for one.
//!
//! What must stay true: ringing never blocks the writer, and a ring is never lost: who subscribes
//! before it looks at the ledger is woken by every later event. Deliberately not here: which
//! events somebody waits for; whoever is woken reads the ledger.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use parking_lot::Mutex;

use crate::numbers::G;

/// Rung by the writer, heard by subscribers.
#[derive(Default)]
pub struct Bell {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: G,
    subscribers: Vec<Sender<()>>,
}

/// Woken by every event from its making on. Needs no thread of its own.
pub struct Subscription {
    bell: Arc<Bell>,
    wakes: Receiver<()>,
}

impl Bell {
    /// A new subscriber.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>) -> Subscription {
        // One wake-up stands for all events until it is taken.
        let (send, wakes) = bounded(1);
        self.state.lock().subscribers.push(send);
        Subscription { bell: Arc::clone(self), wakes }
    }

    /// Tells that `newest` is committed.
    pub(super) fn ring(&self, newest: G) {
        let mut state = self.state.lock();
        state.last = state.last.max(newest);
        state.subscribers.retain(|subscriber| {
            !matches!(subscriber.try_send(()), Err(TrySendError::Disconnected(())))
        });
    }
}

impl Subscription {
    /// The newest event that the bell was rung for; 0 before the first.
    #[must_use]
    pub fn last(&self) -> G {
        self.bell.state.lock().last
    }

    /// Waits for an event after `after`, at most for `timeout`; says whether there is one.
    #[must_use]
    pub fn wait(&self, after: G, timeout: Duration) -> bool {
        let until = std::time::Instant::now() + timeout;
        while self.last() <= after {
            if self.wakes.recv_deadline(until).is_err() {
                return self.last() > after;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_before_the_wait_is_not_lost() {
        let bell = Arc::new(Bell::default());
        let (early, late) = (bell.subscribe(), bell.subscribe());
        bell.ring(G(3));
        assert!(early.wait(G(2), Duration::ZERO));
        assert!(!early.wait(G(3), Duration::from_millis(1)));
        drop(late);
        bell.ring(G(4));
        assert_eq!(bell.state.lock().subscribers.len(), 1, "who is gone is forgotten");
        assert!(early.wait(G(3), Duration::ZERO));
        assert_eq!(early.last(), G(4));
    }

    #[test]
    fn a_ring_wakes_who_waits() {
        let bell = Arc::new(Bell::default());
        let waiting = bell.subscribe();
        let rings = Arc::clone(&bell);
        let ringer = std::thread::spawn(move || rings.ring(G(1)));
        assert!(waiting.wait(G(0), Duration::from_secs(60)));
        ringer.join().unwrap();
    }
}
