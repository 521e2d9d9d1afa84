//! The mounts of one daemon: adding, removing, listing.
//!
//! What must stay true: whoever takes a row out of the table gives the directory below back, and
//! does so once; the lock of the table is not held while the kernel is asked. Deliberately not
//! here: looking at mount points (`point`), sessions (`workfs_mount`).

mod adding;
mod away;
mod below;
pub(super) mod covers;
pub(super) mod mount_table;
pub(super) mod options;
pub(super) mod point;
mod reach;
mod refused_places;
pub(super) mod users;
pub(super) mod wanted;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;
use workfs_mount::{Mount, MountId, NodeType, ROOT, Underlay};

use super::Event;
use super::failure::Failure;
use super::paths::StorePaths;
use super::socket::wire::{MountAsk, MountInfo};
use crate::engine::{Engine, PutAgent, Registered, offer, path_of_dir};
use crate::kind::Role;
use crate::limits::TAKEN_AWAY_WAIT;
use crate::names::{AgentName, Shown, TreePath};
use crate::numbers::{Ino, UnixNanos};
use crate::service::Caller;
use crate::store::{Durability, Read};
use crate::tree::{Hub, TxnTree};
use covers::Covers;
use options::OwnOptions;
use reach::Reach;
use wanted::Who;

/// The mounts of one daemon.
pub struct Mounts {
    paths: StorePaths,
    covers: Covers,
    sync: Durability,
    tree: Arc<TxnTree>,
    hub: Arc<Hub>,
    engine: Engine,
    wake: Sender<Event>,
    /// Held while one is added or removed: two on one directory would not see each other.
    one_at_a_time: Mutex<()>,
    /// Held while one that has ended is forgotten: who takes it away may not come back before, and who mounts
    /// anew finds its directory closed or given back, and not what the list said before.
    finishing: Mutex<()>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u32,
    /// How many times a mount was tried.
    tries: u64,
    /// One was made.
    served: bool,
    rows: Vec<Row>,
}

struct Row {
    mount: Arc<Mount>,
    /// The directory below, until it is given back.
    below: Option<Underlay>,
    info: MountInfo,
    /// Its directory was made for it.
    temporary: bool,
    /// As long as watchers may be told in it.
    reach: Option<Reach>,
}

/// Where a mount is to be made.
#[derive(Debug)]
pub enum Place {
    /// In the name space that this daemon is in, by the daemon.
    Here,
    /// In another one, where the client has made it: its connection to the kernel, and the client's process.
    Elsewhere(OwnedFd, u32),
}

/// A mount that was asked for.
#[derive(Debug)]
pub struct Added {
    /// It.
    pub mount: Arc<Mount>,
    /// What `ps` shows of it.
    pub info: MountInfo,
    /// It was there before.
    pub already: bool,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Mounts {
    /// No mounts yet.
    #[must_use]
    pub fn new(
        paths: StorePaths,
        sync: Durability,
        tree: Arc<TxnTree>,
        (hub, engine): (Arc<Hub>, Engine),
        wake: Sender<Event>,
    ) -> Self {
        let covers = Covers::kept_in(paths.covers());
        let (one_at_a_time, finishing, table) = (Mutex::new(()), Mutex::new(()), Mutex::default());
        Mounts { paths, covers, sync, tree, hub, engine, wake, one_at_a_time, finishing, table }
    }

    /// Mounts; `uid` is who asks.
    ///
    /// # Errors
    /// If the options or the directory do not allow it, or the system refuses.
    pub fn add(
        &self,
        ask: &MountAsk,
        place: Place,
        uid: u32,
        now: UnixNanos,
    ) -> Result<Added, Failure> {
        let _alone = self.one_at_a_time.lock();
        let added = self.add_alone(ask, place, uid, now);
        self.note_try();
        added
    }

    /// The directory of the tree that a mount is to show.
    fn shown(&self, path: &Option<TreePath>) -> Result<Ino, Failure> {
        let Some(path) = path else { return Ok(ROOT) };
        let found = crate::store::read(&**self.engine.readers(), |read| {
            let (mut at, mut walked) = (ROOT, TreePath::root());
            for name in path.names() {
                walked = walked.join(name.clone());
                at = match read.lookup(at, name)? {
                    Some(node) if node.node_type == NodeType::Directory => node.ino,
                    found => return Ok(Err(found.map(|_| walked))),
                };
            }
            Ok(Ok(at))
        })?;
        found.map_err(|file| options::no_root(path, file))
    }

    /// An agent that a mount is made for is registered; one that is keeps its role.
    fn register(&self, who: &Who, uid: u32) -> Result<(), Failure> {
        let Some(name) = &who.agent else { return Ok(()) };
        let known = match self.registered(who) {
            Some(known) => Some(known),
            // Somebody else may register it meanwhile.
            None => {
                let add =
                    PutAgent { name: name.clone(), role: who.role, uid: None, only_new: true };
                let context = Caller::new(uid, 0, None).context();
                let known = self.engine.run(context.clone(), add)?;
                offer(&self.engine, &context, name)?;
                known
            }
        };
        who.expect_role(known.map(|agent| agent.role))
    }

    fn registered(&self, who: &Who) -> Option<Registered> {
        self.engine.agents().get(who.agent.as_ref()?)
    }

    /// What is told of a mount, with the role that its agent has now, where its root lies now, and
    /// that it is read-only where nobody asked for that.
    fn as_of_now(&self, mut info: MountInfo) -> MountInfo {
        if self.engine.write_protection().is_some() {
            info.options = options::read_only(&info.options);
        }
        let name = info.agent.as_deref().and_then(|name| AgentName::new(name).ok());
        let role = match name {
            None => Role::Operator,
            Some(name) => self.engine.agents().get(&name).map_or(Role::Observer, |a| a.role),
        };
        info.role = role.to_string();
        if let Some(shown) = self.hub.identity(MountId(info.mount)) {
            let path = |read: &dyn Read| path_of_dir(read, shown.root);
            // One that was removed since has no name any more, and the whole tree has none ever.
            if let Ok(root) = crate::store::read(&**self.engine.readers(), path)
                && !root.names().is_empty()
            {
                info.root = (&root).into();
            }
        }
        info
    }

    fn find(&self, dir: &Path) -> Option<(Arc<Mount>, MountInfo)> {
        self.finish_ended();
        let device = mount_table::at(dir)?.device;
        let table = self.table.lock();
        let found = |row: &&Row| {
            let is_it = row.is_seen() && row.mount.device() == Some(device);
            is_it && row.mount.place().is_some_and(|place| place == dir)
        };
        table.rows.iter().find(found).map(|row| (Arc::clone(&row.mount), row.info_now()))
    }

    /// Notes that a mount was tried, whatever came of it: nobody may be waiting any more, and the daemon
    /// ends.
    pub fn note_try(&self) {
        self.table.lock().tries += 1;
        self.wake();
    }

    /// Tells the daemon's own thread that something changed. A full queue wakes it all the same.
    fn wake(&self) {
        let _ = self.wake.try_send(Event::MountsChanged);
    }

    /// Forgets the mounts that have ended, whoever ended them.
    pub fn finish_ended(&self) {
        let table = self.table.lock();
        let ended = table.rows.iter().filter(|row| row.mount.has_ended());
        let ended: Vec<MountId> = ended.map(|row| row.mount.id()).collect();
        drop(table);
        ended.into_iter().for_each(|id| self.finish(id));
    }

    /// Forgets a mount that has ended; when it returns that is done, whoever began it.
    fn finish(&self, id: MountId) {
        let _done = self.finishing.lock();
        let mut table = self.table.lock();
        let Some(index) = table.rows.iter().position(|row| row.mount.id() == id) else { return };
        let row = table.rows.remove(index);
        drop(table);
        // First, since what it still does is done by whom the mount acted for.
        self.tree.end_mount(id);
        self.hub.remove_mount(id);
        self.tree.end_mount(id);
        self.give_back(row.below);
        if row.temporary {
            point::remove_own(row.mount.dir(), row.info.uid);
        }
    }

    /// Whether there is no mount.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finish_ended();
        self.table.lock().rows.is_empty()
    }

    /// Whether this daemon only ends any more, for one who wants a mount that another daemon must serve:
    /// with another level of flushing, where all mounts have gone, although that was not heard of yet.
    #[must_use]
    pub fn leaves_to_next(&self, ask: &MountAsk) -> bool {
        let wants_other = |own: OwnOptions| own.sync.is_some_and(|sync| sync != self.sync);
        if !self.were_any() || !OwnOptions::parse(&ask.options).is_ok_and(wants_other) {
            return false;
        }
        let has_gone = |row: &&Row| row.is_seen() && row.mount.place().is_none();
        let table = self.table.lock();
        let ends: Vec<_> =
            table.rows.iter().filter(has_gone).map(|row| row.mount.ended()).collect();
        drop(table);
        let until = Instant::now() + TAKEN_AWAY_WAIT;
        for end in ends {
            // What ends is told by the channel's end.
            let _ = end.recv_deadline(until);
        }
        self.is_empty()
    }

    fn give_back(&self, below: Option<Underlay>) {
        let Some(below) = below else { return };
        if let Err(error) = self.covers.give_back(&below) {
            let dir = below.cover().dir.shown();
            tracing::warn!(%dir, %error, "the directory below stays read-only");
        }
    }

    /// All mounts, for `ps`.
    #[must_use]
    pub fn list(&self) -> Vec<MountInfo> {
        // Who asks does not wait until one is forgotten, which is done after one that is being made.
        let lives = |row: &&Row| !row.mount.has_ended();
        let table = self.table.lock();
        let all: Vec<MountInfo> = table.rows.iter().filter(lives).map(Row::info_now).collect();
        drop(table);
        all.into_iter().map(|info| self.as_of_now(info)).collect()
    }

    /// The directories of the tree that are shown by mounts which others than their makers may use.
    #[must_use]
    pub fn shown_to_others(&self) -> Vec<TreePath> {
        let lets_in = |info: &MountInfo| {
            let kernel = OwnOptions::parse(&info.options).and_then(|own| own.kernel());
            kernel.is_ok_and(|kernel| kernel.allow_other)
        };
        let all = self.list();
        let roots = all.iter().filter(|info| lets_in(info));
        roots.filter_map(|info| TreePath::asked(info.root.as_bytes()).ok()).collect()
    }

    /// What tells of each mount's end.
    #[must_use]
    pub fn ends(&self) -> Vec<Receiver<()>> {
        self.table.lock().rows.iter().map(|row| row.mount.ended()).collect()
    }

    /// Whether there ever was one.
    #[must_use]
    pub fn were_any(&self) -> bool {
        self.table.lock().served
    }

    /// How many times a mount was tried.
    #[must_use]
    pub fn tries(&self) -> u64 {
        self.table.lock().tries
    }
}

impl Row {
    /// What `ps` shows of it, with its directory as that is called now.
    fn info_now(&self) -> MountInfo {
        let place = self.mount.place().filter(|_| self.is_seen());
        // Somebody else may have taken it from sight (umount -l), of which nothing is heard. That it is not found
        // for want of descriptors says nothing of it.
        let is_seen = self.is_seen() && (place.is_some() || !self.mount.is_out_of_sight());
        let detached = self.info.detached || !self.info.private && !is_seen;
        let dir = place.and_then(|place| Some(place.to_str()?.to_owned()));
        let dir = dir.unwrap_or_else(|| self.info.dir.clone());
        MountInfo { dir, detached, ..self.info.clone() }
    }

    /// The device number of its files, also where it was made in another name space.
    fn device(&self) -> Option<u64> {
        self.mount.device().or_else(|| Some(self.reach.as_ref()?.place().1))
    }

    /// Whether its directory is where this daemon sees the mount.
    fn is_seen(&self) -> bool {
        !self.info.detached && !self.info.private
    }
}
