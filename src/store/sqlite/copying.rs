//! The file that a backup is written to.
//!
//! What must stay true: it is the one that was made for it, whatever somebody puts in its place.
//! The directory may be another's, who would get to read the store, or have us overwrite what a
//! link there leads to. Deliberately not here: its name, and when it is whole (`service`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::beside::never_wait;
use super::{cause, fail, owners_alone, reading};
use crate::names::Shown;
use crate::store::{Identity, Result, StoreError, open_own};

/// Opens the copy. SQLite opens, locks and closes what others may have, and the shared index
/// of its log, under a lock of the whole process, which each commit takes, too: on a file system that does not
/// answer a copy would hold up all. So it has none of that.
pub(super) fn open((target, made): (&Path, Identity)) -> Result<Connection> {
    let failed = |error| StoreError::of_writing(&target.shown(), &error);
    let own = own(target, made).map_err(failed)?;
    let path = without_links(target).map_err(failed)?;
    never_wait();
    let before = descriptors_of(&own);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let copy = Connection::open_with_flags_and_vfs(path, flags, reading::WITHOUT_LOCKS);
    let copy = copy.map_err(fail)?;
    let is_it = match (before, descriptors_of(&own)) {
        (Ok(before), Ok(now)) => now > before,
        // Where `/proc` is not there, as far as its name tells.
        _ => own.metadata().is_ok_and(|own| Identity::of(&own).has_name(target)),
    };
    if !is_it {
        return Err(failed(replaced()));
    }
    copy.pragma_update(None, "locking_mode", "exclusive").map_err(fail)?;
    journal(&copy, IN_MEMORY)?;
    Ok(copy)
}

/// A copy that fails is thrown away as a whole; of a file the journal would stay beside it.
const IN_MEMORY: &str = "memory";

/// Has what changes the copy noted so; SQLite tells no error where it goes on as it did.
fn journal(copy: &Connection, mode: &str) -> Result<()> {
    let set = copy.pragma_update_and_check(None, "journal_mode", mode, |row| row.get(0));
    let set: String = set.map_err(|error| cause(copy, error))?;
    if set == mode {
        Ok(())
    } else {
        Err(StoreError::Failed(format!("the copy's journal is {set}")))
    }
}

/// Has what follows written into the copy itself: it has the pages of the store by now, which say that it has a log,
/// whose last part would be moved when the copy is closed, where no failure is told of.
pub(super) fn without_log(copy: &Connection) -> Result<()> {
    journal(copy, IN_MEMORY)
}

/// Closes a copy that is whole, and is to have a log when it is opened.
pub(super) fn close(copy: Connection) -> Result<()> {
    journal(&copy, "wal")?;
    copy.close().map_err(|(copy, error)| cause(&copy, error))
}

/// The file itself, its owner's alone.
fn own(target: &Path, made: Identity) -> io::Result<File> {
    let own = open_own(File::options().read(true).write(true), target)?;
    if Identity::of(&own.metadata()?) != made {
        return Err(replaced());
    }
    own.set_permissions(owners_alone())?;
    Ok(own)
}

fn replaced() -> io::Error {
    io::Error::other("another file was put in its place meanwhile")
}

/// SQLite takes no link then, wherever it is in the path.
fn without_links(target: &Path) -> io::Result<PathBuf> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let (dir, name) = target.parent().zip(target.file_name()).ok_or_else(invalid)?;
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    Ok(dir.canonicalize()?.join(name))
}

/// How many descriptors of a file this process has. SQLite does not say which file it has opened.
fn descriptors_of(file: &File) -> io::Result<usize> {
    // Others may be of file systems that do not answer.
    let number = |path: &Path| {
        let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
        Some((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
    };
    let all = Path::new("/proc/self/fd");
    let own = number(&all.join(file.as_raw_fd().to_string()));
    let own = own.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let open = std::fs::read_dir(all)?.flatten();
    Ok(open.filter(|one| number(&one.path()) == Some(own)).count())
}

/// Copies page by page; false where that was not to go on.
pub(super) fn pages(
    source: &Connection,
    copy: &mut Connection,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> rusqlite::Result<bool> {
    use rusqlite::backup::{Backup, StepResult};
    let backup = Backup::new(source, copy)?;
    loop {
        let more = backup.step(2_000)?;
        let now = backup.progress();
        let pages = now.pagecount.unsigned_abs();
        let left = now.remaining.unsigned_abs();
        let goes_on = progress(u64::from(pages - left), u64::from(pages));
        match more {
            _ if !goes_on => return Ok(false),
            StepResult::Done => return Ok(true),
            StepResult::More => {}
            _ => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn nothing_that_is_put_in_its_place_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (target, victim) = (path("copy"), path("victim"));
        File::create(&target).unwrap();
        let made = Identity::named(&target).unwrap();
        let write = || {
            open((&target, made))
                .and_then(|copy| copy.execute_batch("CREATE TABLE t (n)").map_err(fail))
        };
        write().unwrap();
        File::create(&target).unwrap();
        std::fs::write(&victim, "").unwrap();
        symlink(&victim, path("trap")).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                use rustix::fs::{RenameFlags, renameat_with};
                while !is_over.load(Ordering::Relaxed) {
                    let (trap, target) = (path("trap"), path("copy"));
                    renameat_with(CWD, trap, CWD, target, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for _ in 0..2_000 {
                // Which of both it meets is chance.
                let _ = write();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let found = victim.metadata().unwrap();
        assert_eq!((found.len(), found.permissions().mode() & 0o777 == 0o600), (0, false));
    }
}
