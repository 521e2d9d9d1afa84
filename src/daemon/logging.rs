//! The log: what is written, where, and how much of it is kept.
//!
//! What must stay true: contents of files are never logged, at no level; the log beside the store has
//! a bound while its daemon runs, too, whose standard error it is. Deliberately not here: what is said.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;

use super::failure::{Cause, Failure};
use super::paths::StorePaths;
use crate::limits::LOG_BYTES_MAX;
use crate::names::Shown as _;
use crate::store::{Identity, open_own};

/// The environment variable that chooses what is logged.
const FILTER_VARIABLE: &str = "WORKFS_LOG";

/// What is logged where that does not say.
const FILTER: &str = "info";

/// Logs to standard error: what `WORKFS_LOG` says, else from `info` up. Where that is the log
/// `beside` a store it is kept from growing without end.
///
/// # Errors
/// If `WORKFS_LOG` cannot be read.
pub fn start_log(beside: &StorePaths) -> Result<(), Failure> {
    let wrong = |why: String| {
        let reason = format!("{FILTER_VARIABLE} cannot be read: {why}");
        Failure::new(Cause::Usage, reason, "for example `info` or `warn,workfs::daemon=debug`")
    };
    let text = std::env::var_os(FILTER_VARIABLE).unwrap_or_default();
    let text = text.to_str().ok_or_else(|| wrong(format!("`{}` is not UTF-8", text.shown())))?;
    let text = if text.is_empty() { FILTER } else { text };
    let filter = EnvFilter::try_new(text).map_err(|error| wrong(error.to_string()))?;
    let colour = std::io::stderr().is_terminal() && !is_set("NO_COLOR");
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        // On a full disk the log cannot be written; saying so to the same file would panic.
        .log_internal_errors(false)
        .with_writer({
            let log =
                Log { path: beside.log(), descriptor: libc::STDERR_FILENO, most: LOG_BYTES_MAX };
            let log = Arc::new(Mutex::new(log));
            move || Writer(Arc::clone(&log))
        });
    // Fails if there is a log already, which then goes on.
    let _ = log.try_init();
    Ok(())
}

/// A descriptor that is written to, and the file beside the store that it may be.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    descriptor: RawFd,
    most: u64,
}

/// Writes lines to the log, one at a time.
struct Writer(Arc<Mutex<Log>>);

impl Write for Writer {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn file(&self) -> ManuallyDrop<File> {
        // SAFETY: standard error is open as long as the process lives; it is not closed here.
        ManuallyDrop::new(unsafe { File::from_raw_fd(self.descriptor) })
    }

    /// Whether the descriptor is the file that has the log's name now.
    fn has_its_name(&self) -> bool {
        let own = self.file().metadata().ok().filter(std::fs::Metadata::is_file);
        own.is_some_and(|own| Identity::of(&own).has_name(&self.path))
    }

    fn write(&self, line: &[u8]) -> io::Result<usize> {
        // What the process says when it panics, nobody counts but the file.
        let length = self.file().metadata().map_or(0, |found| found.len());
        if length > self.most && self.has_its_name() && self.begin_anew().is_err() {
            // The directory is not ours, or the disk is full: better a short log than one without end.
            self.file().set_len(0)?;
        }
        self.file().write_all(line).map(|()| line.len())
    }

    /// Puts what was written until now aside, and goes on in a new file.
    fn begin_anew(&self) -> io::Result<()> {
        std::fs::rename(&self.path, aside(&self.path))?;
        let new = open_own(File::options().append(true).create_new(true), &self.path)?;
        // SAFETY: both are open descriptors; nobody relies on what the second one was.
        let done = unsafe { libc::dup2(new.as_raw_fd(), self.descriptor) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Whether the file at `path` is what this process logs to.
pub(super) fn is_own_log(path: &Path) -> bool {
    Log { path: path.to_owned(), descriptor: libc::STDERR_FILENO, most: 0 }.has_its_name()
}

/// Where a log goes that is too long.
fn aside(log: &Path) -> PathBuf {
    let mut aside = log.as_os_str().to_owned();
    aside.push(".1");
    aside.into()
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Puts a log that has grown too long aside, in place of the one put aside before, and one that this user may
/// not write: another's daemon left it, root's say. Gives the log's path.
///
/// # Errors
/// If the store's directory cannot be made.
pub fn trim_log(paths: &StorePaths) -> Result<PathBuf, Failure> {
    let log = paths.log();
    paths.make_directory()?;
    let is_long = std::fs::metadata(&log).is_ok_and(|found| found.len() > LOG_BYTES_MAX);
    let is_denied = || {
        let opened = open_own(File::options().append(true), &log);
        opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    if (is_long || is_denied())
        && let Err(error) = std::fs::rename(&log, aside(&log))
    {
        tracing::warn!(%error, "the log stays as it is");
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_goes_on_in_a_new_file_when_it_is_long() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db.log");
        let open = || open_own(File::options().append(true).create(true), &path).unwrap();
        let first = open();
        let log = Log { path: path.clone(), descriptor: first.as_raw_fd(), most: 100 };
        for nth in 0..40 {
            log.write(format!("line {nth:04}\n").as_bytes()).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() <= 110);
        }
        let [now, before] =
            [&path, &aside(&path)].map(|path| std::fs::read_to_string(path).unwrap());
        assert!(before.ends_with("line 0032\n") && now.starts_with("line 0033\n"), "{before}{now}");
        // Where nothing can be put aside it begins again.
        std::fs::remove_file(aside(&path)).unwrap();
        std::fs::create_dir_all(aside(&path).join("in the way")).unwrap();
        for nth in 40..80 {
            log.write(format!("line {nth:04}\n").as_bytes()).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() <= 110);
        }
        // A file that has another name by now is another's business.
        std::fs::rename(&path, dir.path().join("moved")).unwrap();
        for _ in 0..40 {
            log.write(b"more line\n").unwrap();
        }
        assert!(!path.exists());
    }
}
