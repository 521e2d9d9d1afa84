//! Watchers in other mounts: inotify tells of what is done through the same mount, and an
//! invalidation raises no event. So for whoever watches a file or directory through one mount, a
//! system call is made through that mount when it changed through another.
//!
//! What must stay true: nothing is done where nobody watches, and nothing by a thread that serves
//! the kernel; a daemon that is killed leaves no caller hanging. The call waits for this very
//! daemon, and a thread that waits there cannot die: it must not hold the connections open. So the
//! thread that makes it has a table of open files of its own, which is empty.
//!
//! Deliberately not here: what the call changes (nothing: the tree knows the thread that makes it).

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Sender, bounded};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
use workfs_mount::{MountId, ROOT};

use crate::config::Config;
use crate::engine::{Engine, Origin, path_of_dir};
use crate::limits::{NUDGES_MAX, WATCHERS_LOOK_EVERY};
use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::store::{NodeType, Read};
use crate::tree::{Hub, Touch, Touched, ready_dir};

/// One call to be made.
struct Call {
    path: PathBuf,
    /// The content changed, else only attributes did.
    content: bool,
}

/// Starts the two threads. They end when the hub does.
///
/// # Errors
/// If a thread cannot be started.
pub fn start(hub: &Arc<Hub>, engine: &Engine) -> std::io::Result<()> {
    let (send, calls) = bounded(NUDGES_MAX);
    let known = Arc::downgrade(hub);
    std::thread::Builder::new().name("toucher".into()).spawn(move || {
        if let Err(error) = leave_files() {
            tracing::warn!(%error, "watchers in other mounts are not told");
            return;
        }
        let Some(hub) = known.upgrade() else { return };
        hub.set_toucher(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
        drop(hub);
        for call in calls {
            touch(&call);
        }
    })?;
    let touched = hub.touched();
    let (hub, readers) = (Arc::downgrade(hub), Arc::clone(engine.readers()));
    let config = engine.config();
    std::thread::Builder::new().name("nudge".into()).spawn(move || {
        let mut watched = Watched::default();
        while let Ok(first) = touched.recv() {
            let mut batch: HashSet<Touched> = HashSet::from([first]);
            batch.extend(touched.try_iter().take(NUDGES_MAX));
            let Some(now) = hub.upgrade() else { return };
            let somebody = watched.look(&now);
            if somebody {
                let found = crate::store::read(&*readers, |read| {
                    Ok(calls_for(read, &config, &now, &watched, &batch))
                });
                match found {
                    Ok(calls) => calls.into_iter().for_each(|call| give(&send, call)),
                    Err(error) => tracing::warn!(%error, "watchers are not told"),
                }
            } else {
                drop(now);
                // What happens meanwhile waits in the queue: whoever begins to watch hears of it.
                std::thread::sleep(WATCHERS_LOOK_EVERY);
            }
        }
    })?;
    Ok(())
}

/// Gives this thread a table of open files of its own, and empties it.
fn leave_files() -> std::io::Result<()> {
    // SAFETY: only this thread's table changes; nothing in it uses a descriptor from here on
    // (its channel has none, the log's writer finds its own closed and says nothing).
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES)? };
    // SAFETY: the table is this thread's alone, so no other's descriptor is closed.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
    if closed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Raises the event: IN_MODIFY for content and names, IN_ATTRIB for attributes.
fn touch(call: &Call) {
    let time = |nsec| Timespec { tv_sec: 0, tv_nsec: nsec };
    let access = if call.content { UTIME_OMIT } else { UTIME_NOW };
    let times = Timestamps { last_access: time(access), last_modification: time(UTIME_NOW) };
    // What is gone again, and what may not be touched, has no event.
    let _ = utimensat(CWD, &call.path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

fn give(send: &Sender<Call>, call: Call) {
    // A watcher that is flooded looks at the directory anyway.
    let _ = send.try_send(call);
}

/// Who watches what, as the kernel says of every process that this one may see.
#[derive(Default)]
struct Watched {
    inodes: HashMap<MountId, HashSet<Ino>>,
    dirs: HashMap<MountId, PathBuf>,
    looked: Option<Instant>,
}

impl Watched {
    /// Looks, if it was not just now; says whether anybody watches.
    fn look(&mut self, hub: &Hub) -> bool {
        let now = Instant::now();
        let just = |at: Instant| now.duration_since(at) < WATCHERS_LOOK_EVERY;
        if self.looked.is_none_or(|at| !just(at)) {
            self.looked = Some(now);
            self.dirs = hub.mount_dirs().into_iter().collect();
            self.inodes = look_at_processes(&self.dirs);
        }
        !self.inodes.is_empty()
    }
}

fn look_at_processes(dirs: &HashMap<MountId, PathBuf>) -> HashMap<MountId, HashSet<Ino>> {
    let devices: HashMap<u64, MountId> = workfs_mount::mounts()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|mount| {
            let (id, _) = dirs.iter().find(|(_, dir)| **dir == mount.dir)?;
            Some((mount.device, *id))
        })
        .collect();
    let mut found: HashMap<MountId, HashSet<Ino>> = HashMap::new();
    for process in numbered(Path::new("/proc")) {
        let infos = process.join("fdinfo");
        for fd in numbered(&process.join("fd")) {
            let is_inotify =
                std::fs::read_link(&fd).is_ok_and(|to| to == Path::new("anon_inode:inotify"));
            let Some(name) = fd.file_name().filter(|_| is_inotify) else { continue };
            let text = std::fs::read_to_string(infos.join(name)).unwrap_or_default();
            for (device, ino) in text.lines().filter_map(watch_of) {
                if let Some(id) = devices.get(&device) {
                    found.entry(*id).or_default().insert(ino);
                }
            }
        }
    }
    found
}

/// Entries of a directory whose names are numbers.
fn numbered(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// `inotify wd:1 ino:3 sdev:2a …`: device and inode.
fn watch_of(line: &str) -> Option<(u64, Ino)> {
    let field = |key: &str| {
        let text = line.split(' ').find_map(|word| word.strip_prefix(key))?;
        u64::from_str_radix(text, 16).ok()
    };
    line.starts_with("inotify ").then_some(())?;
    Some((field("sdev:")?, Ino(field("ino:")?)))
}

/// The calls that tell the watchers of a batch.
fn calls_for(
    read: &dyn Read,
    config: &Config,
    hub: &Hub,
    watched: &Watched,
    batch: &HashSet<Touched>,
) -> Vec<Call> {
    let mut calls = Vec::new();
    for touched in batch {
        // A node that is gone, or a failure of the store, has no watcher to be told.
        let Ok(Some(place)) = place_of(read, config, &touched.what) else { continue };
        let Place { dir, name, ino, computed } = place;
        for (id, inodes) in &watched.inodes {
            let by_itself = !computed && touched.origin == Origin::Mount(*id);
            let seen_in_its_directory = !computed && inodes.contains(&dir);
            let seen = seen_in_its_directory || ino.is_some_and(|ino| inodes.contains(&ino));
            if by_itself || !seen {
                continue;
            }
            let Some(root) = watched.dirs.get(id) else { continue };
            let Some(shown) = hub.identity(*id).map(|identity| identity.root) else { continue };
            let Ok(Some(below)) = below(read, dir, shown) else { continue };
            let mut path = root.clone();
            path.extend(below.names().iter().map(os));
            let is_there = |name: &FileName| {
                computed || read.lookup(dir, name).is_ok_and(|node| node.is_some())
            };
            let there = name.as_ref().filter(|name| is_there(name));
            // Of a name that is gone its directory tells.
            path.extend(there.map(os));
            let content = there.is_none() || !matches!(touched.what, Touch::Attributes(_));
            calls.push(Call { path, content });
        }
    }
    calls
}

fn os(name: &FileName) -> &std::ffi::OsStr {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(name.as_bytes())
}

/// What a change was about.
struct Place {
    dir: Ino,
    name: Option<FileName>,
    ino: Option<Ino>,
    /// No kernel hears of its changes, not even of those that were made through it.
    computed: bool,
}

fn place_of(read: &dyn Read, config: &Config, what: &Touch) -> crate::store::Result<Option<Place>> {
    match what {
        Touch::Name(dir, name) => {
            let ino = read.lookup(*dir, name)?.map(|node| node.ino);
            Ok(Some(Place { dir: *dir, name: Some(name.clone()), ino, computed: false }))
        }
        Touch::Ready(workspace) => {
            let Some(row) = read.workspace(*workspace)? else { return Ok(None) };
            let (Some(dir), Some(binding)) = (row.dir, config.bind(&row.path)) else {
                return Ok(None);
            };
            let name = Some(binding.kind.order().dir.clone());
            Ok(Some(Place { dir, name, ino: Some(ready_dir(dir)), computed: true }))
        }
        Touch::Content(ino) | Touch::Attributes(ino) => {
            let known = read.node(*ino)?.filter(|node| node.node_type != NodeType::Directory);
            // A directory's attributes change with each name in it, which is told by itself.
            let Some(node) = known else { return Ok(None) };
            let name = match read.file_name(*ino)? {
                Some((_, name)) => Some(name),
                None => read.name_in(node.parent, *ino)?,
            };
            let (dir, ino) = (node.parent, Some(*ino));
            Ok(name.map(|name| Place { dir, name: Some(name), ino, computed: false }))
        }
    }
}

/// The path of `dir` below the directory that a mount shows as its root.
fn below(read: &dyn Read, dir: Ino, root: Ino) -> crate::store::Result<Option<TreePath>> {
    let path = path_of_dir(read, dir)?;
    if root == ROOT {
        return Ok(Some(path));
    }
    let above = path_of_dir(read, root)?;
    let rest = path.names().strip_prefix(above.names());
    Ok(rest.map(|rest| rest.iter().cloned().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_read_from_what_the_kernel_says() {
        let line = "inotify wd:1 ino:2a sdev:3f mask:800afce ignored_mask:0 fhandle-bytes:8";
        assert_eq!(watch_of(line), Some((0x3f, Ino(0x2a))));
        assert_eq!(watch_of("pos:\t0"), None);
    }
}
