//! Whether the log that lies beside a store's main file is that file's.
//!
//! SQLite takes any log of the right name for the main file's, and puts what it has over what lies there. A daemon
//! that was killed leaves one; and who puts a backup in the main file's place by hand then would get what is no
//! store. So the lock's file notes which key the main file has (`extents`: another one each time that the store is
//! opened, and in each backup), and no file with another key is opened beside a log that has anything.
//!
//! What must stay true: a key is noted, and that is on the disk, before the log that has it is moved into the main
//! file. Nothing is refused where nothing is noted, or the main file has no key that can be read, as where it is one
//! only together with its log. Deliberately not here: what else the key is for (`extents`).

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::extents::{Extents, key_of};
use super::lock::{Lock, lock_path};
use super::reading::connect_main;
use super::writer::SqliteWriter;
use crate::names::{Shown, shell_word};
use crate::store::{Result, StoreError, beside};

/// The key that a main file has, without its log; `None` where none can be read.
pub(super) struct MainKey(Option<String>);

/// Looks at what lies at `path` and beside it, before it is opened by who has its lock. `None`: nobody has served it
/// there.
///
/// # Errors
/// A log that is another file's, or that of one that is not there.
pub(super) fn expect_own_log(path: &Path, lock: Option<&Lock>) -> Result<MainKey> {
    let log = beside(path, "-wal");
    let has_any = |file: &Path| std::fs::metadata(file).is_ok_and(|found| found.len() > 0);
    let is_there = has_any(path);
    let key = match is_there {
        true => connect_main(path).and_then(|main| Ok(key_of(&main)?)).ok(),
        false => None,
    };
    if !has_any(&log) {
        return Ok(MainKey(key));
    }
    let (store, shown, away) = (path.shown(), log.shown(), away(&log));
    if !is_there {
        let why =
            format!("{store} is gone, and its log is there, {shown}, which has what came last");
        let remedy = format!("put {store} back; or, for a new store, {away}");
        return Err(StoreError::Beside { why, remedy });
    }
    let noted = lock.map(Lock::noted).unwrap_or_default();
    if key.as_ref().is_none_or(|key| noted.is_empty() || noted.contains(key)) {
        return Ok(MainKey(key));
    }
    let why = format!("{shown} is the log of another file, in whose place {store} was put");
    let lock = shell_word(lock_path(path).as_os_str().as_bytes());
    let remedy = format!(
        "put that one back, and all is there that it had; or, if this one is meant, {away}; or, if both were \
         brought here together, `rm {lock}`"
    );
    Err(StoreError::Beside { why, remedy })
}

/// How a log is moved away.
fn away(log: &Path) -> String {
    let mut other = log.as_os_str().to_owned();
    other.push(".other");
    let words = [log.as_os_str(), &other].map(|name| shell_word(name.as_bytes()));
    format!("move the log away: `mv {}`", words.join(" "))
}

/// Notes the keys that the main file may have from now on, when its log has got another one.
pub(super) fn note_both(lock: &Lock, main: MainKey, extents: &Extents) {
    note(lock, extents.keys().chain(&main.0).cloned().collect());
}

/// Has the main file have the store's key, and no other key noted.
pub(super) fn settle(lock: &Lock, extents: &Extents, writer: &mut SqliteWriter) {
    match writer.move_log() {
        Ok(()) => note(lock, extents.keys().take(1).cloned().collect()),
        // Both are noted.
        Err(error) => tracing::warn!(%error, "the log is not moved yet"),
    }
}

fn note(lock: &Lock, keys: Vec<String>) {
    if let Err(error) = lock.note(&keys) {
        tracing::warn!(%error, "nobody will see it if this log comes to lie beside another file");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

    use super::*;
    use crate::store::sqlite::Sqlite;
    use crate::store::{Durability, Txn, Writer as _, read};

    /// A store in which something was put since it was closed last, as a daemon leaves it that is killed: with a log.
    fn killed(path: &Path, key: &str) {
        let (store, mut writer) = Sqlite::open(path).unwrap();
        let put = &mut |txn: &mut dyn Txn| {
            txn.savepoint()?;
            txn.put_meta(key, "there")?;
            txn.release()?;
            Ok(Durability::Power)
        };
        writer.transaction(put).unwrap();
        let lasting = Connection::open(path).unwrap();
        lasting.query_row("SELECT count(*) FROM meta", [], |_| Ok(())).unwrap();
        drop((store, writer));
        // Closed in a process that has no such file open it would be moved.
        std::mem::forget(lasting);
        assert!(fs::metadata(beside(path, "-wal")).unwrap().len() > 0);
    }

    fn opened(path: &Path) -> Result<Sqlite> {
        Sqlite::open(path).map(|(store, _)| store)
    }

    fn has(store: &Sqlite, key: &str) -> bool {
        read(store, |read| read.meta(key)).unwrap().is_some()
    }

    fn told(opened: Result<Sqlite>) -> (String, String) {
        match opened.map(drop) {
            Err(StoreError::Beside { why, remedy }) => (why, remedy),
            other => panic!("{other:?}"),
        }
    }

    /// The files of the store at `from`, those that there are, under another name.
    fn copy(from: &Path, to: &Path, ends: &[&str]) {
        for end in ends {
            fs::copy(beside(from, end), beside(to, end)).unwrap();
        }
    }

    #[test]
    fn a_log_that_a_killed_daemon_left_is_read_with_its_own_file_only() {
        let dir = tempfile::tempdir().unwrap();
        let [path, earlier, own] =
            ["s.db", "earlier.db", "own.db"].map(|name| dir.path().join(name));
        drop(opened(&path).unwrap());
        copy(&path, &earlier, &[""]);
        killed(&path, "last");
        copy(&path, &own, &["", "-wal", ".lock"]);
        // Over the same inode, too, of which nothing else tells.
        fs::copy(&earlier, &path).unwrap();

        let log = fs::read(beside(&path, "-wal")).unwrap();
        let protected = || {
            Sqlite::open_protected(&path, "a test".into(), StoreError::ReadOnly).map(|(it, _)| it)
        };
        for (why, remedy) in [told(opened(&path)), told(protected())] {
            assert!(why.contains("s.db-wal is the log of another file"), "{why}");
            assert!(remedy.contains("mv ") && remedy.contains("s.db-wal.other"), "{remedy}");
        }
        assert!(fs::read(&path).unwrap() == fs::read(&earlier).unwrap());
        assert!(fs::read(beside(&path, "-wal")).unwrap() == log);

        // Each of the ways out.
        let [back, meant, together] = ["back", "meant", "together"].map(|name| {
            let copied = dir.path().join(name);
            copy(&path, &copied, &["", "-wal", ".lock"]);
            told(opened(&copied));
            copied
        });
        copy(&own, &back, &[""]);
        assert!(has(&opened(&back).unwrap(), "last"));
        fs::rename(beside(&meant, "-wal"), beside(&meant, "-wal.other")).unwrap();
        assert!(!has(&opened(&meant).unwrap(), "last"));
        copy(&own, &together, &["", "-wal"]);
        fs::remove_file(lock_path(&together)).unwrap();
        assert!(has(&opened(&together).unwrap(), "last"));
        assert!(has(&opened(&own).unwrap(), "last"), "what was copied with its lock is opened");
    }

    #[test]
    fn a_log_whose_file_is_gone_is_not_removed_for_a_new_store() {
        let dir = tempfile::tempdir().unwrap();
        let [path, moved] = ["s.db", "moved.db"].map(|name| dir.path().join(name));
        killed(&path, "last");
        fs::rename(&path, &moved).unwrap();
        let (why, remedy) = told(opened(&path));
        assert!(
            why.contains("s.db is gone") && remedy.contains("s.db-wal.other"),
            "{why}: {remedy}"
        );
        assert!(!path.exists());
        fs::rename(&moved, &path).unwrap();
        assert!(has(&opened(&path).unwrap(), "last"));
    }

    #[test]
    fn the_key_of_a_store_is_in_its_file_and_noted_and_another_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let mut keys = Vec::new();
        for nth in 0..3 {
            let (store, mut writer) = Sqlite::open(&path).unwrap();
            let noted = store._lock.as_ref().unwrap().noted();
            let MainKey(main) = expect_own_log(&path, None).unwrap();
            assert_eq!(noted, [main.unwrap()]);
            assert!(!keys.contains(&noted[0]));
            keys.extend(noted);
            let put = &mut |txn: &mut dyn Txn| {
                txn.put_meta(&format!("k{nth}"), "there")?;
                Ok(Durability::Process)
            };
            writer.transaction(put).unwrap();
        }
    }
}
