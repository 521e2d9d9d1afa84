//! The reading connections that nobody uses just now.
//!
//! What must stay true: whoever wants one has it as long as there is any, even where no further one can be opened:
//! who waits at the socket may have all of the daemon's descriptors, and files are read all the same.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Conn;
use crate::limits::REQUEST_DEADLINE;
use crate::store::{Result, StoreError};

/// Who reads in a mount has these at least, where all descriptors are wanted by others.
const KEPT: usize = 4;

/// That a descriptor is given back is told to nobody.
const TRIED_EVERY: Duration = Duration::from_millis(50);

/// See the head of this file.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<Conn>>,
    /// Notified when there is one more of them.
    given_back: Condvar,
}

impl Pool {
    /// One that nobody has, else a new one; where there is no descriptor for that, one that somebody has by now is
    /// waited for, or a descriptor, though not without end.
    pub fn take(&self, open: impl Fn() -> Result<Conn>) -> Result<Conn> {
        if let Some(connection) = self.idle.lock().pop() {
            return Ok(connection);
        }
        let mut until = None;
        loop {
            let error = match open() {
                Err(error @ StoreError::NoDescriptors(_)) => error,
                opened => return opened,
            };
            let until = *until.get_or_insert_with(|| Instant::now() + REQUEST_DEADLINE);
            if let Some(connection) = self.await_one(TRIED_EVERY) {
                return Ok(connection);
            }
            if Instant::now() >= until {
                return Err(error);
            }
        }
    }

    /// Closes those that nobody has, but for a few.
    pub fn close_most(&self) {
        let mut idle = self.idle.lock();
        let most = idle.len().saturating_sub(KEPT);
        let closed: Vec<Conn> = idle.drain(..most).collect();
        drop(idle);
        drop(closed);
    }

    pub fn give_back(&self, connection: Conn) {
        self.idle.lock().push(connection);
        self.given_back.notify_one();
    }

    fn await_one(&self, patience: Duration) -> Option<Conn> {
        let until = Instant::now() + patience;
        let mut idle = self.idle.lock();
        while idle.is_empty() && !self.given_back.wait_until(&mut idle, until).timed_out() {}
        idle.pop()
    }
}
