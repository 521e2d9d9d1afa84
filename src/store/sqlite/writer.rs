//! [`Writer`]: transactions on the one connection that writes.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::extents::freeing::Freeing;
use super::log::checkpoint::Checkpointer;
use super::log::gather::{self, Logged};
use super::log::read_mark::ReadMark;
use super::log::room::MainFile;
use super::own_log::forget_log;
use super::tables::chunks::{End, Space};
use super::tables::places::Places;
use super::{BUSY_PATIENCE, Conn, fail};
use crate::names::Shown;
use crate::store::{
    Durability, Identity, Read, Result, StoreError, Txn, Writer, beside, open_itself,
};

/// Bytes of the log that are written once more at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The one writer of a store.
pub struct SqliteWriter {
    // Dropped first: the checkpointer's thread ends before the connection that it watches.
    checkpointer: Checkpointer,
    freeing: Freeing,
    // Dropped before the connection that it belongs to.
    mark: ReadMark,
    /// How often the log had been moved when that was taken.
    marked_at: Cell<u64>,
    connection: Conn,
    wal_path: PathBuf,
    wal: Option<File>,
    /// Something was committed that power loss could still take.
    unflushed: bool,
    /// What the store was called when it was opened.
    path: PathBuf,
    // Dropped last: see `room`.
    main: MainFile,
}

impl SqliteWriter {
    pub(super) fn new(
        (mut connection, second): (Conn, Conn),
        path: &Path,
        main: MainFile,
    ) -> Result<Self> {
        let wal_path = beside(path, "-wal");
        let (own_main, log) = (Arc::clone(&main), wal_path.clone());
        let checkpointer = Checkpointer::start(&mut connection, second, own_main, log)?;
        connection.places = RefCell::new(Places::of_writer());
        let extents = Arc::clone(&connection.extents);
        connection.space = Space::after(extents.end());
        let freed = if extents.takes_chunks() { connection.freed()? } else { Vec::new() };
        let freeing = Freeing::start(extents, wal_path.clone(), freed)?;
        let mark = ReadMark::of(&connection.sql).map_err(fail)?;
        let (marked_at, wal, unflushed) = (Cell::new(0), None, true);
        Ok(SqliteWriter {
            checkpointer,
            freeing,
            mark,
            marked_at,
            connection,
            wal_path,
            wal,
            unflushed,
            path: path.to_owned(),
            main,
        })
    }

    /// Moves all of the log into the main file, which is the whole store then, but for big files. What fails where the
    /// last connection is closed nobody hears of.
    ///
    /// # Errors
    /// No space, or the disk fails; or somebody reads the store.
    pub fn move_log(&mut self) -> Result<()> {
        self.mark.let_go();
        match self.checkpointer.begin_anew(&self.connection, BUSY_PATIENCE)? {
            true => Ok(()),
            false => Err(StoreError::Busy("it reads the log".to_owned())),
        }
    }

    /// Whether the main file has its name still.
    fn is_in_place(&self) -> bool {
        let is_own = |own| Identity::of(&own).has_name(&self.path);
        self.main.metadata().is_ok_and(is_own)
    }

    /// Sees to it that the connection has its read mark; another one where the log was moved meanwhile, so
    /// that it can begin anew.
    fn keep_mark(&self) -> Result<()> {
        let moved = self.checkpointer.times_moved();
        if self.marked_at.replace(moved) != moved {
            self.mark.let_go();
        }
        self.mark.hold().map_err(|error| self.connection.cause(error))
    }

    fn transact(&mut self, work: &mut dyn FnMut(&mut Conn) -> Result<Durability>) -> Result<()> {
        self.write_anew()?;
        self.begin()?;
        self.connection.begin_work();
        let worked = work(&mut self.connection).and_then(|durability| {
            self.connection.write_nodes()?;
            self.connection.free_doubtful()?;
            Ok(durability)
        });
        let mut logged = Logged::Nothing;
        let committed = worked.and_then(|durability| {
            let flush = durability >= Durability::Power;
            let done;
            (done, logged) = gather::committing(flush, || self.connection.step("COMMIT"));
            done.map(|()| durability)
        });
        let freed = self.connection.end_work(match (&committed, logged) {
            (Ok(_), _) => End::Committed,
            (Err(_), Logged::Nothing) => End::Undone,
            (Err(_), Logged::Written | Logged::Flushed) => End::Doubtful,
        });
        if matches!(committed, Err(StoreError::Full(_))) {
            self.checkpointer.note_full();
        }
        if committed.is_err() {
            self.mark.let_go();
            if !self.connection.sql.is_autocommit() {
                self.connection.step("ROLLBACK")?;
            }
        }
        let durability = committed?;
        // What cannot be reached stays noted, for when it can be.
        if self.connection.extents.takes_chunks() {
            self.freeing.free(freed);
        }
        if let Err(error) = self.checkpointer.keep_room(&self.connection) {
            tracing::warn!(%error, "no room is taken ahead");
        }
        if self.checkpointer.wants_waking() {
            self.mark.let_go();
            self.checkpointer.wake();
        }
        match logged {
            Logged::Nothing => {}
            Logged::Written => self.unflushed = true,
            Logged::Flushed => self.unflushed = false,
        }
        // Only a transaction that changed nothing has something to flush here: another's COMMIT did it,
        // so that no error comes after a change was made.
        if durability == Durability::Flush { self.sync() } else { Ok(()) }
    }

    /// Forgets what was given back: what is forgotten too late is given back once more.
    fn forget_freed(&mut self) -> Result<()> {
        let given_back = self.freeing.take();
        if given_back.is_empty() {
            return Ok(());
        }
        self.transact(&mut |connection| {
            connection.forget_freed(&given_back)?;
            Ok(Durability::Process)
        })
    }

    /// After a flush that failed: the kernel tells that once, and says then that all is well of what it did not
    /// write. So all that the log has is written anew, in the main file, and the log begins anew; but before that it
    /// is written anew itself, since the main file is none while the half of it is moved.
    fn write_anew(&mut self) -> Result<()> {
        let extents = Arc::clone(&self.connection.extents);
        if !extents.is_doubtful() {
            return Ok(());
        }
        let (doubts, of_log) = (extents.doubts(), extents.log_doubts());
        self.mark.let_go();
        extents.write_anew(&self.connection.sql)?;
        if extents.is_log_doubtful() {
            write_once_more(&self.wal_path).map_err(|error| {
                StoreError::Failed(format!("writing {} anew: {error}", self.wal_path.shown()))
            })?;
            extents.trust_log(of_log);
        }
        if !self.checkpointer.begin_anew(&self.connection, BUSY_PATIENCE)? {
            let what = "the disk has not kept the log, which cannot be moved while somebody reads it for long";
            return Err(StoreError::Failed(what.to_owned()));
        }
        tracing::warn!("a flush had failed; all that it should have kept is written anew");
        extents.trust(doubts);
        self.unflushed = false;
        Ok(())
    }

    fn begin(&self) -> Result<()> {
        self.keep_mark()?;
        match self.connection.step("BEGIN IMMEDIATE") {
            // Somebody else wrote to the file, who should not: the mark is old.
            Err(StoreError::Busy(_)) => {
                self.mark.let_go();
                self.connection.step("BEGIN IMMEDIATE")
            }
            begun => begun,
        }
    }
}

impl Writer for SqliteWriter {
    fn transaction(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Txn) -> Result<Durability>,
    ) -> Result<()> {
        self.transact(&mut |connection| work(connection))
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.keep_mark()?;
        work(&self.connection)
    }

    fn sync(&mut self) -> Result<()> {
        self.write_anew()?;
        if !self.unflushed {
            return Ok(());
        }
        let failed = |error| StoreError::Failed(format!("flushing the log: {error}"));
        let wal = match self.wal.take() {
            Some(wal) => wal,
            None => open_itself(File::options().read(true), &self.wal_path).map_err(failed)?,
        };
        self.connection.extents.flush_with(|| wal.sync_data()).map_err(failed)?;
        self.wal = Some(wal);
        self.unflushed = false;
        Ok(())
    }

    fn is_tight(&self) -> bool {
        self.checkpointer.is_tight()
    }

    fn find_room(&mut self) -> bool {
        self.freeing.hurry();
        self.mark.let_go();
        let found = self.write_anew().and_then(|()| self.checkpointer.find_room(&self.connection));
        found.unwrap_or_else(|error| {
            tracing::warn!(%error, "no room is found");
            false
        })
    }

    fn wants_checkpoint(&self) -> bool {
        self.checkpointer.is_due() || self.freeing.has_given_back()
    }

    fn needs_checkpoint(&self) -> bool {
        self.checkpointer.is_overdue()
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.write_anew()?;
        if self.checkpointer.is_due() {
            self.mark.let_go();
        }
        self.checkpointer.consider(&self.connection, &self.wal_path)?;
        self.forget_freed()
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        // Whoever opens it next knows of no flush that failed.
        if let Err(error) = self.write_anew() {
            tracing::error!(%error, "the disk has not kept all, and does not take it either");
        }
        self.mark.let_go();
        if let Err(error) = forget_log(&self.connection.sql) {
            tracing::debug!(%error, "the store says where its log lay");
        }
        // SQLite leaves the log of a file that was moved or replaced where it is, and so to whatever has the name by
        // now, which would take it for its own.
        if !self.is_in_place()
            && let Err(error) = self.move_log()
        {
            let log = self.wal_path.shown();
            tracing::error!(%error, %log, "the log of a store that was moved or replaced stays: remove it");
        }
    }
}

/// Writes a log once more where it is, and flushes it. For the one writer: meanwhile nobody else writes there, and
/// who reads finds what was there.
fn write_once_more(log: &Path) -> io::Result<()> {
    let log = open_itself(File::options().read(true).write(true), log)?;
    let (mut piece, mut at, end) = (vec![0; PIECE_BYTES], 0, log.metadata()?.len());
    while at < end {
        let length = log.read_at(&mut piece, at)?;
        if length == 0 {
            break;
        }
        log.write_all_at(&piece[..length], at)?;
        at += length as u64;
    }
    log.sync_data()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use crate::numbers::Ino;
    use crate::store::sqlite::Sqlite;
    use crate::store::sqlite::log::index::tests::Unflushable;
    use crate::store::{Durability, Readers as _, Result, Txn, Writer, read, read_by};

    fn put(txn: &mut dyn Txn, key: &str) -> Result<()> {
        txn.savepoint()?;
        txn.put_meta(key, "there")
    }

    #[test]
    fn an_undone_change_takes_nothing_else_with_it_be_it_the_first_or_a_later_one() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut writer) = Sqlite::open(&dir.path().join("s.db")).unwrap();
        let root = || read(&store, |read| read.node(Ino(1))).unwrap().unwrap();
        for undone in ["a", "b", "c"] {
            let before = root().mtime.0;
            let work = &mut |txn: &mut dyn Txn| {
                for key in ["a", "b", "c"] {
                    put(txn, &format!("{undone}-{key}"))?;
                    // An inode is held from one change to the next, and written at the end.
                    let mut root = txn.node(Ino(1))?.unwrap();
                    root.mtime.0 += 1;
                    txn.update_node(&root)?;
                    if key == undone {
                        txn.rollback()?
                    } else {
                        txn.release()?
                    }
                    // As a refusal is kept after the change that it refused.
                    txn.put_meta(&format!("{undone}-after-{key}"), "there")?;
                }
                Ok(Durability::Process)
            };
            writer.transaction(work).unwrap();
            assert_eq!(root().mtime.0, before + 2, "{undone}");
            for key in ["a", "b", "c"] {
                let is_there =
                    |key: String| read(&store, |read| read.meta(&key)).unwrap().is_some();
                assert_eq!(is_there(format!("{undone}-{key}")), key != undone, "{undone} {key}");
                assert!(is_there(format!("{undone}-after-{key}")), "{undone} {key}");
            }
        }
    }

    #[test]
    fn a_flush_that_fails_is_never_that_of_a_change_that_was_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let (first, mut writer) = Sqlite::open(&path).unwrap();
        // An fsync of its own finds no log to flush.
        writer.wal_path = dir.path().join("none");
        let change = &mut |txn: &mut dyn Txn| put(txn, "a").map(|()| Durability::Flush);
        writer.transaction(change).unwrap();
        assert!(read(&first, |read| read.meta("a")).unwrap().is_some());
        // There is nothing left to flush, until something is made that need not survive.
        let nothing = &mut |_: &mut dyn Txn| Ok(Durability::Flush);
        writer.transaction(nothing).unwrap();
        let lesser = &mut |txn: &mut dyn Txn| put(txn, "b").map(|()| Durability::Process);
        writer.transaction(lesser).unwrap();
        writer.transaction(nothing).unwrap_err();
        writer.wal_path = super::beside(&path, "-wal");
        writer.transaction(nothing).unwrap();
    }

    #[test]
    fn a_log_that_was_moved_begins_anew_although_the_writer_has_a_mark_in_it() {
        // Longer than the log may get while the thread that moves it is slow.
        const PAGES: u64 = 160_000;
        const BYTES: u64 = 256 << 10;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let (_store, mut writer) = Sqlite::open(&path).unwrap();
        let begins_anew = (0..PAGES * 4096 / BYTES).any(|n| {
            // SQLite leaves a page alone that is as it was.
            let value = format!("{n:08}").repeat(BYTES as usize / 8);
            let work = &mut |txn: &mut dyn Txn| {
                txn.savepoint()?;
                txn.put_meta(&format!("{}", n % 8), &value)?;
                txn.release().map(|()| Durability::Process)
            };
            writer.transaction(work).unwrap();
            assert!(read_by(&writer, |read| read.meta("0")).unwrap().is_some());
            writer.checkpoint().unwrap();
            let log = std::fs::metadata(dir.path().join("s.db-wal")).unwrap().len();
            log < n * BYTES
        });
        assert!(begins_anew, "the log has all that was written");
    }

    #[test]
    fn what_a_stranger_commits_hinders_no_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let (store, mut writer) = Sqlite::open(&path).unwrap();
        let work = &mut |txn: &mut dyn Txn| put(txn, "ours").map(|()| Durability::Process);
        writer.transaction(work).unwrap();
        let stranger = rusqlite::Connection::open(&path).unwrap();
        stranger.execute("INSERT INTO meta VALUES ('theirs', 'there')", []).unwrap();
        writer.transaction(work).unwrap();
        for key in ["ours", "theirs"] {
            assert!(read_by(&writer, |read| read.meta(key)).unwrap().is_some(), "{key}");
            assert!(read(&store, |read| read.meta(key)).unwrap().is_some(), "{key}");
        }
    }

    #[test]
    fn a_read_that_panics_leaves_the_writer_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut writer) = Sqlite::open(&dir.path().join("s.db")).unwrap();
        let panics = || read_by(&writer, |_| -> Result<()> { panic!("as it must") });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        let work = &mut |txn: &mut dyn Txn| put(txn, "after").map(|()| Durability::Process);
        writer.transaction(work).unwrap();
        assert_eq!(read_by(&writer, |read| read.meta("after")).unwrap().as_deref(), Some("there"));
        assert!(read(&store, |read| read.meta("after")).unwrap().is_some());
    }

    // P4.4
    #[test]
    fn what_was_moved_before_a_flush_that_fails_is_moved_once_more() {
        for is_closed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (path, copy) = (dir.path().join("s.db"), dir.path().join("copy"));
            let (store, mut writer) = Sqlite::open(&path).unwrap();
            let put = |writer: &mut super::SqliteWriter, key: &str| {
                let value = key.repeat(50_000);
                let work = &mut |txn: &mut dyn Txn| {
                    txn.savepoint()?;
                    txn.put_meta(key, &value)?;
                    txn.release().map(|()| Durability::Power)
                };
                writer.transaction(work).unwrap();
            };
            let main = std::fs::File::options().read(true).write(true).open(&path).unwrap();
            let mut kept = std::fs::read(&path).unwrap();
            put(&mut writer, "a");
            // The log goes on while it is moved, so that nothing is flushed.
            let mut meanwhile = |read: &dyn super::Read| {
                assert!(read.meta("a")?.is_some());
                put(&mut writer, "b");
                assert!(writer.find_room());
                Ok(())
            };
            store.read(&mut meanwhile).unwrap();
            assert_ne!(std::fs::read(&path).unwrap(), kept, "something was moved");
            let unflushable = Unflushable::make(&writer.connection.sql);
            writer.find_room();
            assert!(writer.move_log().is_err());
            drop(unflushable);
            // The kernel has given up what the flush should have kept.
            kept.resize(main.metadata().unwrap().len() as usize, 0);
            main.write_all_at(&kept, 0).unwrap();
            let values = |store: &Sqlite| {
                ["a", "b", "c"].map(|key| {
                    let value = read(store, |read| read.meta(key)).unwrap();
                    value.is_some_and(|value| value == key.repeat(50_000))
                })
            };
            assert_eq!(values(&store), [true, true, false]);
            put(&mut writer, "c");
            if is_closed {
                drop((store, writer));
                assert!(!super::beside(&path, "-wal").exists());
            } else {
                writer.move_log().unwrap();
            }
            std::fs::copy(&path, &copy).unwrap();
            let (copied, _writer) = Sqlite::open(&copy).unwrap();
            assert_eq!(copied.integrity(&mut || true).unwrap(), Some(vec![]), "{is_closed}");
            assert_eq!(values(&copied), [true; 3], "{is_closed}");
        }
    }
}
