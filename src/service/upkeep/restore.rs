//! Putting a backup in a store's place. No daemon may hold the store meanwhile.
//!
//! What must stay true: what is put there was checked, byte for byte the same file; what was there
//! is kept beside it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::backup::{flush_name, remove_with_log, settle, unflushed};
use crate::names::{FileName, Shown, printable};
use crate::numbers::{G, ROOT};
use crate::service::{Exit, Failure, FsckReport, Problem, Reply, Sink, fsck};
use crate::store::sqlite::{
    EXTENTS, FILES, Lock, Sqlite, give_to_owner, lock_path, refuse_other, restoring_path,
};
use crate::store::{Identity, Readers, StoreError, beside, is_full, or_too_long};
use crate::units::counted;

/// What `restore` did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// The store.
    pub store: String,
    /// The backup.
    pub from: String,
    /// Where the old store is now, if there was one.
    pub kept: Option<String>,
    /// Records in it.
    pub records: u64,
    /// Its last event.
    pub last_g: G,
    /// Files of which power loss had taken a part before the backup was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Problem>,
}

impl RestoreReport {
    /// One line, one for the old store, and one for each file that is not whole.
    #[must_use]
    pub fn human(&self) -> String {
        let kept = self.kept.as_ref().map(|kept| printable(kept.as_bytes()));
        let kept = kept.map_or_else(String::new, |kept| format!("\nthe old store is {kept} now"));
        let lost = self.lost.iter().map(|one| format!("\n{}: {}", one.thing, one.what));
        format!(
            "restored {} from {}: {}, last event {}{kept}{}",
            printable(self.store.as_bytes()),
            printable(self.from.as_bytes()),
            counted(self.records, "record"),
            self.last_g,
            lost.collect::<String>()
        )
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.lost.is_empty() { Exit::Done } else { Exit::Problems }
    }
}

fn failed(what: &Path, error: std::io::Error) -> Failure {
    let remedy = "see that it is there and that its directory is yours";
    Failure::of_file(what.shown(), &error, remedy)
}

/// Puts the backup `file` in the place of the store `store`, which nobody may hold. With `force`
/// a store that is not empty is moved aside.
///
/// # Errors
/// A store that is held or not empty, a backup that `fsck` finds problems in, files that cannot be
/// written. The store is what it was then.
pub fn restore(
    store: &Path,
    file: &Path,
    force: bool,
    sink: Sink<'_>,
) -> Result<RestoreReport, Failure> {
    refuse_other_than_backups(file)?;
    if *file == *restoring_path(store) {
        let reason = format!("{} is where a backup is put before it is checked", file.shown());
        let remedy = "give it another name first: what lies there is removed";
        return Err(Failure::new(Exit::Refused, reason, remedy));
    }
    // Asked in any case: who opens and closes it moves its log into it, so that one file is the store.
    if !is_empty(store)? && !force {
        let reason = format!("the store {} is not empty", store.shown());
        let remedy = "give --force: it is kept beside the restored one";
        return Err(Failure::new(Exit::Refused, reason, remedy));
    }
    let log = std::fs::metadata(beside(file, "-wal")).map_or(0, |meta| meta.len());
    if log > 0 {
        let reason = format!("{} is in use, or was not closed", file.shown());
        return Err(Failure::new(Exit::Refused, reason, "take one that `workfs backup` made"));
    }
    if let Some(dir) = store.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()) {
        use std::os::unix::fs::DirBuilderExt as _;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|error| failed(dir, error))?;
    }
    let _held = Lock::take(store)?;
    let aside = restoring_path(store);
    remove_with_log(&aside);
    let copied = copy(file, &aside, store, sink);
    let checked = copied.and_then(|()| check(&aside, file, sink));
    let Checked { records, last_g, lost } = match checked {
        Ok(checked) => checked,
        Err(failure) => {
            remove_with_log(&aside);
            if is_free(store) {
                // The lock of a store that is not there now either.
                let _ = std::fs::remove_file(lock_path(store));
            }
            return Err(failure);
        }
    };
    let kept = replace(&aside, store, flush_name).inspect_err(|_| remove_with_log(&aside))?;
    Ok(RestoreReport {
        store: store.to_string_lossy().into_owned(),
        from: file.to_string_lossy().into_owned(),
        kept: kept.map(|kept| kept.to_string_lossy().into_owned()),
        records,
        last_g,
        lost,
    })
}

/// Puts what lies at `aside` in the store's place, and tells where the old one is kept. What is not surely on the
/// disk is not there: then the old one is put back.
fn replace(
    aside: &Path,
    store: &Path,
    flush_name: impl FnOnce(&Path) -> std::io::Result<()>,
) -> Result<Option<PathBuf>, Failure> {
    let kept = move_aside(store).map_err(|error| failed(store, error))?;
    let placed = settle(aside, store, kept.is_some()).and_then(|_| {
        flush_name(store).map_err(|error| {
            let became = match kept {
                Some(_) => format!("{} is put back as it was", store.shown()),
                None => format!("{} is there and whole", store.shown()),
            };
            unflushed(&became, &error)
        })
    });
    let Some(old) = &kept else { return placed.map(|()| None) };
    match placed {
        Ok(()) => leave_to(old, store),
        Err(failure) => {
            move_back(old, store).map_err(|error| failed(old, error))?;
            return Err(failure);
        }
    }
    Ok(kept)
}

/// Whether there is no store, or one in which nothing was ever done. One that cannot be opened is
/// not empty, unless somebody holds it, or what lies beside it is not its own, and would become so where it is kept:
/// then nothing can be done at all.
fn is_empty(store: &Path) -> Result<bool, Failure> {
    if std::fs::metadata(store).map_or(0, |meta| meta.len()) == 0 {
        return Ok(true);
    }
    let open = match Sqlite::open(store) {
        Ok((open, _)) => open,
        Err(
            held @ (StoreError::Held { .. }
            | StoreError::HeldElsewhere { .. }
            | StoreError::BeingRead { .. }
            | StoreError::Beside { .. }),
        ) => {
            return Err(held.into());
        }
        Err(_) => return Ok(false),
    };
    let mut any = false;
    let asked = open.read(&mut |read| {
        any = read.last_event()?.is_some();
        read.list(ROOT, None::<&FileName>, &mut |_| {
            any = true;
            false
        })
    });
    Ok(asked.is_ok() && !any)
}

/// Refuses what surely is no backup, before anything is made for it.
fn refuse_other_than_backups(file: &Path) -> Result<(), Failure> {
    let meta = std::fs::metadata(file).map_err(|error| failed(file, error))?;
    match refuse_other(file) {
        Ok(()) if meta.len() > 0 => Ok(()),
        Err(StoreError::Impossible(what)) => Err(damaged(file, &what)),
        _ => Err(no_backup(file)),
    }
}

fn damaged(file: &Path, what: &str) -> Failure {
    let reason = format!("{} is damaged: {what}", file.shown());
    let remedy = "take another backup; of this one too little is left to be checked";
    Failure::new(Exit::Store, reason, remedy)
}

fn no_backup(file: &Path) -> Failure {
    let reason = format!("{} is not a backup of a workfs store", file.shown());
    Failure::new(Exit::Store, reason, "take one that `workfs backup` made")
}

fn interrupted() -> Failure {
    Failure::new(Exit::Failed, "interrupted", "nothing was changed; try again")
}

/// Bytes that are copied between two replies about progress.
const PIECE_BYTES: u64 = 16 << 20;

/// Copies the backup beside the store that it is to become. What fails is told of the file that it is about.
fn copy(from: &Path, to: &Path, store: &Path, sink: Sink<'_>) -> Result<(), Failure> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let reading = |error| failed(from, error);
    let writing = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            let reason = format!("{} is there, where a backup is put to be checked", to.shown());
            return Failure::new(Exit::Refused, reason, "move it away: nothing was changed");
        }
        if !is_full(error.kind()) {
            return failed(store, error);
        }
        let reason = or_too_long(&format!("no space is left for {}", store.shown()));
        Failure::new(Exit::NoSpace, reason, "free space there, then try again: nothing was changed")
    };
    let source = File::open(from).map_err(reading)?;
    let total = source.metadata().map_err(reading)?.len();
    let made = File::options().write(true).create_new(true).mode(0o600).open(to);
    let mut target = made.map_err(writing)?;
    give_to_owner(&target, store).map_err(writing)?;
    let mut done = 0;
    loop {
        match std::io::copy(&mut (&source).take(PIECE_BYTES), &mut target) {
            Ok(0) => return target.sync_all().map_err(writing),
            Ok(copied) => done += copied,
            // Reading takes no space.
            Err(error) if is_full(error.kind()) => return Err(writing(error)),
            Err(error) => return Err(reading(error)),
        }
        if !sink(Reply::Progress { done, total, what: "bytes".to_owned() }) {
            return Err(interrupted());
        }
    }
}

/// What is told of a copy that was checked.
struct Checked {
    records: u64,
    last_g: G,
    lost: Vec<Problem>,
}

/// Opens the copy as a store and checks all of it. What is lost in the store itself no other backup has either.
fn check(aside: &Path, file: &Path, sink: Sink<'_>) -> Result<Checked, Failure> {
    let opened = Sqlite::open(aside).map_err(|error| match error {
        StoreError::NotAStore(_) => no_backup(file),
        StoreError::Impossible(what) => damaged(file, &what),
        other => other.into(),
    });
    let (open, mut writer) = opened?;
    let report = fsck(&open, None, sink)?;
    // What opening it has written, such as the tables of a newer version, goes with the one file that is moved.
    writer.move_log()?;
    drop((writer, open));
    let _ = std::fs::remove_file(lock_path(aside));
    if report.interrupted {
        return Err(interrupted());
    }
    if report.count > report.lost
        && let Some(first) = report.first_damage()
    {
        let reason = format!(
            "{} has {} problems, such as {}: {}",
            file.shown(),
            report.count,
            first.thing,
            first.what
        );
        return Err(Failure::new(Exit::Store, reason, "take another backup: nothing was changed"));
    }
    let FsckReport { records, last_g, problems: lost, .. } = report;
    Ok(Checked { records, last_g, lost })
}

/// Moves the old store to a name of its own, with its log; a log that was left alone, too: SQLite
/// would take it for the restored store's. The main file, and what of big files lies beside it, are there by both names
/// until the restored one replaces it: who is killed leaves a store, and not a place in which the next start makes an
/// empty one.
fn move_aside(store: &Path) -> std::io::Result<Option<PathBuf>> {
    if is_free(store) {
        return Ok(None);
    }
    let first = beside(store, ".before-restore");
    let more = (2..).map(|n| beside(store, &format!(".before-restore.{n}")));
    let free = std::iter::once(first).chain(more);
    let kept = free.into_iter().find(|path| is_free(path));
    let Some(kept) = kept else { return Ok(None) };
    let both = ["", EXTENTS];
    let mut alone = FILES.iter().filter(|end| !both.contains(end));
    let moved = alone
        .try_for_each(|end| move_one(&beside(store, end), &beside(&kept, end)))
        .and_then(|()| name_twice(&beside(store, EXTENTS), &beside(&kept, EXTENTS)))
        .and_then(|()| name_twice(store, &kept));
    moved.inspect_err(|_| {
        if let Err(error) = move_back(&kept, store) {
            tracing::error!(%error, kept = %kept.shown(), "a part of the store stays aside");
        }
    })?;
    Ok(Some(kept))
}

/// Whether there is no file of a store of this name.
fn is_free(store: &Path) -> bool {
    FILES.iter().all(|end| std::fs::symlink_metadata(beside(store, end)).is_err())
}

/// Undoes [`move_aside`]. The store's file goes last: with all that belongs to it, it is what it was.
fn move_back(kept: &Path, store: &Path) -> std::io::Result<()> {
    FILES.iter().try_for_each(|end| move_one(&beside(kept, end), &beside(store, end)))
}

/// Gives a file another name as well, if there is one. Not every file system has files with two names.
fn name_twice(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(from, to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => move_one(from, to),
        _ => Ok(()),
    }
}

/// Takes from the restored store what lies beside it and is the old one's. Who is killed before leaves that to the next
/// start.
fn leave_to(kept: &Path, store: &Path) {
    let old = Identity::named(&beside(kept, EXTENTS));
    if let Ok(old) = old
        && let Err(error) = old.remove(&beside(store, EXTENTS))
    {
        tracing::warn!(%error, "what is the old store's stays beside the restored one");
    }
}

/// Moves a file, if there is one.
fn move_one(from: &Path, to: &Path) -> std::io::Result<()> {
    let none = |done: std::io::Result<()>| match done {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    };
    none(std::fs::rename(from, to))?;
    // Of two names of one file a rename takes none away.
    none(std::fs::remove_file(from))
}

#[cfg(test)]
mod tests {
    use std::fs::{read, write};

    use super::*;

    // P4.6
    #[test]
    fn a_store_is_there_at_each_moment_of_its_replacement() {
        let dir = tempfile::tempdir().unwrap();
        let (store, new) = (dir.path().join("s.db"), dir.path().join("s.db.restoring"));
        let kept = beside(&store, ".before-restore");
        let put_old = || {
            FILES.iter().for_each(|end| write(beside(&store, end), format!("old{end}")).unwrap())
        };
        let is_old = |at: &Path| {
            FILES.iter().all(|end| {
                read(beside(at, end)).is_ok_and(|text| text == format!("old{end}").as_bytes())
            })
        };
        put_old();
        assert_eq!(move_aside(&store).unwrap().as_ref(), Some(&kept));
        assert!(is_old(&kept) && read(&store).unwrap() == b"old", "it has both names");
        let big = read(beside(&store, EXTENTS));
        assert!(big.is_ok_and(|big| big == b"old-extents"), "and what of big files lies beside it");
        move_back(&kept, &store).unwrap();
        assert!(is_old(&store) && is_free(&kept));

        move_aside(&store).unwrap();
        write(&new, "new").unwrap();
        settle(&new, &store, true).unwrap();
        assert!(is_old(&kept) && read(&store).unwrap() == b"new");
        leave_to(&kept, &store);
        assert!(is_old(&kept) && !beside(&store, EXTENTS).exists());
        move_back(&kept, &store).unwrap();
        assert!(is_old(&store) && is_free(&kept));

        // Its directory cannot be flushed.
        write(&new, "new").unwrap();
        let failed = replace(&new, &store, |_| Err(std::io::ErrorKind::Other.into())).unwrap_err();
        assert!(failed.reason.contains("s.db is put back as it was, but"), "{}", failed.reason);
        assert!(is_old(&store) && is_free(&kept));

        // Of a store that is gone its log may be left.
        std::fs::remove_file(&store).unwrap();
        move_aside(&store).unwrap();
        leave_to(&kept, &store);
        assert!(is_free(&store) && beside(&kept, "-wal").exists());
    }
}
