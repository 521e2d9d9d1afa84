//! Whether the log that lies beside a store's main file is that file's.
//!
//! SQLite takes any log of the right name for the main file's, and puts what it has over what lies there. A daemon
//! that was killed leaves one; and who puts a backup in the main file's place by hand then would get what is no
//! store. So the lock's file notes which key the main file has (`extents`: another one each time that the store is
//! opened, and in each backup), and no file with another key is opened beside a log that has anything.
//!
//! And while a store is open its main file says where its log lies: by another name (a hard link, a bind mount, one
//! that it was moved to) SQLite would find none beside it, and serve what was there before.
//!
//! What must stay true: a key is noted, and that is on the disk, before the log that has it is moved into the main
//! file. Nothing is refused where nothing is noted, or the main file has no key that can be read, as where it is one
//! only together with its log. Deliberately not here: what else the key is for (`extents`).

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::extents::{Extents, key_of};
use super::lock::{Lock, lock_path};
use super::reading::connect_main;
use super::writer::SqliteWriter;
use crate::names::{Shown, shell_word};
use crate::store::{Result, StoreError, beside};

/// The key that a main file has, without its log; `None` where none can be read.
pub(super) struct MainKey(Option<String>);

fn has_any(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.len() > 0)
}

/// Before a store is made where none is.
///
/// # Errors
/// The log of one that is gone.
pub(super) fn expect_no_log_alone(path: &Path) -> Result<()> {
    let log = beside(path, "-wal");
    if has_any(path) || !has_any(&log) {
        return Ok(());
    }
    let (store, shown, away) = (path.shown(), log.shown(), away(&log));
    let why = format!("{store} is gone, and its log is there, {shown}, which has what came last");
    let remedy = format!("put {store} back; or, for a new store, {away}");
    Err(StoreError::Beside { why, remedy })
}

/// Before the store at `path` is opened by who has its locks; `None`: nobody has served it there.
///
/// # Errors
/// A log that is another file's, or one that lies elsewhere.
pub(super) fn expect_own_log(path: &Path, lock: Option<&Lock>) -> Result<MainKey> {
    let log = beside(path, "-wal");
    let main = if has_any(path) { connect_main(path).ok() } else { None };
    let key = main.as_ref().and_then(|main| key_of(main).ok());
    if !has_any(&log) {
        let elsewhere = main.as_ref().and_then(log_of).filter(|elsewhere| has_any(elsewhere));
        return match elsewhere {
            Some(elsewhere) if !log.exists() => Err(its_log_is(path, &elsewhere)),
            _ => Ok(MainKey(key)),
        };
    }
    let noted = lock.map(Lock::noted).unwrap_or_default();
    if key.as_ref().is_none_or(|key| noted.is_empty() || noted.contains(key)) {
        return Ok(MainKey(key));
    }
    let (store, shown, away) = (path.shown(), log.shown(), away(&log));
    let why = format!("{shown} is the log of another file, in whose place {store} was put");
    let lock = shell_word(lock_path(path).as_os_str().as_bytes());
    let remedy = format!(
        "put that one back, and all is there that it had; or, if this one is meant, {away}; or, if both were \
         brought here together, `rm {lock}`"
    );
    Err(StoreError::Beside { why, remedy })
}

/// The setting of a store that says where its log lies, while somebody has it open to write.
const LOG: &str = "log";

/// Where a main file says that its log lies.
fn log_of(main: &Connection) -> Option<PathBuf> {
    let log = main.query_row("SELECT value FROM meta WHERE key = ?1", [LOG], |row| row.get(0));
    log.ok().map(|log: String| PathBuf::from(log))
}

/// The failure of a main file that has another name by now than the one by which it has a log.
fn its_log_is(path: &Path, log: &Path) -> StoreError {
    let why =
        format!("what {} had last is in a log that lies elsewhere, {}", path.shown(), log.shown());
    let brings = ["-wal", ".lock"].map(|end| {
        let from = log.to_string_lossy();
        let from = from.strip_suffix("-wal").unwrap_or(&from).to_owned() + end;
        let to = beside(path, end);
        let [from, to] = [from.as_bytes(), to.as_os_str().as_bytes()].map(shell_word);
        format!("mv {from} {to}")
    });
    let remedy = format!(
        "name the store as it was called there; or, where nothing serves that any more and it has moved, bring the \
         log and its lock: `{}`",
        brings.join("; ")
    );
    StoreError::Beside { why, remedy }
}

/// Says in a store that is opened where its log lies; what cannot be said is not looked for.
pub(super) fn tell_log(sql: &Connection, path: &Path) {
    let log = std::fs::canonicalize(path).ok().map(|path| beside(&path, "-wal"));
    let Some(log) = log.as_ref().and_then(|log| log.to_str()) else { return };
    let tell = "INSERT INTO meta (key, value) VALUES (?1, ?2) \
                ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    if let Err(error) = sql.execute(tell, [LOG, log]) {
        tracing::debug!(%error, "the store does not say where its log lies");
    }
}

/// Takes that back, where the log ends with whoever had the store, or in a copy, which has none.
pub(super) fn forget_log(sql: &Connection) -> rusqlite::Result<()> {
    sql.execute("DELETE FROM meta WHERE key = ?1", [LOG]).map(drop)
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
    fn by_another_name_a_store_is_not_opened_without_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let [path, other, copied] = ["s.db", "other.db", "c.db"].map(|name| dir.path().join(name));
        drop(opened(&path).unwrap());
        fs::hard_link(&path, &other).unwrap();
        assert!(opened(&other).is_ok(), "nothing is in a log");
        killed(&path, "last");
        copy(&path, &copied, &["", "-wal", ".lock"]);
        let (why, remedy) = told(opened(&other));
        assert!(why.contains("s.db-wal") && remedy.contains("other.db-wal"), "{why}: {remedy}");
        assert!(has(&opened(&copied).unwrap(), "last"), "its own log lies beside it");
        for end in ["-wal", ".lock"] {
            fs::rename(beside(&path, end), beside(&other, end)).unwrap();
        }
        fs::remove_file(&path).unwrap();
        assert!(has(&opened(&other).unwrap(), "last"));
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
