//! Where a store lies, and what lies beside it: socket, log, list of covered directories.
//!
//! What must stay true: one store has one set of paths, however it was named; beside a store that
//! cannot be written nothing is made: there they lie in a directory of the user's own, which nobody
//! else can have made. Deliberately not here: which store is meant if none is named (`cli`).

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf, absolute};

use workfs_mount::MountLine;

use super::failure::{Cause, Failure};
use super::mounts::mount_table;
use super::socket;
use crate::limits::{MOUNT_ANSWER_WAIT, NAME_BYTES_MAX, STORE_PATH_BYTES_MAX};
use crate::names::Shown;
use crate::store::sqlite::{refuse_other, write_protection};
use crate::store::{OWN_STORE, beside, is_made};

/// The way out where others can put something into the directory for sockets and logs, or have made it.
const OWN_DIRECTORY: &str =
    "set XDG_RUNTIME_DIR to a directory of your own, or have that one removed";

/// A store and what lies beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePaths {
    store: PathBuf,
    /// What is beside it begins so.
    beside: PathBuf,
}

impl StorePaths {
    /// The store at `given`, which need not exist.
    ///
    /// # Errors
    /// A directory, no file name, a name that is not UTF-8 or too long, a link to nothing, a place below what
    /// is no directory or inside a mount of workfs, or one that cannot be looked at.
    pub fn of(given: &Path) -> Result<StorePaths, Failure> {
        let io = |error| Failure::io(format!("the store {}", given.shown()), &error);
        let wrong = |why: &str| {
            let reason = format!("{} cannot be a store: {why}", given.shown());
            Failure::new(Cause::Usage, reason, "name a file, such as team.db")
        };
        if given.as_os_str().is_empty() {
            return Err(wrong("it has no name"));
        }
        let path = from_root(given).map_err(|error| {
            let remedy = "name it by its whole path, from the root on".to_owned();
            Failure { remedy, ..io(error) }
        })?;
        // Before anything there is looked at: a stopped daemon would not answer.
        refuse_own_mount(&path)?;
        let path = if path.exists() { path.canonicalize().map_err(io)? } else { canonical(&path) };
        refuse_own_mount(&path)?;
        if let Some(what) = std::fs::metadata(&path).ok().and_then(|found| no_file(&found)) {
            return Err(wrong(what));
        }
        if path.file_name().is_none() {
            return Err(wrong("it has no name"));
        }
        if path.to_str().is_none() {
            return Err(wrong("its path is not UTF-8"));
        }
        if let Some(why) = leads_nowhere(&path) {
            return Err(wrong(&why));
        }
        let (bytes, most) = (path.as_os_str().len(), STORE_PATH_BYTES_MAX);
        if bytes > most {
            return Err(wrong(&format!("its path has {bytes} bytes, and SQLite takes {most}")));
        }
        let elsewhere = write_protection(&path).and_then(|_| away_from(&path));
        let paths = StorePaths { beside: elsewhere.unwrap_or_else(|| path.clone()), store: path };
        if !socket::has_address(&paths.socket()) {
            let bytes = paths.socket().file_name().map_or(0, |name| name.len());
            return Err(wrong(&format!(
                "its name is too long: its socket's would have {bytes} bytes"
            )));
        }
        Ok(paths)
    }

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// What `/proc/mounts` shows as the source of the store's mounts.
    #[must_use]
    pub fn source(&self) -> String {
        self.store.to_string_lossy().into_owned()
    }

    /// The control socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.beside(".sock")
    }

    /// Where its daemon may listen: one that is running began when the store could still be
    /// written, or when it could not yet.
    pub(super) fn sockets(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let [first, second] = [Some(self.store.clone()), away_from(&self.store)];
        [first, second].into_iter().flatten().map(|beginning| beside(&beginning, ".sock"))
    }

    /// Makes the directory of what lies beside the store.
    ///
    /// # Errors
    /// If it cannot be made, or is not this user's alone where it is not the store's.
    pub fn make_directory(&self) -> Result<(), Failure> {
        let Some(parent) = self.beside.parent() else { return Ok(()) };
        let own = own_directory();
        if self.beside == self.store && own.exists() && !is_own(&own) {
            // Nothing is made beside a store that cannot be written, nor where others can.
            if let Some(why) = write_protection(&self.store) {
                let reason = format!(
                    "the store cannot be written ({why}), and {}, where socket and log of its daemon \
                     would lie, is not this user's alone",
                    own.shown()
                );
                return Err(Failure::new(Cause::Denied, reason, OWN_DIRECTORY));
            }
        }
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
        let is_the_store_s = self.beside == self.store;
        made.map_err(|error| {
            let failure = Failure::io(format!("making {}", parent.shown()), &error);
            match failure.cause {
                _ if is_the_store_s => failure.if_denied(OWN_STORE),
                // Who becomes another user may bring the other's variable along, and one may be set to nothing that
                // is there.
                Cause::Denied | Cause::Absent | Cause::Usage => {
                    let remedy = "set XDG_RUNTIME_DIR to a directory of your own, or unset it";
                    Failure::new(Cause::Denied, failure.reason, remedy)
                }
                _ => failure,
            }
        })?;
        if is_the_store_s || is_own(parent) {
            return Ok(());
        }
        let reason = format!("{} is not this user's alone", parent.shown());
        Err(Failure::new(Cause::Denied, reason, OWN_DIRECTORY))
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

    /// Whether there is a store. An empty file is none yet.
    #[must_use]
    pub fn exists(&self) -> bool {
        is_made(&self.store)
    }

    /// What is to be told of a store that others may read, before it is opened to be written: then they may no more.
    #[must_use]
    pub fn closes_to_others(&self) -> Option<String> {
        let found = std::fs::metadata(&self.store).ok()?;
        let (mode, uid) = (found.mode() & 0o7777, rustix::process::geteuid());
        let closes = mode & 0o077 != 0 && (uid.is_root() || uid.as_raw() == found.uid());
        let is_written = self.exists()
            && refuse_other(&self.store).is_ok()
            && write_protection(&self.store).is_none();
        (closes && is_written).then(|| {
            format!(
                "makes {} its owner's alone (0600; it had the mode {mode:04o}): who reads the file passes by all \
                 modes in it. Others come to it by a mount (`-o allow_other`)",
                self.store.shown()
            )
        })
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        beside(&self.beside, suffix)
    }
}

/// What something is that is no file.
fn no_file(found: &std::fs::Metadata) -> Option<&'static str> {
    use rustix::fs::FileType;
    match FileType::from_raw_mode(found.mode()) {
        FileType::RegularFile => None,
        FileType::Directory => Some("it is a directory"),
        FileType::Fifo => Some("it is a pipe"),
        FileType::Socket => Some("it is a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("it is a device"),
        _ => Some("it is no file"),
    }
}

/// What no file can lie at, whatever directories are made, and why. Links were followed as far as they lead.
fn leads_nowhere(path: &Path) -> Option<String> {
    if path.components().any(|part| part == Component::ParentDir) {
        return Some("its path leads up (`..`) from a directory that is not there".to_owned());
    }
    let names = path.iter().map(|name| name.len());
    if let Some(bytes) = names.max().filter(|bytes| *bytes > NAME_BYTES_MAX) {
        return Some(format!("a name in its path has {bytes} bytes, of at most {NAME_BYTES_MAX}"));
    }
    let there = path.ancestors().find_map(|at| Some((at, std::fs::symlink_metadata(at).ok()?)));
    let (at, found) = there?;
    let what = if at == path { "it".to_owned() } else { at.shown() };
    if found.is_symlink() {
        return Some(format!("{what} is a symbolic link to what is not there"));
    }
    (at != path && !found.is_dir()).then(|| format!("{what} is no directory"))
}

/// How the names begin of what cannot lie beside the store; `None` where there is no store. The
/// same for one file, wherever it is bound to.
fn away_from(store: &Path) -> Option<PathBuf> {
    let found = std::fs::metadata(store).ok()?;
    let dir = own_directory();
    (!dir.exists() || is_own(&dir)).then(|| dir.join(format!("{}-{}", found.dev(), found.ino())))
}

/// A directory of this user's for sockets and logs.
fn own_directory() -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    if let Some(dir) = named.filter(|dir| dir.is_absolute()) {
        return dir.join("workfs");
    }
    let uid = rustix::process::geteuid();
    let of_session = PathBuf::from(format!("/run/user/{}", uid.as_raw()));
    match (uid.is_root(), of_session.is_dir()) {
        (true, _) => PathBuf::from("/run/workfs"),
        (false, true) => of_session.join("workfs"),
        (false, false) => PathBuf::from(format!("/tmp/workfs-{}", uid.as_raw())),
    }
}

/// Whether nobody else can put anything into a directory.
fn is_own(dir: &Path) -> bool {
    let uid = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(dir)
        .is_ok_and(|dir| dir.is_dir() && dir.uid() == uid && dir.mode() & 0o022 == 0)
}

/// The absolute path. Steps up at its beginning are made without asking anything, since the working
/// directory may lie in a mount that does not answer; it has no symbolic links, so that they are right.
/// Others, behind a name that may be a link, are made as the system makes them.
pub(crate) fn from_root(path: &Path) -> std::io::Result<PathBuf> {
    let mut rest = path.components().peekable();
    let mut steps = 0;
    let is_step = |part: &Component<'_>| matches!(part, Component::ParentDir | Component::CurDir);
    while let Some(step) = rest.next_if(is_step) {
        steps += usize::from(step == Component::ParentDir);
    }
    let path = match steps {
        0 => absolute(path)?,
        steps => {
            let here = std::env::current_dir()?;
            let from = here.ancestors().nth(steps).unwrap_or(Path::new("/"));
            from.join(rest.collect::<PathBuf>())
        }
    };
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    Ok(if goes_up { canonical(&path) } else { path })
}

/// What `ask` finds out about a path, which may lie in a mount that does not answer, or lead into one.
///
/// # Errors
/// If there is no answer.
pub fn answered<T: Send + 'static>(
    path: &Path,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let shown = path.shown();
    let answer = workfs_mount::within(MOUNT_ANSWER_WAIT, ask);
    let answer = answer.map_err(|error| Failure::start(format!("looking at {shown}"), &error))?;
    answer.ok_or_else(|| {
        let around = absolute(path).ok().and_then(|path| mount_table::around(&path));
        let reason = match around.filter(MountLine::is_fuse) {
            Some(mount) => {
                let (dir, source) = (mount.dir.shown(), mount.source.shown());
                format!("{shown} does not answer: it lies in {dir}, a mount of {source}")
            }
            None => format!("{shown} does not answer"),
        };
        let remedy = "is what serves it stopped? Let it go on (`kill -CONT PID`), or end it";
        Failure::new(Cause::Busy, reason, remedy)
    })
}

/// Waits for the file system that a path lies in: what leads there the kernel may know by itself.
pub(crate) fn await_answer(path: &Path) {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let asks = |dir: &&Path| statx(CWD, *dir, AtFlags::STATX_FORCE_SYNC, StatxFlags::TYPE).is_ok();
    path.ancestors().skip(1).find(asks);
}

/// The device number of what a path leads to, or of the nearest that is there above it, as
/// [`MountLine::device`] has it.
pub(super) fn device_of(path: &Path) -> Option<u64> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let look = |at: &Path| statx(CWD, at, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok();
    let found = path.ancestors().find_map(look)?;
    Some(workfs_mount::device_number(found.stx_dev_major, found.stx_dev_minor))
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
            format!("{} lies inside the workfs mount {}", path.shown(), mount.dir.shown()),
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
