//! SQLite: the embedded engine. One writer connection, a pool of reading ones, WAL.
//!
//! What must stay true: a commit that must survive power loss is flushed; parameters only, never
//! values in SQL text; the file is 0600 and locked by one daemon at a time.

// What is stored: tables, big files beside them, and the log that brings both to the disk.
mod extents;
mod failed_reads;
mod log;
mod tables;
mod writer;

// Opening and reading a store, and who has it.
mod beside;
mod copying;
mod head;
mod lock;
mod own_log;
mod pool;
mod reading;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::RecvTimeoutError;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

pub use beside::EXTENTS;
pub use head::refuse_other;
pub use lock::{
    FILES, Lock, give_to_owner, is_held, is_name_of_store, is_of_store, last_holder, lock_holder,
    named_holder, remove_files, remove_lock, restoring_path,
};
pub use log::room::NEW_BYTES;
pub use reading::{ProtectedWriter, write_protection};
pub use writer::SqliteWriter;

use super::error::lacks_descriptors;
use super::{Figures, Identity, Read, Readers, Result, StoreError, is_full};
use crate::limits::TOLD_EVERY;
use crate::names::Shown;
use crate::numbers::Ino;
use extents::Extents;
use log::checkpoint::KEPT_BYTES;
use log::{gather, room};
use pool::{Pool, Reader};
use tables::chunks::Space;
use tables::nodes::Nodes;
use tables::places::Places;
use tables::{chores, schema};

/// A connection to the store: reads, and inside [`crate::store::Writer::transaction`] writes.
struct Conn {
    sql: Connection,
    /// The inodes of the transaction under way; empty outside of one.
    nodes: RefCell<Nodes>,
    places: RefCell<Places>,
    extents: Arc<Extents>,
    /// Of the writer's connection.
    space: Space,
    /// The number of the inode that was made last, also if that was undone; `None` before the first.
    last_ino: Option<Ino>,
    /// Nothing was done yet in the transaction under way. Its first change then needs no savepoint:
    /// the transaction is one, and the pages that the change touches need not be copied for it.
    is_first: bool,
}

/// An open store; the lock is held until it is dropped.
pub struct Sqlite {
    path: PathBuf,
    idle: Pool,
    extents: Arc<Extents>,
    /// Why it cannot be written.
    protection: Option<String>,
    /// Its file was made by opening it.
    is_made: bool,
    /// `None` where it is only read, and nobody has ever served it.
    _lock: Option<lock::Lock>,
    // Dropped last: it has the main file open, see `room`.
    main_lock: lock::MainLock,
}

/// How long SQLite waits for a lock of its own, which only a stranger may have for longer.
const BUSY_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// What is wrong where a row, or the schema, is not what this program writes.
fn unreadable(error: &rusqlite::Error) -> Option<String> {
    use rusqlite::Error as E;
    match error {
        E::FromSqlConversionFailure(_, _, why) => Some(why.to_string()),
        E::InvalidColumnType(_, column, found) => Some(format!("`{column}` is of type {found}")),
        E::IntegralValueOutOfRange(_, number) => Some(format!("{number} is out of range")),
        E::Utf8Error(..) => Some("a text is not UTF-8".to_owned()),
        // Its own statements are right where all tables and columns are there.
        E::SqlInputError { msg, .. } => Some(msg.clone()),
        E::SqliteFailure(_, Some(text)) if text.starts_with("no such ") => Some(text.clone()),
        // The same of what only running one shows: a table's condition asks for a function that there is not, or
        // its reference is to no key.
        E::SqliteFailure(error, Some(text)) if is_of_schema(error, text) => Some(text.clone()),
        _ => None,
    }
}

/// Whether a statement was refused for what the schema says. Whatever SQLite refuses has this code, also what comes at
/// the wrong time: "cannot commit - no transaction is active", as after a full disk, is no damage.
fn is_of_schema(error: &ffi::Error, text: &str) -> bool {
    let is_of_time = text.starts_with("cannot ") || text == "SQL logic error";
    error.extended_code == ffi::SQLITE_ERROR && !is_of_time
}

/// Maps an SQLite failure to its cause.
fn fail(error: rusqlite::Error) -> StoreError {
    if let Some(what) = unreadable(&error) {
        return StoreError::Impossible(what);
    }
    let text = error.to_string();
    // The index of the log does not become as long as it must, or takes not even its first bytes (`ulimit -f 0`).
    let is_short = |error: &ffi::Error| {
        matches!(error.extended_code, ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMOPEN)
    };
    if error.sqlite_error().is_some_and(is_short) {
        return StoreError::Full("there is no room for a log".to_owned());
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::CannotOpen) if lacks_descriptors() => StoreError::NoDescriptors(text),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::ReadOnly(text)
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(text),
        Some(ErrorCode::NotADatabase) => StoreError::NotAStore(text),
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Impossible(text),
        _ => StoreError::Failed(text),
    }
}

/// The cause of a failure of a connection, right after it. SQLite says by itself of most writes that the
/// disk is full, and "disk I/O error" of the others, of what may not be written and of what cannot: why, the system
/// tells.
fn cause(sql: &Connection, error: rusqlite::Error) -> StoreError {
    if error.sqlite_error_code() != Some(ErrorCode::SystemIoFailure) {
        return fail(error);
    }
    // SAFETY: the connection is open.
    let errno = unsafe { ffi::sqlite3_system_errno(sql.handle()) };
    let why = std::io::Error::from_raw_os_error(errno);
    match errno {
        _ if is_full(why.kind()) => StoreError::Full(why.to_string()),
        libc::EROFS | libc::EPERM => {
            let path = sql.path().unwrap_or_default();
            StoreError::ReadOnly(format!("{path}: {why}"))
        }
        libc::EIO => StoreError::Failed(format!("{error}: {why}")),
        _ => fail(error),
    }
}

/// The same, naming the file that is no store.
fn named(error: StoreError, path: &Path) -> StoreError {
    match error {
        StoreError::NotAStore(_) => StoreError::NotAStore(path.shown()),
        other => other,
    }
}

/// The same where the disk takes no further file: of that SQLite says only that it cannot open its own.
fn for_want_of_files(error: StoreError, store: &Path) -> StoreError {
    let StoreError::ReadOnly(why) = error else { return error };
    let dir = store.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match rustix::fs::statvfs(dir) {
        Ok(disk) if disk.f_files > 0 && disk.f_favail == 0 => {
            StoreError::Full(format!("{why} (the disk has no room for one more file: `df -i`)"))
        }
        _ => StoreError::ReadOnly(why),
    }
}

/// The lock file of the store at `path`.
#[must_use]
pub fn lock_path(path: &Path) -> PathBuf {
    lock::lock_path(path)
}

impl Sqlite {
    /// Opens the store at `path`, making it where there is none, and gives its one writer.
    ///
    /// # Errors
    /// Held by another process, newer, not a store, on a network file system, or not writable.
    pub fn open(path: &Path) -> Result<(Sqlite, SqliteWriter)> {
        let io = |what: &str, error: std::io::Error| {
            StoreError::of_writing(&format!("{what} {}", path.shown()), &error)
        };
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.exists()) {
            use std::os::unix::fs::DirBuilderExt;
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .map_err(|e| io("making the directory of", e))?;
        }
        refuse_other(path)?;
        lock::refuse_network(path)?;
        let (lock, is_first) = lock::Lock::take_first(path)?;
        lock::remove_restoring(path);
        let made = beside::expect_openable(path)
            .and_then(|()| own_log::expect_no_log_alone(path))
            .and_then(|()| make(path).map_err(|error| io("making", error)));
        let is_made = matches!(made, Ok(true));
        let opened = made.and_then(|_| Sqlite::open_held(path, &lock));
        if opened.is_err() {
            // What was there is left alone; nothing is left beside it, nor of what was made in vain.
            if is_made && let Err(error) = lock::remove_files(path) {
                tracing::warn!(%error, "a store that could not be made stays");
            }
            if is_first {
                lock.remove(path);
            }
        }
        let (main_lock, extents, writer) =
            opened.map_err(|error| for_want_of_files(error, path))?;
        let (path, idle) = (path.to_owned(), Pool::default());
        let (_lock, main_lock) = (Some(lock), main_lock);
        Ok((Sqlite { path, idle, extents, protection: None, is_made, _lock, main_lock }, writer))
    }

    /// Whether its file was made by opening it.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.is_made
    }

    /// What is to be opened by whoever has the lock beside the store.
    fn open_held(
        path: &Path,
        lock: &lock::Lock,
    ) -> Result<(lock::MainLock, Arc<Extents>, SqliteWriter)> {
        let io = |what: &str, error: std::io::Error| {
            StoreError::of_writing(&format!("{what} {}", path.shown()), &error)
        };
        let main = room::open_main(path).map_err(|e| io("opening", e))?;
        let main_lock = lock::lock_main(path, &main, lock::Use::Write)?;
        let key = own_log::expect_own_log(path, Some(lock))?;
        beside::close_beside(path);
        let sql = connect(path, true).map_err(|error| named(error, path))?;
        let shown = path.shown();
        schema::migrate(&sql, &shown).map_err(|error| named(error, path))?;
        // Not before it is known to be a store: another program's file stays as it is.
        // Not by its name, which may be another's by then.
        beside::close_to_others(path, &main)?;
        let logged = sql.pragma_update(None, "journal_mode", "wal");
        logged.map_err(|error| cause(&sql, error))?;
        sql.pragma_update(None, "wal_autocheckpoint", 0).map_err(fail)?;
        sql.pragma_update(None, "journal_size_limit", KEPT_BYTES as i64).map_err(fail)?;
        let identity = main_lock.identity().map_err(|e| io("looking at", e))?;
        let extents = Extents::open(path, &sql, Some(identity))?;
        own_log::note_both(lock, key, &extents);
        own_log::tell_log(&sql, path);
        let writer = Conn::new(sql, &extents);
        chores::forget_leader(&writer)?;
        let second = Conn::new(connect(path, true)?, &extents);
        let mut writer = SqliteWriter::new((writer, second), path, Arc::clone(&main))?;
        own_log::settle(lock, &extents, &mut writer);
        Ok((main_lock, extents, writer))
    }

    /// Which file the store is.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn identity(&self) -> std::io::Result<Identity> {
        self.main_lock.identity()
    }

    /// Fails where another file has the store's name by now: a connection would be to that one, whose log
    /// it might take away.
    fn expect_in_place(&self) -> Result<()> {
        let shown = self.path.shown();
        match self.identity().map(|own| own.has_name(&self.path)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::Moved(shown)),
            Err(error) => Err(StoreError::Failed(format!("{shown}: {error}"))),
        }
    }

    fn take(&self) -> Result<Reader> {
        self.idle.take(|| self.open_one())
    }

    fn open_one(&self) -> Result<Conn> {
        self.expect_in_place()?;
        let sql = match self.protection {
            Some(_) => reading::connect(&self.path),
            None => connect(&self.path, false),
        };
        Ok(Conn::new(sql?, &self.extents))
    }
}

/// Makes the file where there is none, for its owner alone from the start; says whether it did.
fn make(path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::OpenOptionsExt;
    match std::fs::File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// The store's own files are its owner's alone.
fn owners_alone() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o600)
}

fn connect(path: &Path, write: bool) -> Result<Connection> {
    let flags = if write {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    beside::expect_files(path)?;
    gather::register()?;
    configure(Connection::open_with_flags_and_vfs(path, flags, gather::NAME).map_err(fail)?, write)
}

fn configure(sql: Connection, write: bool) -> Result<Connection> {
    sql.set_prepared_statement_cache_capacity(128);
    sql.busy_timeout(BUSY_PATIENCE).map_err(fail)?;
    // A hostile store file must not run code or trick the reader (6-safety.md).
    sql.pragma_update(None, "trusted_schema", false).map_err(fail)?;
    sql.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(fail)?;
    // Plans never depend on bound values; without this each new value compiled its query anew.
    sql.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(fail)?;
    sql.pragma_update(None, "cell_size_check", true).map_err(fail)?;
    sql.pragma_update(None, "foreign_keys", write).map_err(fail)?;
    // In KiB. The writer's cache bounds the pages of a claim that must be read again.
    sql.pragma_update(None, "cache_size", if write { -24_576 } else { -512 }).map_err(fail)?;
    sql.pragma_update(None, "temp_store", "memory").map_err(fail)?;
    // Each commit asks for a flush, and `gather` knows whether it is to reach the disk.
    sql.pragma_update(None, "synchronous", "full").map_err(fail)?;
    if !write {
        sql.pragma_update(None, "query_only", true).map_err(fail)?;
    }
    Ok(sql)
}

impl Conn {
    fn new(sql: Connection, extents: &Arc<Extents>) -> Conn {
        Conn {
            sql,
            nodes: RefCell::default(),
            places: RefCell::default(),
            extents: Arc::clone(extents),
            space: Space::default(),
            last_ino: None,
            is_first: false,
        }
    }

    fn step(&self, sql: &str) -> Result<()> {
        let stepped = self.sql.prepare_cached(sql).and_then(|mut step| step.execute([]));
        stepped.map(drop).map_err(|error| self.cause(error))
    }

    /// The cause of a failure of this connection, right after it.
    fn cause(&self, error: rusqlite::Error) -> StoreError {
        cause(&self.sql, error)
    }

    /// Runs `work` on one snapshot.
    fn snapshot(&self, work: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        /// Ends it also where `work` panics: the writer's connection goes on.
        struct Begun<'c>(&'c Conn);
        impl Drop for Begun<'_> {
            fn drop(&mut self) {
                if let Err(error) = self.0.step("COMMIT").or_else(|_| self.0.step("ROLLBACK")) {
                    tracing::error!(%error, "a snapshot could not be ended");
                }
            }
        }
        self.step("BEGIN")?;
        let _begun = Begun(self);
        work(self)
    }
}

impl Readers for Sqlite {
    fn read(&self, work: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        let _look = self.extents.look();
        let connection = self.take()?;
        let result = connection.snapshot(work);
        // One whose snapshot could not be ended gives no other.
        if connection.sql.is_autocommit() {
            self.idle.give_back(connection);
        }
        result
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn disk(&self) -> std::io::Result<rustix::fs::StatVfs> {
        self.main_lock.disk()
    }

    fn figures(&self) -> Figures {
        let log_bytes = lock::bytes_of(&self.path, "-wal");
        let (readers, readers_used) = self.idle.counts();
        Figures {
            bytes: FILES.iter().map(|end| lock::bytes_of(&self.path, end)).sum(),
            log_bytes,
            readers,
            readers_used,
            flushes: Arc::clone(&self.extents.flush_times),
        }
    }

    fn close_idle(&self) {
        self.idle.close_most();
    }

    fn write_protection(&self) -> Option<&str> {
        self.protection.as_deref()
    }

    fn integrity(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<Option<Vec<String>>> {
        if !goes_on() {
            return Ok(None);
        }
        let connection = self.take()?;
        let interrupt = connection.sql.get_interrupt_handle();
        let (send, receive) = crossbeam_channel::bounded(1);
        std::thread::scope(|scope| {
            // It is one statement, which only another thread can end.
            let check = move || {
                // The receiver waits for it.
                let _ = send.send((connection.integrity(), connection));
            };
            let started = std::thread::Builder::new().name("integrity".into());
            let started = started.spawn_scoped(scope, check);
            let check = started.map_err(|error| StoreError::NoThread(error.to_string()))?;
            let mut is_given_up = false;
            loop {
                match receive.recv_timeout(TOLD_EVERY) {
                    Ok(_) if is_given_up => return Ok(None),
                    // Not before: while nobody was told to give up, another's statement would be interrupted.
                    Ok((found, connection)) => {
                        self.idle.give_back(connection);
                        return found.map(Some);
                    }
                    // Again and again: one that comes before the statement begins says nothing to it.
                    Err(RecvTimeoutError::Timeout) => {
                        is_given_up = is_given_up || !goes_on();
                        if is_given_up {
                            interrupt.interrupt();
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        // It panicked, which is no reason for us to.
                        let _ = check.join();
                        return Err(StoreError::Failed("the check ended half-way".to_owned()));
                    }
                }
            }
        })
    }

    fn backup(
        &self,
        target: (&Path, Identity),
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        let _look = self.extents.look();
        let source = self.take()?;
        let mut copy = copying::open(target)?;
        // One snapshot for all steps: without it the copy begins anew with every commit of the
        // writer, and under load never ends.
        source.sql.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").map_err(fail)?;
        let copied = copying::pages(&source.sql, &mut copy, progress);
        let is_whole = copied.map_err(|error| cause(&copy, error))?;
        let is_whole = is_whole && {
            copying::without_log(&copy)?;
            self.extents.copy_into(&copy, progress)?
        };
        source.sql.execute_batch("COMMIT").map_err(fail)?;
        self.idle.give_back(source);
        if is_whole {
            copying::close(copy)?;
        }
        Ok(is_whole)
    }
}
