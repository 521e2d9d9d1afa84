//! The writer's read mark: SQLite's lock on the end of the log, kept from one transaction to the
//! next.
//!
//! To take it and give it back is four calls of fcntl(2) for each look of the writer and for each
//! transaction, a tenth of what a claim takes. There is one writer, so that what it saw last is
//! what is true. SQLite has no call for this; but while a statement that reads is not at its end, a
//! commit or a rollback gives back nothing but the lock to write.
//!
//! What must stay true: it is given back before the log is moved, and after it was, since a log
//! that somebody reads does not begin anew. Deliberately not here: when that is (`writer`).

use std::cell::Cell;
use std::ptr::NonNull;

use rusqlite::{Connection, ffi};

/// A statement that is begun, never ended, and reads a page that is at hand anyway.
pub(in crate::store::sqlite) struct ReadMark {
    statement: NonNull<ffi::sqlite3_stmt>,
    is_held: Cell<bool>,
}

// SAFETY: the statement is used by whoever has the connection that it belongs to, which goes from
// thread to thread together with it (both are fields of the writer).
unsafe impl Send for ReadMark {}

impl ReadMark {
    /// Of this connection, which must outlive it. Nothing is held yet.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn of(sql: &Connection) -> rusqlite::Result<ReadMark> {
        let mut statement = std::ptr::null_mut();
        let text = c"SELECT 1 FROM sqlite_schema";
        // SAFETY: the connection is open; the text ends with a NUL, as its length of -1 says.
        let code = unsafe {
            ffi::sqlite3_prepare_v3(
                sql.handle(),
                text.as_ptr(),
                -1,
                ffi::SQLITE_PREPARE_PERSISTENT,
                &mut statement,
                std::ptr::null_mut(),
            )
        };
        match NonNull::new(statement) {
            Some(statement) if code == ffi::SQLITE_OK => {
                Ok(ReadMark { statement, is_held: Cell::new(false) })
            }
            _ => Err(failed(code)),
        }
    }

    /// Takes what is committed now, if nothing is held.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn hold(&self) -> rusqlite::Result<()> {
        if self.is_held.get() {
            return Ok(());
        }
        // SAFETY: prepared in `of`, finalized by nobody but `drop`.
        match unsafe { ffi::sqlite3_step(self.statement.as_ptr()) } {
            ffi::SQLITE_ROW => {
                self.is_held.set(true);
                Ok(())
            }
            code => {
                self.let_go();
                Err(failed(code))
            }
        }
    }

    /// Holds nothing any more.
    pub fn let_go(&self) {
        // SAFETY: as in `hold`. It says again what the last step said, which that has told.
        unsafe { ffi::sqlite3_reset(self.statement.as_ptr()) };
        self.is_held.set(false);
    }
}

impl Drop for ReadMark {
    fn drop(&mut self) {
        // SAFETY: as in `hold`; it is not used after this.
        unsafe { ffi::sqlite3_finalize(self.statement.as_ptr()) };
    }
}

fn failed(code: std::ffi::c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}
