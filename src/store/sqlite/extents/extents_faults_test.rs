//! Big files beside the tables after power loss, and where the disk fails.

use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::Path;

use super::extents_test::{FILE, await_taken, change, chunks, extents, got, noted, put};
use crate::limits::{BESIDE_FROM_CHUNK as FIRST, CHUNK_BYTES};
use crate::store::sqlite::Sqlite;
use crate::store::{
    Chunks, Durability, Identity, Readers as _, StoreError, Txn, Writer as _, read,
};

/// Chunks of which nothing can be read.
fn assert_lost(store: &Sqlite, first: u32, count: u32) {
    for index in first..first + count {
        let lost = read(store, |read| read.chunk(FILE, index)).unwrap_err();
        assert!(lost.to_string().contains("when power failed"), "{index}: {lost}");
    }
    let mut told = 0;
    let mut add = |one: Chunks| {
        told += one.lost;
        true
    };
    read(store, |read| read.all_chunks(&mut add)).unwrap();
    assert_eq!(told, u64::from(count));
}

// P4.4
#[test]
fn what_did_not_survive_a_power_cut_is_lost_alone_and_stays_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("s.db"), dir.path().join("copy"));
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"abcde");
    change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST + 4, FIRST + 4).map(drop));
    drop((store, writer));
    let file = std::fs::File::options().write(true).open(extents(&path)).unwrap();
    file.set_len(3 * CHUNK_BYTES as u64 + 1).unwrap();

    let (store, _) = Sqlite::open_protected(&path, "a test".into(), StoreError::ReadOnly).unwrap();
    assert_eq!(got(&store, FIRST, 2), [Some(b'a'), Some(b'b')]);
    assert_lost(&store, FIRST + 2, 2);
    drop(store);
    for round in 0..2 {
        let (store, mut writer) = Sqlite::open(&path).unwrap();
        assert_eq!(got(&store, FIRST, 2), [Some(b'a'), Some(b'b')]);
        assert_lost(&store, FIRST + 2, 2);
        // What takes its place is another's.
        put(&mut writer, FIRST + 10 + round, b"z");
        assert_eq!(got(&store, FIRST + 10 + round, 1), [Some(b'z')]);
        assert_lost(&store, FIRST + 2, 2);
    }
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    std::fs::File::create(&copy).unwrap();
    let made = Identity::named(&copy).unwrap();
    assert!(store.backup((&copy, made), &mut |_, _| true).unwrap());
    let (copied, _writer) = Sqlite::open(&copy).unwrap();
    assert_eq!(got(&copied, FIRST, 2), [Some(b'a'), Some(b'b')]);
    assert_lost(&copied, FIRST + 2, 2);
    // The ways out.
    put(&mut writer, FIRST + 2, b"C");
    change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST + 3, FIRST + 3).map(drop));
    assert_eq!(got(&store, FIRST, 4), [Some(b'a'), Some(b'b'), Some(b'C'), None]);
    assert_eq!(store.integrity(&mut || true).unwrap(), Some(vec![]));
}

// P4.4
#[test]
fn what_is_written_while_the_log_is_flushed_is_flushed_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    let meanwhile = || {
        put(&mut writer, FIRST + 1, b"b");
        let end = std::fs::metadata(extents(&path)).unwrap().len();
        assert!(store.extents.flushed_to() >= end, "it may be on the disk by now");
        Ok(())
    };
    store.extents.flush_with(meanwhile).unwrap();
    let end = std::fs::metadata(extents(&path)).unwrap().len();
    assert_eq!(store.extents.flushed_to(), end);
}

/// While it lives, a flush of this file fails; all else that this process does with it is lost.
struct Unflushable {
    file: i32,
    kept: File,
}

impl Unflushable {
    fn make(path: &Path) -> Unflushable {
        let is_open =
            |fd: &std::fs::DirEntry| std::fs::read_link(fd.path()).is_ok_and(|to| to == path);
        let mut open = std::fs::read_dir("/proc/self/fd").unwrap().map(Result::unwrap);
        let found = open.find(is_open).unwrap().file_name();
        let file = found.to_str().unwrap().parse().unwrap();
        let null = File::open("/dev/null").unwrap();
        let kept = File::options().read(true).write(true).open(path).unwrap();
        // SAFETY: both are open.
        assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), file) }, file);
        Unflushable { file, kept }
    }
}

impl Drop for Unflushable {
    fn drop(&mut self) {
        // Who met the failure may have closed it, and the number be free, or be another test's file by now.
        let link = format!("/proc/self/fd/{}", self.file);
        if std::fs::read_link(link).is_ok_and(|to| to == Path::new("/dev/null")) {
            // SAFETY: both are open.
            assert_eq!(unsafe { libc::dup2(self.kept.as_raw_fd(), self.file) }, self.file);
        }
    }
}

// P4.2
#[test]
fn what_a_failed_commit_left_in_the_log_names_nothing_that_another_has_written() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("s.db"), dir.path().join("killed"));
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    writer.sync().unwrap();
    let mut unflushable = None;
    let fails = &mut |txn: &mut dyn Txn| {
        txn.savepoint()?;
        txn.insert_whole_chunks(FILE, FIRST + 1, &chunks(b"bb"))?;
        unflushable = Some(Unflushable::make(&extents(&path)));
        txn.release().map(|()| Durability::Power)
    };
    writer.transaction(fails).unwrap_err();
    drop(unflushable);
    assert_eq!(got(&store, FIRST, 3), [Some(b'a'), None, None]);
    // Killed after the next one has written there, and before it takes the place in the log.
    change(&mut writer, |txn| {
        txn.insert_whole_chunks(FILE, FIRST + 5, &chunks(b"ccc"))?;
        for end in ["", "-wal", "-extents"] {
            let (from, to) = (crate::store::beside(&path, end), crate::store::beside(&killed, end));
            std::fs::copy(from, to).unwrap();
        }
        Ok(())
    });
    let (after, _writer) = Sqlite::open(&killed).unwrap();
    let came_back = got(&after, FIRST, 3);
    assert!(came_back[1..] == [Some(b'b'); 2] || came_back[1..] == [None; 2], "{came_back:?}");
    // Where it goes on nothing is left of it.
    assert_eq!(got(&store, FIRST + 5, 3), [Some(b'c'); 3]);
    assert_eq!(noted(&path), 1);
    await_taken(&mut writer, &path, 5 * CHUNK_BYTES as u64);
    assert_eq!(noted(&path), 0);
    assert_eq!(got(&store, FIRST, 1), [Some(b'a')]);
}

/// While they live, a flush of the store's log fails, whoever has opened it for that.
fn unflushable_log(log: &Path) -> Vec<Unflushable> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().map(Result::unwrap);
    let of_log = open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == log));
    let numbers = of_log.map(|fd| fd.file_name().to_str().unwrap().parse().unwrap());
    // SQLite's own write it.
    // SAFETY: asking for the flags of any number does no harm.
    let only_reads = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFL) } & libc::O_ACCMODE == 0;
    let numbers: Vec<i32> = numbers.filter(only_reads).collect();
    let fail = |file| {
        let (kept, null) = (File::open(log).unwrap(), File::open("/dev/null").unwrap());
        // SAFETY: both are open.
        assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), file) }, file);
        Unflushable { file, kept }
    };
    numbers.into_iter().map(fail).collect()
}

/// The store as power loss leaves it where the disk has kept nothing of the log.
fn without_log(path: &Path) -> (tempfile::TempDir, Sqlite) {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("s.db");
    for end in ["", "-extents"] {
        std::fs::copy(crate::store::beside(path, end), crate::store::beside(&copy, end)).unwrap();
    }
    std::fs::write(crate::store::beside(&copy, "-wal"), b"").unwrap();
    let (store, _writer) = Sqlite::open(&copy).unwrap();
    (dir, store)
}

// P4.4
#[test]
fn no_flush_says_that_all_is_well_of_what_one_before_it_has_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let log = crate::store::beside(&path, "-wal");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    writer.sync().unwrap();
    // An `fsync` finds out, and asks again.
    put(&mut writer, FIRST + 1, b"b");
    let unflushable = unflushable_log(&log);
    assert!(unflushable.len() > 1, "the commit's, and that of an fsync");
    writer.sync().unwrap_err();
    drop(unflushable);
    store
        .read(&mut |read| {
            read.meta("anything")?;
            let said = writer.sync().unwrap_err().to_string();
            assert!(said.contains("while somebody reads it"), "{said}");
            Ok(())
        })
        .unwrap();
    writer.sync().unwrap();
    assert_eq!(got(&without_log(&path).1, FIRST, 2), [Some(b'a'), Some(b'b')]);
    // A change that must survive finds out, and the next must survive as well.
    put(&mut writer, FIRST + 2, b"c");
    let keep = |writer: &mut crate::store::sqlite::SqliteWriter, key: &str| {
        writer.transaction(&mut |txn| {
            txn.savepoint()?;
            txn.put_meta(key, "there")?;
            txn.release().map(|()| Durability::Power)
        })
    };
    let unflushable = unflushable_log(&log);
    keep(&mut writer, "lost").unwrap_err();
    keep(&mut writer, "lost").unwrap_err();
    drop(unflushable);
    keep(&mut writer, "kept").unwrap();
    assert_eq!(got(&without_log(&path).1, FIRST, 3), [Some(b'a'), Some(b'b'), Some(b'c')]);
    for (key, is_there) in [("lost", false), ("kept", true)] {
        assert_eq!(read(&store, |read| read.meta(key)).unwrap().is_some(), is_there, "{key}");
    }
    assert_eq!(store.integrity(&mut || true).unwrap(), Some(vec![]));
}

// P4.4
#[test]
fn what_a_flush_has_not_kept_of_a_big_file_is_written_once_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    writer.sync().unwrap();
    put(&mut writer, FIRST + 1, b"bcd");
    change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST + 2, FIRST + 2).map(drop));
    let unflushable = Unflushable::make(&extents(&path));
    writer.sync().unwrap_err();
    drop(unflushable);
    let before = store.extents.times_written();
    writer.sync().unwrap();
    assert_eq!(store.extents.times_written() - before, 2, "those that a row names");
    writer.sync().unwrap();
    assert_eq!(store.extents.times_written() - before, 2);
    assert_eq!(got(&store, FIRST, 4), [Some(b'a'), Some(b'b'), None, Some(b'd')]);
}

// P4.4
#[test]
fn what_was_to_be_written_once_more_is_forgotten_by_no_flush_before_that() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    writer.sync().unwrap();
    put(&mut writer, FIRST + 1, b"bc");
    let unflushable = Unflushable::make(&extents(&path));
    writer.sync().unwrap_err();
    drop(unflushable);
    // As where the log is moved: the kernel says that all is well.
    store.extents.flush_to_move(|| Ok(())).unwrap();
    store.extents.flush_with(|| Ok(())).unwrap_err();
    let before = store.extents.times_written();
    writer.sync().unwrap();
    assert_eq!(store.extents.times_written() - before, 2);
    // All that may be moved of the log is, and what is written once more is not kept either.
    put(&mut writer, FIRST + 3, b"d");
    let unflushable = Unflushable::make(&extents(&path));
    writer.sync().unwrap_err();
    writer.sync().unwrap_err();
    drop(unflushable);
    writer.sync().unwrap();
    assert_eq!(got(&store, FIRST, 4), b"abcd".map(Some));
}

// P4.4
#[test]
fn who_waits_for_a_flush_that_fails_is_not_told_that_all_is_well() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    // Meanwhile another's fails, of which the kernel tells that one alone.
    let flushed = store.extents.flush_with(|| {
        store.extents.doubt();
        Ok(())
    });
    flushed.unwrap_err();
    writer.sync().unwrap();
    assert_eq!(got(&store, FIRST, 1), [Some(b'a')]);
}

// P5.2
#[test]
fn what_a_row_has_is_not_given_back_by_a_note_that_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"abcd");
    drop((store, writer));
    let sql = rusqlite::Connection::open(&path).unwrap();
    let at: i64 = sql.query_row("SELECT max(at) FROM chunks", [], |row| row.get(0)).unwrap();
    sql.execute("INSERT INTO freed (at, length) VALUES (?1, 2)", [at - 1]).unwrap();
    drop(sql);
    let (store, writer) = Sqlite::open(&path).unwrap();
    let said = store.integrity(&mut || true).unwrap().unwrap();
    assert_eq!(said, ["2 chunks of big files lie in what was freed"]);
    drop((store, writer));
    let (store, _writer) = Sqlite::open(&path).unwrap();
    assert_eq!(got(&store, FIRST, 4), b"abcd".map(Some));
}

// P4.4
#[test]
fn what_was_freed_while_a_flush_was_in_doubt_is_given_back_after() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let log = crate::store::beside(&path, "-wal");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, &[b'a'; 32]);
    put(&mut writer, FIRST + 32, b"z");
    writer.sync().unwrap();
    change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST, FIRST + 31).map(drop));
    let unflushable = unflushable_log(&log);
    writer.sync().unwrap_err();
    // Nor is anything moved from a log that is not on the disk.
    store.extents.flush_to_move(|| Ok(())).unwrap_err();
    drop(unflushable);
    // Who waits for the space asks for a flush, of which nothing can be believed yet.
    writer.find_room();
    writer.sync().unwrap();
    await_taken(&mut writer, &path, 2 * CHUNK_BYTES as u64);
    assert_eq!(noted(&path), 0);
}

// P4.3
#[test]
fn what_lies_in_a_file_that_takes_nothing_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"ab");
    drop((store, writer));
    // It can be opened to be written, and each write fails, as on a full disk whose file system copies on write.
    // SAFETY: the number is that of a new file, which nobody else closes.
    let sealed = unsafe {
        File::from_raw_fd(libc::memfd_create(c"extents".as_ptr(), libc::MFD_ALLOW_SEALING))
    };
    let beside = extents(&path);
    std::io::copy(&mut File::open(&beside).unwrap(), &mut &sealed).unwrap();
    // SAFETY: it is open.
    let seals = unsafe { libc::fcntl(sealed.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
    assert_eq!(seals, 0);
    let aside = dir.path().join("aside");
    std::fs::rename(&beside, &aside).unwrap();
    let number = format!("/proc/self/fd/{}", sealed.as_raw_fd());
    std::os::unix::fs::symlink(number, &beside).unwrap();
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST + 2, b"c");
    change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST, FIRST).map(drop));
    let left = [None, Some(b'b'), Some(b'c')];
    assert_eq!(got(&store, FIRST, 3), left);
    assert_eq!(store.integrity(&mut || true).unwrap(), Some(vec![]));
    drop((store, writer));
    // As soon as it takes something again it has all that it had.
    std::fs::rename(&aside, &beside).unwrap();
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    assert_eq!(got(&store, FIRST, 3), left);
    await_taken(&mut writer, &path, 2 * CHUNK_BYTES as u64);
}

// P4.6
#[test]
fn what_a_restoring_that_was_killed_left_of_the_old_store_goes_by_this_name_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let (store, mut writer) = Sqlite::open(&old).unwrap();
    put(&mut writer, FIRST, b"a");
    drop((store, writer));
    std::fs::hard_link(extents(&old), extents(&new)).unwrap();
    let (store, mut writer) = Sqlite::open(&new).unwrap();
    put(&mut writer, FIRST, b"b");
    assert_eq!(store.integrity(&mut || true).unwrap(), Some(vec![]));
    let (kept, _writer) = Sqlite::open(&old).unwrap();
    assert_eq!((got(&kept, FIRST, 1), got(&store, FIRST, 1)), (vec![Some(b'a')], vec![Some(b'b')]));
    assert!(extents(&new).exists());
}

// P4.4
#[test]
fn what_a_flush_has_not_kept_is_written_once_more_before_the_writer_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    writer.sync().unwrap();
    put(&mut writer, FIRST + 1, b"bc");
    let unflushable = Unflushable::make(&extents(&path));
    writer.sync().unwrap_err();
    drop(unflushable);
    // Nobody asks for anything any more, and who opens it next knows of no flush that failed.
    let before = store.extents.times_written();
    drop(writer);
    assert_eq!(store.extents.times_written() - before, 2);
    assert_eq!(got(&without_log(&path).1, FIRST, 3), b"abc".map(Some));
}
