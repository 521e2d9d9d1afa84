//! Which directories were made read-only below mounts, kept beside the store: so that they are
//! given back also after a crash, by the next mount or by `workfs unmount`.
//!
//! What must stay true: a cover is written down before it is put on. Deliberately not here: when
//! to cover (`mounts`).

use std::fs::File;
use std::io::{Read as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use workfs_mount::Cover;

use crate::store::open_own;

/// A cover as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    dir: PathBuf,
    device: u64,
    ino: u64,
    mode: u32,
    immutable: bool,
}

/// The covers of one store.
#[derive(Debug)]
pub struct Covers {
    file: PathBuf,
    /// Those that were written down here, which are given back also where the list is gone; locked while
    /// the list is read and written, since mounts end in several threads.
    own: Mutex<Vec<Cover>>,
}

impl Covers {
    /// Those kept in `file`, which need not exist.
    #[must_use]
    pub fn kept_in(file: PathBuf) -> Self {
        Covers { file, own: Mutex::default() }
    }

    /// The cover of `dir`, if one is kept.
    #[must_use]
    pub fn of(&self, dir: &Path) -> Option<Cover> {
        let own = self.own.lock().iter().find(|cover| cover.dir == dir).cloned();
        own.or_else(|| self.load().into_iter().find(|kept| kept.dir == dir).map(Kept::cover))
    }

    /// The directories of which a cover is kept.
    #[must_use]
    pub fn dirs(&self) -> Vec<PathBuf> {
        self.load().into_iter().map(|kept| kept.dir).collect()
    }

    /// Writes a cover down, in place of an older one of the same directory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&self, cover: &Cover) -> std::io::Result<()> {
        let mut own = self.own.lock();
        let mut all = self.load();
        all.retain(|kept| kept.dir != cover.dir);
        all.push(Kept::new(cover));
        self.save(&all, true)?;
        own.retain(|kept| kept.dir != cover.dir);
        own.push(cover.clone());
        Ok(())
    }

    /// Forgets a cover; one of the same directory that somebody else put on stays in the list.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget(&self, cover: &Cover) -> std::io::Result<()> {
        let mut own = self.own.lock();
        own.retain(|kept| kept != cover);
        let mut all = self.load();
        let before = all.len();
        all.retain(|kept| *kept != Kept::new(cover));
        if all.len() == before { Ok(()) } else { self.save(&all, false) }
    }

    /// Takes the cover of `dir` off, if one is kept; says whether one was.
    ///
    /// # Errors
    /// If something is mounted there, or the system refuses.
    pub fn give_back(&self, dir: &Path) -> std::io::Result<bool> {
        let Some(cover) = self.of(dir) else { return Ok(false) };
        workfs_mount::uncover(&cover)?;
        if let Err(error) = self.forget(&cover) {
            tracing::warn!(dir = %dir.display(), %error, "a cover that was taken off stays listed");
        }
        Ok(true)
    }

    /// A list of somebody else, whom the system does not let change directories, is not believed.
    fn load(&self) -> Vec<Kept> {
        let own = rustix::process::geteuid().as_raw();
        let read = || {
            let mut file = open_own(File::options().read(true), &self.file)?;
            let by = file.metadata()?.uid();
            if by != own && by != 0 {
                return Err(std::io::Error::other(format!("it is user {by}'s")));
            }
            let mut text = Vec::new();
            file.read_to_end(&mut text).map(|_| text)
        };
        let text = match read() {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                tracing::warn!(file = %self.file.display(), %error, "cannot read the covers");
                return Vec::new();
            }
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(file = %self.file.display(), %error, "the list of covers is damaged");
            Vec::new()
        })
    }

    /// What was forgotten may come back after a power cut: to give a directory back twice is
    /// harmless. What was not written down is not given back.
    fn save(&self, all: &[Kept], flush: bool) -> std::io::Result<()> {
        if all.is_empty() {
            return match std::fs::remove_file(&self.file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let mut new = self.file.as_os_str().to_owned();
        // Of this process alone: `unmount` without a daemon writes the list, too.
        new.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(new);
        // What lies there was left by one that was killed and had the same number, or is a trap.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = open_own(File::options().write(true).create_new(true), &new)?;
        let text = serde_json::to_vec(all).map_err(std::io::Error::other)?;
        let written = file
            .write_all(&text)
            .and_then(|()| if flush { file.sync_all() } else { Ok(()) })
            .and_then(|()| std::fs::rename(&new, &self.file));
        if written.is_err() {
            // As good as gone: it is used by nobody.
            let _ = std::fs::remove_file(&new);
        }
        written
    }
}

impl Kept {
    fn new(cover: &Cover) -> Kept {
        let Cover { dir, device, ino, mode, immutable } = cover.clone();
        Kept { dir, device, ino, mode, immutable }
    }

    fn cover(self) -> Cover {
        let Kept { dir, device, ino, mode, immutable } = self;
        Cover { dir, device, ino, mode, immutable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_are_kept_replaced_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let covers = Covers::kept_in(dir.path().join("t.db.covers"));
        let one = Cover { dir: "/a".into(), device: 1, ino: 2, mode: 0o755, immutable: false };
        let two = Cover { dir: "/b".into(), ..one.clone() };
        covers.keep(&one).unwrap();
        covers.keep(&two).unwrap();
        covers.keep(&Cover { mode: 0o700, ..one.clone() }).unwrap();
        assert_eq!(covers.of(Path::new("/a")).unwrap().mode, 0o700);
        assert_eq!(covers.of(Path::new("/b")), Some(two.clone()));
        assert_eq!(covers.dirs(), [PathBuf::from("/b"), PathBuf::from("/a")]);
        covers.forget(&one).unwrap();
        assert_eq!(covers.dirs().len(), 2, "another one of the same directory");
        covers.forget(&Cover { mode: 0o700, ..one.clone() }).unwrap();
        std::fs::remove_file(dir.path().join("t.db.covers")).unwrap();
        assert_eq!(covers.of(Path::new("/b")), Some(two.clone()), "the list was removed");
        covers.forget(&two).unwrap();
        assert!(!dir.path().join("t.db.covers").exists());
        std::fs::write(dir.path().join("t.db.covers"), "{").unwrap();
        assert_eq!(covers.of(Path::new("/a")), None);
    }

    #[test]
    fn a_list_of_somebody_else_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.db.covers");
        let covers = Covers::kept_in(file.clone());
        let cover = Cover { dir: "/a".into(), device: 1, ino: 2, mode: 0o777, immutable: false };
        covers.keep(&cover).unwrap();
        assert!(covers.of(Path::new("/a")).is_some());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(64_001), None).unwrap();
            assert_eq!(covers.dirs(), Vec::<PathBuf>::new());
        }
    }
}
