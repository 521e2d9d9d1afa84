//! Big files beside the tables, without an engine.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::limits::{BESIDE_FROM_CHUNK as FIRST, CHUNK_BYTES, EXTENTS_BYTES_MAX};
use crate::numbers::Ino;
use crate::store::sqlite::{FILES, Sqlite, SqliteWriter};
use crate::store::{
    Durability, Identity, Readers as _, Result, StoreError, Txn, Writer, read, read_by,
};

pub(in crate::store::sqlite) const FILE: Ino = Ino(7);

pub(in crate::store::sqlite) fn chunk(byte: u8) -> Vec<u8> {
    vec![byte; CHUNK_BYTES]
}

pub(in crate::store::sqlite) fn chunks(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| chunk(*byte)).collect()
}

pub(in crate::store::sqlite) fn change(
    writer: &mut SqliteWriter,
    mut work: impl FnMut(&mut dyn Txn) -> Result<()>,
) {
    let mut change = |txn: &mut dyn Txn| {
        txn.savepoint()?;
        work(txn)?;
        txn.release().map(|()| Durability::Process)
    };
    writer.transaction(&mut change).unwrap();
}

pub(in crate::store::sqlite) fn put(writer: &mut SqliteWriter, first: u32, bytes: &[u8]) {
    let data = chunks(bytes);
    change(writer, |txn| {
        txn.delete_chunks(FILE, first, first + bytes.len() as u32 - 1)?;
        txn.insert_whole_chunks(FILE, first, &data)
    });
}

/// The first bytes of the chunks from `first` on; all of each must be the same.
pub(super) fn got(store: &Sqlite, first: u32, count: u32) -> Vec<Option<u8>> {
    let got = |index| -> Option<u8> {
        let chunk = read(store, |read| read.chunk(FILE, index)).unwrap()?;
        assert!(chunk.len() == CHUNK_BYTES && chunk.iter().all(|byte| *byte == chunk[0]));
        Some(chunk[0])
    };
    (first..first + count).map(got).collect()
}

pub(in crate::store::sqlite) fn extents(store: &Path) -> PathBuf {
    crate::store::beside(store, super::EXTENTS)
}

/// How much of the disk the file beside the tables takes.
fn taken(store: &Path) -> u64 {
    std::fs::metadata(extents(store)).map_or(0, |found| found.blocks() * 512)
}

/// Waits until no more than this is taken; the writer's rests come as they do in a daemon.
pub(super) fn await_taken(writer: &mut SqliteWriter, store: &Path, most: u64) {
    let until = Instant::now() + Duration::from_secs(60);
    while taken(store) > most {
        assert!(Instant::now() < until, "{} bytes are still taken", taken(store));
        std::thread::sleep(Duration::from_millis(5));
    }
    writer.checkpoint().unwrap();
}

pub(in crate::store::sqlite) fn noted(store: &Path) -> i64 {
    let sql = rusqlite::Connection::open(store).unwrap();
    sql.query_row("SELECT count(*) FROM freed", [], |row| row.get(0)).unwrap()
}

#[test]
fn only_whole_chunks_of_big_files_lie_beside_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, 0, &[1; FIRST as usize]);
    assert!(!extents(&path).exists(), "a small file");
    put(&mut writer, FIRST - 1, b"abc");
    assert_eq!(got(&store, FIRST - 1, 4), [Some(b'a'), Some(b'b'), Some(b'c'), None]);
    assert_eq!(std::fs::metadata(extents(&path)).unwrap().len(), 3 * CHUNK_BYTES as u64);
    assert_eq!(std::fs::metadata(extents(&path)).unwrap().mode() & 0o777, 0o600);
    // What is written anew in part lies in the table from then on, and what becomes whole in pieces does not.
    change(&mut writer, |txn| txn.put_chunk(FILE, FIRST + 1, &chunk(b'd')));
    assert_eq!(got(&store, FIRST, 2), [Some(b'b'), Some(b'd')]);
    assert_eq!(std::fs::metadata(extents(&path)).unwrap().len(), 3 * CHUNK_BYTES as u64);
    for length in [5_000, 60_000, CHUNK_BYTES] {
        change(&mut writer, |txn| txn.put_chunk(FILE, FIRST + 2, &chunk(b'e')[..length]));
    }
    assert_eq!(got(&store, FIRST + 2, 1), [Some(b'e')]);
    assert_eq!(std::fs::metadata(extents(&path)).unwrap().len(), 4 * CHUNK_BYTES as u64);
    change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST + 2, FIRST + 2).map(drop));
    drop((store, writer));
    let (store, _writer) = Sqlite::open(&path).unwrap();
    assert_eq!(got(&store, FIRST - 1, 4), [Some(b'a'), Some(b'b'), Some(b'd'), None]);
    assert_eq!(store.integrity(&mut || true).unwrap(), Some(vec![]));
}

#[test]
fn what_is_undone_leaves_its_place_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    let length = || std::fs::metadata(extents(&path)).unwrap().len();
    let before = length();
    let (undone, kept) = (chunks(b"xxx"), chunks(b"bc"));
    let work = &mut |txn: &mut dyn Txn| {
        txn.savepoint()?;
        txn.delete_chunks(FILE, FIRST, FIRST)?;
        txn.insert_whole_chunks(FILE, FIRST, &undone)?;
        txn.rollback()?;
        txn.savepoint()?;
        txn.insert_whole_chunks(FILE, FIRST + 1, &kept)?;
        txn.release().map(|()| Durability::Process)
    };
    writer.transaction(work).unwrap();
    assert_eq!(got(&store, FIRST, 4), [Some(b'a'), Some(b'b'), Some(b'c'), None]);
    assert_eq!(noted(&path), 0, "nothing was freed");
    let fails = &mut |txn: &mut dyn Txn| {
        txn.savepoint()?;
        txn.delete_chunks(FILE, FIRST, FIRST + 2)?;
        txn.insert_whole_chunks(FILE, FIRST, &undone)?;
        Err(StoreError::Failed("as it must".to_owned()))
    };
    writer.transaction(fails).unwrap_err();
    put(&mut writer, FIRST + 3, b"d");
    assert_eq!(got(&store, FIRST, 5), [Some(b'a'), Some(b'b'), Some(b'c'), Some(b'd'), None]);
    drop((store, writer));
    drop(Sqlite::open(&path).unwrap());
    assert_eq!(length(), before + 3 * CHUNK_BYTES as u64, "what nobody names is cut off");
}

#[test]
fn space_is_given_back_when_nobody_reads_any_more_what_lay_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, &[b'a'; 32]);
    put(&mut writer, FIRST + 32, b"z");
    assert!(taken(&path) > 33 * CHUNK_BYTES as u64);
    read(&store, |older| {
        assert!(older.chunk(FILE, FIRST)? == Some(chunk(b'a')));
        change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST, FIRST + 31).map(drop));
        // Somebody waits for it, as on a full disk: but not for ever.
        writer.find_room();
        assert!(taken(&path) > 33 * CHUNK_BYTES as u64, "it is being read");
        assert!(older.chunk(FILE, FIRST + 31)? == Some(chunk(b'a')));
        Ok(())
    })
    .unwrap();
    assert_eq!(got(&store, FIRST + 31, 2), [None, Some(b'z')]);
    await_taken(&mut writer, &path, 2 * CHUNK_BYTES as u64);
    assert_eq!(noted(&path), 0);
    // What is not given back before the end is at the next start.
    put(&mut writer, FIRST, &[b'b'; 32]);
    change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST, FIRST + 31).map(drop));
    assert!(read_by(&writer, |read| read.chunk(FILE, FIRST + 32)).unwrap() == Some(chunk(b'z')));
    drop((store, writer));
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    await_taken(&mut writer, &path, 2 * CHUNK_BYTES as u64);
    assert_eq!(got(&store, FIRST + 32, 1), [Some(b'z')]);
}

#[test]
fn a_store_without_its_extents_serves_all_else_and_makes_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST - 1, b"ab");
    drop((store, writer));
    let aside = dir.path().join("aside");
    std::fs::rename(extents(&path), &aside).unwrap();
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    assert_eq!(got(&store, FIRST - 1, 1), [Some(b'a')]);
    let missing = read(&store, |read| read.chunk(FILE, FIRST)).unwrap_err();
    assert!(matches!(missing, StoreError::Impossible(_)), "{missing}");
    let said = store.integrity(&mut || true).unwrap().unwrap();
    assert!(said.len() == 1 && said[0].contains("s.db-extents"), "{said:?}");
    // Other files are written, and lie in the tables.
    put(&mut writer, FIRST + 9, b"z");
    assert_eq!(got(&store, FIRST + 9, 1), [Some(b'z')]);
    assert!(!extents(&path).exists());
    drop((store, writer));
    std::fs::rename(&aside, extents(&path)).unwrap();
    let (store, _writer) = Sqlite::open(&path).unwrap();
    assert_eq!(got(&store, FIRST - 1, 2), [Some(b'a'), Some(b'b')]);
}

#[test]
fn extents_of_another_store_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("s.db"), dir.path().join("o.db"));
    for store in [&path, &other] {
        let (_store, mut writer) = Sqlite::open(store).unwrap();
        put(&mut writer, FIRST, b"ab");
    }
    std::fs::rename(extents(&other), extents(&path)).unwrap();
    let before = std::fs::read(extents(&path)).unwrap();
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    read(&store, |read| read.chunk(FILE, FIRST)).unwrap_err();
    put(&mut writer, FIRST, b"xyz");
    assert_eq!(got(&store, FIRST, 3), [Some(b'x'), Some(b'y'), Some(b'z')]);
    drop((store, writer));
    assert!(std::fs::read(extents(&path)).unwrap() == before);
}

#[test]
fn a_copy_of_the_tables_from_before_reads_nothing_that_was_written_since() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("s.db"), dir.path().join("copy"));
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    drop((store, writer));
    std::fs::copy(&path, &copy).unwrap();
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST, FIRST).map(drop));
    writer.find_room();
    writer.checkpoint().unwrap();
    drop((store, writer));
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"b");
    assert_eq!(
        std::fs::metadata(extents(&path)).unwrap().len(),
        2 * CHUNK_BYTES as u64,
        "as it was"
    );
    drop((store, writer));
    let both = dir.path().join("both.db");
    std::fs::copy(&path, &both).unwrap();
    std::fs::copy(extents(&path), extents(&both)).unwrap();
    std::fs::copy(&copy, &path).unwrap();
    let (store, _writer) = Sqlite::open(&path).unwrap();
    let other = read(&store, |read| read.chunk(FILE, FIRST)).unwrap_err();
    assert!(other.to_string().contains("of another time"), "{other}");
    // Who copies both has both.
    let (store, _writer) = Sqlite::open(&both).unwrap();
    assert_eq!(got(&store, FIRST, 1), [Some(b'b')]);
}

#[test]
fn what_lies_there_and_is_no_file_of_ours_hinders_no_big_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    drop(Sqlite::open(&path).unwrap());
    let there = extents(&path);
    let things: [&dyn Fn(); 4] = [
        &|| std::fs::create_dir(&there).unwrap(),
        &|| std::os::unix::fs::symlink("none", &there).unwrap(),
        &|| std::fs::write(&there, [b'x'; 200]).unwrap(),
        &|| {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &there, kind, 0o600.into(), 0).unwrap();
        },
    ];
    for (nth, put_there) in things.into_iter().enumerate() {
        put_there();
        let (store, mut writer) = Sqlite::open(&path).unwrap();
        put(&mut writer, FIRST, &[b'a' + nth as u8]);
        assert_eq!(got(&store, FIRST, 1), [Some(b'a' + nth as u8)]);
        let said = store.integrity(&mut || true).unwrap().unwrap();
        assert!(said.len() == 1 && said[0].contains("s.db-extents"), "{said:?}");
        std::fs::remove_file(&there).or_else(|_| std::fs::remove_dir(&there)).unwrap();
    }
    assert!(!dir.path().join("none").exists());
}

#[test]
fn rows_that_name_what_cannot_be_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"abc");
    drop((store, writer));
    let sql = rusqlite::Connection::open(&path).unwrap();
    let last = "(SELECT max(at) FROM chunks)";
    for (wrong, mend, said) in [
        (
            "UPDATE chunks SET at = 7 WHERE at = 65536",
            "UPDATE chunks SET at = 65536 WHERE at = 7",
            "1 chunks of big files lie where none can lie",
        ),
        (
            &*format!("INSERT INTO freed VALUES ({last} - 65536, 131072)"),
            "DELETE FROM freed",
            "2 chunks of big files lie in what was freed",
        ),
    ] {
        sql.execute_batch(wrong).unwrap();
        // Only read: who writes would give back what is noted as freed.
        let (store, _) =
            Sqlite::open_protected(&path, "a test".into(), StoreError::ReadOnly).unwrap();
        assert_eq!(store.integrity(&mut || true).unwrap(), Some(vec![said.to_owned()]));
        drop(store);
        sql.execute_batch(mend).unwrap();
    }
}

#[test]
fn a_key_that_only_one_of_both_has_yet_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    drop((store, writer));
    // As a daemon leaves them that is killed between the two.
    for is_old in [true, false] {
        let (before, head) =
            (std::fs::read(&path).unwrap(), std::fs::read(extents(&path)).unwrap());
        let sql = rusqlite::Connection::open(&path).unwrap();
        let key = "SELECT value FROM meta WHERE key = 'extents'";
        let key: String = sql.query_row(key, [], |row| row.get(0)).unwrap();
        let other = "0".repeat(key.len());
        let keys = if is_old { [&other, &key] } else { [&key, &other] };
        let keys = format!("workfs extents 1 {}\n{}\n", keys[0], keys[1]);
        let file = std::fs::File::options().write(true).open(extents(&path)).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, keys.as_bytes(), 0).unwrap();
        drop(sql);
        let (store, _writer) = Sqlite::open(&path).unwrap();
        assert_eq!(got(&store, FIRST, 1), [Some(b'a')]);
        drop((store, _writer));
        let now = (std::fs::read(&path).unwrap(), std::fs::read(extents(&path)).unwrap());
        assert!(now.0 != before && now.1 != head, "both have a new one");
    }
}

#[test]
fn extents_whose_making_was_broken_off_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    drop(Sqlite::open(&path).unwrap());
    for left in ["", "workfs ext"] {
        std::fs::write(extents(&path), left).unwrap();
        let (store, mut writer) = Sqlite::open(&path).unwrap();
        put(&mut writer, FIRST, b"a");
        assert_eq!(got(&store, FIRST, 1), [Some(b'a')]);
        change(&mut writer, |txn| txn.delete_chunks(FILE, FIRST, FIRST).map(drop));
        writer.find_room();
    }
}

#[test]
fn a_backup_is_one_file_that_has_all() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("s.db"), dir.path().join("c.db"));
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, 0, &[b'a'; 600]);
    put(&mut writer, 1_000, &[b'b'; 9]);
    change(&mut writer, |txn| txn.delete_chunks(FILE, 300, 399).map(drop));
    // SQLite opens an index beside it under a lock that commits take, too.
    let mut alone = |_, _| !crate::store::beside(&copy, "-shm").exists();
    std::fs::File::create(&copy).unwrap();
    let made = Identity::named(&copy).unwrap();
    assert!(store.backup((&copy, made), &mut alone).unwrap());
    drop((store, writer));
    FILES.iter().for_each(|end| drop(std::fs::remove_file(crate::store::beside(&path, end))));
    let (store, mut writer) = Sqlite::open(&copy).unwrap();
    assert_eq!(got(&store, 0, 300), [Some(b'a'); 300]);
    assert_eq!(got(&store, 300, 100), [None; 100]);
    assert_eq!(got(&store, 400, 200), [Some(b'a'); 200]);
    assert_eq!(got(&store, 1_000, 10).last(), Some(&None));
    assert_eq!(store.integrity(&mut || true).unwrap(), Some(vec![]));
    assert!(!extents(&copy).exists());
    // It goes on with a file of its own.
    put(&mut writer, 2_000, b"c");
    assert_eq!(got(&store, 2_000, 1), [Some(b'c')]);
}

#[test]
fn what_is_flushed_is_flushed_beside_the_tables_first() {
    let dir = tempfile::tempdir().unwrap();
    // By a name that leads to it, as SQLite does not call it.
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let path = link.join("s.db");
    for by in 0..3 {
        let (store, mut writer) = Sqlite::open(&path).unwrap();
        let first = FIRST + 10 * by;
        put(&mut writer, first, b"abc");
        let end = std::fs::metadata(extents(&path)).unwrap().len();
        assert!(store.extents.flushed_to() < end);
        match by {
            0 => writer.sync().unwrap(),
            1 => {
                let flushed = &mut |txn: &mut dyn Txn| {
                    txn.savepoint()?;
                    txn.put_meta("key", "value")?;
                    txn.release().map(|()| Durability::Power)
                };
                writer.transaction(flushed).unwrap();
            }
            _ => assert!(writer.find_room()),
        }
        assert_eq!(store.extents.flushed_to(), end, "{by}");
    }
}

#[test]
fn extents_that_reach_too_far_leave_the_rest_to_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    drop((store, writer));
    let far = EXTENTS_BYTES_MAX - 2 * CHUNK_BYTES as u64;
    let sql = rusqlite::Connection::open(&path).unwrap();
    sql.execute("INSERT INTO chunks (key, data, at) VALUES (1, x'', ?1)", [far as i64]).unwrap();
    drop(sql);
    let file = std::fs::File::options().write(true).open(extents(&path)).unwrap();
    file.set_len(far + CHUNK_BYTES as u64).unwrap();
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    for first in [FIRST + 1, FIRST + 3, FIRST + 5] {
        put(&mut writer, first, b"bc");
    }
    put(&mut writer, FIRST + 7, b"d");
    assert_eq!(
        got(&store, FIRST, 9),
        b"abcbcbcd".map(Some).into_iter().chain([None]).collect::<Vec<_>>()
    );
    assert_eq!(std::fs::metadata(extents(&path)).unwrap().len(), EXTENTS_BYTES_MAX);
}

#[test]
fn an_old_copy_of_the_tables_cuts_nothing_that_was_written_since() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("s.db"), dir.path().join("copy"));
    drop(Sqlite::open(&path).unwrap());
    // From before there were big files.
    std::fs::copy(&path, &copy).unwrap();
    let (store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"abc");
    drop((store, writer));
    let length = || std::fs::metadata(extents(&path)).unwrap().len();
    let before = length();
    let (now, aside) = (&path, dir.path().join("aside"));
    std::fs::rename(now, &aside).unwrap();
    std::fs::rename(&copy, now).unwrap();
    drop(Sqlite::open(&path).unwrap());
    assert_eq!(length(), before);
    std::fs::rename(&aside, now).unwrap();
    let (store, _writer) = Sqlite::open(&path).unwrap();
    assert_eq!(got(&store, FIRST, 3), b"abc".map(Some));
}

#[test]
fn what_root_writes_beside_the_tables_is_their_owners() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    drop(Sqlite::open(&path).unwrap());
    std::os::unix::fs::chown(&path, Some(64_001), Some(64_002)).unwrap();
    let (_store, mut writer) = Sqlite::open(&path).unwrap();
    put(&mut writer, FIRST, b"a");
    let found = std::fs::metadata(extents(&path)).unwrap();
    assert_eq!((found.uid(), found.gid()), (64_001, 64_002));
}
