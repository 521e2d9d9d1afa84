//! Where a store lies, and what lies beside it: socket, log, list of covered directories.
//!
//! What must stay true: one store has one set of paths, however it was named. Deliberately not
//! here: which store is meant if none is named (`cli`).

use std::path::{Path, PathBuf, absolute};

use super::failure::{Cause, Failure};
use super::mount_table;

/// A store and what lies beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePaths {
    store: PathBuf,
}

impl StorePaths {
    /// The store at `given`, which need not exist.
    ///
    /// # Errors
    /// A directory, no file name, a name that is not UTF-8, a place inside a mount of workfs, or a
    /// place that cannot be looked at.
    pub fn of(given: &Path) -> Result<StorePaths, Failure> {
        let io = |error| Failure::io(format!("the store {}", given.display()), &error);
        let wrong = |why: &str| {
            let reason = format!("{} cannot be a store: {why}", given.display());
            Failure::new(Cause::Usage, reason, "name a file, such as team.db")
        };
        let path = absolute(given).map_err(io)?;
        // Before anything there is looked at: a stopped daemon would not answer.
        refuse_own_mount(&path)?;
        let path = if path.exists() { path.canonicalize().map_err(io)? } else { canonical(&path) };
        refuse_own_mount(&path)?;
        if path.is_dir() {
            return Err(wrong("it is a directory"));
        }
        if path.file_name().is_none() {
            return Err(wrong("it has no name"));
        }
        if path.to_str().is_none() {
            return Err(wrong("its path is not UTF-8"));
        }
        Ok(StorePaths { store: path })
    }

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// What `/proc/mounts` shows as the source of the store's mounts.
    #[must_use]
    pub fn source(&self) -> String {
        self.store.display().to_string()
    }

    /// The control socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.beside(".sock")
    }

    /// The daemon's log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.beside(".log")
    }

    /// The list of directories that were made read-only below mounts.
    #[must_use]
    pub fn covers(&self) -> PathBuf {
        self.beside(".covers")
    }

    /// Whether there is a store.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.store.exists()
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.store.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }
}

/// The path with the symbolic links of what exists of it resolved.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(found) = at.canonicalize() {
            return rest.iter().rev().fold(found, |path, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
            return path.to_owned();
        };
        rest.push(name);
        at = parent;
    }
}

fn refuse_own_mount(path: &Path) -> Result<(), Failure> {
    match mount_table::around(path) {
        Some(mount) if mount.is_workfs() => Err(Failure::new(
            Cause::Usage,
            format!("{} lies inside the workfs mount {}", path.display(), mount.dir.display()),
            "keep the store, its socket and its log outside of mounts: a daemon that waits for \
             itself hangs",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_store_has_one_name() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("a")).unwrap();
        std::os::unix::fs::symlink("a", real.join("link")).unwrap();
        let one = StorePaths::of(&real.join("a/new/t.db")).unwrap();
        assert_eq!(one, StorePaths::of(&real.join("link/new/t.db")).unwrap());
        assert_eq!(one.socket(), real.join("a/new/t.db.sock"));
        assert_eq!(StorePaths::of(&real).unwrap_err().cause, Cause::Usage);
    }
}
