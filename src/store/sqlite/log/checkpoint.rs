//! Moving the write-ahead log into the main file, beside the writer and not in its way.
//!
//! What must stay true: a commit never waits for a checkpoint unless the log has grown so long that
//! it must be cut; then the writer does it itself, when nothing can be added meanwhile, and waits for the thread
//! that is at it where the log has grown much longer. After a flush of the main file that failed all that the log
//! has is moved once more before it begins anew (`index`).

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};
use parking_lot::Mutex;
use rusqlite::ErrorCode;

use super::room::{MainFile, Room};
use super::{FRAME_BYTES, index};
use crate::store::sqlite::{Conn, fail};
use crate::store::{Result, StoreError, open_own};

/// From this length on the log is moved beside the writer, in pages of 4 KiB. Each time is two
/// flushes, so that a big file is written the faster the longer the log is; and the longer takes a
/// start after a crash.
const PAGES_BESIDE: u64 = 4_000;

/// From this length on the writer moves it itself: under steady load the log cannot start anew
/// otherwise, since something is always added while it is moved.
const PAGES_INSIDE: u64 = 12_000;

/// From this length on the writer does so although others wait for it, and waits for the thread that is at it: who keeps
/// it busy without end, or a disk that is slow to flush, would fill the disk with the log otherwise.
const PAGES_TOO_MANY: u64 = 24_000;

/// A log that somebody reads, so that it is not moved, is tried again when it has grown by so much.
const PAGES_BETWEEN_TRIES: u64 = 500;

/// How long the writer waits for the thread, each time.
const MOVER_PATIENCE: Duration = Duration::from_secs(2);

/// What a log that begins anew keeps of its file, in bytes; more than is written ahead, which would be in vain.
pub(in crate::store::sqlite) const KEPT_BYTES: u64 = 64 << 20;
const _: () = assert!(KEPT_BYTES >= PAGES_INSIDE * FRAME_BYTES + 2 * AHEAD_BYTES);

/// How far the log's file is written ahead of its end, in bytes: a commit that overwrites flushes in
/// half the time of one that makes the file longer.
const AHEAD_BYTES: u64 = 4 << 20;

/// A log that never gets this long is not written ahead: small stores stay small.
const AHEAD_FROM_PAGES: u64 = 512;

/// The thread that moves the log.
pub(in crate::store::sqlite) struct Checkpointer {
    pages: Arc<AtomicU64>,
    moved: Arc<AtomicU64>,
    /// How often the thread has moved anything, or failed to.
    times: Arc<AtomicU64>,
    /// Whether it is at it.
    is_moving: Arc<AtomicBool>,
    /// Held while anybody of this process is.
    moving: Arc<Mutex<Mover>>,
    /// How long the log's file is known to be, in bytes.
    ahead: u64,
    /// How long the log was when the thread was last told to move it, in pages.
    told_at: u64,
    /// How long it was when the writer last tried itself. Where each commit is long the thread is told after each.
    tried_at: u64,
    room: Room,
    wake: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Watches the log of `writer`, which is `log`; `own` is the thread's connection, `main` the
    /// main file.
    pub fn start(writer: &mut Conn, own: Conn, main: MainFile, log: PathBuf) -> Result<Self> {
        let pages = Arc::new(AtomicU64::new(0));
        let moved = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, length: std::ffi::c_int| {
            seen.store(u64::from(length.unsigned_abs()), Ordering::Relaxed);
            Ok(())
        };
        writer.sql.wal_hook(Some(hook)).map_err(fail)?;
        let (wake, woken) = bounded::<()>(1);
        let times = Arc::new(AtomicU64::new(0));
        let (done, counted) = (Arc::clone(&moved), Arc::clone(&times));
        let is_moving = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&is_moving);
        let moving = Arc::<Mutex<Mover>>::default();
        let held = Arc::clone(&moving);
        let thread = std::thread::Builder::new()
            .name("checkpoint".into())
            .spawn(move || {
                while woken.recv().is_ok() {
                    let moved = held.lock().checkpoint(&own).unwrap_or_else(|error| {
                        tracing::warn!(%error, "the log stays where it is");
                        0
                    });
                    done.store(moved, Ordering::Relaxed);
                    // After one that failed the writer must read in the log what counted as moved, too.
                    counted.fetch_add(1, Ordering::Relaxed);
                    ended.store(false, Ordering::Relaxed);
                }
            })
            .map_err(|error| StoreError::NoThread(error.to_string()))?;
        let room = Room::new(main, log);
        let (wake, thread) = (Some(wake), Some(thread));
        Ok(Checkpointer {
            pages,
            moved,
            times,
            is_moving,
            moving,
            ahead: 0,
            told_at: 0,
            tried_at: 0,
            room,
            wake,
            thread,
        })
    }

    /// Whether [`consider`](Self::consider) has something to do.
    pub fn is_due(&self) -> bool {
        let pages = self.pages.load(Ordering::Relaxed);
        self.wants_zeros(pages) || self.wants_writer(pages)
    }

    /// Whether it can wait no longer.
    pub fn is_overdue(&self) -> bool {
        let pages = self.pages.load(Ordering::Relaxed);
        pages >= PAGES_TOO_MANY && self.wants_writer(pages)
    }

    /// How often the log was moved beside the writer, or was to be.
    pub fn times_moved(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// Whether the disk was full at the last look or change.
    pub fn is_tight(&self) -> bool {
        self.room.is_tight()
    }

    /// A change found the disk full.
    pub fn note_full(&mut self) {
        self.room.note_full();
    }

    /// After each commit: takes room ahead where enough has come into the log. It must not wait for a
    /// moment of rest, which may come when the room is used up.
    pub fn keep_room(&mut self, writer: &Conn) -> Result<()> {
        let pages = self.pages.load(Ordering::Relaxed);
        if self.room.wants_look(pages) { self.room.look(&writer.sql, pages) } else { Ok(()) }
    }

    /// Whether the thread should move the log now, after a commit: a moment of rest may never come.
    pub fn wants_waking(&self) -> bool {
        self.wants_thread(self.pages.load(Ordering::Relaxed))
    }

    /// Has the thread move the log, as far as nobody has a read mark in it.
    pub fn wake(&mut self) {
        if let Some(wake) = &self.wake {
            self.told_at = self.pages.load(Ordering::Relaxed);
            self.is_moving.store(true, Ordering::Relaxed);
            // A full channel: it is being done already.
            let _ = wake.try_send(());
        }
    }

    /// Lets the log begin anew and takes room ahead; true if there is any.
    pub fn find_room(&mut self, writer: &Conn) -> Result<bool> {
        let moved = self.try_moving(writer, Duration::ZERO)?;
        let pages = self.pages.load(Ordering::Relaxed);
        if moved < pages {
            self.room.look(&writer.sql, pages)?;
            return Ok(!self.room.is_tight());
        }
        // A log of which all was moved begins anew with the next commit, and may be cut: it can be most of
        // what the store takes.
        self.room.look(&writer.sql, 0)?;
        if self.room.is_tight() && self.begin_anew(writer, Duration::ZERO)? {
            self.room.look(&writer.sql, 0)?;
        }
        Ok(!self.room.is_tight())
    }

    /// Moves all of the log and cuts it; false where somebody still reads or moves it after so long.
    pub fn begin_anew(&mut self, writer: &Conn, patience: Duration) -> Result<bool> {
        // SQLite asks nobody to wait for one who moves it.
        let Some(mut mover) = self.moving.try_lock_for(patience) else { return Ok(false) };
        let is_cut = mover.cut(writer, patience)?;
        drop(mover);
        if is_cut {
            self.ahead = 0;
            self.pages.store(0, Ordering::Relaxed);
            self.moved.store(0, Ordering::Relaxed);
        }
        Ok(is_cut)
    }

    /// Moves what can be, unless it is still being moved after so long; gives the pages that are.
    fn try_moving(&self, writer: &Conn, patience: Duration) -> Result<u64> {
        match self.moving.try_lock_for(patience) {
            Some(mut mover) => mover.checkpoint(writer),
            None => Ok(0),
        }
    }

    fn wants_thread(&self, pages: u64) -> bool {
        let moved = self.moved.load(Ordering::Relaxed);
        let is_long = pages >= PAGES_BESIDE && (moved > pages || pages - moved >= PAGES_BESIDE);
        // Each change would wake somebody for it again.
        is_long && is_time_to_try(pages, self.told_at) && !self.is_moving.load(Ordering::Relaxed)
    }

    fn wants_writer(&self, pages: u64) -> bool {
        // Who is at it is waited for only where that cannot wait.
        let is_free = pages >= PAGES_TOO_MANY || !self.is_moving.load(Ordering::Relaxed);
        pages >= PAGES_INSIDE && is_time_to_try(pages, self.tried_at) && is_free
    }

    fn wants_zeros(&self, pages: u64) -> bool {
        (AHEAD_FROM_PAGES..PAGES_INSIDE).contains(&pages) && self.ahead < enough(pages)
    }

    /// Moves the log if it has grown so long that the writer must, and writes zeros ahead of its end; `writer` is
    /// idle.
    pub fn consider(&mut self, writer: &Conn, log: &Path) -> Result<()> {
        let pages = self.pages.load(Ordering::Relaxed);
        if self.wants_zeros(pages) {
            self.write_ahead(pages, log);
        }
        if self.wants_writer(pages) {
            self.tried_at = pages;
            let is_too_long = pages >= PAGES_TOO_MANY;
            let patience = if is_too_long { MOVER_PATIENCE } else { Duration::ZERO };
            self.try_moving(writer, patience)?;
        }
        Ok(())
    }

    /// Makes the log's file longer before its end is reached. Zeros are no frames: their checksums
    /// are wrong, so recovery ends where they begin. Where there is no space for them, nothing is
    /// lost.
    fn write_ahead(&mut self, pages: u64, log: &Path) {
        // Where others may make files somebody may have put another in its place, or what leads to one.
        let Ok(file) = open_own(std::fs::File::options().write(true), log) else { return };
        let Ok(length) = file.metadata().map(|metadata| metadata.len()) else { return };
        self.ahead = length;
        if length >= enough(pages) {
            return;
        }
        let zeros = vec![0; AHEAD_BYTES as usize];
        match file.write_all_at(&zeros, length) {
            Ok(()) => self.ahead = length + AHEAD_BYTES,
            Err(error) => tracing::debug!(%error, "the log is not written ahead"),
        }
    }
}

fn is_time_to_try(pages: u64, tried_at: u64) -> bool {
    pages.abs_diff(tried_at) >= PAGES_BETWEEN_TRIES
}

/// How long the log's file should be.
fn enough(pages: u64) -> u64 {
    pages * FRAME_BYTES + AHEAD_BYTES / 4
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

/// What moves the log; one at a time.
#[derive(Default)]
pub(in crate::store::sqlite) struct Mover {
    /// The disk may not have kept what counts as moved.
    is_doubtful: bool,
}

impl Mover {
    /// Moves what can be moved without waiting for anybody; gives the pages that are moved now.
    pub fn checkpoint(&mut self, connection: &Conn) -> Result<u64> {
        let told = |row: &rusqlite::Row<'_>| row.get::<_, i64>(2);
        let pages = self.run(connection, "PRAGMA wal_checkpoint(PASSIVE)", told)?;
        Ok(u64::try_from(pages).unwrap_or(0))
    }

    /// Moves the log and cuts it, where nobody reads it any more after so long; false where somebody does.
    fn cut(&mut self, connection: &Conn, patience: Duration) -> Result<bool> {
        connection.sql.busy_timeout(patience).map_err(fail)?;
        let told = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let cut = self.run(connection, "PRAGMA wal_checkpoint(TRUNCATE)", told);
        connection.sql.busy_timeout(crate::store::sqlite::BUSY_PATIENCE).map_err(fail)?;
        Ok(cut? == 0)
    }

    fn run(
        &mut self,
        connection: &Conn,
        pragma: &str,
        told: fn(&rusqlite::Row<'_>) -> rusqlite::Result<i64>,
    ) -> Result<i64> {
        self.resolve(connection)?;
        connection.sql.query_row(pragma, [], told).map_err(|error| {
            // Whatever it was: the kernel tells once that a flush failed, and that may have been this time.
            self.is_doubtful = error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure);
            let cause = connection.cause(error);
            // At once: the end of the last connection moves what is left, and so may another process.
            if let Err(error) = self.resolve(connection) {
                tracing::error!(%error, "the log is not moved: the disk may not have kept what was");
            }
            cause
        })
    }

    /// Sees to it that all of the log is moved once more, where it must be.
    fn resolve(&mut self, connection: &Conn) -> Result<()> {
        if self.is_doubtful {
            index::count_nothing_as_moved(&connection.sql).map_err(fail)?;
            self.is_doubtful = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::{Extents, Sqlite, SqliteWriter, connect, room};
    use crate::store::{Durability, Read, Readers as _, Txn, Writer as _};

    /// Makes a change of 800 KB.
    fn write_much(writer: &mut SqliteWriter, n: usize) {
        write(writer, n, 1);
    }

    /// So many of those in one transaction.
    fn write(writer: &mut SqliteWriter, n: usize, times: usize) {
        let value = format!("{n:08}").repeat(100_000);
        let work = &mut |txn: &mut dyn Txn| {
            txn.savepoint()?;
            (0..times).try_for_each(|nth| txn.put_meta(&format!("a{nth}"), &value))?;
            txn.release().map(|()| Durability::Process)
        };
        writer.transaction(work).unwrap();
    }

    #[test]
    fn a_log_of_long_commits_is_moved_in_time_although_its_thread_is_told_after_each() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let (_store, mut writer) = Sqlite::open(&path).unwrap();
        let pages = PAGES_BESIDE * 3 / 2;
        let times = (pages * FRAME_BYTES / 800_000) as usize;
        let most = (PAGES_TOO_MANY + 2 * pages) * FRAME_BYTES;
        for n in 0..8 {
            write(&mut writer, n, times);
            // As the desk does where somebody waits always.
            if writer.needs_checkpoint() {
                writer.checkpoint().unwrap();
            }
            let log = std::fs::metadata(dir.path().join("s.db-wal")).unwrap().len();
            assert!(log <= most, "{log} bytes after {n} commits");
        }
    }

    #[test]
    fn a_log_that_is_much_too_long_waits_for_who_moves_it_and_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        drop(Sqlite::open(&path).unwrap());
        let extents = Extents::open(&path, &connect(&path, true).unwrap(), None).unwrap();
        let open = || Conn::new(connect(&path, true).unwrap(), &extents);
        let (mut writer, log) = (open(), dir.path().join("s.db-wal"));
        let main = room::open_main(&path).unwrap();
        let mut checkpointer = Checkpointer::start(&mut writer, open(), main, log.clone()).unwrap();
        let change = |n: u32| writer.sql.execute("INSERT INTO meta VALUES (?1, 'x')", [n]);
        (0..100).for_each(|n| _ = change(n).unwrap());
        let pages = Arc::clone(&checkpointer.pages);
        let before = pages.swap(PAGES_TOO_MANY, Ordering::Relaxed);
        let moving = Arc::clone(&checkpointer.moving);
        let (is_held, held) = bounded(0);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _moves = moving.lock();
                is_held.send(()).unwrap();
                // Nothing tells that the other waits; if this is too short the test can only pass.
                std::thread::sleep(MOVER_PATIENCE / 20);
            });
            held.recv().unwrap();
            checkpointer.consider(&writer, &log).unwrap();
        });
        change(100).unwrap();
        let after = pages.load(Ordering::Relaxed);
        assert!(after < before, "{after} pages after {before}");
    }

    #[test]
    fn a_log_is_moved_although_there_is_never_a_moment_of_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let (_store, mut writer) = Sqlite::open(&path).unwrap();
        let is_moved = (0..1000).any(|n| {
            write_much(&mut writer, n);
            std::fs::metadata(&path).unwrap().len() > 700_000
        });
        assert!(is_moved, "800 MB were written");
    }

    #[test]
    fn a_log_that_somebody_read_for_long_is_cut_when_it_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let (store, mut writer) = Sqlite::open(&path).unwrap();
        let log = || std::fs::metadata(dir.path().join("s.db-wal")).unwrap().len();
        let mut change = |n: usize| {
            write_much(&mut writer, n);
            writer.checkpoint().unwrap();
        };
        let mut at_length = |read: &dyn Read| {
            read.meta("a0")?;
            (0..).take_while(|_| log() <= KEPT_BYTES).for_each(&mut change);
            Ok(())
        };
        store.read(&mut at_length).unwrap();
        assert!(log() > KEPT_BYTES);
        // What could not be moved is tried again when some more has come.
        let is_cut = (0..1000).any(|n| {
            change(n);
            log() <= KEPT_BYTES
        });
        assert!(is_cut, "{} bytes", log());
    }
}
