//! The writer's queue: bounded, many senders, one taker who takes all that waits at once.
//!
//! What must stay true: nothing that was accepted is lost; whoever waits, sleeps: a taker that spins
//! first, as general channels do, steals the processor from the very callers it waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// A queue's two ends: the last [`Sender`] that is dropped closes it.
pub(super) fn bounded<T>(most: usize) -> (Sender<T>, Taker<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State { waiting: Vec::new(), senders: 1, taken: false }),
        filled: Condvar::new(),
        room: Condvar::new(),
        most,
    });
    (Sender(Arc::clone(&shared)), Taker(shared))
}

struct State<T> {
    waiting: Vec<T>,
    senders: usize,
    /// The taker is gone.
    taken: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    room: Condvar,
    most: usize,
}

/// What a [`Taker`] gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken<T> {
    /// All that waited: at least one.
    All(Vec<T>),
    /// Nothing came in time.
    Late,
    /// Nothing will come any more.
    Closed,
}

/// The end where things are put.
pub(super) struct Sender<T>(Arc<Shared<T>>);

/// The end where things are taken.
pub(super) struct Taker<T>(Arc<Shared<T>>);

impl<T> Sender<T> {
    /// Puts `thing`, waiting for room no longer than `patience`.
    ///
    /// # Errors
    /// `thing` itself, if there was no room or nobody takes any more.
    pub(super) fn send(&self, thing: T, patience: Duration) -> Result<(), T> {
        let mut state = self.0.state.lock();
        if state.waiting.len() >= self.0.most {
            let until = Instant::now() + patience;
            while state.waiting.len() >= self.0.most && !state.taken {
                if self.0.room.wait_until(&mut state, until).timed_out() {
                    return Err(thing);
                }
            }
        }
        if state.taken {
            return Err(thing);
        }
        state.waiting.push(thing);
        drop(state);
        self.0.filled.notify_one();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().senders -= 1;
        self.0.filled.notify_one();
    }
}

impl<T> Taker<T> {
    /// Waits for something, or until `until`, and takes all that waits, in order, but `most` at
    /// most.
    pub(super) fn take(&self, most: usize, until: Option<Instant>) -> Taken<T> {
        let mut state = self.0.state.lock();
        while state.waiting.is_empty() {
            if state.senders == 0 {
                return Taken::Closed;
            }
            match until {
                None => self.0.filled.wait(&mut state),
                Some(until) if self.0.filled.wait_until(&mut state, until).timed_out() => {
                    return Taken::Late;
                }
                Some(_) => {}
            }
        }
        let end = state.waiting.len().min(most);
        let rest = state.waiting.split_off(end);
        let taken = std::mem::replace(&mut state.waiting, rest);
        drop(state);
        self.0.room.notify_all();
        Taken::All(taken)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.state.lock().waiting.is_empty()
    }
}

impl<T> Drop for Taker<T> {
    fn drop(&mut self) {
        self.0.state.lock().taken = true;
        self.0.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_waits_is_taken_at_once_and_in_order() {
        let (sender, taker) = bounded(8);
        for number in 0..5 {
            sender.send(number, Duration::ZERO).expect("there is room");
        }
        assert_eq!(taker.take(3, None), Taken::All(vec![0, 1, 2]));
        assert_eq!(taker.take(3, None), Taken::All(vec![3, 4]));
        assert!(taker.is_empty());
        assert_eq!(taker.take(3, Some(Instant::now())), Taken::Late);
    }

    #[test]
    fn a_full_queue_gives_back_what_it_cannot_hold_and_takes_it_when_there_is_room() {
        let (sender, taker) = bounded(1);
        sender.send('a', Duration::ZERO).expect("there is room");
        assert_eq!(sender.send('b', Duration::from_millis(1)), Err('b'));
        let waiting = std::thread::spawn(move || sender.send('c', Duration::from_secs(60)));
        assert_eq!(taker.take(8, None), Taken::All(vec!['a']));
        assert_eq!(taker.take(8, None), Taken::All(vec!['c']));
        assert_eq!(waiting.join().expect("no panic"), Ok(()));
    }

    #[test]
    fn the_last_sender_closes_it_and_a_gone_taker_refuses() {
        let (sender, taker) = bounded(4);
        let second = sender.clone();
        sender.send(1, Duration::ZERO).expect("there is room");
        drop((sender, second));
        assert_eq!(taker.take(4, None), Taken::All(vec![1]));
        assert_eq!(taker.take(4, None), Taken::Closed);

        let (sender, taker) = bounded(4);
        drop(taker);
        assert_eq!(sender.send(1, Duration::from_secs(60)), Err(1));
    }
}
