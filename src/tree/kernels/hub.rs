//! The hub: which mounts have to hear of a commit, and drop what they cached.
//!
//! What must stay true: nothing here blocks the writer (no notice takes a lock in the kernel), and
//! what is told before the reply is true in every mount when the caller's call returns.
//! Deliberately not here: deciding anything.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use parking_lot::{Mutex, RwLock};
use workfs_mount::{Invalidation, Locks, Mount, MountId, Reply, Requests};

use super::absent::Absent;
use super::changed::Changed;
use super::moved_away::MovedAway;
use super::old_pages::OldPages;
use super::parted::Parted;
use super::settling::Settling;
use super::taken_in::TakenIn;
use super::told::{Going, Stage};
use super::touched::{Touch, Touched, Touches};
use crate::engine::{self, Audience, Effect, Fate, IsWritten, Live, Origin, Scopes};
use crate::names::{AgentName, Dentry, FileName};
use crate::numbers::{Attempt, G, Ino, LeaseTime, RecordKey};
use crate::store::Record;
use crate::tree::callers::identity::Identity;
use crate::tree::callers::{caller, seen::Seen};
use crate::tree::handles::hold::Holds;
use crate::tree::handles::{OpenCounts, Unread};
use crate::tree::nodes::kept_listing::KeptListings;
use crate::tree::ready::{links::Links, nexts::Nexts};
use crate::tree::saves::{busy::Busy, unborn::Unborn};

#[derive(Clone)]
struct Member {
    mount: Arc<Mount>,
    /// Where this process finds it, and the device number of its files.
    place: Option<(PathBuf, u64)>,
}

/// All mounts of one daemon.
#[derive(Default)]
pub struct Hub {
    /// Replaced as a whole: who tells them something holds no lock meanwhile. It may wait for those who
    /// answer, and they ask for the members, too.
    members: RwLock<Arc<Vec<Member>>>,
    /// Whom the mounts act for; known before a mount answers its first request.
    identities: RwLock<HashMap<MountId, Arc<Identity>>>,
    parted: Parted,
    pub(in crate::tree) open: OpenCounts,
    /// Records and drafts of which kernels have pages.
    pub(in crate::tree) mapped: OpenCounts,
    /// Those that somebody opened to read, and has not read yet.
    pub(in crate::tree) unread: Unread,
    pub(in crate::tree) locks: Arc<Locks>,
    pub(in crate::tree) requests: Arc<Requests>,
    /// Which rules about plain files count where, as of what is committed.
    pub(in crate::tree) scopes: Scopes,
    pub(in crate::tree) holds: Holds,
    pub(in crate::tree) busy: Arc<Busy>,
    pub(in crate::tree) seen: Arc<Seen>,
    pub(in crate::tree) unborn: Arc<Unborn>,
    old_pages: Mutex<OldPages>,
    pub(in crate::tree) settling: Arc<Settling>,
    pub(in crate::tree) taken_in: TakenIn,
    pub(in crate::tree) touches: Touches,
    moved_away: MovedAway,
    pub(in crate::tree) absent: Absent,
    pub(in crate::tree) kept_listings: KeptListings,
    pub(in crate::tree) nexts: Nexts,
    pub(in crate::tree) links: Links,
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

    /// Where the calls are prepared that tell watchers.
    #[must_use]
    pub fn stage(&self) -> Arc<Stage> {
        Arc::clone(&self.touches.stage)
    }

    /// What says whether a file is being written.
    #[must_use]
    pub fn is_written(&self) -> IsWritten {
        let busy = Arc::clone(&self.busy);
        Arc::new(move |ino, record| busy.is_written(ino, record))
    }

    /// What waits, as a rename does, until a file is not being written any more; false: it still is.
    #[must_use]
    pub fn until_unwritten(&self) -> IsWritten {
        let busy = Arc::clone(&self.busy);
        Arc::new(move |ino, record| {
            if !busy.is_written(ino, record) {
                return true;
            }
            let (tell, told) = bounded(1);
            let change = move |is_busy: bool| {
                // Whoever waits for it is there: see the next line.
                let _ = tell.send(!is_busy);
            };
            busy.when_idle((ino, record.map(|record| record.key)), Box::new(change));
            told.recv().unwrap_or(false)
        })
    }

    /// Whether nobody has this inode open.
    #[must_use]
    pub fn is_closed(&self, ino: Ino) -> bool {
        !self.open.is_open(ino)
    }

    /// Notes what a program did to a file through a mount, besides what its changes say.
    pub(in crate::tree) fn note_file(&self, mount: MountId, what: Touch) {
        self.touches.note_file(mount, self.members().len(), what);
    }

    /// Where the mounts are that this process finds, and the device number of each.
    #[must_use]
    pub fn mount_dirs(&self) -> Vec<(MountId, (PathBuf, u64))> {
        let place = |member: &Member| Some((member.mount.id(), member.place.clone()?));
        self.members().iter().filter_map(place).collect()
    }

    /// Where a mount is by now, if this process finds it: a directory above may have another name.
    #[must_use]
    pub fn place(&self, id: MountId) -> Option<PathBuf> {
        self.members().iter().find(|member| member.mount.id() == id)?.mount.place()
    }

    /// The device number of a mount's files, where this process finds it.
    pub(in crate::tree) fn device(&self, id: MountId) -> Option<u64> {
        self.members().iter().find(|member| member.mount.id() == id)?.place.as_ref().map(|it| it.1)
    }

    /// All mounts of this moment.
    fn members(&self) -> Arc<Vec<Member>> {
        Arc::clone(&self.members.read())
    }

    /// Says whom a mount acts for that is to be made.
    pub fn introduce(&self, id: MountId, identity: Identity) {
        self.identities.write().insert(id, Arc::new(identity));
    }

    /// Adds a mount that was introduced; `place` is where this process finds it, and the device number of
    /// its files.
    pub fn add_mount(&self, mount: Arc<Mount>, place: Option<(PathBuf, u64)>) {
        Arc::make_mut(&mut *self.members.write()).push(Member { mount, place });
    }

    /// Forgets a mount.
    pub fn remove_mount(&self, id: MountId) {
        if let Some(ended) = self.members().iter().find(|member| member.mount.id() == id) {
            self.parted.note(&ended.mount, self.identity(id));
        }
        Arc::make_mut(&mut *self.members.write()).retain(|member| member.mount.id() != id);
        self.identities.write().remove(&id);
        self.old_pages.lock().remove_mount(id);
        self.settling.remove_mount(id);
        self.kept_listings.remove_mount(id);
        self.links.remove_mount(id);
    }

    /// Whom a mount acts for; `None` if it was never introduced or is gone.
    #[must_use]
    pub fn identity(&self, id: MountId) -> Option<Arc<Identity>> {
        self.identities.read().get(&id).map(Arc::clone)
    }

    /// What this mount's kernel is about to be told of a file is true only for the one who asked.
    pub(in crate::tree) fn outdate_answers(&self, mount: MountId, ino: Ino) {
        if let Some(member) = self.members().iter().find(|member| member.mount.id() == mount) {
            member.mount.outdate_answers(ino);
        }
    }

    /// Whether this mount's kernel may hold pages of a file that another mount changed, or of a write
    /// that was refused: then they must go when it is opened. Asked for who opens it, since they go by that.
    pub(in crate::tree) fn takes_old_pages(&self, mount: MountId, ino: Ino) -> bool {
        self.old_pages.lock().take(mount, ino, std::time::Instant::now)
    }

    /// Notes that all mounts but the one that changed it may hold old pages of a file.
    fn note_old_pages(&self, effects: &[(Origin, Effect)]) {
        let members = self.members();
        for (origin, effect) in effects {
            let Effect::Data(ino) = effect else { continue };
            let others = members.iter().filter(|member| member.hears_of(Some(*origin)));
            let others = others.map(|member| &member.mount).filter(|mount| mount.knows(*ino));
            for mount in others {
                self.add_old_pages(mount.id(), *ino);
                if self.locks.was_held(*ino) {
                    self.settling.change(mount.id(), *ino);
                }
            }
        }
    }

    /// The same of one mount. What its kernel has let go of since, it has no pages of.
    fn add_old_pages(&self, mount: MountId, ino: Ino) {
        self.old_pages.lock().add(mount, ino, |mount, ino| self.knows_in(mount, ino));
    }

    /// Whether any kernel may hold anything of an inode.
    pub(in crate::tree) fn knows(&self, ino: Ino) -> bool {
        self.members().iter().any(|member| member.mount.knows(ino))
    }

    fn knows_in(&self, id: MountId, ino: Ino) -> bool {
        self.members().iter().any(|member| member.mount.id() == id && member.mount.knows(ino))
    }

    /// A reply to a write that, if it is refused, notes that this mount's own kernel may hold pages of
    /// what is not there: what a mapping wrote stays in them, and no attribute changes that would show
    /// it. A notice that drops pages waits for locks, which whoever waits for this reply may hold.
    pub(in crate::tree) fn noting_refused<T: 'static>(
        self: &Arc<Self>,
        mount: MountId,
        ino: Ino,
        reply: Reply<T>,
    ) -> Reply<T> {
        let hub = Arc::clone(self);
        Reply::new(move |written| {
            if written.is_err() {
                hub.add_old_pages(mount, ino);
            }
            reply.send(written);
        })
    }

    /// Whether a mount's kernel may ask for an inode by a name that this has left.
    pub(in crate::tree) fn has_left(&self, id: MountId, ino: Ino) -> bool {
        self.members().iter().any(|member| member.mount.id() == id && member.mount.has_left(ino))
    }

    /// A name came: kernels that remember that it was absent must forget that.
    fn appeared(&self, parent: Ino, name: &FileName) -> Option<Invalidation> {
        let name = || name.as_bytes().to_vec();
        self.absent.tells_of(parent).then(|| Invalidation::Appeared { parent, name: name() })
    }

    /// A mount's watchers are going to be told that a name goes: its kernel forgets that it is absent,
    /// if it may remember that, and does not remember it again while what is returned lives.
    #[must_use]
    pub fn goes(&self, id: MountId, at: &Dentry) -> Going {
        let going = Going::new(self.stage(), id, at.clone());
        let members = self.members();
        for member in members.iter().filter(|member| member.mount.id() == id) {
            member.mount.invalidate(&self.appeared(at.dir, &at.name));
        }
        going
    }

    /// What kernels must forget, and which mount knows it already. Names come before attributes.
    fn forgotten(&self, effects: &[(Origin, Effect)]) -> Vec<(Option<Origin>, Invalidation)> {
        let mut names = Vec::new();
        let (mut attributes, mut restless) = (Changed::default(), Changed::default());
        for (origin, effect) in effects {
            match effect {
                Effect::Attr { ino, also_origin: true } | Effect::Times(ino) => {
                    attributes.note(*ino, None);
                }
                Effect::Attr { ino, also_origin: false } | Effect::Data(ino) => {
                    attributes.note(*ino, Some(*origin));
                }
                Effect::Rights { ino, also_origin } => {
                    let knows = (!also_origin).then_some(*origin);
                    names.push((knows, Invalidation::Rights(*ino)));
                }
                Effect::Name { parent, name, ino, also_origin, fate } => {
                    let (parent, child) = (*parent, *ino);
                    let name = name.as_bytes().to_vec();
                    let knows = (!also_origin).then_some(*origin);
                    restless.note(parent, knows);
                    names.push((knows, Invalidation::Entry { parent, name, child }));
                    if let Fate::Moved { to, .. } = fate {
                        restless.note(to.dir, knows);
                        names.extend(self.appeared(to.dir, &to.name).map(|came| (knows, came)));
                    }
                }
                Effect::Appeared { parent, name, .. } => {
                    let knows = Some(*origin);
                    restless.note(*parent, knows);
                    names.extend(self.appeared(*parent, name).map(|came| (knows, came)));
                }
                Effect::DirectoryMoved
                | Effect::Made { .. }
                | Effect::Counts(_)
                | Effect::Ready(..)
                | Effect::Due(_)
                | Effect::Agents
                | Effect::Modes
                | Effect::Lease(_) => {}
            }
        }
        let restless = restless.each(Invalidation::Restless);
        restless.chain(names).chain(attributes.each(Invalidation::Attr)).collect()
    }
}

impl Member {
    /// Whether it has to be told of what this origin, if one alone, knows already.
    fn hears_of(&self, knows: Option<Origin>) -> bool {
        knows != Some(Origin::Mount(self.mount.id()))
    }

    /// What of this its kernel must forget.
    fn must_forget<'i>(
        &self,
        forgotten: &'i [(Option<Origin>, Invalidation)],
    ) -> impl Iterator<Item = &'i Invalidation> {
        let hears = |(knows, _): &&(Option<Origin>, Invalidation)| self.hears_of(*knows);
        forgotten.iter().filter(hears).map(|(_, invalidation)| invalidation)
    }
}

/// Whether all attributes that kernels know may be others now.
fn changes_modes(effects: &[(Origin, Effect)]) -> bool {
    effects.iter().any(|(_, effect)| *effect == Effect::Modes)
}

/// Mounts that are told nothing.
struct Silent {
    _mounts: Vec<workfs_mount::Silence>,
}

impl engine::Silence for Silent {}

impl Audience for Hub {
    fn note(&self, effects: &[(Origin, Effect)]) {
        self.absent.note(effects);
        self.kept_listings.note(effects);
        self.nexts.note(effects);
        self.touches.note(effects, &self.unborn, self.members().len());
        for (_, effect) in effects {
            match effect {
                Effect::DirectoryMoved => self.scopes.forget(),
                Effect::Counts(ino) => self.open.count_from_now(*ino),
                Effect::Made { record, version, moved, by } => {
                    self.seen.note_made(*record, *by, *version, *moved);
                }
                _ => {}
            }
        }
    }

    fn make_forget(&self, effects: &[(Origin, Effect)]) {
        self.note_old_pages(effects);
        let forgotten = self.forgotten(effects);
        for member in &*self.members() {
            member.mount.invalidate(member.must_forget(&forgotten));
        }
        if changes_modes(effects) {
            self.members().iter().for_each(|member| member.mount.forget_attributes());
        }
    }

    fn told_up_to(&self, g: G) {
        self.taken_in.told(g);
    }

    fn silence(&self, effects: &[(Origin, Effect)]) -> Box<dyn engine::Silence> {
        let members = self.members();
        let mounts: Vec<_> = members.iter().map(|member| member.mount.silence()).collect();
        // Not before: an answer that was under way may have been the first that a kernel may remember.
        let (forgotten, modes) = (self.forgotten(effects), changes_modes(effects));
        for (member, silence) in members.iter().zip(&mounts) {
            silence.invalidate(member.must_forget(&forgotten));
            if modes {
                silence.forget_attributes();
            }
        }
        let silent = Silent { _mounts: mounts };
        // Not before: a reader would use the mark up, and fill its pages from what is old.
        self.note_old_pages(effects);
        Box::new(silent)
    }

    fn live(&self) -> Live {
        let (mounts, open) = (self.members().len(), self.open.sum());
        Live { mounts, open, requests: Arc::clone(&self.requests) }
    }

    fn is_in_use(&self, ino: Ino) -> bool {
        // A kernel forgets at once what nobody has: what it still knows is somebody's working directory,
        // or open in a way that we are not told of (O_PATH, a pipe).
        self.open.is_open(ino) || self.knows(ino)
    }

    fn let_go(&self, inodes: &[Ino]) {
        self.members().iter().for_each(|member| member.mount.let_go(inodes));
    }

    fn is_written(&self, ino: Ino, record: Option<&Record>) -> bool {
        self.busy.is_written(ino, record)
    }

    fn is_mapped(&self, ino: Ino) -> bool {
        // A lock is one of the file: where somebody holds one, the file stays what it is.
        self.mapped.is_open(ino) && !self.locks.is_held(ino)
    }

    fn may_be_mapped(&self, ino: Ino) -> bool {
        (self.mapped.is_open(ino) || self.unread.has_rested(ino)) && !self.locks.is_held(ino)
    }

    fn moves_away(&self, origin: Origin, from: Dentry<&FileName>, dir: Ino) {
        if self.members().iter().any(|member| member.hears_of(Some(origin))) {
            self.moved_away.note(from.to_owned(), dir, origin.mount(), |ino| self.knows(ino));
        }
    }

    fn takes_moved_away(&self, origin: Origin, from: Dentry<&FileName>) -> bool {
        let Some(id) = origin.mount() else { return false };
        // As nearly always: each rename asks.
        if self.moved_away.is_empty() {
            return false;
        }
        self.moved_away.takes(&from.to_owned(), id, |ino| self.knows_in(id, ino))
    }

    fn last_seen(&self, agent: &AgentName, by: u64) -> Option<u64> {
        let identities = self.identities.read();
        let acts = |member: &&Member| {
            let identity = identities.get(&member.mount.id());
            identity.is_some_and(|identity| identity.agent.as_ref() == Some(agent))
        };
        let members = self.members();
        let seen = members.iter().filter(acts).map(|member| member.mount.seen());
        seen.chain(self.parted.agent(agent)).filter_map(|seen| seen.last_by(by)).max()
    }

    fn last_seen_user(&self, uid: u32, by: u64) -> Option<u64> {
        let members = self.members();
        let seen = members.iter().filter_map(|member| member.mount.seen_of(uid));
        seen.chain(self.parted.user(uid)).filter_map(|seen| seen.last_by(by)).max()
    }

    fn listen_for(&self, agent: &AgentName, uid: Option<u32>) {
        let is_used = |member: &&Member| {
            let identity = self.identity(member.mount.id());
            let acts = identity.is_some_and(|identity| identity.agent.as_ref() == Some(agent));
            acts || uid.is_some_and(|uid| member.mount.seen_of(uid).is_some())
        };
        let members = self.members();
        members.iter().filter(is_used).for_each(|member| member.mount.forget_names());
    }

    fn shows_stored(&self, mount: u32) -> bool {
        self.identity(MountId(mount)).is_none_or(|identity| identity.shows_stored)
    }

    fn acts_as_owner(&self, thread: u32) -> bool {
        caller::acts_as_owner(thread)
    }

    fn reads_all(&self, thread: u32) -> bool {
        caller::reads_all(thread)
    }

    fn is_of_group(&self, thread: u32, group: u32) -> bool {
        caller::has_group(thread, group)
    }

    fn is_held(&self, record: RecordKey, attempt: Attempt, by: LeaseTime) -> bool {
        self.holds.has((record, attempt), by)
    }
}

#[cfg(test)]
#[path = "hub_test.rs"]
mod tests;
