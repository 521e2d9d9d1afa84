//! A copy of the store, taken while it is in use.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use super::status::size;
use super::{BackupArgs, Exit, Failure, Reply, Service, Sink};

/// See [`super::Request::Backup`].
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
        format!("backed up to {} ({})", self.file, size(self.bytes))
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
pub(super) fn backup(
    service: &Service,
    args: &BackupArgs,
    sink: Sink<'_>,
) -> Result<BackupReport, Failure> {
    let file = &args.file;
    if !file.is_absolute() {
        let reason = format!("{} is no absolute path", file.display());
        return Err(Failure::new(Exit::Usage, reason, "name it from the root of the host"));
    }
    if std::fs::symlink_metadata(file).is_ok() {
        return Err(taken(file));
    }
    // Under another name until it is whole: a backup that has its name is one.
    let aside = beside(file, ".workfs-part");
    remove_with_log(&aside);
    make(&aside)?;
    let copied = service.engine.readers().backup(&aside, &mut |done, total| {
        // A copy cannot be broken off; it ends soon, and is given up below.
        let _ = sink(Reply::Progress { done, total, what: "pages".to_owned() });
    });
    let finished = copied.map_err(Failure::from).and_then(|()| settle(&aside, file));
    if finished.is_err() {
        remove_with_log(&aside);
    }
    let bytes = finished?;
    Ok(BackupReport { file: file.display().to_string(), bytes })
}

/// An empty file that is its owner's alone from the beginning.
fn make(aside: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let made = std::fs::File::options().write(true).create_new(true).mode(0o600).open(aside);
    made.map(|_| ()).map_err(|error| {
        let reason = format!("{}: {error}", aside.display());
        Failure::new(error.kind().into(), reason, "name a file in a directory that is yours")
    })
}

/// Flushes a finished file and gives it its name, over nothing.
pub(super) fn settle(aside: &Path, file: &Path) -> Result<u64, Failure> {
    let failed = |error: std::io::Error| {
        let reason = format!("{}: {error}", file.display());
        Failure::new(
            error.kind().into(),
            reason,
            "see that the directory is there and can be written",
        )
    };
    let copy = std::fs::File::open(aside).map_err(failed)?;
    copy.sync_all().map_err(failed)?;
    let bytes = copy.metadata().map_err(failed)?.len();
    match renameat_with(CWD, aside, CWD, file, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(rustix::io::Errno::EXIST) => return Err(taken(file)),
        Err(errno) => return Err(failed(errno.into())),
    }
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    Ok(bytes)
}

/// The same path with more at its end.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Removes a database's files, as far as they are there.
pub(super) fn remove_with_log(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal", ".lock"] {
        let _ = std::fs::remove_file(beside(path, end));
    }
}

fn taken(file: &Path) -> Failure {
    let reason = format!("{} is there already", file.display());
    Failure::new(Exit::Refused, reason, "nothing is overwritten: choose another name")
}
