//! The answers to the thread that tells watchers: for each of its calls a scene is set, in which
//! the kernel sees a name come or go that came or went long ago, and raises the event.
//!
//! What the kernel is shown under such a name is a stand-in: an inode with a number of its own that
//! it may not keep for a moment, so that whoever uses the name next asks again and finds what is
//! really there. What must stay true: nothing that this thread asks for changes anything, and no
//! inode that is alive is ever shown to go: the kernel would take it for dead. Therefore a removal or
//! a move is granted only of a stand-in that was looked up in the same call; the kernel holds the
//! directory's lock meanwhile. Deliberately not here: who watches, and the calls themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use workfs_mount::{
    Attr, Caching, Caller, Entry, Errno, Handle, MountId, NewNode, NodeType, OpenFlags, Opened,
    Reply,
};

use crate::engine::RemoveWhat;
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::tree::Answer;

/// Numbers of stand-ins, among those of computed nodes and below those in transactions.
const STAND_IN: u64 = 1 << 58;
const STAND_INS_END: u64 = 1 << 59;

/// The handle of a file that is opened to be closed; no other has it.
const OPENED: Handle = Handle(0);

/// What a call is to look like to the kernel.
#[derive(Clone, Debug)]
pub enum Scene {
    /// A name comes.
    Made(Dentry, NodeType),
    /// A name goes.
    Removed(Dentry, StandIn),
    /// A name becomes another.
    Moved {
        /// The old one.
        from: Dentry,
        /// What it stands for.
        stand_in: StandIn,
        /// The new one.
        to: Dentry,
        /// What that stood for.
        over: Option<StandIn>,
    },
    /// A file that was written is closed.
    Closed(Ino),
}

/// What is shown under a name that goes.
#[derive(Clone, Copy, Debug)]
pub struct StandIn {
    ino: Ino,
    node_type: NodeType,
}

/// A scene that is set.
struct Set {
    mount: MountId,
    scene: Scene,
    /// The kernel asked what goes, and was shown the stand-in.
    shown: bool,
}

/// Where the scenes are set.
#[derive(Default)]
pub struct Stage {
    /// The thread whose calls tell; 0 while there is none.
    thread: AtomicU32,
    made: AtomicU64,
    set: Mutex<Option<Set>>,
    /// Names that are going to be taken away, and by how many calls.
    going: Mutex<HashMap<(MountId, Dentry), u32>>,
}

/// While it lives, a kernel is not to remember that a name is absent: it would not ask for it in the
/// call that takes the name away.
pub struct Going {
    stage: Arc<Stage>,
    name: (MountId, Dentry),
}

impl Going {
    pub(super) fn new(stage: Arc<Stage>, mount: MountId, at: Dentry) -> Going {
        let name = (mount, at);
        *stage.going.lock().entry(name.clone()).or_insert(0) += 1;
        Going { stage, name }
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let mut going = self.stage.going.lock();
        if let Some(calls) = going.get_mut(&self.name) {
            *calls -= 1;
            if *calls == 0 {
                going.remove(&self.name);
            }
        }
    }
}

impl Stage {
    /// Names the thread whose calls tell watchers and change nothing.
    pub fn set_thread(&self, thread: u32) {
        self.thread.store(thread, Ordering::Release);
    }

    /// Whether anybody tells.
    pub(super) fn is_there(&self) -> bool {
        self.thread.load(Ordering::Relaxed) != 0
    }

    /// Whether this thread only tells watchers, and changes nothing.
    pub(in crate::tree) fn is_teller(&self, thread: u32) -> bool {
        thread != 0 && thread == self.thread.load(Ordering::Relaxed)
    }

    /// A stand-in for something of this type.
    pub fn stand_in(&self, node_type: NodeType) -> StandIn {
        let nth = self.made.fetch_add(1, Ordering::Relaxed);
        StandIn { ino: Ino(STAND_IN | nth & (STAND_IN - 1)), node_type }
    }

    /// What is gone for good stands in for itself, so that whoever watches it hears of its end.
    #[must_use]
    pub fn departed(ino: Ino, node_type: NodeType) -> StandIn {
        StandIn { ino, node_type }
    }

    /// Makes one call in a scene.
    pub fn play<T>(&self, mount: MountId, scene: Scene, call: impl FnOnce() -> T) -> T {
        *self.set.lock() = Some(Set { mount, scene, shown: false });
        let done = call();
        *self.set.lock() = None;
        done
    }

    /// What the scene's kernel is told of a name; `None`: the truth.
    pub(in crate::tree) fn lookup(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &FileName,
    ) -> Option<Answer<Entry>> {
        let is = |at: &Dentry| at.dir == parent && at.name == *name;
        let mut set = self.set.lock();
        let Set { scene, shown, .. } = set.as_mut().filter(|set| set.mount == caller.mount)?;
        match scene {
            Scene::Made(at, _) if is(at) => Some(Err(Errno::ENOENT)),
            Scene::Removed(at, stand_in) | Scene::Moved { from: at, stand_in, .. } if is(at) => {
                *shown = true;
                Some(Ok(stand_in.entry(caller)))
            }
            Scene::Moved { to, over, .. } if is(to) => {
                Some(over.map(|over| over.entry(caller)).ok_or(Errno::ENOENT))
            }
            _ => None,
        }
    }

    /// Whether this mount's watchers are to be told that a name goes.
    pub(in crate::tree) fn is_going(&self, caller: &Caller, parent: Ino, name: &FileName) -> bool {
        let going = self.going.lock();
        !going.is_empty() && going.contains_key(&(caller.mount, Dentry::of(parent, name.clone())))
    }

    /// Attributes of a stand-in; `None`: it is none.
    pub(in crate::tree) fn getattr(&self, caller: &Caller, ino: Ino) -> Option<Entry> {
        let set = self.set.lock();
        let stand_ins = match &set.as_ref()?.scene {
            Scene::Removed(_, stand_in) => [Some(*stand_in), None],
            Scene::Moved { stand_in, over, .. } => [Some(*stand_in), *over],
            Scene::Made(..) | Scene::Closed(_) => [None, None],
        };
        let found = stand_ins.into_iter().flatten().find(|known| known.ino == ino)?;
        Some(found.entry(caller))
    }

    pub(in crate::tree) fn make(
        &self,
        caller: &Caller,
        at: Dentry<&FileName>,
        node: &NewNode,
        reply: Reply<Entry>,
    ) {
        let asked = match node {
            NewNode::Directory => NodeType::Directory,
            NewNode::File => NodeType::File,
            NewNode::Symlink(_) => NodeType::Symlink,
            NewNode::Special(node_type, _) => *node_type,
        };
        let granted = self.is_set(caller, |scene, _| {
            let Scene::Made(made, node_type) = scene else { return false };
            (made.as_ref(), *node_type) == (at, asked)
        });
        reply.send(granted.map(|()| self.stand_in(asked).entry(caller)));
    }

    pub(in crate::tree) fn remove(
        &self,
        caller: &Caller,
        at: Dentry<&FileName>,
        what: RemoveWhat,
        reply: Reply<()>,
    ) {
        reply.send(self.is_set(caller, |scene, shown| {
            let Scene::Removed(removed, stand_in) = scene else { return false };
            let goes = match stand_in.node_type {
                NodeType::Directory => RemoveWhat::Directory,
                _ => RemoveWhat::File,
            };
            shown && removed.as_ref() == at && goes == what
        }));
    }

    pub(in crate::tree) fn rename(
        &self,
        caller: &Caller,
        old: Dentry<&FileName>,
        new: Dentry<&FileName>,
        reply: Reply<()>,
    ) {
        reply.send(self.is_set(caller, |scene, shown| {
            let Scene::Moved { from, to, .. } = scene else { return false };
            shown && (from.as_ref(), to.as_ref()) == (old, new)
        }));
    }

    pub(in crate::tree) fn open(
        &self,
        caller: &Caller,
        ino: Ino,
        flags: OpenFlags,
        reply: Reply<Opened>,
    ) {
        let granted = self.is_set(caller, |scene, _| {
            matches!(scene, Scene::Closed(closed) if *closed == ino) && !flags.truncate
        });
        // Nothing that the kernel caches is touched, and its `close` asks for nothing.
        let opened = Opened { handle: OPENED, caching: Caching::KeepCacheUnflushed };
        reply.send(granted.map(|()| opened));
    }

    fn is_set(&self, caller: &Caller, fits: impl FnOnce(&Scene, bool) -> bool) -> Answer<()> {
        let set = self.set.lock();
        let set = set.as_ref().filter(|set| set.mount == caller.mount);
        let fits = set.is_some_and(|set| fits(&set.scene, set.shown));
        // Not ENOENT: upon that the kernel forgets what it knows of the name.
        if fits { Ok(()) } else { Err(Errno::EPERM) }
    }
}

impl StandIn {
    /// As its own thread's, so that it may take it away everywhere. Nothing of it is kept.
    fn entry(self, caller: &Caller) -> Entry {
        let is_own_number = (STAND_IN..STAND_INS_END).contains(&self.ino.0);
        debug_assert!(is_own_number || self.ino.0 < STAND_IN, "a number of neither");
        let attr =
            Attr { uid: caller.uid, gid: caller.gid, ..Attr::bare(self.ino, self.node_type) };
        Entry::new(attr, Duration::ZERO)
    }
}
