//! Which directories were made read-only below mounts, kept beside the store: so that they are
//! given back also after a crash, by the next mount or by `workfs unmount`.
//!
//! What must stay true: a cover is written down before it is put on, and is of a directory, not of a path: a
//! directory above it may be given another name, or have something mounted over it, and come back. What a list of
//! another user says is done with that user's rights alone. Deliberately not here: when to cover (`below`).

use std::fs::{DirEntry, File};
use std::io::{ErrorKind, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use workfs_mount::{Cover, MountLine, Underlay};

use crate::daemon::paths::StorePaths;
use crate::limits::{COVERS_MAX, COVERS_WAIT, COVERS_WRITTEN_WITHIN};
use crate::names::Shown;
use crate::store::open_own;

/// A cover as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    dir: PathBuf,
    device: u64,
    ino: u64,
    mode: u32,
    immutable: bool,
    /// How the mount over it was asked for: the words behind `workfs mount`.
    #[serde(default)]
    words: String,
}

/// The covers of one store.
#[derive(Debug)]
pub struct Covers {
    file: PathBuf,
    /// Held while the list is read and written, since mounts end in several threads. Other processes are kept
    /// from it by its directory ([`Covers::alone`]).
    writing: Mutex<()>,
}

impl Covers {
    /// Those kept in `file`, which need not exist.
    #[must_use]
    pub fn kept_in(file: PathBuf) -> Self {
        Covers { file, writing: Mutex::default() }
    }

    /// Those of the store that a mount of workfs names as its source.
    #[must_use]
    pub fn of_mount(line: &MountLine) -> Option<Self> {
        let store = PathBuf::from(&line.source);
        let is_store = store.is_absolute() && store.is_file();
        Some(Covers::kept_in(is_store.then(|| StorePaths::of(&store).ok())??.covers()))
    }

    /// The cover of a directory, if one is kept.
    #[must_use]
    pub fn of(&self, below: &Underlay) -> Option<Cover> {
        let all: Vec<Cover> = self.load().into_iter().map(Kept::cover).collect();
        let is_it = |known: &&Cover| known.is_of_same(below.cover());
        let is_named_so = |known: &&Cover| known.is_named_as(below.cover());
        all.iter().find(is_it).or_else(|| all.iter().find(is_named_so)).cloned()
    }

    /// How the mount of workfs was asked for that lies on a directory, perhaps dead: the words behind
    /// `workfs mount`, if they are kept.
    #[must_use]
    pub fn words_of(line: &MountLine) -> Option<String> {
        let all = Covers::of_mount(line)?.load().into_iter().rev();
        let mut said = all.filter(|kept| kept.dir == line.dir).map(|kept| kept.words);
        said.next().filter(|words| !words.is_empty())
    }

    /// The directories of which a cover is kept, as they were called when it was.
    #[must_use]
    pub fn dirs(&self) -> Vec<PathBuf> {
        self.load().into_iter().map(|kept| kept.dir).collect()
    }

    /// Those of them that are closed although nothing is mounted on them: a daemon was killed, and its dead mount
    /// taken away by others.
    #[must_use]
    pub fn left(&self) -> Vec<PathBuf> {
        let mut dirs = self.dirs();
        dirs.retain(|dir| {
            let Ok(below) = Underlay::open(dir) else { return false };
            let Some(known) = self.of(&below) else { return false };
            let open = below.cover().clone();
            let lies_below = below.lies_below_a_mount().unwrap_or(true);
            !lies_below && *below.covered_by(&known).cover() != open
        });
        dirs
    }

    /// Writes a cover down, in place of an older one of the same directory, and how the mount was asked for.
    ///
    /// # Errors
    /// If the file cannot be written, or is somebody else's.
    pub fn keep(&self, cover: &Cover, words: &str) -> std::io::Result<()> {
        let _writing = self.writing.lock();
        let _alone = self.alone();
        let mut all = self.load_to_change()?;
        all.retain(|kept| !kept.clone().cover().is_of_same(cover));
        all.push(Kept::new(cover, words));
        // Of directories that are not found again, perhaps for good.
        all.drain(..all.len().saturating_sub(COVERS_MAX));
        self.save(&all, true)
    }

    /// Forgets a cover; one of the same directory that somebody else put on stays in the list.
    ///
    /// # Errors
    /// If the file cannot be written, or is somebody else's.
    pub fn forget(&self, cover: &Cover) -> std::io::Result<()> {
        let _writing = self.writing.lock();
        let _alone = self.alone();
        let mut all = self.load_to_change()?;
        let before = all.len();
        all.retain(|kept| {
            let Cover { mode, immutable, .. } = *cover;
            (kept.mode, kept.immutable) != (mode, immutable)
                || !kept.clone().cover().is_of_same(cover)
        });
        if all.len() == before { Ok(()) } else { self.save(&all, false) }
    }

    /// Takes the cover of a directory off, which says what it was like; says whether that is done. Where a mount
    /// lies on it, by whatever path, it stays as it is until that one ends.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn give_back(&self, below: &Underlay) -> std::io::Result<bool> {
        match below.uncover() {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => return Ok(false),
            uncovered => uncovered?,
        }
        if let Err(error) = self.forget(below.cover()) {
            let dir = below.cover().dir.shown();
            tracing::warn!(%dir, %error, "a cover that was taken off stays listed");
        }
        Ok(true)
    }

    /// The same of the directory that is called so now, if a cover of it is kept. One that is not found stays
    /// in the list.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn give_back_at(&self, dir: &Path) -> std::io::Result<bool> {
        if let Some((uid, gid)) = self.another_s() {
            let as_owner = || self.give_back_at_own(dir);
            return workfs_mount::as_user(uid, gid, as_owner)?;
        }
        self.give_back_at_own(dir)
    }

    fn give_back_at_own(&self, dir: &Path) -> std::io::Result<bool> {
        let below = match Underlay::open(dir) {
            // It stays listed: what it lies in may be mounted again.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotConnected) => {
                return Ok(false);
            }
            // Another file system is mounted there.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => return Ok(false),
            opened => opened?,
        };
        match self.of(&below) {
            Some(known) => {
                let below = below.covered_by(&known);
                let is_back = self.give_back(&below)?;
                // It may be called otherwise by now, or have been opened by somebody.
                if is_back && let Err(error) = self.forget(&known) {
                    tracing::warn!(dir = %dir.shown(), %error, "a cover stays listed");
                }
                Ok(is_back)
            }
            None => Ok(false),
        }
    }

    /// Keeps other processes of ours from the list: `unmount` without a daemon changes it, too, and what one reads
    /// before another has written would undo that. Where the directory cannot be read, nobody is.
    fn alone(&self) -> Option<Alone> {
        let dir = self.file.parent()?;
        let mut options = File::options();
        let opened = options.read(true).custom_flags(libc::O_DIRECTORY).open(dir);
        let dir = opened.ok()?;
        workfs_mount::hold(&dir, COVERS_WAIT);
        Some(Alone(dir))
    }

    /// Whose list it is, where this process is root and it is not root's.
    fn another_s(&self) -> Option<(u32, u32)> {
        let list = std::fs::symlink_metadata(&self.file).ok()?;
        let is_root = rustix::process::geteuid().is_root();
        (is_root && list.uid() != 0).then(|| (list.uid(), list.gid()))
    }

    fn load(&self) -> Vec<Kept> {
        self.read().map(|(all, _)| all).unwrap_or_else(|error| {
            tracing::warn!(file = %self.file.shown(), %error, "cannot read the covers");
            Vec::new()
        })
    }

    /// All, to be saved with a change. What somebody else has written down nobody else takes his: of what root did
    /// in no other list is believed.
    fn load_to_change(&self) -> std::io::Result<Vec<Kept>> {
        let another_s = |error: &dyn std::fmt::Display| {
            let list = self.file.shown();
            std::io::Error::other(format!("the list {list} cannot be changed: {error}"))
        };
        match self.read().map_err(|error| another_s(&error))? {
            (all, by) if by == rustix::process::geteuid().as_raw() => Ok(all),
            (_, by) => Err(another_s(&format!("it is user {by}'s"))),
        }
    }

    /// All, and whose list it is. That of somebody else, whom the system does not let change directories, is not
    /// believed.
    fn read(&self) -> std::io::Result<(Vec<Kept>, u32)> {
        let own = rustix::process::geteuid().as_raw();
        let mut file = match open_own(File::options().read(true), &self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok((Vec::new(), own));
            }
            opened => opened?,
        };
        let by = file.metadata()?.uid();
        if by != own && by != 0 {
            return Err(std::io::Error::other(format!("it is user {by}'s")));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let all = serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(file = %self.file.shown(), %error, "the list of covers is damaged");
            Vec::new()
        });
        Ok((all, by))
    }

    /// What was forgotten may come back after a power cut: to give a directory back twice is
    /// harmless. What was not written down is not given back.
    fn save(&self, all: &[Kept], flush: bool) -> std::io::Result<()> {
        if all.is_empty() {
            return match std::fs::remove_file(&self.file) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let mut new = self.file.as_os_str().to_owned();
        // Of this process alone: `unmount` without a daemon writes the list, too.
        new.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(new);
        // What lies there was left by one that was killed and had the same number, or is a trap.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = open_own(File::options().write(true).create_new(true), &new)?;
        let text = serde_json::to_vec(all).map_err(std::io::Error::other)?;
        let written = file
            .write_all(&text)
            .and_then(|()| if flush { file.sync_all() } else { Ok(()) })
            .and_then(|()| std::fs::rename(&new, &self.file))
            .and_then(|()| if flush { self.flush_name() } else { Ok(()) });
        if written.is_err() {
            // As good as gone: it is used by nobody.
            let _ = std::fs::remove_file(&new);
        }
        if flush {
            self.remove_left();
        }
        written
    }

    /// Makes the list's name survive power loss: the directory that is closed next may lie on another disk. Where its own
    /// cannot be opened, that is left to the system.
    fn flush_name(&self) -> std::io::Result<()> {
        match self.file.parent().map(File::open) {
            Some(Ok(dir)) => dir.sync_all(),
            _ => Ok(()),
        }
    }

    /// Removes what processes left that were killed while they wrote the list. One that is at it is done soon.
    fn remove_left(&self) {
        let (Some(dir), Some(list)) = (self.file.parent(), self.file.file_name()) else { return };
        let is_of_a_process = |entry: &DirEntry| {
            let name = entry.file_name();
            let end = name.as_bytes().strip_prefix(list.as_bytes());
            let number = end.and_then(|end| end.strip_prefix(b"."));
            number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
        };
        let is_old = |entry: &DirEntry| {
            let changed = entry.metadata().and_then(|found| found.modified()).ok();
            let age = changed.and_then(|at| at.elapsed().ok());
            age.is_some_and(|age| age > COVERS_WRITTEN_WITHIN)
        };
        let is_left = |entry: &DirEntry| is_of_a_process(entry) && is_old(entry);
        for left in std::fs::read_dir(dir).into_iter().flatten().flatten().filter(is_left) {
            if let Err(error) = std::fs::remove_file(left.path()) {
                tracing::debug!(%error, "what a killed process left of a list of covers stays");
            }
        }
    }
}

/// A directory that this process holds.
struct Alone(File);

impl Drop for Alone {
    fn drop(&mut self) {
        workfs_mount::let_go(&self.0);
    }
}

impl Kept {
    fn new(cover: &Cover, words: &str) -> Kept {
        let Cover { dir, device, ino, mode, immutable } = cover.clone();
        Kept { dir, device, ino, mode, immutable, words: words.to_owned() }
    }

    fn cover(self) -> Cover {
        let Kept { dir, device, ino, mode, immutable, .. } = self;
        Cover { dir, device, ino, mode, immutable }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    /// A directory of this name, and what is to be kept of it.
    fn directory(path: &Path) -> (Underlay, Cover) {
        std::fs::create_dir_all(path).unwrap();
        let below = Underlay::open(path).unwrap();
        let cover = below.cover().clone();
        (below, cover)
    }

    #[test]
    fn covers_are_kept_replaced_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let covers = Covers::kept_in(dir.path().join("t.db.covers"));
        let (a, one) = directory(&dir.path().join("a"));
        let (b, two) = directory(&dir.path().join("b"));
        covers.keep(&one, "").unwrap();
        covers.keep(&two, "").unwrap();
        covers.keep(&Cover { mode: 0o700, ..one.clone() }, "").unwrap();
        assert_eq!(covers.of(&a).unwrap().mode, 0o700);
        assert_eq!(covers.of(&b), Some(two.clone()));
        assert_eq!(covers.dirs(), [two.dir.clone(), one.dir.clone()]);
        covers.forget(&Cover { mode: 0o711, ..one.clone() }).unwrap();
        assert_eq!(covers.dirs().len(), 2, "another one of the same directory");
        covers.forget(&Cover { mode: 0o700, ..one.clone() }).unwrap();
        covers.forget(&two).unwrap();
        assert!(!dir.path().join("t.db.covers").exists());
        std::fs::write(dir.path().join("t.db.covers"), "{").unwrap();
        assert_eq!(covers.of(&a), None);
    }

    #[test]
    fn who_changes_a_list_does_so_on_top_of_what_others_have_just_changed() {
        let dir = tempfile::tempdir().unwrap();
        let list = || Covers::kept_in(dir.path().join("t.db.covers"));
        let all: Vec<Cover> =
            (0..16).map(|nth| directory(&dir.path().join(nth.to_string())).1).collect();
        // As of different processes, but for the name by which a list is written.
        let (one, other) = (list(), list());
        all[..8].iter().for_each(|cover| one.keep(cover, "").unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| all[8..].iter().for_each(|cover| one.keep(cover, "").unwrap()));
            all[..8].iter().for_each(|cover| other.forget(cover).unwrap());
        });
        let named = |covers: &[Cover]| covers.iter().map(|one| one.dir.clone()).collect::<Vec<_>>();
        assert_eq!(one.dirs(), named(&all[8..]));
    }

    #[test]
    fn what_who_was_killed_has_left_of_a_list_goes_with_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let covers = Covers::kept_in(dir.path().join("t.db.covers"));
        let (_, cover) = directory(&dir.path().join("m"));
        let before = std::time::SystemTime::now() - 2 * COVERS_WRITTEN_WITHIN;
        let names = ["t.db.covers.17", "t.db.covers.18", "t.db.covers.old", "other.covers.17"];
        for name in names {
            let file = File::create(dir.path().join(name)).unwrap();
            if name != "t.db.covers.18" {
                file.set_modified(before).unwrap();
            }
        }
        covers.keep(&cover, "").unwrap();
        let left: Vec<&str> =
            names.into_iter().filter(|name| dir.path().join(name).exists()).collect();
        assert_eq!(left, names[1..]);
    }

    #[test]
    fn a_directory_is_known_by_what_it_is_and_not_by_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let covers = Covers::kept_in(dir.path().join("t.db.covers"));
        let (old, new) = (dir.path().join("a"), dir.path().join("b"));
        let (below, cover) = directory(&old.join("m"));
        covers.keep(&cover, "").unwrap();
        below.apply().unwrap();
        assert_eq!(covers.left(), std::slice::from_ref(&cover.dir));
        std::fs::rename(&old, &new).unwrap();
        // What is not found may come back.
        assert!(!covers.give_back_at(&old.join("m")).unwrap());
        let (_, other) = directory(&old.join("m"));
        assert!(!covers.give_back_at(&old.join("m")).unwrap());
        covers.keep(&other, "").unwrap();
        assert!(covers.give_back_at(&new.join("m")).unwrap());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&new.join("m")), cover.mode);
        assert_eq!(covers.dirs(), std::slice::from_ref(&other.dir));
        // One that the system calls by another number after a new start.
        let (c, third) = directory(&dir.path().join("c"));
        covers.keep(&Cover { device: third.device + 1, ..third.clone() }, "").unwrap();
        c.apply().unwrap();
        assert!(covers.give_back_at(&third.dir).unwrap());
        assert_eq!(mode(&third.dir), third.mode);
        assert_eq!(covers.dirs(), [other.dir]);
    }

    #[test]
    fn a_directory_that_somebody_has_opened_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let covers = Covers::kept_in(dir.path().join("t.db.covers"));
        let (below, cover) = directory(&dir.path().join("m"));
        covers.keep(&Cover { mode: 0o777, ..cover.clone() }, "").unwrap();
        below.uncover().unwrap();
        std::fs::set_permissions(&cover.dir, Permissions::from_mode(0o711)).unwrap();
        assert!(covers.left().is_empty());
        assert!(covers.give_back_at(&cover.dir).unwrap());
        assert_eq!(std::fs::metadata(&cover.dir).unwrap().mode() & 0o7777, 0o711);
        assert!(covers.dirs().is_empty());
    }

    #[test]
    fn a_list_of_somebody_else_is_believed_as_far_as_they_may() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let covers = Covers::kept_in(dir.path().join("t.db.covers"));
        for owner in [None, Some(64_001)] {
            let (below, cover) = directory(&dir.path().join("m"));
            chown(&cover.dir, owner, owner).unwrap();
            covers.keep(&Cover { mode: 0o777, ..cover.clone() }, "").unwrap();
            chown(dir.path().join("t.db.covers"), Some(64_001), Some(64_001)).unwrap();
            std::fs::set_permissions(&cover.dir, Permissions::from_mode(0o555)).unwrap();
            assert_eq!(covers.of(&below), None);
            // Nor is it replaced or removed.
            assert!(covers.keep(&cover, "").is_err() && covers.forget(&cover).is_err());
            assert_eq!(std::fs::metadata(dir.path().join("t.db.covers")).unwrap().uid(), 64_001);
            let given_back = covers.give_back_at(&cover.dir);
            assert_eq!(given_back.is_ok(), owner.is_some(), "{given_back:?}");
            let mode = std::fs::metadata(&cover.dir).unwrap().mode() & 0o7777;
            assert_eq!(mode, if owner.is_some() { 0o777 } else { 0o555 });
            let _ = std::fs::remove_file(dir.path().join("t.db.covers"));
        }
    }
}
