//! The queue before the desk: bounded, and whoever waits at either end sleeps. A taker that spins
//! first, as general channels do, steals the processor from the very callers it waits for.
//!
//! What must stay true: nothing that was accepted is lost, and a call to look is never missed.
//! Deliberately not here: who takes; any number of threads may.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// A queue.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    room: Condvar,
    most: usize,
}

struct State<T> {
    waiting: Vec<T>,
    /// Somebody asked for a look, although nothing may wait.
    called: bool,
    closed: bool,
}

/// Why a [`Queue::watch`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Something waits, somebody called, or the time is over.
    Now,
    /// The queue is closed and empty.
    Closed,
}

impl<T> Queue<T> {
    /// A queue that holds so many.
    pub fn bounded(most: usize) -> Self {
        let state = State { waiting: Vec::new(), called: false, closed: false };
        let (filled, room) = (Condvar::new(), Condvar::new());
        Queue { state: Mutex::new(state), filled, room, most }
    }

    /// Puts `thing`, waiting for room no longer than `patience`; wakes nobody.
    ///
    /// # Errors
    /// `thing` itself, if there was no room or the queue is closed.
    pub fn put(&self, thing: T, patience: Duration) -> Result<(), T> {
        let mut state = self.state.lock();
        if state.waiting.len() >= self.most {
            let until = Instant::now() + patience;
            while state.waiting.len() >= self.most && !state.closed {
                if self.room.wait_until(&mut state, until).timed_out() {
                    return Err(thing);
                }
            }
        }
        if state.closed {
            return Err(thing);
        }
        state.waiting.push(thing);
        Ok(())
    }

    /// Puts `thing` without waiting, also where there is no room: for whoever makes the room.
    ///
    /// # Errors
    /// `thing` itself, if the queue is closed.
    pub fn put_beside(&self, thing: T) -> Result<(), T> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(thing);
        }
        state.waiting.push(thing);
        Ok(())
    }

    /// Makes who watches look.
    pub fn call(&self) {
        self.state.lock().called = true;
        self.filled.notify_one();
    }

    /// Takes what waits, in order, but `most` at most.
    pub fn take(&self, most: usize) -> Vec<T> {
        let mut state = self.state.lock();
        let end = state.waiting.len().min(most);
        let rest = state.waiting.split_off(end);
        let taken = std::mem::replace(&mut state.waiting, rest);
        drop(state);
        self.room.notify_all();
        taken
    }

    /// How many wait.
    pub fn length(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }

    /// Sleeps until somebody calls, or for `patience`; not where something waits already.
    pub fn watch(&self, patience: Option<Duration>) -> Look {
        let until = patience.map(|patience| Instant::now() + patience);
        let mut state = self.state.lock();
        while !state.called && state.waiting.is_empty() {
            if state.closed {
                return Look::Closed;
            }
            match until {
                None => self.filled.wait(&mut state),
                Some(until) => {
                    if self.filled.wait_until(&mut state, until).timed_out() {
                        break;
                    }
                }
            }
        }
        state.called = false;
        Look::Now
    }

    /// Takes nothing more in.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.room.notify_all();
        self.filled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_waits_is_taken_at_once_and_in_order() {
        let queue = Queue::bounded(8);
        for number in 0..5 {
            queue.put(number, Duration::ZERO).expect("there is room");
        }
        assert_eq!(queue.take(3), [0, 1, 2]);
        assert_eq!(queue.take(3), [3, 4]);
        assert!(queue.is_empty());
        assert!(queue.take(3).is_empty());
    }

    #[test]
    fn a_full_queue_gives_back_what_it_cannot_hold_and_takes_it_when_there_is_room() {
        let queue = Arc::new(Queue::bounded(1));
        queue.put('a', Duration::ZERO).expect("there is room");
        assert_eq!(queue.put('b', Duration::from_millis(1)), Err('b'));
        let own = Arc::clone(&queue);
        let waiting = std::thread::spawn(move || {
            let put = own.put('c', Duration::from_secs(60));
            own.call();
            put
        });
        assert_eq!(queue.take(8), ['a']);
        assert_eq!(queue.watch(None), Look::Now);
        assert_eq!(queue.take(8), ['c']);
        assert_eq!(waiting.join().expect("no panic"), Ok(()));
    }

    #[test]
    fn a_call_before_the_watch_is_not_missed_and_counts_once() {
        let queue: Queue<u8> = Queue::bounded(1);
        queue.call();
        assert_eq!(queue.watch(None), Look::Now);
        let begin = Instant::now();
        assert_eq!(queue.watch(Some(Duration::from_millis(5))), Look::Now);
        assert!(begin.elapsed() >= Duration::from_millis(5));
    }

    #[test]
    fn what_waits_before_the_watch_is_not_missed() {
        let queue = Queue::bounded(1);
        queue.put('a', Duration::ZERO).expect("there is room");
        assert_eq!(queue.watch(None), Look::Now);
    }

    #[test]
    fn a_closed_queue_takes_nothing_in_and_is_emptied_first() {
        let queue = Queue::bounded(4);
        queue.put(1, Duration::ZERO).expect("there is room");
        queue.close();
        assert_eq!(queue.put(2, Duration::from_secs(60)), Err(2));
        assert_eq!(queue.watch(None), Look::Now);
        assert_eq!(queue.take(4), [1]);
        assert_eq!(queue.watch(None), Look::Closed);
    }
}
