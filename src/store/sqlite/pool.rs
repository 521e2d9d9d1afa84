//! The reading connections that nobody uses just now.
//!
//! What must stay true: whoever wants one has it as long as there is any, even where no further one can be opened:
//! who waits at the socket may have all of the daemon's descriptors, and files are read all the same. Each takes half
//! a megabyte: how many there are goes by how many read at once, within a limit, and not by how many ever did.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Conn;
use crate::limits::{READERS_AT_ONCE, READERS_KEPT_MAX, READERS_WAITED_FOR, REQUEST_DEADLINE};
use crate::store::{Result, StoreError};

/// Who reads in a mount has these at least, where all descriptors are wanted by others.
const KEPT: usize = 4;

/// That a descriptor is given back is told to nobody.
const TRIED_EVERY: Duration = Duration::from_millis(50);

/// See the head of this file.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<Reader>>,
    /// Notified when there is one more of them.
    given_back: Condvar,
    /// How many there are, used or not.
    open: Arc<AtomicUsize>,
}

/// A connection of the pool.
pub(super) struct Reader {
    connection: Conn,
    open: Arc<AtomicUsize>,
}

impl Deref for Reader {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.connection
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// One that nobody has, else a new one. Where there are many, one that somebody has by now is waited for a moment:
    /// who reads in a mount has it for less. Where there can be no new one, since there is no descriptor for it or the
    /// store's file has lost its name, one is waited for longer, or a descriptor, though not without end.
    pub fn take(&self, open: impl Fn() -> Result<Conn>) -> Result<Reader> {
        if let Some(reader) = self.idle.lock().pop() {
            return Ok(reader);
        }
        if self.open.load(Ordering::Relaxed) >= READERS_AT_ONCE
            && let Some(reader) = self.await_one(READERS_WAITED_FOR)
        {
            return Ok(reader);
        }
        let mut until = None;
        loop {
            let error = match open() {
                Err(error @ (StoreError::NoDescriptors(_) | StoreError::Moved(_))) => error,
                opened => return opened.map(|connection| self.reader(connection)),
            };
            let until = *until.get_or_insert_with(|| Instant::now() + REQUEST_DEADLINE);
            if let Some(reader) = self.await_one(TRIED_EVERY) {
                return Ok(reader);
            }
            if Instant::now() >= until {
                return Err(error);
            }
        }
    }

    /// How many there are, and how many of them somebody has.
    pub fn counts(&self) -> (usize, usize) {
        let idle = self.idle.lock().len();
        let open = self.open.load(Ordering::Relaxed);
        (open, open.saturating_sub(idle))
    }

    fn reader(&self, connection: Conn) -> Reader {
        self.open.fetch_add(1, Ordering::Relaxed);
        Reader { connection, open: Arc::clone(&self.open) }
    }

    /// Closes those that nobody has, but for a few.
    pub fn close_most(&self) {
        let mut idle = self.idle.lock();
        let most = idle.len().saturating_sub(KEPT);
        let closed: Vec<Reader> = idle.drain(..most).collect();
        drop(idle);
        drop(closed);
    }

    /// Takes one back; where there are enough that nobody uses it is closed.
    pub fn give_back(&self, reader: Reader) {
        let mut idle = self.idle.lock();
        if idle.len() < READERS_KEPT_MAX {
            idle.push(reader);
            self.given_back.notify_one();
        } else {
            drop(idle);
            drop(reader);
        }
    }

    fn await_one(&self, patience: Duration) -> Option<Reader> {
        let until = Instant::now() + patience;
        let mut idle = self.idle.lock();
        while idle.is_empty() && !self.given_back.wait_until(&mut idle, until).timed_out() {}
        idle.pop()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rusqlite::Connection;

    use super::*;
    use crate::store::sqlite::extents::Extents;

    #[test]
    fn whoever_reads_a_store_that_has_lost_its_name_waits_for_a_reader_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let sql = || Connection::open_in_memory().unwrap();
        let extents = Extents::open(&dir.path().join("store"), &sql(), None).unwrap();
        let pool = Pool::default();
        let one = pool.take(|| Ok(Conn::new(sql(), &extents))).unwrap();
        let (tell, tried) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| {
                let open = || {
                    tell.send(()).unwrap();
                    Err(StoreError::Moved("store".to_owned()))
                };
                pool.take(open).map(|reader| pool.give_back(reader)).is_ok()
            });
            tried.recv().unwrap();
            pool.give_back(one);
            assert!(waits.join().unwrap());
        });
    }

    #[test]
    fn readers_are_as_many_as_read_at_once_and_few_stay() {
        let dir = tempfile::tempdir().unwrap();
        let sql = || Connection::open_in_memory().unwrap();
        let extents = Extents::open(&dir.path().join("store"), &sql(), None).unwrap();
        let (pool, opened) = (Pool::default(), Cell::new(0));
        let take = || {
            let open = || {
                opened.set(opened.get() + 1);
                Ok(Conn::new(sql(), &extents))
            };
            pool.take(open).unwrap()
        };
        let many: Vec<Reader> = (0..READERS_AT_ONCE).map(|_| take()).collect();
        assert_eq!(opened.get(), READERS_AT_ONCE);
        // One of them is waited for, and not for ever: who waits may have them all.
        let begin = Instant::now();
        let more = take();
        assert!(begin.elapsed() >= READERS_WAITED_FOR);
        assert_eq!(pool.open.load(Ordering::Relaxed), READERS_AT_ONCE + 1);
        many.into_iter().chain([more]).for_each(|reader| pool.give_back(reader));
        assert_eq!(pool.open.load(Ordering::Relaxed), READERS_KEPT_MAX);
        pool.close_most();
        assert_eq!(pool.open.load(Ordering::Relaxed), KEPT);
        drop(take());
        assert_eq!(pool.open.load(Ordering::Relaxed), KEPT - 1);
    }
}
