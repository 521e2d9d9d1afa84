//! Room in the main file, taken before it is needed.
//!
//! On a full disk a change still needs space in the log, and the log begins anew only when all of it
//! has been moved into the main file. What that file will grow by is therefore taken ahead, as long
//! as the disk has it: then the log can always be moved, and names can be removed to make space.
//!
//! What must stay true: where there is no room ahead, only what makes space is done ([`Room::is_tight`]).
//! Deliberately not here: who is refused then, and when the log is moved otherwise (`checkpoint`).

use std::ffi::{c_int, c_void};

use rusqlite::{Connection, ffi};

use super::fail;
use crate::store::Result;

/// The main file grows and shrinks by this.
const CHUNK_BYTES: c_int = 1 << 20;

/// So many pages are taken ahead: those that come between two looks, and the largest write of a kernel
/// (1 MiB) besides.
const AHEAD_PAGES: u64 = 512;

/// After so many pages that came into the log one looks again.
const LOOK_EVERY_PAGES: u64 = 128;

/// What a page has.
const PAGE_BYTES: u64 = 4096;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// How long the log was at the last look, in pages.
    looked_at: u64,
    is_tight: bool,
}

impl Room {
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
        let wanted = pages + AHEAD_PAGES.saturating_sub(free);
        let bytes = i64::try_from(wanted * PAGE_BYTES).unwrap_or(i64::MAX);
        let (code, _) = control(sql, ffi::SQLITE_FCNTL_SIZE_HINT, bytes);
        // A file system that takes nothing ahead for another reason hinders nobody.
        let (_, errno) = control(sql, ffi::SQLITE_FCNTL_LAST_ERRNO, 0);
        self.is_tight = code != ffi::SQLITE_OK && is_full(errno);
        self.looked_at = log_pages;
        Ok(())
    }
}

/// Lets the main file, as this connection has it, grow and shrink in large steps; without this SQLite
/// takes nothing ahead, and gives back what another connection has taken.
pub(super) fn grow_in_chunks(sql: &Connection) {
    // Where the file system has no such thing, nothing is taken ahead.
    let _ = control(sql, ffi::SQLITE_FCNTL_CHUNK_SIZE, CHUNK_BYTES);
}

/// Gives what the operation said, and its argument afterwards.
fn control<T>(sql: &Connection, operation: c_int, mut argument: T) -> (c_int, T) {
    let place = (&raw mut argument).cast::<c_void>();
    // SAFETY: the connection is open; the operations read or write their argument (a C int for the
    // chunk size and the errno, a 64-bit integer for the hint) during the call and keep no pointer.
    let code =
        unsafe { ffi::sqlite3_file_control(sql.handle(), c"main".as_ptr(), operation, place) };
    (code, argument)
}

fn is_full(errno: c_int) -> bool {
    matches!(errno, libc::ENOSPC | libc::EDQUOT)
}

/// Whether the last failure of this connection was that the disk, or the user's share of it, is full.
/// SQLite says so itself for most writes, and "disk I/O error" for the others.
pub(super) fn is_disk_full(sql: &Connection) -> bool {
    // SAFETY: the connection is open.
    let errno = unsafe { ffi::sqlite3_system_errno(sql.handle()) };
    is_full(errno)
}
