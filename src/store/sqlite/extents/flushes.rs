//! What a flush has kept, of the extents and of the log, and what becomes of one that fails.
//!
//! What must stay true: after a flush that failed none says that all is well before what the first
//! should have kept was written once more: the kernel tells of a failure once, and then takes for
//! written what it gave up. Deliberately not here: how the log is written anew (`writer`).

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rusqlite::Connection;

use super::super::fail;
use super::{Extents, NO_END, failed};
use crate::store::Result;

/// What was written.
pub(super) struct Written<T> {
    /// How often.
    pub times: T,
    /// How far it ever reached.
    pub end: T,
    /// Where it begins that was not flushed.
    pub begin: T,
}

/// How often flushes of the log have begun, how many have ended in whichever way, and which of them is the last that
/// is done.
#[derive(Default)]
pub(super) struct LogFlushes {
    begun: AtomicU64,
    ended: AtomicU64,
    done: AtomicU64,
}

/// A flush of the log: it has in it what was committed before it was named.
#[derive(Clone, Copy)]
pub(in crate::store::sqlite) struct Flush(u64);

/// How many flushes have failed, here or of the log, and of how many of them all was written anew since.
#[derive(Default)]
pub(super) struct Doubts {
    all: AtomicU64,
    trusted: AtomicU64,
    /// Those of the log among them, and of how many of these it was written anew since.
    of_log: AtomicU64,
    log_trusted: AtomicU64,
}

impl Extents {
    /// Makes all that was written here, and then what the log has, survive power loss: `flush_log` flushes that.
    ///
    /// # Errors
    /// If the disk fails, or has failed and not all was written anew since.
    pub fn flush_with(&self, flush_log: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.expect_no_doubt()?;
        self.flush_in_order(flush_log)?;
        // One may have failed while this one waited for it: the kernel told that one alone.
        self.expect_no_doubt()
    }

    fn expect_no_doubt(&self) -> io::Result<()> {
        match self.is_doubtful() {
            true => Err(io::Error::other("what it did not keep before is not written anew")),
            false => Ok(()),
        }
    }

    /// The same for whoever moves the log: what lies here is flushed where it comes. But the log must be on the disk,
    /// since power loss leaves a half of what is moved.
    ///
    /// # Errors
    /// If the disk fails, or has failed and the log was not written anew since.
    pub fn flush_to_move(&self, flush_log: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.expect_log()?;
        self.flush_in_order(flush_log)?;
        self.expect_log()
    }

    fn expect_log(&self) -> io::Result<()> {
        match self.is_log_doubtful() {
            true => {
                Err(io::Error::other("the log is not written anew, which it did not keep before"))
            }
            false => Ok(()),
        }
    }

    fn flush_in_order(&self, flush_log: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let began = Instant::now();
        let nth = self.log_flushes.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let flushed = self.flush().and_then(|()| {
            flush_log().inspect_err(|_| self.doubt_log())?;
            // It may have taken along what was committed meanwhile. No commit waits for this: until it is done power
            // loss can take content of files that nobody has flushed.
            self.flush()
        });
        if flushed.is_err() {
            // So may one that fails.
            let mut flushed = self.flushed.lock();
            flushed.end = flushed.end.max(self.written.end.load(Ordering::Relaxed));
        } else if !self.is_doubtful() {
            self.log_flushes.done.fetch_max(nth, Ordering::AcqRel);
            self.flush_times.note(began.elapsed());
        }
        self.log_flushes.ended.fetch_add(1, Ordering::AcqRel);
        flushed
    }

    fn flush(&self) -> io::Result<()> {
        let mut flushed = self.flushed.lock();
        let times = self.written.times.load(Ordering::Acquire);
        let end = self.written.end.load(Ordering::Relaxed);
        if flushed.times < times
            && let Some(file) = self.file.get()
        {
            let begin = self.written.begin.swap(NO_END, Ordering::Relaxed);
            let synced = file.sync_data().inspect_err(|_| self.doubt());
            // In doubt the kernel's yes says nothing of what it gave up before.
            if self.is_doubtful() {
                self.written.begin.fetch_min(begin, Ordering::Relaxed);
            }
            synced?;
            *flushed = Written { times, end, begin: NO_END };
        }
        Ok(())
    }

    /// Whether a flush has failed, and not all was written anew since.
    pub fn is_doubtful(&self) -> bool {
        self.doubts.trusted.load(Ordering::Acquire) < self.doubts()
    }

    /// Whether a flush of the log has failed, and it was not written anew since.
    pub fn is_log_doubtful(&self) -> bool {
        self.doubts.log_trusted.load(Ordering::Acquire) < self.log_doubts()
    }

    /// How many flushes of the log have failed.
    pub fn log_doubts(&self) -> u64 {
        self.doubts.of_log.load(Ordering::Acquire)
    }

    /// A flush of the log has failed.
    pub fn doubt_log(&self) {
        self.doubts.of_log.fetch_add(1, Ordering::AcqRel);
        self.doubt();
    }

    /// The log was written anew, and flushed, after so many of its flushes had failed.
    pub fn trust_log(&self, doubts: u64) {
        self.doubts.log_trusted.store(doubts, Ordering::Release);
    }

    /// How many flushes have failed.
    pub fn doubts(&self) -> u64 {
        self.doubts.all.load(Ordering::Acquire)
    }

    /// A flush has failed.
    pub fn doubt(&self) {
        self.doubts.all.fetch_add(1, Ordering::AcqRel);
    }

    /// All was written anew, and flushed, that so many flushes which failed should have kept.
    pub fn trust(&self, doubts: u64) {
        let _none_under_way = self.flushed.lock();
        self.doubts.trusted.store(doubts, Ordering::Release);
        if !self.is_doubtful() {
            self.written.begin.store(NO_END, Ordering::Relaxed);
        }
    }

    /// Writes once more, and flushes, what rows name that was not flushed: the kernel has it, and takes it for
    /// written. For the one writer.
    ///
    /// # Errors
    /// No space, or the file cannot be written or flushed.
    pub fn write_anew(&self, sql: &Connection) -> Result<()> {
        let Some(file) = self.file.get() else { return Ok(()) };
        // A flush that is under way has it in hand.
        let begin = {
            let _none_under_way = self.flushed.lock();
            self.written.begin.load(Ordering::Relaxed)
        };
        let named = "SELECT at FROM chunks WHERE at IS NOT NULL AND at >= ?1 ORDER BY at";
        let mut named = sql.prepare(named).map_err(fail)?;
        let mut rows = named.query([begin.cast_signed()]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let at = row.get::<_, i64>(0).map_err(fail)?.cast_unsigned();
            match self.read(at) {
                Ok(chunk) => {
                    let put = self.put(file, at, &chunk);
                    put.map_err(|error| failed(&self.path, "writing", &error))?;
                }
                Err(error) => tracing::error!(%error, at, "a chunk of a big file is lost"),
            }
        }
        // The log may have nothing left to be moved, with which it would be flushed.
        self.flush().map_err(|error| failed(&self.path, "flushing", &error))
    }

    /// How often something was written.
    #[cfg(test)]
    pub fn times_written(&self) -> u64 {
        self.written.times.load(Ordering::Relaxed)
    }

    /// Up to where something may have been flushed: no log that was flushed names what lies after it.
    pub fn flushed_to(&self) -> u64 {
        // One that is under way takes along what is committed meanwhile, wherever that lies; so asked first.
        let ended = self.log_flushes.ended.load(Ordering::Acquire);
        let is_at_rest = self.log_flushes.begun.load(Ordering::Acquire) == ended;
        if is_at_rest { self.flushed.lock().end } else { NO_END }
    }

    /// What the next flush of the log is to be waited for by.
    pub fn next_flush(&self) -> Flush {
        Flush(self.log_flushes.begun.load(Ordering::Acquire) + 1)
    }

    /// Whether the log was flushed, by whomever.
    pub fn was_flushed(&self, flush: Flush) -> bool {
        self.log_flushes.done.load(Ordering::Acquire) >= flush.0
    }
}
