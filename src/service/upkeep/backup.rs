//! A copy of the store, taken while it is in use.

use std::fs::File;
use std::path::Path;

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use serde::{Deserialize, Serialize};

use crate::names::{Shown, printable};
use crate::service::reply::text::size;
use crate::service::{BackupArgs, Exit, Failure, Reply, Service, Sink};
use crate::store::sqlite::is_name_of_store;
use crate::store::{Identity, StoreError, beside, has_one_name, is_full, open_itself, or_too_long};

/// See [`crate::service::Request::Backup`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupReport {
    /// The copy.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

impl BackupReport {
    /// One line.
    #[must_use]
    pub fn human(&self) -> String {
        format!("backed up to {} ({})", printable(self.file.as_bytes()), size(self.bytes))
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Copies the store as of one commit.
///
/// # Errors
/// A target that is there, or cannot be written.
pub(in crate::service) fn backup(
    service: &Service,
    args: &BackupArgs,
    sink: Sink<'_>,
) -> Result<BackupReport, Failure> {
    let file = &args.file;
    Failure::unless_absolute(file)?;
    // Asked first: some of these are there only while this very command has the store open.
    if is_own_name(&service.store, file) {
        let reason = format!("{} is a name of what belongs to the store", file.shown());
        let remedy =
            "choose another: what lies there is overwritten or removed with the store's files";
        return Err(Failure::new(Exit::Usage, reason, remedy));
    }
    if std::fs::symlink_metadata(file).is_ok() {
        return Err(taken(file));
    }
    // Under another name until it is whole: a backup that has its name is one.
    let aside = beside(file, ".workfs-part");
    let held = hold(&aside, file)?;
    let made = held.metadata().map_err(|error| {
        let reason = format!("{}: {error}", aside.shown());
        Failure::new(error.kind().into(), reason, "try again")
    })?;
    let made = Identity::of(&made);
    let copied = service.engine.readers().backup((&aside, made), &mut |done, total| {
        sink(Reply::Progress { done, total, what: "pages".to_owned() })
    });
    let finished = match copied {
        Ok(true) => settle(&aside, file, false).and_then(|bytes| {
            let became = format!("{} is there and whole", file.shown());
            flush_name(file).map(|()| bytes).map_err(|error| unflushed(&became, &error))
        }),
        Ok(false) => Err(Failure::new(Exit::Failed, "interrupted", "nothing was kept; try again")),
        // Only the copy needs any.
        Err(StoreError::Full(_)) => Err(no_space(file)),
        Err(error) => Err(error.into()),
    };
    if finished.is_err() {
        remove_with_log(&aside);
    }
    let bytes = finished?;
    Ok(BackupReport { file: file.to_string_lossy().into_owned(), bytes })
}

/// Whether a store, or who opens it next, takes a file of this name for its own, and may remove it.
fn is_own_name(store: &Path, file: &Path) -> bool {
    is_name_of_store(store, file) || OF_DAEMON.iter().any(|end| beside(store, end) == *file)
}

/// An empty file that is its owner's alone from the beginning, and ours until it is closed. What a
/// backup that was killed has left there is used up.
fn hold(aside: &Path, file: &Path) -> Result<File, Failure> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let failed = |error: std::io::Error| {
        if is_full(error.kind()) {
            return no_space(file);
        }
        let remedy = "name a file in a directory that is there and yours";
        Failure::of_file(file.shown(), &error, remedy)
    };
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let open = match options.open(aside) {
        Ok(open) if is_own(&open) => open,
        // Nothing is there that could be in the way: a full disk, say.
        Err(error) if std::fs::symlink_metadata(aside).is_err() => return Err(failed(error)),
        // Whatever somebody put there; a copy in a file of another's would be that other's.
        _ => {
            std::fs::remove_file(aside).map_err(failed)?;
            options.create_new(true).open(aside).map_err(failed)?
        }
    };
    // Where the file system has no locks, nothing tells of another backup.
    let held = flock(&open, FlockOperation::NonBlockingLockExclusive);
    let is_held = held == Err(rustix::io::Errno::WOULDBLOCK);
    let opened = open.metadata().map_err(failed)?;
    // One that has just been finished has another name now.
    let is_there = std::fs::symlink_metadata(aside).is_ok_and(|there| there.ino() == opened.ino());
    if is_held || !is_there {
        let reason = format!("another backup writes {} just now", file.shown());
        return Err(Failure::new(Exit::Lost, reason, "wait for it, or choose another name"));
    }
    open.set_len(0).map_err(failed)?;
    restrict(&open).map_err(failed)?;
    for end in LOGS {
        // Of one that was killed; most often there is none.
        let _ = std::fs::remove_file(beside(aside, end));
    }
    Ok(open)
}

/// Whether it is a file that nobody else has, or can reach by another name.
fn is_own(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    has_one_name(file).unwrap_or(false) && file.metadata().is_ok_and(|it| it.uid() == own)
}

fn restrict(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// Flushes a finished file and gives it its name, over what has it only if `replaces`; its directory is still to be
/// flushed.
pub(super) fn settle(aside: &Path, file: &Path, replaces: bool) -> Result<u64, Failure> {
    let failed = |error: std::io::Error| {
        let remedy = "see that the directory is there and can be written";
        Failure::of_file(file.shown(), &error, remedy)
    };
    let copy = open_itself(File::options().read(true), aside).map_err(failed)?;
    copy.sync_all().map_err(failed)?;
    let bytes = copy.metadata().map_err(failed)?.len();
    let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    let renamed = match renameat_with(CWD, aside, CWD, file, flags) {
        // As NFS and older ZFS, which know no flags.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if !replaces => {
            rename_to_free(aside, file)
        }
        renamed => renamed.map_err(std::io::Error::from),
    };
    match renamed {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(taken(file)),
        Err(error) => return Err(failed(error)),
    }
    Ok(bytes)
}

/// Flushes the name of a file.
pub(super) fn flush_name(file: &Path) -> std::io::Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(dir) {
        Ok(dir) => dir.sync_all(),
        // One that may be written and not read (a drop box) is flushed with all of its file system.
        Err(_) => Ok(rustix::fs::syncfs(&open_itself(File::options().read(true), file)?)?),
    }
}

/// What is told where that fails, of the file and what became of it.
pub(super) fn unflushed(became: &str, error: &std::io::Error) -> Failure {
    let reason = format!("{became}, but its directory cannot be flushed: {error}");
    Failure::new(error.kind().into(), reason, "flush the disk that it is on (`sync`)")
}

/// Renames to a name that nothing has, where no rename looks at that: a second name is given to none that is taken.
fn rename_to_free(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(error),
        // Nor has each file system files with two names.
        Err(_) if std::fs::symlink_metadata(to).is_ok() => {
            Err(std::io::ErrorKind::AlreadyExists.into())
        }
        Err(_) => std::fs::rename(from, to),
    }
}

/// What a daemon has beside its store.
const OF_DAEMON: [&str; 4] = [".sock", ".log", ".log.1", ".covers"];

/// What SQLite may leave beside a database.
const LOGS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Removes a database's files, as far as they are there.
pub(super) fn remove_with_log(path: &Path) {
    for end in LOGS.into_iter().chain(["", ".lock"]) {
        let _ = std::fs::remove_file(beside(path, end));
    }
}

fn no_space(file: &Path) -> Failure {
    let reason = or_too_long(&format!("no space is left for {}", file.shown()));
    let remedy = "free space there, or name a file on another disk; nothing was kept";
    Failure::new(Exit::NoSpace, reason, remedy)
}

fn taken(file: &Path) -> Failure {
    let reason = format!("{} is there already", file.shown());
    Failure::new(Exit::Refused, reason, "nothing is overwritten: choose another name")
}

#[cfg(test)]
mod tests {
    use super::*;

    // P4.6
    #[test]
    fn a_directory_that_takes_files_and_shows_none_takes_a_backup() {
        use std::os::unix::fs::PermissionsExt as _;
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let (aside, file) = (dir.path().join("aside"), dir.path().join("file"));
        std::fs::write(&aside, "backup").unwrap();
        set(&aside, 0o666);
        set(dir.path(), 0o733);
        let target = file.clone();
        // Of a thread of its own no other is changed.
        let settled = std::thread::spawn(move || {
            rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(64_001)).unwrap();
            let settled = settle(&aside, &target, false);
            settled.inspect(|_| flush_name(&target).unwrap())
        });
        assert_eq!(settled.join().unwrap().unwrap(), 6);
        assert_eq!(std::fs::read(&file).unwrap(), b"backup");
    }

    #[test]
    fn where_no_rename_looks_at_what_is_there_nothing_is_replaced_either() {
        let dir = tempfile::tempdir().unwrap();
        let [from, free, taken] = ["from", "free", "taken"].map(|name| dir.path().join(name));
        std::fs::write(&from, "new").unwrap();
        std::os::unix::fs::symlink("nowhere", &taken).unwrap();
        let refused = rename_to_free(&from, &taken).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
        assert!(taken.is_symlink() && from.exists());
        rename_to_free(&from, &free).unwrap();
        assert_eq!(std::fs::read(&free).unwrap(), b"new");
        assert!(!from.exists());
    }
}
