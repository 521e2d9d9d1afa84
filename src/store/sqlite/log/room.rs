//! Room in the main file and in the log, taken before it is needed.
//!
//! On a full disk a change still needs space in the log, and the log begins anew only when all of it
//! has been moved into the main file. What both will grow by is therefore taken ahead, as long
//! as the disk has it: then the log can always be moved, and names can be removed to make space.
//!
//! What must stay true:
//! - Taking room writes nothing: a checkpoint may be filling the same pages just now. (SQLite's own way,
//!   `SQLITE_FCNTL_SIZE_HINT`, writes zeros where it has no `posix_fallocate`, and damaged a store.)
//! - The main file as it is opened here is closed after all of SQLite's connections: to close any
//!   descriptor of a file ends all POSIX locks that the process has on it.
//! - What was taken counts only while the file still has it: SQLite gives it back whenever all of the log has been
//!   moved (`walCheckpoint` cuts the main file to the length that it has).
//! - Where there is no room ahead, only what needs none is done ([`Room::is_tight`]).
//!
//! Deliberately not here: who is refused then, and when the log is moved otherwise (`checkpoint`).

use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use rustix::fs::{FallocateFlags, fallocate};

use super::FRAME_BYTES;
use crate::store::sqlite::fail;
use crate::store::{Result, StoreError, is_full, open_own};

/// So many pages are taken ahead: those that come between two looks, and the largest write of a kernel
/// (1 MiB) besides.
const AHEAD_PAGES: u64 = 512;

/// What a new store needs where it lies, to be served: what it has itself, and the room ahead.
pub const NEW_BYTES: u64 = 300_000 + AHEAD_PAGES * (PAGE_BYTES + FRAME_BYTES);

/// Where something is missing so much more is taken, if the disk has it: to take it costs a claim half of what its
/// change does, and each look finds some twenty pages to be missing.
const STEP_PAGES: u64 = 512;

/// After so many pages that came into the log one looks again.
const LOOK_EVERY_PAGES: u64 = 128;

/// What a page has.
const PAGE_BYTES: u64 = 4096;

/// The unit in which stat(2) tells what a file takes.
const BLOCK_BYTES: u64 = 512;

/// The main file, opened once more to take room in it.
pub(in crate::store::sqlite) type MainFile = Arc<File>;

/// Opens it, before SQLite does; no link in its place is followed.
pub(in crate::store::sqlite) fn open_main(path: &Path) -> std::io::Result<MainFile> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
    Ok(Arc::new(options.open(path)?))
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Room {
    main: MainFile,
    log: PathBuf,
    /// Up to where room was taken in the main file, in bytes.
    taken_of_main: u64,
    /// The same of the log.
    taken_of_log: u64,
    /// How long the log was at the last look, in pages; `None` before the first.
    looked_at: Option<u64>,
    is_tight: bool,
    /// There was room for both once.
    had_both: bool,
}

impl Room {
    pub fn new(main: MainFile, log: PathBuf) -> Self {
        Room {
            main,
            log,
            taken_of_main: 0,
            taken_of_log: 0,
            looked_at: None,
            is_tight: false,
            had_both: false,
        }
    }

    /// Whether the disk was full at the last look or change.
    pub fn is_tight(&self) -> bool {
        self.is_tight
    }

    /// A change found the disk full.
    pub fn note_full(&mut self) {
        self.is_tight = true;
    }

    /// Whether enough was changed to look again. After the first change one looks at once: a store may
    /// be small when something else fills its disk.
    pub fn wants_look(&self, log_pages: u64) -> bool {
        self.looked_at.is_none_or(|at| log_pages < at || log_pages - at >= LOOK_EVERY_PAGES)
    }

    /// Takes what is missing; the log is so many pages long.
    ///
    /// # Errors
    /// If the store cannot be asked; that there is no space is none.
    pub fn look(&mut self, sql: &Connection, log_pages: u64) -> Result<()> {
        let count = |pragma: &str| {
            let count = sql.prepare_cached(pragma)?.query_row([], |row| row.get::<_, i64>(0));
            count.map(i64::unsigned_abs)
        };
        let pages = count("PRAGMA page_count").map_err(fail)?;
        let free = count("PRAGMA freelist_count").map_err(fail)?;
        let wanted = (pages + AHEAD_PAGES.saturating_sub(free)) * PAGE_BYTES;
        // There is none yet, or no descriptor for it: the next commit says more.
        let log = open_own(File::options().write(true), &self.log).ok();
        self.is_tight = match &log {
            None => !take(&self.main, wanted, &mut self.taken_of_main)?.is_there,
            Some(log) => !self.take_both(wanted, log, log_pages)?,
        };
        // Where just that was taken now, or no step could be; after the log has what it needs, which on a small disk
        // the step would take.
        if !self.is_tight && self.taken_of_main == wanted {
            take(&self.main, wanted + STEP_PAGES * PAGE_BYTES, &mut self.taken_of_main)?;
        }
        self.looked_at = Some(log_pages);
        Ok(())
    }

    /// Takes what is missing of both, the main file's first: then the log can be moved.
    ///
    /// Where there never was room for both, as on a disk that has little at the daemon's start, and the log has next
    /// to nothing ahead, neither takes what the other needs. If the main file had all, nothing could be written any
    /// more, and if the log had, it could not be moved.
    fn take_both(&mut self, of_main: u64, log: &File, log_pages: u64) -> Result<bool> {
        let of_log = (log_pages + AHEAD_PAGES) * FRAME_BYTES;
        let has = log.metadata().map_or(0, |log| log.blocks() * BLOCK_BYTES);
        if self.had_both || has >= (log_pages + LOOK_EVERY_PAGES) * FRAME_BYTES {
            let main = take(&self.main, of_main, &mut self.taken_of_main)?;
            let log = take(log, of_log, &mut self.taken_of_log)?;
            self.had_both |= main.is_there && log.is_there;
            return Ok(main.is_there && log.is_there);
        }
        let taken = take(log, of_log, &mut self.taken_of_log)?;
        if !taken.is_there {
            return Ok(false);
        }
        let main = take(&self.main, of_main, &mut self.taken_of_main)?;
        if let (false, Some((from, bytes))) = (main.is_there, taken.now) {
            // Nobody but who asks for this writes into it.
            let given_back = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Where its file system cannot, it stays with the log.
            let _ = fallocate(log, given_back, from, bytes);
        }
        self.had_both |= main.is_there;
        Ok(main.is_there)
    }
}

/// What came of taking room.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// There is as much as is wanted.
    is_there: bool,
    /// From where on so many bytes were taken now.
    now: Option<(u64, u64)>,
}

impl Taken {
    const BEFORE: Taken = Taken { is_there: true, now: None };
}

/// Sees to it that a file has room up to the length that is wanted, as far as the disk has it. Up to `taken` it was
/// taken before.
fn take(file: &File, wanted: u64, taken: &mut u64) -> Result<Taken> {
    let metadata = file.metadata();
    let metadata = metadata.map_err(|error| StoreError::Failed(format!("its size: {error}")))?;
    let length = metadata.len();
    // A file system that compresses says less than it has: then it is taken each time.
    let had = metadata.blocks() * BLOCK_BYTES;
    if wanted <= length || wanted <= (*taken).min(had) {
        return Ok(Taken::BEFORE);
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, length, wanted - length) {
        Ok(()) => {
            let from = if *taken <= had { length.max(*taken) } else { length };
            *taken = wanted;
            Ok(Taken { is_there: true, now: Some((from, wanted - from)) })
        }
        // A file system that takes nothing ahead hinders nobody.
        Err(errno) => {
            let is_there = !is_full(std::io::Error::from(errno).kind());
            Ok(Taken { is_there, now: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD_BYTES: u64 = AHEAD_PAGES * PAGE_BYTES;

    /// A store of some pages, in a directory that goes with it.
    fn small_store() -> (tempfile::TempDir, Connection, MainFile) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let sql = Connection::open(&path).unwrap();
        sql.execute_batch("CREATE TABLE t (x BLOB); INSERT INTO t VALUES (randomblob(100000))")
            .unwrap();
        let main = open_main(&path).unwrap();
        (dir, sql, main)
    }

    /// SQLite's way of taking room wrote zeros, and did so where a checkpoint had just put a page.
    #[test]
    fn room_is_taken_beside_a_checkpoint_that_fills_it() {
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        const COMMITS: usize = 300;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let open = || {
            let sql = Connection::open(&path).unwrap();
            sql.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
            sql.execute_batch("PRAGMA synchronous = off; PRAGMA wal_autocheckpoint = 0").unwrap();
            sql
        };
        let main = {
            let sql = open();
            sql.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (n INTEGER, x BLOB)")
                .unwrap();
            open_main(&path).unwrap()
        };
        let blob = |n: usize| vec![n as u8 | 1; 20_000];
        let (ended, moved, mut count) = (AtomicBool::new(false), AtomicBool::new(false), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let sql = open();
                while !ended.load(Relaxed) {
                    let pages: i64 = sql
                        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(2))
                        .unwrap();
                    moved.fetch_or(pages > 0, Relaxed);
                }
            });
            scope.spawn(|| {
                let (sql, mut room) =
                    (open(), Room::new(Arc::clone(&main), dir.path().join("s.db-wal")));
                while !ended.load(Relaxed) {
                    room.look(&sql, 0).unwrap();
                }
            });
            let sql = open();
            // On a loaded machine the checkpoints may get their turn only after so many.
            while count < COMMITS || (!moved.load(Relaxed) && count < 100 * COMMITS) {
                sql.execute("INSERT INTO t VALUES (?1, ?2)", (count as i64, blob(count))).unwrap();
                count += 1;
            }
            ended.store(true, Relaxed);
        });
        assert!(moved.into_inner(), "no checkpoint met a page");
        let sql = open();
        let whole: String = sql.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok");
        let mut all = sql.prepare("SELECT n, x FROM t ORDER BY n").unwrap();
        let all: Vec<(i64, Vec<u8>)> =
            all.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().flatten().collect();
        assert_eq!(all.len(), count);
        assert!(all.iter().all(|(n, x)| *x == blob(*n as usize)), "a page is another than it was");
    }

    #[test]
    fn taking_room_writes_nothing() {
        let (dir, sql, main) = small_store();
        let path = dir.path().join("s.db");
        let before = (std::fs::read(&path).unwrap(), main.metadata().unwrap().blocks());
        let mut room = Room::new(Arc::clone(&main), dir.path().join("s.db-wal"));
        assert!(room.wants_look(0), "a small store, too");
        room.look(&sql, LOOK_EVERY_PAGES).unwrap();
        assert!(!room.is_tight() && !room.wants_look(LOOK_EVERY_PAGES));
        assert_eq!(std::fs::read(&path).unwrap(), before.0, "and it is as long as it was");
        let taken = (main.metadata().unwrap().blocks() - before.1) * BLOCK_BYTES;
        assert!(taken >= (AHEAD_PAGES - 1) * PAGE_BYTES, "{taken} bytes were taken");
    }

    /// SQLite cuts the main file to its own length when all of the log was moved.
    #[test]
    fn room_that_was_given_back_is_taken_again() {
        let (dir, sql, main) = small_store();
        let length = main.metadata().unwrap().len();
        let mut room = Room::new(Arc::clone(&main), dir.path().join("s.db-wal"));
        // But for a block in which ext4 notes where a file's pieces lie.
        let taken = || {
            let taken = main.metadata().unwrap().blocks() * BLOCK_BYTES - length;
            taken - taken % AHEAD_BYTES
        };
        room.look(&sql, 0).unwrap();
        let first = taken();
        assert!(first >= AHEAD_BYTES);
        room.look(&sql, 0).unwrap();
        assert_eq!(taken(), first, "what is there is not taken again");
        main.set_len(length).unwrap();
        assert_eq!(taken(), 0, "it is given back");
        room.look(&sql, 0).unwrap();
        assert_eq!(taken(), first);
    }
}
