//! One daemon a store: a lock file beside it, which dies with its holder, and names it; and a lock of
//! the store's file itself, since that may have another name, or lie in another place as well (a bind
//! mount, a container), with another lock file and another log beside it.
//!
//! What must stay true: the file's own lock is one of flock(2), which SQLite's do not meet.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use super::beside::{EXTENTS, in_the_way, is_in_the_way};
use super::log::room::MainFile;
use crate::names::Shown;
use crate::store::{Identity, Result, StoreError, beside, is_full, open_itself, open_own};

/// What a store's file is locked for.
#[derive(Clone, Copy)]
pub enum Use {
    /// By one alone.
    Write,
    /// Together with others who do not write.
    Read,
}

/// A held lock, of flock(2).
pub struct Lock(Arc<File>);

/// That of a store's main file itself.
pub struct MainLock(Lock);

impl Drop for Lock {
    fn drop(&mut self) {
        // Not left to the descriptor's end: a child that is just being started has a copy of it. If
        // it fails, that end is what is left.
        let _ = flock(&*self.0, FlockOperation::Unlock);
    }
}

/// Who has a lock of flock(2) on this file, by proc_locks(5). That is read by the page, and a lock is
/// missed when others before it go meanwhile; nor are those of another container in it. So it tells
/// who has a lock, and not whether somebody has.
fn locker(file: &File) -> Option<u32> {
    let ino = file.metadata().ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (kind, pid, place) = (words.next()?, words.nth(2)?, words.next()?);
        // The device's numbers are not compared: they may differ from those of stat(2).
        let is_it = kind == "FLOCK" && place.rsplit(':').next() == Some(&ino);
        is_it.then(|| pid.parse().ok()).flatten()
    })
}

/// What is read of a lock's file; far more than is noted there.
const NOTED_MAX_BYTES: usize = 4096;

/// How often it is looked for where nothing else names it.
const LOCKER_LOOKS: usize = 3;

/// The lock file of the store at `path`.
pub fn lock_path(path: &Path) -> PathBuf {
    beside(path, ".lock")
}

/// The files of a store: its log, the index of that, what its making was to be taken back by, what of big files
/// lies beside it, itself.
pub const FILES: [&str; 5] = ["-wal", "-shm", "-journal", EXTENTS, ""];

/// The bytes of one of them; 0 where there is none. Not its length: what was given back of big files is holes. Nor
/// all that it takes: there is room ahead, for as long as somebody has the store.
pub(super) fn bytes_of(store: &Path, end: &str) -> u64 {
    let file = std::fs::metadata(beside(store, end));
    file.map_or(0, |file| file.len().min(file.blocks() * 512))
}

/// Removes a store's files. Only for whoever has the store's lock.
///
/// # Errors
/// If the file cannot be removed; then nothing is.
pub fn remove_files(path: &Path) -> std::io::Result<()> {
    std::fs::remove_file(path)?;
    for end in FILES {
        match std::fs::remove_file(beside(path, end)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Where a backup is put and checked before it becomes the store at `path`.
#[must_use]
pub fn restoring_path(path: &Path) -> PathBuf {
    beside(path, ".restoring")
}

/// Removes what a restoring that was killed has left. For whoever has the store's lock, as a restoring that goes on has.
pub(super) fn remove_restoring(path: &Path) {
    let aside = restoring_path(path);
    for end in FILES.into_iter().chain([".lock"]) {
        // Most often there is none.
        let _ = std::fs::remove_file(beside(&aside, end));
    }
}

/// Whether it is one of the files of the store at `path`, by whatever name.
#[must_use]
pub fn is_of_store(path: &Path, file: Identity) -> bool {
    let beside = FILES.into_iter().map(|end| beside(path, end));
    beside.chain([path.to_owned(), lock_path(path)]).any(|own| file.has_name(&own))
}

/// Whether a file of this name, which may not be there, would be taken for one of the store's at `path`.
#[must_use]
pub fn is_name_of_store(path: &Path, name: &Path) -> bool {
    let of =
        |store: &Path| FILES.into_iter().chain([".lock"]).any(|end| *name == *beside(store, end));
    of(path) || of(&restoring_path(path))
}

/// Removes the lock of a store that was removed, unless another store was made there. False if somebody has it.
#[must_use]
pub fn remove_lock(path: &Path) -> bool {
    let Ok(held) = Lock::take(path) else { return false };
    if !path.exists() {
        held.remove(path);
    }
    true
}

impl Lock {
    /// Removes the file of the lock while it is held: whoever waits for it sees that it is
    /// nobody's, and makes another.
    pub fn remove(&self, path: &Path) {
        let removed = self.identity().and_then(|own| own.remove(&lock_path(path)));
        if let Err(error) = removed {
            tracing::warn!(%error, "the lock that nobody needs stays");
        }
    }

    /// Which file is locked.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn identity(&self) -> std::io::Result<Identity> {
        self.0.metadata().map(|found| Identity::of(&found))
    }

    /// Takes the lock, and says whether there was none before.
    ///
    /// # Errors
    /// As [`Lock::take`].
    pub fn take_first(path: &Path) -> Result<(Lock, bool)> {
        let is_first = !lock_path(path).exists();
        Ok((Lock::take(path)?, is_first))
    }

    /// Takes the lock of the store at `path`, or says who has it.
    ///
    /// # Errors
    /// Held by another process, or not to be written.
    pub fn take(path: &Path) -> Result<Lock> {
        let lock = lock_path(path);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let failed = |what: &str, error: std::io::Error| {
            StoreError::of_writing(&format!("{what} {}", lock.shown()), &error)
        };
        let is_first = !lock.exists();
        let mut file =
            open_own(&mut options, &lock).map_err(|error| match is_in_the_way(&error) {
                true => in_the_way(&lock, path, &error, ""),
                false => failed("opening", error),
            })?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let path = path.shown();
            // Those who only read share it; what else there was has left its number behind.
            return match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => Err(StoreError::BeingRead { path }),
                Err(_) => Err(StoreError::Held { path, pid: holder(&mut file) }),
            };
        }
        // Whoever had it may have removed it meanwhile: then this one is nobody's lock.
        let own = file.metadata().map_err(|error| failed("looking at", error))?.ino();
        if !std::fs::metadata(&lock).is_ok_and(|there| there.ino() == own) {
            return Lock::take(path);
        }
        let held = Lock(Arc::new(file));
        match held.write(&held.noted()) {
            // It is held all the same; who asks hears no number.
            Err(error) if is_full(error.kind()) => tracing::debug!(%error, "the lock names nobody"),
            write => write.map_err(|error| failed("writing", error))?,
        }
        if is_first && let Err(error) = give_to_owner(&held.0, path) {
            tracing::warn!(%error, "the store's owner cannot open its lock");
        }
        Ok(held)
    }

    /// What was noted in its file, by whoever had it; nothing where that cannot be read.
    pub(super) fn noted(&self) -> Vec<String> {
        let mut text = vec![0; NOTED_MAX_BYTES];
        let read = self.0.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..read]);
        text.lines().skip(1).map(str::to_owned).collect()
    }

    /// Notes this in its file, in place of what was noted, and has it on the disk.
    ///
    /// # Errors
    /// No space, or the disk fails: then nothing is noted.
    pub(super) fn note(&self, noted: &[String]) -> std::io::Result<()> {
        let written = self.write(noted).and_then(|()| self.0.sync_data());
        written.or_else(|error| self.write(&[]).and(Err(error)))
    }

    /// Over what is there: a full disk takes that, too.
    fn write(&self, noted: &[String]) -> std::io::Result<()> {
        let lines = noted.iter().map(|line| format!("{line}\n"));
        let text = format!("{}\n{}", std::process::id(), lines.collect::<String>());
        self.0.write_all_at(text.as_bytes(), 0)?;
        self.0.set_len(text.len() as u64)
    }

    /// Takes the lock together with others who only read; `None` where there is none, since nobody
    /// has served the store there.
    ///
    /// # Errors
    /// Held by a process that writes, or not to be read: then that cannot be told.
    pub fn share(path: &Path) -> Result<Option<Lock>> {
        let lock = lock_path(path);
        let mut file = match open_itself(File::options().read(true), &lock) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let about = "whether somebody writes it cannot be told: ";
                if is_in_the_way(&error) {
                    return Err(in_the_way(&lock, path, &error, about));
                }
                return Err(StoreError::Unreadable(format!("{about}{}: {error}", lock.shown())));
            }
        };
        if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
            let (path, pid) = (path.shown(), holder(&mut file));
            return Err(StoreError::Held { path, pid });
        }
        Ok(Some(Lock(Arc::new(file))))
    }
}

impl MainLock {
    /// Which file is locked.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn identity(&self) -> std::io::Result<Identity> {
        self.0.identity()
    }

    /// The disk that the locked file lies on.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn disk(&self) -> std::io::Result<rustix::fs::StatVfs> {
        Ok(rustix::fs::fstatvfs(&*self.0.0)?)
    }
}

/// What root makes beside a store, or puts in its place, is its owner's, who opens it after root (SQLite does so with
/// the log).
///
/// # Errors
/// If it cannot be given away.
pub fn give_to_owner(made: &File, store: &Path) -> std::io::Result<()> {
    let Ok(store) = std::fs::metadata(store) else { return Ok(()) };
    if rustix::process::geteuid().is_root() && store.uid() != 0 {
        std::os::unix::fs::fchown(made, Some(store.uid()), Some(store.gid()))?;
    }
    Ok(())
}

/// Locks the file of the store at `path` itself, which somebody may have open by another name.
///
/// # Errors
/// Held by a process that writes it; if it is to be written itself, by any.
pub fn lock_main(path: &Path, main: &MainFile, use_it: Use) -> Result<MainLock> {
    let operation = match use_it {
        Use::Write => FlockOperation::NonBlockingLockExclusive,
        Use::Read => FlockOperation::NonBlockingLockShared,
    };
    if flock(&**main, operation).is_ok() {
        return Ok(MainLock(Lock(Arc::clone(main))));
    }
    let pid = (0..LOCKER_LOOKS).find_map(|_| locker(main));
    let (path, pid) = (path.shown(), pid.unwrap_or(0));
    Err(StoreError::HeldElsewhere { path, pid })
}

/// The process that has the lock of the store at `path` for itself; 0 if it cannot be told. Not to be asked again and
/// again: while the system's list of locks is read nobody takes or leaves any, the holder itself neither.
#[must_use]
pub fn lock_holder(path: &Path) -> Option<u32> {
    held(path).map(|mut file| locker(&file).unwrap_or_else(|| holder(&mut file)))
}

/// The same by the number that it left, which may be another's where that process is of another container.
#[must_use]
pub fn named_holder(path: &Path) -> Option<u32> {
    held(path).map(|mut file| holder(&mut file))
}

/// The number of the process that was the last to have the lock of the store at `path` for itself; `None` where none
/// has left its own.
#[must_use]
pub fn last_holder(path: &Path) -> Option<u32> {
    number(&std::fs::read_to_string(lock_path(path)).ok()?)
}

/// Whether a process has the lock of the store at `path` for itself.
#[must_use]
pub fn is_held(path: &Path) -> bool {
    held(path).is_some()
}

/// The file of a lock that somebody has. To know it, the lock is shared for a moment where nobody has it: whoever
/// takes it just then tries again.
fn held(path: &Path) -> Option<File> {
    let file = open_itself(File::options().read(true), &lock_path(path)).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(_) => Some(file),
        Ok(()) => {
            drop(Lock(Arc::new(file)));
            None
        }
    }
}

/// Who says to have the lock. An unreadable number is reported as 0: the lock is what counts.
fn holder(lock: &mut File) -> u32 {
    let mut pid = String::new();
    let _ = lock.read_to_string(&mut pid);
    // On a full disk nobody could leave it.
    number(&pid).or_else(|| locker(lock)).unwrap_or(0)
}

/// The number of a process with which a lock's file begins.
fn number(text: &str) -> Option<u32> {
    text.lines().next()?.trim().parse().ok()
}

/// Refuses network file systems, on which neither locks nor shared memory can be trusted.
pub fn refuse_network(path: &Path) -> Result<()> {
    const NETWORK: &[(u64, &str)] = &[
        (0x6969, "nfs"),
        (0xff53_4d42, "cifs"),
        (0xfe53_4d42, "smb2"),
        (0x517b, "smb"),
        (0x0102_1997, "9p"),
        (0x7375_7245, "coda"),
        (0x5346_414f, "afs"),
        (0x00c3_6400, "ceph"),
        (0x6573_5546, "fuse"),
    ];
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(stat) = rustix::fs::statfs(parent) else { return Ok(()) };
    let magic = stat.f_type as u64 & 0xffff_ffff;
    match NETWORK.iter().find(|(known, _)| *known == magic) {
        Some((_, fs)) => Err(StoreError::Network { path: path.shown(), fs: (*fs).to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn who_has_the_lock_is_seen_while_others_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let others: Vec<File> = (0..200)
            .map(|number| File::create(dir.path().join(number.to_string())).unwrap())
            .collect();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // What is before our lock in the system's list goes and comes while the list is read.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for operation in [FlockOperation::LockExclusive, FlockOperation::Unlock] {
                        others.iter().for_each(|other| flock(other, operation).unwrap());
                    }
                }
            });
            assert_eq!(lock_holder(&path), None);
            let held = Lock::take(&path).unwrap();
            let seen = (0..500).filter(|_| lock_holder(&path) == Some(std::process::id()));
            let seen = seen.count();
            drop(held);
            let after = lock_holder(&path);
            is_over.store(true, Ordering::Relaxed);
            assert_eq!((seen, after), (500, None));
        });
    }
}
