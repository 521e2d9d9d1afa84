//! Room in the main file, taken before it is needed.
//!
//! On a full disk a change still needs space in the log, and the log begins anew only when all of it
//! has been moved into the main file. What that file will grow by is therefore taken ahead, as long
//! as the disk has it: then the log can always be moved, and names can be removed to make space.
//!
//! What must stay true:
//! - Taking room writes nothing: a checkpoint may be filling the same pages just now. (SQLite's own way,
//!   `SQLITE_FCNTL_SIZE_HINT`, writes zeros where it has no `posix_fallocate`, and damaged a store.)
//! - The main file as it is opened here is closed after all of SQLite's connections: to close any
//!   descriptor of a file ends all POSIX locks that the process has on it.
//! - Where there is no room ahead, only what needs none is done ([`Room::is_tight`]).
//!
//! Deliberately not here: who is refused then, and when the log is moved otherwise (`checkpoint`).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, ffi};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::fail;
use crate::store::{Result, StoreError};

/// So many pages are taken ahead: those that come between two looks, and the largest write of a kernel
/// (1 MiB) besides.
const AHEAD_PAGES: u64 = 512;

/// After so many pages that came into the log one looks again.
const LOOK_EVERY_PAGES: u64 = 128;

/// What a page has.
const PAGE_BYTES: u64 = 4096;

/// The main file, opened once more to take room in it.
pub(super) type MainFile = Arc<File>;

/// Opens it, before SQLite does.
pub(super) fn open_main(path: &Path) -> std::io::Result<MainFile> {
    Ok(Arc::new(File::options().read(true).write(true).open(path)?))
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Room {
    main: MainFile,
    /// How long the log was at the last look, in pages.
    looked_at: u64,
    is_tight: bool,
}

impl Room {
    pub fn new(main: MainFile) -> Self {
        Room { main, looked_at: 0, is_tight: false }
    }

    /// Whether the disk was full at the last look or change.
    pub fn is_tight(&self) -> bool {
        self.is_tight
    }

    /// A change found the disk full.
    pub fn note_full(&mut self) {
        self.is_tight = true;
    }

    /// Whether enough was changed to look again.
    pub fn wants_look(&self, log_pages: u64) -> bool {
        log_pages < self.looked_at || log_pages - self.looked_at >= LOOK_EVERY_PAGES
    }

    /// Takes what is missing.
    ///
    /// # Errors
    /// If the store cannot be asked; that there is no space is none.
    pub fn look(&mut self, sql: &Connection, log_pages: u64) -> Result<()> {
        let count = |pragma: &str| {
            let count = sql.query_row(pragma, [], |row| row.get::<_, i64>(0));
            count.map(i64::unsigned_abs)
        };
        let pages = count("PRAGMA page_count").map_err(fail)?;
        let free = count("PRAGMA freelist_count").map_err(fail)?;
        let wanted = (pages + AHEAD_PAGES.saturating_sub(free)) * PAGE_BYTES;
        let length = self.main.metadata().map(|metadata| metadata.len());
        let length = length.map_err(|error| StoreError::Failed(format!("its size: {error}")))?;
        let taken = match wanted.checked_sub(length) {
            None | Some(0) => Ok(()),
            Some(more) => fallocate(&*self.main, FallocateFlags::KEEP_SIZE, length, more),
        };
        // A file system that takes nothing ahead hinders nobody.
        self.is_tight = matches!(taken, Err(Errno::NOSPC | Errno::DQUOT));
        self.looked_at = log_pages;
        Ok(())
    }
}

/// Whether the last failure of this connection was that the disk, or the user's share of it, is full.
/// SQLite says so itself for most writes, and "disk I/O error" for the others.
pub(super) fn is_disk_full(sql: &Connection) -> bool {
    // SAFETY: the connection is open.
    let errno = unsafe { ffi::sqlite3_system_errno(sql.handle()) };
    matches!(errno, libc::ENOSPC | libc::EDQUOT)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn taking_room_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let sql = Connection::open(&path).unwrap();
        sql.execute_batch("CREATE TABLE t (x BLOB); INSERT INTO t VALUES (randomblob(100000))")
            .unwrap();
        let main = open_main(&path).unwrap();
        let before = (std::fs::read(&path).unwrap(), main.metadata().unwrap().blocks());
        let mut room = Room::new(Arc::clone(&main));
        assert!(room.wants_look(LOOK_EVERY_PAGES));
        room.look(&sql, LOOK_EVERY_PAGES).unwrap();
        assert!(!room.is_tight() && !room.wants_look(LOOK_EVERY_PAGES));
        assert_eq!(std::fs::read(&path).unwrap(), before.0, "and it is as long as it was");
        let taken = (main.metadata().unwrap().blocks() - before.1) * 512;
        assert!(taken >= (AHEAD_PAGES - 1) * PAGE_BYTES, "{taken} bytes were taken");
    }
}
