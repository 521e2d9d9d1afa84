//! A store that cannot be written: on a read-only file system, or for a user who may only read it.
//!
//! What must stay true: nothing is written and nothing is left beside it; nobody writes it
//! meanwhile, as far as its lock can tell; the last commits are read, too, which may be in the log
//! only. SQLite itself gives one or the other: with `immutable` it reads no log, and without it
//! makes files beside the store. So a log is read with an index in each connection's own memory,
//! which is what SQLite does where it has a database to itself. Deliberately not here: who hears
//! that it cannot be written.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::beside::{expect_files, expect_own, in_the_way, is_in_the_way};
use super::extents::Extents;
use super::lock::{self, Lock};
use super::pool::Pool;
use super::tables::chunks::End;
use super::tables::schema;
use super::{Conn, Sqlite, configure, fail, named, own_log, refuse_other};
use crate::names::Shown;
use crate::store::{
    Durability, Read, Result, StoreError, Txn, Writer, beside, open_itself, or_too_long,
};

/// SQLite's file system without locks: ours holds for the whole store.
pub(super) const WITHOUT_LOCKS: &std::ffi::CStr = c"unix-none";

/// What hinders this process from writing the store at `path`; `None` where nothing does, or where
/// there is no store.
#[must_use]
pub fn write_protection(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let told = |file: &Path, error: std::io::Error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        (!is_missing).then(|| format!("{}: {error}", file.shown()))
    };
    let refused = |file: &Path| {
        let asked = accessat(CWD, file, Access::WRITE_OK, AtFlags::EACCESS);
        asked.err().and_then(|error| told(file, error.into()))
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let of_directory = refused(parent.unwrap_or(Path::new(".")));
    let mut files = [path.to_owned(), log_path(path), beside(path, "-shm")].into_iter();
    let by_access = of_directory.or_else(|| files.find_map(|file| refused(&file)));
    // A file system that was found damaged says only by this that it takes no changes.
    let lock = lock::lock_path(path);
    let open = || open_itself(File::options().read(true).write(true), &lock).err();
    // That something else lies there hears who takes the lock.
    let open = || open().filter(|error| error.raw_os_error().is_some());
    by_access.or_else(|| open().and_then(|error| told(&lock, error)))
}

fn log_path(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

impl Sqlite {
    /// Opens the store at `path`, which cannot be written for this reason. Its writer makes no change:
    /// `refusal` makes the reason what it says instead.
    ///
    /// # Errors
    /// Held by another process, of another version, not a store, or not to be read either.
    pub fn open_protected(
        path: &Path,
        why: String,
        refusal: fn(String) -> StoreError,
    ) -> Result<(Sqlite, ProtectedWriter)> {
        refuse_other(path)?;
        lock::refuse_network(path)?;
        let lock = Lock::share(path)?;
        if std::fs::metadata(beside(path, "-journal")).is_ok_and(|journal| journal.len() > 0) {
            let what = format!("{} was being made when that was broken off", path.shown());
            return Err(StoreError::ReadOnly(what));
        }
        let main = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let main = main.map_err(|error| cannot(path, error))?;
        let main_lock = lock::lock_main(path, &main.into(), lock::Use::Read)?;
        own_log::expect_own_log(path, lock.as_ref())?;
        let sql = connect(path).map_err(|error| named(error, path))?;
        let shown = path.shown();
        schema::check(&sql, &shown).map_err(|error| named(error, path))?;
        let extents = Extents::open(path, &sql, None)?;
        let connection = Conn::new(sql, &extents);
        let (path, idle) = (path.to_owned(), Pool::default());
        // It is told without the refusal around it.
        let told = match refusal(why.clone()) {
            StoreError::Full(why) => or_too_long(&why),
            _ => why.clone(),
        };
        let (protection, _lock) = (Some(told), lock);
        let store = Sqlite { path, idle, extents, protection, is_made: false, _lock, main_lock };
        Ok((store, ProtectedWriter { connection, why, refusal }))
    }
}

fn cannot(what: &Path, error: std::io::Error) -> StoreError {
    let what = format!("opening {}", what.shown());
    match StoreError::of_writing(&what, &error) {
        lacking @ StoreError::NoDescriptors(_) => lacking,
        _ => StoreError::Unreadable(format!("{what}: {error}")),
    }
}

/// A connection that reads, with what is in the log.
pub(super) fn connect(path: &Path) -> Result<Connection> {
    let log = log_path(path);
    expect_files(path)?;
    let has_log = match open_itself(File::options().read(true), &log) {
        Ok(file) => {
            expect_own(&file, &log, path)?;
            file.metadata().map_err(|error| cannot(&log, error))?.len() > 0
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) if is_in_the_way(&error) => return Err(in_the_way(&log, path, &error, "")),
        Err(error) => return Err(cannot(&log, error)),
    };
    if !has_log {
        return connect_main(path);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sql = Connection::open_with_flags_and_vfs(path, flags, WITHOUT_LOCKS).map_err(fail)?;
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fail)?;
    sql.pragma_update(None, "locking_mode", "exclusive").map_err(fail)?;
    configure(sql, false)
}

/// A connection that reads the main file alone, whatever its log has.
pub(super) fn connect_main(path: &Path) -> Result<Connection> {
    expect_files(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let flags = flags | OpenFlags::SQLITE_OPEN_URI;
    let sql = Connection::open_with_flags(immutable(path), flags);
    configure(sql.map_err(fail)?, false)
}

/// The name by which SQLite takes a file as one that nobody changes.
fn immutable(path: &Path) -> String {
    let mut name = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => name.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(*byte)),
            // Writing into a string cannot fail.
            byte => drop(write!(name, "%{byte:02x}")),
        }
    }
    name + "?immutable=1"
}

/// What sits at the desk of a store that cannot be written: what changes nothing is done.
pub struct ProtectedWriter {
    connection: Conn,
    why: String,
    refusal: fn(String) -> StoreError,
}

impl Writer for ProtectedWriter {
    fn transaction(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Txn) -> Result<Durability>,
    ) -> Result<()> {
        self.connection.step("BEGIN")?;
        self.connection.begin_work();
        let worked = work(&mut self.connection).and_then(|_| self.connection.write_nodes());
        self.connection.end_work(End::Undone);
        // There is nothing to be kept.
        self.connection.step("ROLLBACK")?;
        worked.map_err(|error| match error {
            StoreError::ReadOnly(_) => (self.refusal)(self.why.clone()),
            other => other,
        })
    }

    fn refuses(&self) -> Option<StoreError> {
        Some((self.refusal)(self.why.clone()))
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.connection.snapshot(work)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_tight(&self) -> bool {
        false
    }

    fn find_room(&mut self) -> bool {
        false
    }

    fn wants_checkpoint(&self) -> bool {
        false
    }

    fn checkpoint(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::read;

    fn put(writer: &mut dyn Writer, key: &str) -> Result<()> {
        writer.transaction(&mut |txn| {
            txn.savepoint()?;
            txn.put_meta(key, "there")?;
            txn.release()?;
            Ok(Durability::Process)
        })
    }

    fn has(store: &Sqlite, key: &str) -> bool {
        read(store, |read| read.meta(key)).unwrap().is_some()
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_in_the_log_only_is_read_and_nothing_is_left_beside() {
        let dir = tempfile::tempdir().unwrap();
        // A name with all that a URI would take for something else.
        let path = dir.path().join("a ?#%&é.db");
        let copied = tempfile::tempdir().unwrap();
        let copy = copied.path().join("c?.db");
        let (_store, mut writer) = Sqlite::open(&path).unwrap();
        put(&mut writer, "one").unwrap();
        // As a daemon leaves it that is killed; and without the index that goes with it.
        std::fs::copy(&path, &copy).unwrap();
        std::fs::copy(log_path(&path), log_path(&copy)).unwrap();
        let (store, mut protected) =
            Sqlite::open_protected(&copy, "a test".into(), StoreError::ReadOnly).unwrap();
        assert!(has(&store, "one"));
        let refused = put(&mut protected, "two").unwrap_err();
        assert_eq!(refused.to_string(), "the store cannot be written: a test");
        assert!(!has(&store, "two"));
        protected.transaction(&mut |_| Ok(Durability::Flush)).unwrap();
        drop((store, protected));
        assert_eq!(names(copied.path()), ["c?.db", "c?.db-wal"]);
        // After an end in order there is no log.
        drop((_store, writer));
        let before = names(dir.path());
        let (store, _protected) =
            Sqlite::open_protected(&path, "a test".into(), StoreError::ReadOnly).unwrap();
        assert!(has(&store, "one"));
        assert_eq!(names(dir.path()), before);
    }

    #[test]
    fn who_writes_and_who_only_reads_keep_each_other_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let open = Sqlite::open(&path).unwrap();
        let protected = || Sqlite::open_protected(&path, "a test".into(), StoreError::ReadOnly);
        assert!(matches!(protected().map(drop), Err(StoreError::Held { .. })));
        drop(open);
        let readers = (protected().unwrap(), protected().unwrap());
        assert!(matches!(Sqlite::open(&path).map(drop), Err(StoreError::BeingRead { .. })));
        drop(readers);
        Sqlite::open(&path).unwrap();
    }

    #[test]
    fn the_same_file_by_another_name_is_the_same_store() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, other) = (dir.path().join("s.db"), elsewhere.path().join("o.db"));
        let open = Sqlite::open(&path).unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        let own = std::process::id();
        for second in [
            Sqlite::open(&other).map(drop),
            Sqlite::open_protected(&other, "a test".into(), StoreError::ReadOnly).map(drop),
        ] {
            assert!(matches!(second, Err(StoreError::HeldElsewhere { pid, .. }) if pid == own));
        }
        drop(open);
        let read = Sqlite::open_protected(&path, "a test".into(), StoreError::ReadOnly).unwrap();
        assert!(matches!(Sqlite::open(&other).map(drop), Err(StoreError::HeldElsewhere { .. })));
        drop(read);
        Sqlite::open(&other).unwrap();
    }

    #[test]
    fn a_store_that_must_be_brought_up_to_date_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        drop(Sqlite::open(&path).unwrap());
        let sql = Connection::open(&path).unwrap();
        sql.pragma_update(None, "user_version", 1).unwrap();
        drop(sql);
        let older = Sqlite::open_protected(&path, "a test".into(), StoreError::ReadOnly).map(drop);
        assert!(matches!(older, Err(StoreError::Older { found: 1, .. })));
    }
}
