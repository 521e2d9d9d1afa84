//! The mount point before a mount: is it one, is it free, is a dead mount to be taken away?
//!
//! What must stay true: looking never hangs; nothing that somebody wrote is hidden unasked.
//! Deliberately not here: mounting.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use workfs_mount::{DirState, Mount, Underlay, Unmounting, detach_dead, state_of};

use super::covers::Covers;
use super::mount_table;
use crate::daemon::failure::{Cause, Failure};
use crate::daemon::paths::{answered, await_answer, from_root};
use crate::daemon::spawn::LOOK_AGAIN;
use crate::limits::UNMOUNT_PATIENCE;
use crate::names::{Shown, shell_word};

/// The way out where fusermount3 has no rights of root.
pub(super) const NO_RIGHTS: &str = "`workfs doctor` says whether fusermount3 has root's rights here; unmount outside of \
                                    this sandbox, or as root (`umount -l`)";

/// How many names are told.
pub const NAMED_MAX: usize = 5;

/// The absolute path of a directory, without symbolic links; a mount on its end is not asked
/// anything, since it may be dead.
///
/// # Errors
/// If it is not UTF-8, or what leads to it cannot be looked at, or does not answer.
pub fn resolve(dir: &Path) -> Result<PathBuf, Failure> {
    let given = dir.to_owned();
    answered(dir, move || resolved(&given))?
}

fn resolved(dir: &Path) -> Result<PathBuf, Failure> {
    let io = |error: std::io::Error| {
        let remedy = match error.raw_os_error() {
            Some(libc::ENAMETOOLONG) => {
                "a path has 4,095 bytes at most, from the root on, and each name 255"
            }
            Some(libc::EACCES | libc::EPERM) => "name a directory that you may come to",
            _ => "name a directory that is there, by its whole path",
        };
        Failure { remedy: remedy.into(), ..Failure::io(dir.shown(), &error) }
    };
    let given: PathBuf = from_root(dir).map_err(io)?.components().collect();
    let place = match (given.parent(), given.file_name()) {
        (Some(parent), Some(name)) if mount_table::at(&given).is_none() => {
            let place = match parent.canonicalize() {
                Ok(parent) => parent.join(name),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => given.clone(),
                Err(error) => return Err(io(error)),
            };
            let is_link = mount_table::at(&place).is_none() && place.is_symlink();
            let place = if is_link { place.canonicalize().map_err(io)? } else { place };
            await_answer(&place);
            place
        }
        _ => given,
    };
    if place.to_str().is_none() {
        let reason = format!("{} is not UTF-8", place.shown());
        return Err(Failure::new(Cause::Usage, reason, "mount on a directory with another name"));
    }
    Ok(place)
}

/// A directory that a mount left read-only which no list knows any more: a store that was removed after a
/// crash takes the list of them along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftCovered {
    /// What is to be said of it.
    pub found: String,
    /// How it is given back.
    pub remedy: String,
}

impl std::fmt::Display for LeftCovered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; to give it back: {}", self.found, self.remedy)
    }
}

impl LeftCovered {
    /// What is told of such a directory.
    #[must_use]
    pub fn of(dir: &Path) -> LeftCovered {
        let found = format!(
            "{} is immutable and read-only, also where nothing is mounted: so a daemon that was killed leaves \
             it, but the list beside this store has nothing of it",
            dir.shown()
        );
        let word = shell_word(dir.as_os_str().as_encoded_bytes());
        let remedy = format!("as root `chattr -i {word} && chmod u+w {word}`");
        LeftCovered { found, remedy }
    }
}

/// Whether `dir`, of which no cover is kept, looks like such a one.
#[must_use]
pub fn left_covered(dir: &Path) -> Option<LeftCovered> {
    let below = Underlay::open(dir).ok().filter(Underlay::looks_covered)?;
    // Where a directory above is bound elsewhere, a mount may lie on it there.
    let is_left = !below.lies_below_a_mount().unwrap_or(false);
    is_left.then(|| LeftCovered::of(dir))
}

/// What is said of files that lie in a directory that is to be mounted on.
#[derive(Clone, Copy)]
pub struct IfFiles {
    /// They may: `--nonempty` was asked.
    pub nonempty: bool,
    /// A daemon was killed that had covered it, and somebody has opened it since.
    pub crashed: bool,
}

/// Fails unless `dir`, which was found in this state, can be mounted on; changes nothing.
///
/// # Errors
/// If it is no directory, has something mounted on it (a dead mount is one that could not be detached), or has
/// files and `nonempty` is not asked.
pub fn expect_free(
    dir: &Path,
    state: DirState,
    if_files: IfFiles,
) -> Result<Option<String>, Failure> {
    match state {
        DirState::Unreadable(_) => {
            let way_out = "mount on a directory outside of it, or as that user";
            hidden_by_another(dir, way_out).map_or(Ok(None), Err)
        }
        DirState::Plain { entries, .. } => occupied(dir, &entries, if_files),
        DirState::Mounted { fs_type, source } if fs_type.starts_with("fuse") => {
            let source = crate::names::printable(source.as_encoded_bytes());
            let dir_name = dir.shown();
            let word = shell_word(dir.as_os_str().as_encoded_bytes());
            let reason = format!("{dir_name} is mounted already ({fs_type}, {source})");
            // Of such a one it is not even told whether it is dead.
            let own = rustix::process::geteuid();
            let another = mount_table::at(dir).and_then(|line| line.user);
            let remedy = match another.filter(|user| !own.is_root() && *user != own.as_raw()) {
                Some(user) => format!(
                    "it is user {user}'s, perhaps left by a daemon that was killed: that user or root can \
                     unmount it (`workfs unmount {word}`)"
                ),
                None => format!("unmount it first (`workfs unmount {word}`)"),
            };
            Err(Failure::new(Cause::Conflict, reason, remedy))
        }
        // A volume of the machine or of the container: as good as a directory.
        DirState::Mounted { .. } => {
            let entries = std::fs::read_dir(dir).map_err(|e| Failure::io(dir.shown(), &e))?;
            let names: Vec<OsString> =
                entries.flatten().take(NAMED_MAX + 1).map(|entry| entry.file_name()).collect();
            occupied(dir, &names, if_files)
        }
        DirState::Absent => {
            let reason = format!("{} does not exist", dir.shown());
            Err(Failure::new(Cause::Absent, reason, "make it first (`mkdir`)"))
        }
        DirState::NotADirectory => {
            let reason = format!("{} is not a directory", dir.shown());
            Err(Failure::new(Cause::Usage, reason, "name a directory to mount on"))
        }
        DirState::Dead => {
            let reason = format!("{} is a dead mount that cannot be detached", dir.shown());
            let word = shell_word(dir.as_os_str().as_encoded_bytes());
            let remedy = format!("detach it as root (`umount -l {word}`)");
            Err(Failure::new(Cause::Mount, reason, remedy))
        }
    }
}

/// The failure of a directory that cannot be looked at since it lies in another user's mount, which is shown to that
/// user alone: root is nobody else there.
fn hidden_by_another(dir: &Path, way_out: &str) -> Option<Failure> {
    let own = rustix::process::geteuid().as_raw();
    let mount = mount_table::around(dir).filter(|mount| mount.is_fuse() && mount.dir != *dir)?;
    let user = mount.user.filter(|user| *user != own)?;
    // The kernel says so of the mount itself, and asks nobody.
    let looked = std::fs::symlink_metadata(&mount.dir).err()?;
    if looked.kind() != std::io::ErrorKind::PermissionDenied {
        return None;
    }
    let (shown, place, source) = (dir.shown(), mount.dir.shown(), mount.source.shown());
    let reason = format!(
        "{shown} lies in {place}, a mount of {source} that is shown to user {user} alone, and not to root"
    );
    Some(Failure::new(Cause::Denied, reason, way_out))
}

/// What to say about files in a mount point, if there are any: a note where they may stay, else a failure.
///
/// # Errors
/// If there are files and `nonempty` is not asked.
pub fn occupied(
    dir: &Path,
    entries: &[OsString],
    if_files: IfFiles,
) -> Result<Option<String>, Failure> {
    if entries.is_empty() {
        return Ok(None);
    }
    let names = entries.iter().map(|name| crate::names::printable(name.as_encoded_bytes()));
    let named = crate::names::first_few(names, NAMED_MAX);
    let when = if if_files.crashed { " (perhaps written while nothing was mounted)" } else { "" };
    let found = format!("{} has files{when}: {named}", dir.shown());
    if if_files.nonempty {
        return Ok(Some(format!("{found}; they are hidden until it is unmounted")));
    }
    let remedy = "move them away (`workfs import` takes them in), or mount over them with \
                  `--nonempty`: they are hidden then";
    Err(Failure::new(Cause::Conflict, found, remedy))
}

/// Fails where other mounts lie in one, which would go with it, or keep it.
///
/// # Errors
/// If there are any; they are named.
pub fn expect_nothing_inside(dir: &Path) -> Result<(), Failure> {
    let Some(named) = named_inside(dir) else { return Ok(()) };
    let what = if is_dead(dir) { "a dead mount" } else { "a mount" };
    let reason = format!("{} is {what}, and others lie in it: {named}", dir.shown());
    let remedy = format!(
        "unmount those first, or take all of them from sight (`workfs unmount --lazy {}`)",
        shell_word(dir.as_os_str().as_encoded_bytes())
    );
    Err(Failure::new(Cause::Conflict, reason, remedy))
}

/// The first of the mounts that lie in the one on `dir`, as they are told; `None` if none does.
pub fn named_inside(dir: &Path) -> Option<String> {
    let inside = mount_table::inside(dir);
    let named = inside.iter().map(|mount| {
        let place = crate::names::printable(mount.dir.as_os_str().as_encoded_bytes());
        format!("{place} ({})", mount.fs_type)
    });
    (!inside.is_empty()).then(|| crate::names::first_few(named, NAMED_MAX))
}

/// Whether a mount's process is gone.
#[must_use]
pub fn is_dead(dir: &Path) -> bool {
    state_of(dir) == DirState::Dead
}

/// What `workfs unmount` does where no daemon knows the directory: takes a dead mount away and
/// gives the directory back. Says what was done; `None` if there was nothing to do.
///
/// # Errors
/// If the system refuses, or another mount lies in a dead one and is not to go with it (it does so lazily).
pub fn clean_up(dir: &Path, covers: &Covers, how: Unmounting) -> Result<Option<String>, Failure> {
    let io = |error| Failure::io(dir.shown(), &error);
    mount_table::expect_told()?;
    let dead = is_dead(dir);
    if dead {
        if how == Unmounting::IfUnused {
            expect_nothing_inside(dir)?;
        }
        detach_dead(dir).map_err(|error| io(error).if_denied(NO_RIGHTS))?;
    } else if mount_table::at(dir).is_some_and(|mount| mount.is_workfs()) {
        // It lives, only that its daemon cannot be asked: who serves it gives the directory back.
        return Ok(None);
    }
    let was_covered = covers.give_back_at(dir).map_err(|error| {
        let failure = io(error).if_denied("name a directory that you may come to");
        match failure.cause {
            Cause::Denied => hidden_by_another(dir, "unmount it as that user").unwrap_or(failure),
            _ => failure,
        }
    })?;
    Ok(match (dead, was_covered) {
        (true, _) => Some(format!("{} was a dead mount; it was detached", dir.shown())),
        (false, true) => Some(format!("{} is writable again", dir.shown())),
        (false, false) => None,
    })
}

/// Unmounts.
///
/// # Errors
/// As [`Mount::unmount`].
pub fn unmount(mount: &Mount) -> std::io::Result<()> {
    patiently(|| mount.unmount())
}

/// Unmounts what lies on `dir` and is nobody's in this process.
///
/// # Errors
/// If it is in use, or the system refuses.
pub fn unmount_at(dir: &Path, how: Unmounting) -> Result<(), Failure> {
    patiently(|| workfs_mount::unmount(dir, how)).map_err(|error| in_use(dir, &error))
}

/// What is in use for a moment only is waited for: a program that another one just starts has the other's
/// descriptors until it runs. No event tells when.
fn patiently(unmount: impl Fn() -> std::io::Result<()>) -> std::io::Result<()> {
    let begin = Instant::now();
    loop {
        match unmount() {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY)
                    && begin.elapsed() < UNMOUNT_PATIENCE =>
            {
                std::thread::sleep(LOOK_AGAIN);
            }
            ended => return ended,
        }
    }
}

/// Ends a mount that is in use. The mounts that lie in it go along: nobody may be there any more who could be
/// asked.
pub fn cut_off(mount: &Mount) {
    if let Some(dir) = mount.place()
        && let Some(inside) = named_inside(&dir)
    {
        tracing::warn!(dir = %dir.shown(), %inside, "the mounts in it go along");
    }
    if let Err(error) = mount.cut_off() {
        tracing::warn!(dir = %mount.dir().shown(), %error, "in use until the daemon ends");
    }
}

/// Why a directory cannot be unmounted.
pub fn in_use(dir: &Path, error: &std::io::Error) -> Failure {
    if error.raw_os_error() != Some(libc::EBUSY) {
        return Failure::io(format!("unmounting {}", dir.shown()), error).if_denied(NO_RIGHTS);
    }
    Failure::new(
        Cause::Conflict,
        format!("{} is in use: a process has a file open or its directory in it", dir.shown()),
        "end it, or take the mount from sight all the same with `--lazy`",
    )
}

/// Removes a directory that was made for a mount, where whoever made it did not: that user's own,
/// and only while it is empty.
pub fn remove_own(dir: &Path, uid: u32) {
    let own = std::fs::symlink_metadata(dir).is_ok_and(|found| found.uid() == uid);
    if own && let Err(error) = std::fs::remove_dir(dir) {
        tracing::warn!(dir = %dir.shown(), %error, "a mount's own directory stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("m")).unwrap();
        std::os::unix::fs::symlink("m", real.join("link")).unwrap();
        assert_eq!(resolve(&real.join("link/")).unwrap(), real.join("m"));
        assert_eq!(resolve(&real.join("none")).unwrap(), real.join("none"));
    }
}
