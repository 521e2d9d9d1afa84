//! What lies beside a store, by name: what SQLite itself opens (log, index, journal), and big files.
//!
//! What must stay true: opening these never waits. SQLite follows no link that lies there, but it
//! opens a journal for reading before it knows what that is; and a pipe, which others may make in a
//! directory of theirs, is open only when somebody writes it, which would be never. A file with a
//! second name is none of ours, except where a store was copied by links (`cp -al`).

use std::ffi::{c_char, c_int};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Once;

use rusqlite::ffi;

use crate::names::{Shown, shell_word};
use crate::store::{NotOwn, OWN_STORE, Result, StoreError, beside, open_itself};

/// What the name of the file of big files has more than the store's.
pub const EXTENTS: &str = "-extents";

/// What it opens, beside the store.
const OPENED: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Before a connection to the store at `path` is made.
///
/// # Errors
/// Something that is no file is where one of its files should be, of which SQLite would tell nothing.
pub(super) fn expect_files(path: &Path) -> Result<()> {
    never_wait();
    let is_other = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|it| !it.is_file());
    match OPENED.into_iter().map(|end| beside(path, end)).find(|path| is_other(path)) {
        None => Ok(()),
        Some(other) => {
            let what = "is no file of a store, but a directory, a link, a pipe or the like";
            let why = format!("{} {what}", other.shown());
            Err(StoreError::Beside { why, remedy: AWAY.to_owned() })
        }
    }
}

/// Before the store at `path` is made, or a first connection that writes it: each of them that is there must be one
/// that this process can open. Not while it has a connection, whose locks a close here would end.
///
/// # Errors
/// SQLite would say that it cannot open its file, and not which. It asks to make what is there, too, which the
/// system refuses of others' files in a directory where all may make some (`fs.protected_regular`).
pub(super) fn expect_openable(path: &Path) -> Result<()> {
    let there = OPENED.into_iter().map(|end| beside(path, end));
    for file in there.filter(|file| std::fs::symlink_metadata(file).is_ok()) {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        match open_itself(&mut options, &file) {
            Ok(opened) => expect_own(&opened, &file, path)?,
            Err(error) if is_in_the_way(&error) => return Err(in_the_way(&file, path, &error, "")),
            // Of all else it says itself what it is.
            Err(_) => {}
        }
    }
    Ok(())
}

/// Fails where a file beside the store at `path` was put there by a user who is neither the store's owner nor root. What
/// a log has is the store's content; and in a directory where all may make files, anybody could have put one there.
pub(super) fn expect_own(opened: &File, file: &Path, path: &Path) -> Result<()> {
    let Ok(found) = opened.metadata() else { return Ok(()) };
    let (uid, own) = (found.uid(), rustix::process::geteuid().as_raw());
    let owner = std::fs::metadata(path).map_or(own, |store| store.uid());
    if uid == 0 || uid == owner {
        return Ok(());
    }
    let why = format!("{} is user {uid}'s, and the store is user {owner}'s", file.shown());
    Err(StoreError::Beside { why, remedy: way_in(file, path) })
}

/// The way out where something else lies at the name of one of a store's files.
const AWAY: &str = "move it away";

/// Whether one of a store's files cannot be opened since something else lies there, or it is somebody else's.
pub(super) fn is_in_the_way(error: &io::Error) -> bool {
    NotOwn::of(error).is_some() || error.kind() == io::ErrorKind::PermissionDenied
}

/// The failure of a file beside the store at `path` that could not be opened, after what is said of it.
pub(super) fn in_the_way(file: &Path, path: &Path, error: &io::Error, about: &str) -> StoreError {
    let not_own = NotOwn::of(error);
    let what = not_own.map_or_else(|| error.to_string(), |not_own| not_own.0.to_owned());
    let why = format!("{about}{}: {what}", file.shown());
    let remedy = if not_own.is_some() { AWAY.to_owned() } else { way_in(file, path) };
    StoreError::Beside { why, remedy }
}

/// How a file can be opened by whoever may not: for the store's owner there is a way.
fn way_in(file: &Path, store: &Path) -> String {
    let own = rustix::process::geteuid().as_raw();
    let word = shell_word(file.as_os_str().as_bytes());
    match (std::fs::symlink_metadata(file), std::fs::metadata(store)) {
        (Ok(file), _) if file.uid() == own && file.mode() & 0o600 != 0o600 => {
            format!("`chmod u+rw {word}`")
        }
        (Ok(file), Ok(store)) if [store.uid(), 0].contains(&own) && file.uid() != store.uid() => {
            format!("if it is the store's: `chown {} {word}` as root; else {AWAY}", store.uid())
        }
        (Ok(_), Err(_)) => format!("{AWAY}: there is no store that it would be of"),
        _ => OWN_STORE.to_owned(),
    }
}

/// Makes the file of the store at `path` its owner's alone: whoever reads it passes by all that the tree says of who may
/// read what. SQLite gives its log the same mode.
///
/// # Errors
/// If it is another user's, and open to more than that one.
pub(super) fn close_to_others(path: &Path, main: &File) -> Result<()> {
    let failed =
        |error: io::Error| StoreError::of_writing(&format!("restricting {}", path.shown()), &error);
    let found = main.metadata().map_err(failed)?;
    let mode = found.mode() & 0o7777;
    if mode == 0o600 {
        return Ok(());
    }
    match main.set_permissions(super::owners_alone()) {
        Ok(()) => {
            let told = format!("{mode:04o}");
            if mode & 0o077 != 0 {
                tracing::warn!(
                    mode = told,
                    "the store was open to others, and is its owner's alone now"
                );
            }
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let (path, owner) = (path.shown(), found.uid());
            let why = format!(
                "{path} has the mode {mode:04o}, and only user {owner}, whose it is, can make it that user's alone"
            );
            let remedy = format!("{OWN_STORE}; or have it mounted with `-o allow_other`");
            Err(StoreError::Beside { why, remedy })
        }
        Err(error) => Err(failed(error)),
    }
}

/// The same of what lies beside it, before anything of this process has it open: a close would end its locks.
pub(super) fn close_beside(path: &Path) {
    for file in ["-wal", "-shm", EXTENTS].map(|end| beside(path, end)) {
        let Ok(open) = open_itself(File::options().read(true), &file) else { continue };
        let is_open = open.metadata().is_ok_and(|found| found.mode() & 0o077 != 0);
        if !is_open {
            continue;
        }
        match open.set_permissions(super::owners_alone()) {
            Ok(()) => tracing::warn!("{} was open to others, and is not any more", file.shown()),
            Err(error) => tracing::warn!(%error, "{} is open to others", file.shown()),
        }
    }
}

/// Has SQLite wait for nothing that it opens, whatever is put there after a look; once for the process.
pub(super) fn never_wait() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        type Open = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
        // SAFETY: a null name asks for the default; SQLite initializes itself. What it is given is called as it calls
        // its own, by the type that it has it for (`posixOpen`), and lives as long as the process.
        let set = unsafe {
            let default = ffi::sqlite3_vfs_find(std::ptr::null());
            let method = default.as_ref().and_then(|vfs| vfs.xSetSystemCall);
            method.map(|set| {
                let open = std::mem::transmute::<Open, unsafe extern "C" fn()>(open_at_once);
                set(default, c"open".as_ptr(), Some(open))
            })
        };
        if set != Some(ffi::SQLITE_OK) {
            tracing::warn!(?set, "SQLite waits for pipes that lie where its files should be");
        }
    });
}

unsafe extern "C" fn open_at_once(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite gives a path that ends in NUL.
    unsafe { libc::open(path, flags | libc::O_NONBLOCK, mode) }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rusqlite::{Connection, OpenFlags};
    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;
    use crate::store::read;
    use crate::store::sqlite::{Sqlite, reading};

    /// Does it where others may make files, in a thread: it must not wait.
    fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        std::thread::spawn(move || tell.send(work()));
        told.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("{what} waits"))
    }

    #[test]
    fn nobody_waits_for_a_pipe_in_the_place_of_a_store_s_file() {
        for end in OPENED {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.db");
            let pipe = beside(&path, end);
            drop(Sqlite::open(&path).unwrap());
            mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
            let (of_writer, of_reader) = (path.clone(), path.clone());
            let told = |error: StoreError| error.to_string();
            let wrote = in_time(end, move || Sqlite::open(&of_writer).map(drop).map_err(told));
            assert!(wrote.as_ref().unwrap_err().contains(end), "{wrote:?}");
            let why = "a test".to_owned();
            let protected =
                move || Sqlite::open_protected(&of_reader, why, StoreError::ReadOnly).map(drop);
            let read = in_time(end, move || protected().map_err(told));
            assert!(read.as_ref().unwrap_err().contains(end), "{read:?}");
            // As if it were put there after the look.
            let by_sqlite = in_time(end, move || {
                let sql = Connection::open_with_flags_and_vfs(
                    &path,
                    OpenFlags::SQLITE_OPEN_READ_ONLY,
                    reading::WITHOUT_LOCKS,
                );
                let count = "SELECT count(*) FROM sqlite_schema";
                sql.and_then(|sql| sql.query_row(count, [], |row| row.get::<_, i64>(0))).is_ok()
            });
            assert!(!by_sqlite || end != "-journal", "SQLite read it");
            std::fs::remove_file(pipe).unwrap();
        }
    }

    #[test]
    fn a_store_whose_files_have_second_names_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let (store, writer) = Sqlite::open(&path).unwrap();
        for end in ["", "-wal", "-shm"] {
            let copy = beside(&dir.path().join("copy.db"), end);
            std::fs::hard_link(beside(&path, end), copy).unwrap();
        }
        read(&store, |read| read.meta("any")).unwrap();
        // Its log stays, as that of a daemon that was killed.
        let lasting = Connection::open(&path).unwrap();
        lasting.query_row("SELECT count(*) FROM meta", [], |_| Ok(())).unwrap();
        drop((store, writer));
        assert!(beside(&path, "-wal").exists());
        drop(Sqlite::open(&path).unwrap());
    }
}
