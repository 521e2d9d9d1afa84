//! Whole chunks of big files, in a file beside the store's tables.
//!
//! What SQLite stores goes to its log and from there to the main file, page by page; a big file took four
//! times as long as the disk needed for it. Here its chunks are written once, one after the other, and
//! the tables say where. A store without big files has no such file.
//!
//! What must stay true:
//! - A place is written before the row that names it is committed, and is on the disk before a flush of the
//!   log is done that has the row (`gather` asks for it): what was flushed names nothing that was not.
//! - The kernel writes by itself in any order. So after power loss a row that nobody flushed may name what
//!   did not survive. Such a chunk is lost, and stays so; all others are served.
//! - No place is written twice while the store is open, but one that no committed row has ever named. So
//!   whoever reads by a row of an older snapshot finds what it names, until it is freed.
//! - What is freed is a hole only when no snapshot has a row of it any more (`freeing`).
//! - Where the file is missing, or is another store's, nothing is lost beside what lay there: the rest is
//!   served, and big files are stored in the tables.
//!
//! Deliberately not here: which chunks lie here (`chunks`), and what a flush has kept (`flushes`).

pub(super) mod freeing;

#[cfg(test)]
mod extents_faults_test;
#[cfg(test)]
pub(super) mod extents_test;
mod flushes;
mod found;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use rusqlite::Connection;
use rustix::fs::{FallocateFlags, fallocate};

use super::beside::{EXTENTS, expect_own, in_the_way, is_in_the_way};
use super::lock::give_to_owner;
use super::own_log::forget_log;
use super::{cause, fail};
use crate::limits::CHUNK_BYTES;
use crate::names::Shown;
use crate::numbers::Times;
use crate::store::{Identity, Result, StoreError, beside, open_own};
use flushes::{Doubts, LogFlushes, Written};
use found::{Found, find};

/// What the file begins with; two keys follow, of which the store has one.
const MAGIC: &str = "workfs extents 1 ";

/// The end of what can be there, where the rows say what is lost.
const NO_END: u64 = i64::MAX.unsigned_abs();

/// Where the first chunk lies.
const FIRST: u64 = CHUNK_BYTES as u64;

pub(super) use flushes::Flush;

/// Some bytes of the file.
pub(super) type Extent = Range<u64>;

/// The setting of a store that says which file is its own, and as of when: it is another one each time that the
/// store is opened, in both; in the store also where there is no file yet. So a copy of the tables from before
/// finds no file, and not what was written since where its own lay.
const KEY: &str = "extents";

/// Gives a store another key.
const RENEW: &str = "UPDATE meta SET value = ?2 WHERE key = ?1";

/// A key that no other store has.
const NEW_KEY: &str = "SELECT lower(hex(randomblob(16)))";

/// See the head of this file.
pub(super) struct Extents {
    store: PathBuf,
    path: PathBuf,
    key: String,
    /// The one that it had when it was opened.
    former: String,
    /// Another one that the store could not be given, and may have in its log.
    tried: Option<String>,
    /// Empty where there is none yet.
    file: OnceLock<File>,
    /// Why what is there cannot be used.
    unusable: Option<String>,
    /// What rows name after this is lost, and they do not say so.
    reach: u64,
    /// What is there is read, and nothing more is put there.
    is_closed: bool,
    written: Written<AtomicU64>,
    /// What had been written when it was flushed last; locked meanwhile.
    flushed: Mutex<Written<u64>>,
    log_flushes: LogFlushes,
    /// How long those took that were done.
    pub flush_times: Arc<Times>,
    doubts: Doubts,
    /// Cloned by each snapshot, and what ends with the last clone.
    looks: Mutex<(Sender<()>, Receiver<()>)>,
}

/// Held while a snapshot is read that began after it was taken.
pub(super) struct Look(
    #[expect(dead_code, reason = "it counts as long as it is there")] Sender<()>,
);

/// The files of the stores that are open, by their main files.
static OPEN: Mutex<Vec<(Identity, Weak<Extents>)>> = Mutex::new(Vec::new());

/// Those of the store whose log this is.
pub(super) fn of_log(log: &Path) -> Option<Arc<Extents>> {
    let main = log.as_os_str().as_bytes().strip_suffix(b"-wal")?;
    let main = Identity::named(Path::new(OsStr::from_bytes(main))).ok()?;
    let open = OPEN.lock();
    open.iter().find(|(identity, _)| *identity == main).and_then(|(_, extents)| extents.upgrade())
}

impl Extents {
    /// Those of a store that is being opened. `main` is its main file, where it can be written.
    ///
    /// # Errors
    /// If there is no descriptor for it; whatever else is wrong only takes what lies there.
    pub fn open(path: &Path, sql: &Connection, main: Option<Identity>) -> Result<Arc<Extents>> {
        let (store, path) = (path.to_owned(), beside(path, EXTENTS));
        let (found, unusable) = match find(&store, &path, sql, main.is_some()) {
            Ok(found) => (found, None),
            Err(lacking @ StoreError::NoDescriptors(_)) => return Err(lacking),
            Err(why) => {
                let why = match why {
                    StoreError::Impossible(what) => what,
                    other => other.to_string(),
                };
                tracing::error!("{why}; content of big files that lies there cannot be read");
                (Found { reach: NO_END, ..Found::default() }, Some(why))
            }
        };
        let Found { key, end, reach, file } = found;
        let mut extents = Extents {
            store,
            path,
            former: key.clone(),
            key,
            tried: None,
            file: file.map(OnceLock::from).unwrap_or_default(),
            unusable,
            reach,
            is_closed: main.is_none(),
            // What a daemon that was killed wrote may not have been flushed.
            written: Written {
                times: AtomicU64::new(1),
                end: AtomicU64::new(end),
                begin: AtomicU64::new(0),
            },
            flushed: Mutex::new(Written { times: 0, end, begin: 0 }),
            log_flushes: LogFlushes::default(),
            flush_times: Arc::default(),
            doubts: Doubts::default(),
            looks: Mutex::new(bounded(0)),
        };
        if extents.takes_chunks()
            && let Err(error) = extents.prepare(sql)
        {
            tracing::error!(%error, "until the next start what is written of big files goes to the tables");
            extents.is_closed = true;
        }
        let extents = Arc::new(extents);
        if let Some(main) = main {
            let mut open = OPEN.lock();
            open.retain(|(_, extents)| extents.strong_count() > 0);
            open.push((main, Arc::downgrade(&extents)));
        }
        Ok(extents)
    }

    /// Has the rows say what is lost, cuts off what none names, and gives the store and its file a new key.
    ///
    /// # Errors
    /// No space, or the disk fails; what is there can be read as before.
    fn prepare(&mut self, sql: &Connection) -> Result<()> {
        let new: String = sql.query_row(NEW_KEY, [], |row| row.get(0)).map_err(fail)?;
        let failed = |what: &str, error| failed(&self.path, what, &error);
        if let Some(file) = self.file.get() {
            let flush = || file.sync_data().inspect_err(|_| self.doubt());
            if self.reach < self.end() {
                // What is committed here is flushed, and with it all that the log has.
                flush().map_err(|error| failed("flushing", error))?;
                mark_lost(sql, self.reach).map_err(|error| cause(sql, error))?;
                self.written.end.store(end_of_named(sql)?, Ordering::Relaxed);
            }
            // What a daemon that was killed wrote and did not commit.
            file.set_len(self.end()).map_err(|error| failed("cutting", error))?;
            // Until both have the new one, it knows the old one, too.
            let put = file.write_all_at(head(&new, &self.key).as_bytes(), 0);
            put.map_err(|error| failed("writing", error))?;
            flush().map_err(|error| failed("flushing", error))?;
        }
        self.reach = NO_END;
        match sql.execute(RENEW, [KEY, &new]).map_err(|error| cause(sql, error)) {
            Ok(_) => self.key = new,
            Err(error) => {
                self.tried = Some(new);
                if let StoreError::Full(_) = error {
                    tracing::debug!(%error, "the extents keep their key");
                    return Ok(());
                }
                // It may have been the flush.
                self.doubt();
                return Err(error);
            }
        }
        let Some(file) = self.file.get() else { return Ok(()) };
        let put = file.write_all_at(head(&self.key, &self.key).as_bytes(), 0);
        put.map_err(|error| self::failed(&self.path, "writing", &error))
    }

    /// The key that the store has; and those that it may have instead, and had before.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        [&self.key].into_iter().chain(&self.tried).chain([&self.former])
    }

    /// The end of what any row names, when it was opened.
    pub fn end(&self) -> u64 {
        self.written.end.load(Ordering::Relaxed)
    }

    /// Whether chunks can be put there, and will be found there again.
    pub fn keeps_chunks(&self) -> bool {
        self.takes_chunks() && self.is_in_place()
    }

    /// Whether chunks can be put there.
    pub fn takes_chunks(&self) -> bool {
        self.unusable.is_none() && !self.is_closed
    }

    /// Writes chunks at a place.
    ///
    /// # Errors
    /// No space, or the file cannot be made or written.
    pub fn write(&self, at: u64, chunks: &[u8]) -> Result<()> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let made = self.make()?;
                self.file.get_or_init(|| made)
            }
        };
        self.put(file, at, chunks).map_err(|error| {
            // What came of it holds space that a full disk needs; if it stays, the next that is written takes it.
            let _ = self.give_back(&(at..at + chunks.len() as u64));
            failed(&self.path, "writing", &error)
        })
    }

    fn put(&self, file: &File, at: u64, chunks: &[u8]) -> io::Result<()> {
        file.write_all_at(chunks, at)?;
        self.written.end.fetch_max(at + chunks.len() as u64, Ordering::Relaxed);
        self.written.begin.fetch_min(at, Ordering::Relaxed);
        self.written.times.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn make(&self) -> Result<File> {
        let failed = |error| failed(&self.path, "making", &error);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(true);
        let file = open_own(options, &self.path).map_err(|error| match is_in_the_way(&error) {
            true => in_the_way(&self.path, &self.store, &error, ""),
            false => failed(error),
        })?;
        // Somebody may have put it there since the store was opened, and wait for what will come.
        expect_own(&file, &self.path, &self.store)?;
        if let Err(error) = give_to_owner(&file, &self.store) {
            tracing::warn!(%error, "the store's owner cannot open its content of big files");
        }
        let other = self.tried.as_ref().unwrap_or(&self.key);
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let made = file
            .write_all_at(head(&self.key, other).as_bytes(), 0)
            .and_then(|()| file.sync_all())
            .and_then(|()| File::open(dir.unwrap_or(Path::new("."))))
            .and_then(|dir| dir.sync_all());
        made.map(|()| file).map_err(failed)
    }

    /// Reads a chunk.
    ///
    /// # Errors
    /// If it is not there.
    pub fn read(&self, at: u64) -> Result<Vec<u8>> {
        let Some(file) = self.file.get() else {
            let missing = || format!("{} is missing", self.path.shown());
            return Err(StoreError::Impossible(self.unusable.clone().unwrap_or_else(missing)));
        };
        let mut chunk = vec![0; CHUNK_BYTES];
        match file.read_exact_at(&mut chunk, at) {
            Ok(()) => Ok(chunk),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(lost()),
            Err(error) => Err(StoreError::Failed(format!("{}: {error}", self.path.shown()))),
        }
    }

    /// To be taken before a snapshot begins.
    pub fn look(&self) -> Look {
        Look(self.looks.lock().0.clone())
    }

    /// Disconnected when all looks have ended that are there now.
    pub fn end_of_looks(&self) -> Receiver<()> {
        std::mem::replace(&mut *self.looks.lock(), bounded(0)).1
    }

    /// Gives an extent's space back: it becomes a hole.
    ///
    /// # Errors
    /// If the file system does not.
    pub fn give_back(&self, extent: &Extent) -> io::Result<()> {
        let Some(file) = self.file.get() else { return Ok(()) };
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(file, flags, extent.start, extent.end - extent.start)?)
    }

    /// Puts into the tables of a copy of the store what lies here, so that the copy is one file. `progress`
    /// hears of the chunks that are done and of all; false where it gave up.
    ///
    /// # Errors
    /// What cannot be read here, or written there.
    pub fn copy_into(
        &self,
        copy: &Connection,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        let failed = |error| cause(copy, error);
        copy.execute_batch("BEGIN").map_err(failed)?;
        mark_lost(copy, self.reach).map_err(failed)?;
        let count = "SELECT count(*) FROM chunks WHERE at IS NOT NULL";
        let all: i64 = copy.query_row(count, [], |row| row.get(0)).map_err(failed)?;
        let mut done = 0;
        let next = "SELECT key, at FROM chunks WHERE at IS NOT NULL ORDER BY at LIMIT 256";
        loop {
            let mut next = copy.prepare_cached(next).map_err(failed)?;
            let rows = next.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
            let rows: rusqlite::Result<Vec<(i64, i64)>> = rows.and_then(Iterator::collect);
            let rows = rows.map_err(failed)?;
            if rows.is_empty() {
                break;
            }
            for (key, at) in rows {
                let chunk = self.read(at.cast_unsigned())?;
                let mut put = copy
                    .prepare_cached("UPDATE chunks SET data = ?2, at = NULL WHERE key = ?1")
                    .map_err(failed)?;
                put.execute((key, chunk)).map_err(failed)?;
                done += 1;
            }
            if !progress(done, all.unsigned_abs()) {
                return Ok(false);
            }
        }
        // It goes on by itself, with a file of its own.
        let new = copy.query_row(NEW_KEY, [], |row| row.get::<_, String>(0)).map_err(failed)?;
        copy.execute(RENEW, [KEY, &new]).map_err(failed)?;
        forget_log(copy).map_err(failed)?;
        copy.execute_batch("DELETE FROM freed; COMMIT").map_err(failed)?;
        Ok(true)
    }

    /// The end of what can be there.
    pub fn reach(&self) -> u64 {
        self.reach
    }

    /// What is wrong with it, and what comes of that.
    pub fn problem(&self) -> Option<String> {
        if let Some(why) = &self.unusable {
            return Some(format!("{why}; content of big files that lies there cannot be read"));
        }
        let what = "was removed, moved or replaced while the store is served: what it has is lost with the daemon, \
                    unless it is put back before; `workfs backup FILE` saves it";
        (!self.is_in_place()).then(|| format!("{} {what}", self.path.shown()))
    }

    /// Whether the file has its name still. Links may lead to it.
    fn is_in_place(&self) -> bool {
        let Some(file) = self.file.get() else { return true };
        let is_it = |own| std::fs::metadata(&self.path).is_ok_and(|it| Identity::of(&it) == own);
        file.metadata().is_ok_and(|own| is_it(Identity::of(&own)))
    }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> StoreError {
    let what = format!("{what} {}", path.shown());
    match (StoreError::of_writing(&what, error), error.raw_os_error()) {
        (said, Some(libc::EROFS | libc::EPERM | libc::EACCES)) => said,
        // The disk failed: it is no matter of what may be written.
        (StoreError::ReadOnly(text), _) => StoreError::Failed(text),
        (said, _) => said,
    }
}

/// What reading a chunk says that is lost.
pub(super) fn lost() -> StoreError {
    let what = "a part of this file was not on the disk when power failed";
    StoreError::Impossible(what.to_owned())
}

/// Has the rows say what is lost: that they name no place any more. What they named may be written again.
fn mark_lost(sql: &Connection, reach: u64) -> rusqlite::Result<usize> {
    let last = reach.cast_signed().saturating_sub(CHUNK_BYTES as i64);
    sql.execute("UPDATE chunks SET at = NULL WHERE at IS NOT NULL AND at > ?1", [last])
}

/// The end of what any row names.
fn end_of_named(sql: &Connection) -> Result<u64> {
    // The condition is the index's: without it all chunks would be read.
    let last = "SELECT max( \
           coalesce((SELECT max(at) FROM chunks WHERE at IS NOT NULL) + ?1, 0), \
           coalesce((SELECT at + length FROM freed ORDER BY at DESC LIMIT 1), 0))";
    let end: i64 = sql.query_row(last, [CHUNK_BYTES as i64], |row| row.get(0)).map_err(fail)?;
    Ok(end.unsigned_abs().max(FIRST))
}

/// The key that a store has.
pub(super) fn key_of(sql: &Connection) -> rusqlite::Result<String> {
    sql.query_row("SELECT value FROM meta WHERE key = ?1", [KEY], |row| row.get(0))
}

/// What the file begins with of a store that has one of these keys.
fn head(one: &str, other: &str) -> String {
    format!("{MAGIC}{one}\n{other}\n")
}
