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

mod call;
mod watched;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::bounded;
use workfs_mount::MountId;

use crate::config::Config;
use crate::engine::{Engine, Origin, path_below};
use crate::limits::{NUDGES_MAX, WATCHERS_LOOK_EVERY};
use crate::names::Dentry;
use crate::numbers::Ino;
use crate::store::{NodeType, Read, Result};
use crate::tree::{Hub, Stage, StandIn, Touch, Touched, ready_dir};
use call::{Call, What};
use watched::Watched;

/// Starts the two threads. They end when the hub does.
///
/// # Errors
/// If a thread cannot be started.
pub fn start(hub: &Arc<Hub>, engine: &Engine) -> std::io::Result<()> {
    let (send, calls) = bounded::<Call>(NUDGES_MAX);
    let stage = hub.stage();
    std::thread::Builder::new().name("toucher".into()).spawn(move || {
        if let Err(error) = leave_files() {
            tracing::warn!(%error, "watchers in other mounts are not told");
            return;
        }
        stage.set_thread(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
        for call in calls {
            call.make(&stage);
        }
    })?;
    let touched = hub.touched();
    // This thread may sleep when the daemon ends, and the store is to be closed then.
    let (hub, readers) = (Arc::downgrade(hub), Arc::downgrade(engine.readers()));
    let config = engine.config();
    std::thread::Builder::new().name("nudge".into()).spawn(move || {
        let mut watched = Watched::default();
        while let Ok(first) = touched.recv() {
            let mut batch = vec![first];
            batch.extend(touched.try_iter().take(NUDGES_MAX));
            let Some(now) = hub.upgrade() else { return };
            let somebody = watched.look(&now);
            let Some(readers) = readers.upgrade() else { return };
            if !somebody {
                drop((now, readers));
                // What happens meanwhile waits in the queue: whoever begins to watch hears of it.
                std::thread::sleep(WATCHERS_LOOK_EVERY);
                continue;
            }
            let found = crate::store::read(&*readers, |read| {
                let (hub, watched) = (&now, &watched);
                let mut tell = Tell { read, config: &config, hub, watched, calls: vec![] };
                tell.batch(&batch);
                Ok(tell.calls)
            });
            match found {
                Ok(calls) => {
                    if calls.iter().any(|call| call.what.brings_dir()) {
                        watched.tells_of_dir();
                    }
                    // A watcher that is flooded looks at the directory anyway.
                    calls.into_iter().for_each(|call| drop(send.try_send(call)));
                }
                Err(error) => tracing::warn!(%error, "watchers are not told"),
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

/// The calls that tell the watchers of a batch.
struct Tell<'a> {
    read: &'a dyn Read,
    config: &'a Config,
    hub: &'a Hub,
    watched: &'a Watched,
    calls: Vec<Call>,
}

impl Tell<'_> {
    /// Names in their order, then of each file what happened to its content: it is found under the
    /// name that it has now.
    fn batch(&mut self, batch: &[Touched]) {
        let is_of_name = |touched: &&Touched| {
            let Touched { what, .. } = touched;
            matches!(
                what,
                Touch::Made(..) | Touch::Born(_) | Touch::Removed(..) | Touch::Moved { .. }
            )
        };
        // A failure of the store, and a node that is gone, have no watcher to be told.
        for touched in batch.iter().filter(is_of_name) {
            let _ = match touched.what {
                Touch::Born(_) => self.node(touched),
                _ => self.name(touched),
            };
        }
        let mut known = HashSet::new();
        for touched in batch.iter().filter(|touched| !is_of_name(touched)) {
            if known.insert(touched) {
                let _ = self.node(touched);
            }
        }
    }

    /// The mounts whose kernel did not raise the event by itself, and what is watched in each.
    fn others(&self, origin: Origin) -> impl Iterator<Item = (MountId, &HashSet<Ino>)> {
        let inodes = self.watched.inodes.iter().map(|(id, inodes)| (*id, inodes));
        inodes.filter(move |(id, _)| origin != Origin::Mount(*id))
    }

    fn call(&mut self, mount: MountId, at: &Dentry, what: What) -> Result<()> {
        if let Some(path) = self.path(mount, at)?
            && let Some((_, device)) = self.watched.dirs.get(&mount)
        {
            let going = what.goes().map(|at| self.hub.goes(mount, at));
            self.calls.push(Call { mount, device: *device, path, what, going });
        }
        Ok(())
    }

    fn name(&mut self, touched: &Touched) -> Result<()> {
        let others: Vec<(MountId, bool)> = {
            let sees = |id: MountId, inodes: &HashSet<Ino>| match &touched.what {
                Touch::Made(at, _) => inodes.contains(&at.dir),
                Touch::Removed(at, ino, _, only) => {
                    let knows = only.is_none_or(|only| only == id);
                    knows && (inodes.contains(&at.dir) || inodes.contains(ino))
                }
                Touch::Moved { from, to, over, .. } => {
                    let over = over.is_some_and(|(over, _)| inodes.contains(&over));
                    inodes.contains(&from.dir) || inodes.contains(&to.dir) || over
                }
                _ => false,
            };
            self.others(touched.origin).map(|(id, inodes)| (id, sees(id, inodes))).collect()
        };
        for (mount, _) in others.into_iter().filter(|(_, sees)| *sees) {
            match &touched.what {
                Touch::Made(at, node_type) => {
                    self.call(mount, at, What::Made(at.clone(), *node_type))?;
                }
                Touch::Removed(at, ino, node_type, _) => {
                    let stand_in = self.stand_in(*ino, *node_type)?;
                    self.call(mount, at, What::Removed(at.clone(), *node_type, stand_in))?;
                }
                Touch::Moved { from, to, node_type, over } => {
                    self.moved(mount, from, to, (*node_type, *over))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn moved(
        &mut self,
        mount: MountId,
        from: &Dentry,
        to: &Dentry,
        (node_type, over): (NodeType, Option<(Ino, NodeType)>),
    ) -> Result<()> {
        let stand_in = self.hub.stage().stand_in(node_type);
        let Some(to_path) = self.path(mount, to)? else {
            // It has left what this mount shows.
            return self.call(mount, from, What::Removed(from.clone(), node_type, stand_in));
        };
        if self.path(mount, from)?.is_none() {
            return self.call(mount, to, What::Made(to.clone(), node_type));
        }
        let over = match over {
            Some((ino, node_type)) => self.departed(ino, node_type)?,
            None => None,
        };
        let (from_at, to) = (from.clone(), to.clone());
        let is_dir = node_type == NodeType::Directory;
        self.call(mount, from, What::Moved { from: from_at, to, to_path, stand_in, over, is_dir })
    }

    fn stand_in(&self, ino: Ino, node_type: NodeType) -> Result<StandIn> {
        let departed = self.departed(ino, node_type)?;
        Ok(departed.unwrap_or_else(|| self.hub.stage().stand_in(node_type)))
    }

    /// An inode that has no name and is not open anywhere: its number comes never again.
    fn departed(&self, ino: Ino, node_type: NodeType) -> Result<Option<StandIn>> {
        let node = self.read.node(ino)?;
        let is_gone = node.is_none_or(|node| node.nlink == 0) && self.hub.is_closed(ino);
        Ok(is_gone.then(|| Stage::departed(ino, node_type)))
    }

    /// What happened to a node that has a name.
    fn node(&mut self, touched: &Touched) -> Result<()> {
        let Some(place) = place_of(self.read, self.config, &touched.what)? else { return Ok(()) };
        let Place { at, node, computed, is_closable } = place;
        let origin = if computed { Origin::Daemon } else { touched.origin };
        let sees = |inodes: &HashSet<Ino>| {
            let ino = node.map_or_else(|| ready_dir(at.dir), |(ino, _)| ino);
            (!computed && inodes.contains(&at.dir)) || inodes.contains(&ino)
        };
        let others = self.others(origin).filter(|(_, inodes)| sees(inodes));
        let others: Vec<MountId> = others.map(|(id, _)| id).collect();
        for mount in others {
            match (&touched.what, node) {
                (Touch::Born(_), Some((_, node_type))) => {
                    self.call(mount, &at, What::Made(at.clone(), node_type))?;
                }
                (Touch::Attributes(_), _) => self.call(mount, &at, What::Attributes)?,
                (Touch::Closed(ino), _) => self.call(mount, &at, What::Closed(*ino))?,
                (Touch::Content(ino), _) => {
                    self.call(mount, &at, What::Content)?;
                    // Who writes at the socket holds nothing open that it could close.
                    if is_closable && !matches!(origin, Origin::Mount(_)) {
                        self.call(mount, &at, What::Closed(*ino))?;
                    }
                }
                _ => self.call(mount, &at, What::Content)?,
            }
        }
        Ok(())
    }

    /// The path of a name through a mount; `None` if that does not show it.
    fn path(&self, mount: MountId, at: &Dentry) -> Result<Option<PathBuf>> {
        let shown = self.hub.identity(mount).map(|identity| identity.root);
        let (Some((root, _)), Some(shown)) = (self.watched.dirs.get(&mount), shown) else {
            return Ok(None);
        };
        let below = path_below(self.read, at.dir, shown)?;
        Ok(below.map(|below| {
            let mut path = root.clone();
            path.extend(below.names().iter().chain([&at.name]).map(os));
            path
        }))
    }
}

fn os(name: &crate::names::FileName) -> &std::ffi::OsStr {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(name.as_bytes())
}

/// Where a node lies that something happened to.
struct Place {
    at: Dentry,
    node: Option<(Ino, NodeType)>,
    /// No kernel hears of its changes, not even of those that were made through it.
    computed: bool,
    /// It may be shown to be closed: the kernel runs no file that is open for writing, so that a file
    /// which can be run may not be that, not even for a moment.
    is_closable: bool,
}

fn place_of(read: &dyn Read, config: &Config, what: &Touch) -> Result<Option<Place>> {
    let ino = match what {
        Touch::Ready(workspace) => {
            let Some(row) = read.workspace(*workspace)? else { return Ok(None) };
            let (Some(dir), Some(binding)) = (row.dir, config.bind(&row.path)) else {
                return Ok(None);
            };
            let at = Dentry::of(dir, binding.kind.order().dir.clone());
            return Ok(Some(Place { at, node: None, computed: true, is_closable: false }));
        }
        Touch::Content(ino) | Touch::Closed(ino) | Touch::Attributes(ino) | Touch::Born(ino) => {
            *ino
        }
        Touch::Made(..) | Touch::Removed(..) | Touch::Moved { .. } => return Ok(None),
    };
    let Some(node) = read.node(ino)?.filter(|node| node.nlink > 0) else { return Ok(None) };
    let is_closable = node.node_type == NodeType::File && node.mode & 0o111 == 0;
    if matches!(what, Touch::Closed(_)) && !is_closable {
        return Ok(None);
    }
    let here = |name| Dentry::of(node.parent, name);
    let at = if node.node_type == NodeType::Directory {
        read.dir_name(ino)?.map(here)
    } else {
        match read.file_name(ino)? {
            Some(noted) => Some(noted),
            None => read.name_in(node.parent, ino)?.map(here),
        }
    };
    let node_type = node.node_type;
    let node = Some((ino, node_type));
    Ok(at.map(|at| Place { at, node, computed: false, is_closable }))
}
