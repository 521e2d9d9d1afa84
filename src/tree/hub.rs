//! The hub: which mounts have to hear of a commit, and drop what they cached.
//!
//! What must stay true: nothing here blocks the writer (no notice takes a lock in the kernel), and
//! what is told before the reply is true in every mount when the caller's call returns.
//! Deliberately not here: deciding anything.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use parking_lot::{Mutex, RwLock};
use workfs_mount::{Invalidation, Mount, MountId};

use crate::engine::{Audience, Effect, Origin, Scopes};
use crate::names::AgentName;
use crate::numbers::{Attempt, Ino, RecordKey};

use super::handles::OpenCounts;
use super::hold::Holds;
use super::touched::{Touched, Touches};

/// Whom a mount acts for, and what it shows.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The agent, where the mount was made for one.
    pub agent: Option<AgentName>,
    /// The user who made the mount, for whom a plain one acts.
    pub maker: AgentName,
    /// The directory that is the mount's root.
    pub root: Ino,
}

impl Identity {
    /// A plain mount of the whole tree, made by this user.
    #[must_use]
    pub fn plain(maker: AgentName) -> Identity {
        Identity { agent: None, maker, root: workfs_mount::ROOT }
    }
}

struct Member {
    mount: Arc<Mount>,
}

/// All mounts of one daemon.
#[derive(Default)]
pub struct Hub {
    members: RwLock<Vec<Member>>,
    /// Whom the mounts act for; known before a mount answers its first request.
    identities: RwLock<HashMap<MountId, Arc<Identity>>>,
    pub(super) open: OpenCounts,
    /// Which rules about plain files count where, as of what is committed.
    pub(super) scopes: Scopes,
    pub(super) holds: Holds,
    stale: Mutex<HashSet<(MountId, Ino)>>,
    pub(super) touches: Touches,
}

impl Hub {
    /// A hub without mounts.
    #[must_use]
    pub fn new() -> Arc<Hub> {
        Arc::new(Hub::default())
    }

    /// Changes that somebody may watch through another mount.
    #[must_use]
    pub fn touched(&self) -> Receiver<Touched> {
        self.touches.receiver()
    }

    /// Names the thread whose calls tell watchers and change nothing.
    pub fn set_toucher(&self, thread: u32) {
        self.touches.set_toucher(thread);
    }

    /// Where the mounts are that this process sees.
    #[must_use]
    pub fn mount_dirs(&self) -> Vec<(MountId, PathBuf)> {
        let members = self.members.read();
        let seen = members.iter().map(|member| &member.mount).filter(|mount| mount.lies_here());
        seen.map(|mount| (mount.id(), mount.dir().to_owned())).collect()
    }

    /// Says whom a mount acts for that is to be made.
    pub fn introduce(&self, id: MountId, identity: Identity) {
        self.identities.write().insert(id, Arc::new(identity));
    }

    /// Adds a mount that was introduced.
    pub fn add_mount(&self, mount: Arc<Mount>) {
        self.members.write().push(Member { mount });
    }

    /// Forgets a mount.
    pub fn remove_mount(&self, id: MountId) {
        self.members.write().retain(|member| member.mount.id() != id);
        self.identities.write().remove(&id);
        self.stale.lock().retain(|(mount, _)| *mount != id);
    }

    /// Whom a mount acts for; `None` if it was never introduced or is gone.
    #[must_use]
    pub fn identity(&self, id: MountId) -> Option<Arc<Identity>> {
        self.identities.read().get(&id).map(Arc::clone)
    }

    /// Whether this mount's kernel may hold pages of a file that another mount changed: then they
    /// must go when it is opened. Asked once, since they go by that.
    pub(super) fn takes_stale(&self, mount: MountId, ino: Ino) -> bool {
        let mut stale = self.stale.lock();
        !stale.is_empty() && stale.remove(&(mount, ino))
    }

    /// Notes that all mounts but the one that changed it may hold old pages of a file.
    fn note_stale(&self, origin: Origin, ino: Ino) {
        let members = self.members.read();
        let others = members.iter().map(|member| &member.mount);
        let others = others.filter(|mount| origin != Origin::Mount(mount.id()) && mount.knows(ino));
        let mut stale = self.stale.lock();
        stale.extend(others.map(|mount| (mount.id(), ino)));
    }

    /// Sends to all mounts but, where `skip` says so, the one that it came from.
    fn send(&self, origin: Origin, also_origin: bool, invalidation: &Invalidation) {
        for member in self.members.read().iter() {
            if also_origin || origin != Origin::Mount(member.mount.id()) {
                member.mount.invalidate(invalidation.clone());
            }
        }
    }
}

/// Who changed something in a batch: where only one mount did, that one may know it already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changers {
    One(Origin),
    Many,
}

impl Changers {
    fn and(self, origin: Origin) -> Changers {
        if self == Changers::One(origin) { self } else { Changers::Many }
    }
}

impl Audience for Hub {
    fn before_reply(&self, effects: &[(Origin, Effect)]) {
        self.touches.note(effects, self.members.read().len());
        // A batch changes one directory many times, often from many mounts: each mount hears of it
        // once.
        let mut attributes: HashMap<Ino, Changers> = HashMap::new();
        for (origin, effect) in effects {
            let (ino, changers) = match effect {
                Effect::Attr { ino, also_origin: true } => (*ino, Changers::Many),
                Effect::Attr { ino, also_origin: false } => (*ino, Changers::One(*origin)),
                Effect::Data(ino) => {
                    self.note_stale(*origin, *ino);
                    (*ino, Changers::One(*origin))
                }
                Effect::Name { parent, name, ino, also_origin } => {
                    let (parent, child) = (*parent, *ino);
                    let name = name.as_bytes().to_vec();
                    let entry = Invalidation::Entry { parent, name, child };
                    self.send(*origin, *also_origin, &entry);
                    continue;
                }
                Effect::DirectoryMoved => {
                    self.scopes.forget();
                    continue;
                }
                Effect::Appeared { .. }
                | Effect::Ready(..)
                | Effect::Due(_)
                | Effect::Agents
                | Effect::Lease(_) => {
                    continue;
                }
            };
            let known = attributes.entry(ino).or_insert(changers);
            *known = match changers {
                Changers::One(origin) => known.and(origin),
                Changers::Many => Changers::Many,
            };
        }
        for (ino, changers) in attributes {
            let (origin, also_origin) = match changers {
                Changers::One(origin) => (origin, false),
                Changers::Many => (Origin::Daemon, true),
            };
            self.send(origin, also_origin, &Invalidation::Attr(ino));
        }
    }

    fn is_open(&self, ino: Ino) -> bool {
        self.open.is_open(ino)
    }

    fn last_seen(&self, agent: &AgentName) -> Option<u64> {
        let identities = self.identities.read();
        let acts = |member: &&Member| {
            let identity = identities.get(&member.mount.id());
            identity.is_some_and(|identity| identity.agent.as_ref() == Some(agent))
        };
        let members = self.members.read();
        members.iter().filter(acts).map(|member| member.mount.last_seen_ns()).max()
    }

    fn last_seen_user(&self, uid: u32) -> Option<u64> {
        let members = self.members.read();
        members.iter().filter_map(|member| member.mount.last_seen_of_ns(uid)).max()
    }

    fn is_held(&self, record: RecordKey, attempt: Attempt) -> bool {
        self.holds.has(record, attempt)
    }
}
