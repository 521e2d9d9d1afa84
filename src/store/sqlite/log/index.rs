//! What SQLite's index of the log says is moved into the main file, taken back where the disk has not kept it.
//!
//! SQLite counts pages as moved before it flushes them, where the log goes on meanwhile. If the flush that comes with
//! a later move fails, the kernel has given them up, too, and says of the next one that all is well; SQLite has no
//! word by which it would write them once more.
//!
//! What must stay true:
//! - Nobody else of this process moves the log from the move that failed on until this is done: that is for who calls
//!   it to see to. Another process is kept out of the second half by SQLite's own lock.
//! - No more ever counts as moved by this, only less, as after a crash: the log has it all, since it began anew when
//!   all before it had been flushed. Who begins to read later reads it there. Who has begun goes on to read it in the
//!   main file, and what is written there once more is the same: nobody's mark lies before what was moved once.
//! - How far a move was begun (`nBackfillAttempted`) stays: the main file may have that.
//!
//! The index is reached through SQLite: the end of another descriptor of its file would end SQLite's locks on it.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::{Connection, ffi};

/// How much of the index SQLite maps at once (`WALINDEX_PGSZ`).
const REGION_BYTES: c_int = 32_768;

/// The format of the index, of which this is known (`WALINDEX_MAX_VERSION`); it begins with it.
const VERSION: u32 = 3_007_000;

/// Where it says how much is moved (`WalCkptInfo.nBackfill`).
const MOVED_AT: usize = 96;

/// The lock of who moves the log (`WAL_CKPT_LOCK`).
const MOVING: c_int = 1;

/// Has the next move write all that the log has.
///
/// # Errors
/// Somebody else moves the log, or the index is not what it must be.
pub(super) fn count_nothing_as_moved(sql: &Connection) -> rusqlite::Result<()> {
    let file = main_file(sql)?;
    // SAFETY: the file is open as long as the connection is, and SQLite set its methods.
    let methods = unsafe { &*(*file).pMethods };
    let (Some(map), Some(lock)) = (methods.xShmMap, methods.xShmLock) else {
        return Err(failed(ffi::SQLITE_IOERR_SHMMAP));
    };
    let mut index: *mut c_void = std::ptr::null_mut();
    // SAFETY: as SQLite itself does it, which takes the file's own mutex for each of these.
    done(unsafe { map(file, 0, REGION_BYTES, 0, &raw mut index) })?;
    if index.is_null() {
        return Err(failed(ffi::SQLITE_IOERR_SHMMAP));
    }
    // SAFETY: as above. The connection does nothing else meanwhile, so that it has none of the lock.
    done(unsafe { lock(file, MOVING, 1, ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_EXCLUSIVE) })?;
    let index = index.cast::<AtomicU32>();
    // SAFETY: it is mapped while the file is open, from the begin of a page on, and so long; all who have it mapped
    // read and write these numbers at once.
    let (version, moved) = unsafe { (&*index, &*index.byte_add(MOVED_AT)) };
    let is_known = version.load(Ordering::SeqCst) == VERSION;
    if is_known {
        moved.store(0, Ordering::SeqCst);
    }
    // SAFETY: as above.
    done(unsafe { lock(file, MOVING, 1, ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_EXCLUSIVE) })?;
    if is_known { Ok(()) } else { Err(failed(ffi::SQLITE_INTERNAL)) }
}

/// The main file as SQLite has it open.
fn main_file(sql: &Connection) -> rusqlite::Result<*mut ffi::sqlite3_file> {
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    let out = (&raw mut file).cast();
    // SAFETY: the connection is open; what is asked for is put into `file`.
    done(unsafe {
        let name = c"main".as_ptr();
        ffi::sqlite3_file_control(sql.handle(), name, ffi::SQLITE_FCNTL_FILE_POINTER, out)
    })?;
    // SAFETY: SQLite gave a file of its own; one that is not open has no methods.
    let is_open = !file.is_null() && unsafe { !(*file).pMethods.is_null() };
    if is_open { Ok(file) } else { Err(failed(ffi::SQLITE_INTERNAL)) }
}

fn done(code: c_int) -> rusqlite::Result<()> {
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(failed(code)) }
}

fn failed(code: c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

#[cfg(test)]
pub(in crate::store::sqlite) mod tests {
    use super::*;

    /// While it lives, each flush of the main file of this connection fails.
    pub struct Unflushable {
        file: *mut ffi::sqlite3_file,
        kept: *const ffi::sqlite3_io_methods,
    }

    impl Unflushable {
        pub fn make(sql: &Connection) -> Unflushable {
            unsafe extern "C" fn fail(_: *mut ffi::sqlite3_file, _: c_int) -> c_int {
                ffi::SQLITE_IOERR_FSYNC
            }
            let file = main_file(sql).unwrap();
            // SAFETY: as in `count_nothing_as_moved`; nobody uses the connection meanwhile.
            unsafe {
                let kept = (*file).pMethods;
                let failing = ffi::sqlite3_io_methods { xSync: Some(fail), ..*kept };
                (*file).pMethods = Box::leak(Box::new(failing));
                Unflushable { file, kept }
            }
        }
    }

    impl Drop for Unflushable {
        fn drop(&mut self) {
            // SAFETY: the connection is open, and was as long as this lived.
            unsafe { (*self.file).pMethods = self.kept };
        }
    }
}
