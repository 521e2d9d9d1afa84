//! A virtual file system for SQLite that gathers the writes of the write-ahead log.
//!
//! SQLite writes a commit to its log as two small writes a page, each at an odd offset; measured,
//! the twenty writes of a claim took 100 µs where one write of the same bytes takes 17. Here they are
//! kept until the commit's sync and written at once. It also lets the commit decide whether that
//! sync goes to the disk, instead of `PRAGMA synchronous`, and syncs with fdatasync(2): SQLite as it is
//! bundled calls fsync(2), which writes the log's time stamps, too. Measured on an ext4 with a journal,
//! that took 0.8 to 1.0 ms instead of 0.4.
//!
//! What must stay true:
//! - The connection runs with `synchronous=FULL`, so that every commit calls `xSync` after its last
//!   frame and before it tells other connections of them: they never look for a frame that is not
//!   in the file yet.
//! - A write that fails is reported by that sync, so that the commit fails.
//! - The sync after the log's header is never left out: SQLite needs it for order (see `walFrames`). It
//!   is SQLite's own, which makes the name of a new log durable, too.
//! - What lies beside the tables ([`extents`]) is flushed before the log is, whoever flushes it, and so is what
//!   came there meanwhile before that flush counts as done.
//!
//! Deliberately not here: every other file and method; they are those of SQLite's own default (but see
//! [`failed_reads`]).

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

use crate::store::sqlite::extents::{self, Extents};
use crate::store::sqlite::failed_reads;
use crate::store::{Result, StoreError, open_itself};

/// The name under which SQLite knows it.
pub(in crate::store::sqlite) const NAME: &CStr = c"workfs";

/// More than this is not held back; a larger commit is written in pieces. It is the most that
/// SQLite's default writes in one call (`seekAndWriteFd` in `os_unix.c`).
const GATHERED_BYTES_MAX: usize = 0x1_ffff;

/// The log's header, which is written when the log begins anew.
const HEADER_OFFSET: i64 = 0;

/// What a commit made of the log, whether or not it was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store::sqlite) enum Logged {
    /// It has no commit more than before.
    Nothing,
    /// It may have all of one, which power loss can still take.
    Written,
    /// All that it has is on the disk.
    Flushed,
}

thread_local! {
    /// Whether a commit under way is to be flushed; `None` where there is none, as where the log is moved.
    static FLUSHES: Cell<Option<bool>> = const { Cell::new(None) };
    static LOGGED: Cell<Logged> = const { Cell::new(Logged::Nothing) };
}

/// Runs `commit` on this thread, and tells what it made of the log; where `flush` is false, what it
/// commits survives the daemon but not power loss.
pub(in crate::store::sqlite) fn committing<T>(
    flush: bool,
    commit: impl FnOnce() -> T,
) -> (T, Logged) {
    FLUSHES.set(Some(flush));
    LOGGED.set(Logged::Nothing);
    let done = commit();
    FLUSHES.set(None);
    (done, LOGGED.get())
}

/// Makes it known to SQLite, once for the process.
///
/// # Errors
/// If SQLite has no default to build on.
pub(in crate::store::sqlite) fn register() -> Result<()> {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    let code = *REGISTERED.get_or_init(|| {
        // SAFETY: a null name asks for the default; SQLite initializes itself.
        let original = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        if original.is_null() {
            return ffi::SQLITE_NOTFOUND;
        }
        // SAFETY: the default is static and is not changed after SQLite's initialization.
        let original: &'static sqlite3_vfs = unsafe { &*original };
        let ours = Box::new(sqlite3_vfs {
            szOsFile: original.szOsFile + REAL_AT as c_int,
            zName: NAME.as_ptr(),
            pNext: std::ptr::null_mut(),
            xOpen: Some(open),
            ..*original
        });
        // SAFETY: it lives as long as the process, as SQLite asks, and is not the default.
        unsafe { ffi::sqlite3_vfs_register(Box::leak(ours), 0) }
    });
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(StoreError::Failed(format!("SQLite takes no virtual file system: {code}"))),
    }
}

/// What is held back of a log.
struct Gathered {
    /// The log, opened once more to be flushed. Nobody locks a log: its close ends no lock.
    file: File,
    path: PathBuf,
    /// What must be on the disk before the log is; looked for with the first flush.
    extents: Option<Arc<Extents>>,
    bytes: Vec<u8>,
    /// Where `bytes` begin in the file.
    at: i64,
    /// Whether the header was written since the last sync.
    header: bool,
}

/// An open log, in memory that SQLite owns and aligns to 8 bytes; the default's own file follows at
/// [`REAL_AT`].
#[repr(C, align(8))]
struct Log {
    base: sqlite3_file,
    gathered: *mut Gathered,
}

const REAL_AT: usize = size_of::<Log>();

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // Version 1: a log is neither locked nor mapped nor shared; that is the main file's part.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(lock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// The default's file behind a log.
///
/// # Safety
/// `file` was opened by [`open`] as a log and not closed yet.
unsafe fn real(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: SQLite gave `szOsFile` bytes, which are REAL_AT and the default's own size.
    unsafe { file.cast::<u8>().add(REAL_AT).cast() }
}

/// The default's methods of the file behind a log.
///
/// # Safety
/// As for [`real`].
unsafe fn methods<'m>(file: *mut sqlite3_file) -> &'m sqlite3_io_methods {
    // SAFETY: the default opened the file and set its methods, which are static.
    unsafe { &*(*real(file)).pMethods }
}

/// Calls a method of the default's file behind the log `$file`; SQLite's default has all of them.
macro_rules! forward {
    ($file:expr, $method:ident $(, $argument:expr)*) => {
        match methods($file).$method {
            Some(method) => method(real($file) $(, $argument)*),
            None => ffi::SQLITE_IOERR,
        }
    };
}

/// Writes what is held back.
///
/// # Safety
/// As for [`real`].
unsafe fn spill(file: *mut sqlite3_file) -> c_int {
    // SAFETY: as promised by the caller; `gathered` is a box that lives until the close, and SQLite
    // uses a file from one thread at a time.
    unsafe {
        let gathered = &mut *(*file.cast::<Log>()).gathered;
        if gathered.bytes.is_empty() {
            return ffi::SQLITE_OK;
        }
        let length = gathered.bytes.len() as c_int;
        let code = forward!(file, xWrite, gathered.bytes.as_ptr().cast(), length, gathered.at);
        gathered.bytes.clear();
        code
    }
}

/// As [`spill`]; returns from the calling method where it fails.
macro_rules! spilled {
    ($file:expr) => {
        match spill($file) {
            ffi::SQLITE_OK => {}
            code => return code,
        }
    };
}

unsafe extern "C" fn open(
    ours: *mut sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with a file of `szOsFile` bytes; the default is found as in `register`
    // and expects to be called with itself.
    unsafe {
        let original = ffi::sqlite3_vfs_find(std::ptr::null());
        debug_assert!(!std::ptr::eq(original, ours), "ours is not registered as the default");
        let Some(open) = (*original).xOpen else { return ffi::SQLITE_CANTOPEN };
        if flags & ffi::SQLITE_OPEN_WAL == 0 {
            let code = open(original, name, file, flags, out);
            if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
                failed_reads::tell(file);
            }
            return code;
        }
        (*file).pMethods = std::ptr::null();
        let code = open(original, name, real(file), flags, out);
        if code != ffi::SQLITE_OK {
            return code;
        }
        // A log has a name.
        let path = PathBuf::from(OsStr::from_bytes(CStr::from_ptr(name).to_bytes()));
        let Ok(again) = open_itself(File::options().read(true), &path) else {
            let _ = forward!(file, xClose);
            return ffi::SQLITE_CANTOPEN;
        };
        let gathered =
            Gathered { file: again, path, extents: None, bytes: Vec::new(), at: 0, header: false };
        (*file.cast::<Log>()).gathered = Box::into_raw(Box::new(gathered));
        (*file).pMethods = &raw const METHODS;
        ffi::SQLITE_OK
    }
}

// SAFETY, for all methods: SQLite calls them with a file that `open` opened, from one thread at a
// time, with buffers as long as it says.

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: see above; after this call SQLite uses the file no more.
    unsafe {
        let spilled = spill(file);
        drop(Box::from_raw((*file.cast::<Log>()).gathered));
        let closed = forward!(file, xClose);
        if spilled == ffi::SQLITE_OK { closed } else { spilled }
    }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        spilled!(file);
        failed_reads::told(forward!(file, xRead, buffer, length, offset))
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    buffer: *const c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        let gathered = &mut *(*file.cast::<Log>()).gathered;
        let length = usize::try_from(length).unwrap_or(0);
        let follows = gathered.at + gathered.bytes.len() as i64 == offset;
        if !follows || gathered.bytes.len() + length > GATHERED_BYTES_MAX {
            spilled!(file);
        }
        if gathered.bytes.is_empty() {
            gathered.at = offset;
        }
        gathered.header |= offset == HEADER_OFFSET;
        gathered.bytes.extend_from_slice(std::slice::from_raw_parts(buffer.cast(), length));
        ffi::SQLITE_OK
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: see above.
    unsafe {
        spilled!(file);
        forward!(file, xTruncate, size)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: see above.
    unsafe {
        spilled!(file);
        let gathered = &mut *(*file.cast::<Log>()).gathered;
        LOGGED.set(Logged::Written);
        let flushes = FLUSHES.get();
        let has_header = std::mem::take(&mut gathered.header);
        if flushes == Some(false) && !has_header {
            return ffi::SQLITE_OK;
        }
        if gathered.extents.is_none() {
            gathered.extents = extents::of_log(&gathered.path);
        }
        if has_header {
            let code = forward!(file, xSync, flags);
            if code != ffi::SQLITE_OK
                && let Some(extents) = &gathered.extents
            {
                extents.doubt_log();
            }
            return code;
        }
        let flush = || gathered.file.sync_data();
        let flushed = match &gathered.extents {
            Some(extents) if flushes.is_none() => extents.flush_to_move(flush),
            Some(extents) => extents.flush_with(flush),
            None => flush(),
        };
        if flushed.is_err() {
            return ffi::SQLITE_IOERR_FSYNC;
        }
        LOGGED.set(Logged::Flushed);
        ffi::SQLITE_OK
    }
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: see above.
    unsafe {
        spilled!(file);
        forward!(file, xFileSize, size)
    }
}

unsafe extern "C" fn lock(_: *mut sqlite3_file, _: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(_: *mut sqlite3_file, held: *mut c_int) -> c_int {
    // SAFETY: see above.
    unsafe { *held = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(
    file: *mut sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: see above.
    unsafe {
        spilled!(file);
        forward!(file, xFileControl, operation, argument)
    }
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    // SAFETY: see above.
    unsafe { forward!(file, xSectorSize) }
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: see above.
    unsafe { forward!(file, xDeviceCharacteristics) }
}
