//! The tree that the kernel sees: names to nodes, governed files, computed files.
//!
//! Reads are answered here from committed snapshots; changes become commands of the engine, and
//! the kernel's reply travels with them. What must stay true: nothing here decides a rule (the
//! engine does, inside the transaction); no call waits for a commit; the tree never touches a
//! mount. Deliberately not here: SQL, the FUSE library, lifecycles.

// What names stand for: what is stored, and what is computed.
mod computed;
mod nodes;
mod ready;

// Open files, and what is written to them.
mod handles;
mod saves;

// Who asks, and what kernels remember that others change.
mod callers;
mod kernels;
mod start;
mod txn;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use workfs_mount::{
    Caller, Detail, DirEntry, Entry, Errno, FsStat, Handle, Locks, Look, MountId, NewNode,
    OpenFlags, Opened, PollReady, PollWake, RenameMode, Reply, Requests, SeekHole, SetAttr, Tree,
    WriteAt, XattrMode,
};

pub use callers::identity::Identity;
pub use computed::ready_dir;
pub use kernels::hub::Hub;
pub use kernels::told::{Going, Scene, Stage, StandIn};
pub use kernels::touched::{Touch, Touched};
pub use txn::TxnTree;

use crate::engine::{Command, Engine, Refuse, RemoveWhat};
use crate::names::{Dentry, FileName, NameError};
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::{Door, Refusal, Rule};
use crate::store::{Node, Read, StoreError};
use callers::seen;
use computed::Computed;
use computed::pasts::Pasts;
use handles::{Handles, Open, overtaken, pins};
use kernels::taken::Try;
use kernels::told;
use nodes::{change, ghosts};
use ready::waits;
use saves::judging::Call;
use saves::{busy, plain_save, unborn};

/// The tree of one store, served by all its mounts.
pub struct WorkTree {
    engine: Engine,
    hub: Arc<Hub>,
    handles: Handles,
    pins: pins::Pins,
    seen: Arc<seen::Seen>,
    busy: Arc<busy::Busy>,
    ghosts: ghosts::Ghosts,
    unborn: Arc<unborn::Unborn>,
    waits: waits::Waits,
    /// Files whose time was set after the last unjudged write.
    timed: parking_lot::Mutex<std::collections::HashSet<Ino>>,
    hashers: plain_save::Hashers,
    overtaken: overtaken::Overtaken,
    pasts: Pasts,
    started: UnixNanos,
    me: std::sync::Weak<WorkTree>,
}

/// Result of a read for the kernel.
type Answer<T> = Result<T, Errno>;

impl WorkTree {
    /// The tree of the store behind `engine`; `hub` is the engine's audience.
    #[must_use]
    pub fn new(engine: Engine, hub: Arc<Hub>) -> Arc<WorkTree> {
        Arc::new_cyclic(|me| WorkTree {
            started: engine.now(),
            engine,
            busy: Arc::clone(&hub.busy),
            seen: Arc::clone(&hub.seen),
            handles: Handles::new(Arc::clone(&hub)),
            pins: pins::Pins::default(),
            unborn: Arc::clone(&hub.unborn),
            pasts: Pasts::new(Arc::clone(&hub)),
            hub,
            ghosts: ghosts::Ghosts::default(),
            waits: waits::Waits::default(),
            timed: parking_lot::Mutex::default(),
            hashers: plain_save::Hashers::default(),
            overtaken: overtaken::Overtaken::default(),
            me: me.clone(),
        })
    }

    /// One snapshot for one request.
    fn read<T>(&self, work: impl FnMut(&dyn Read) -> Result<T, StoreError>) -> Answer<T> {
        crate::store::read(&**self.engine.readers(), work)
            .map_err(|error| Refusal::from(error).rule.errno(Door::Name))
    }

    /// The same for what asks for a few rows only.
    fn glance<T>(&self, work: impl FnMut(&dyn Read) -> Result<T, StoreError>) -> Answer<T> {
        self.engine.glance(work).map_err(|error| Refusal::from(error).rule.errno(Door::Name))
    }

    /// Queues a change whose answer goes to the kernel.
    fn submit<C: Command, T: 'static>(
        &self,
        caller: &Caller,
        door: Door,
        command: C,
        reply: Reply<T>,
        convert: impl FnOnce(C::Out) -> T + Send + 'static,
    ) {
        self.engine.submit(self.context(caller, door), command, move |result| {
            reply.send(match result {
                Ok(out) => Ok(convert(out)),
                Err(refusal) => Err(refusal.rule.errno(door)),
            });
        });
    }

    /// Tells `why` of what is refused before it comes to the writer; gives what it is answered with.
    fn refuse(&self, caller: &Caller, door: Door, refuse: Refuse) -> Errno {
        let errno = refuse.refusal.rule.errno(door);
        self.engine.submit(self.context(caller, door), refuse, |_| ());
        errno
    }

    /// The same of what names something, answered when `why` has it.
    fn refuse_and_answer<T: 'static>(&self, caller: &Caller, refuse: Refuse, reply: Reply<T>) {
        let errno = refuse.refusal.rule.errno(Door::Name);
        let context = self.context(caller, Door::Name);
        self.engine.submit(context, refuse, move |_| reply.send(Err(errno)));
    }

    /// The scene's place, if the caller is the thread that tells watchers and changes nothing.
    fn teller(&self, caller: &Caller) -> Option<&told::Stage> {
        let stage = &*self.hub.touches.stage;
        stage.is_teller(caller.pid).then_some(stage)
    }

    /// A hidden file has been judged, or nobody has it open any more.
    fn born(&self, ino: Ino) {
        if let Some(maker) = self.unborn.end(ino) {
            self.hub.note_file(maker, Touch::Born(ino));
        }
    }

    /// Queues a change that gives a node.
    fn submit_for_entry(
        &self,
        caller: &Caller,
        door: Door,
        command: impl Command<Out = Node>,
        reply: Reply<Entry>,
    ) {
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let (caller, to) = (*caller, move |node: Node| node);
        self.submit(&caller, door, command, reply.map(move |node| me.entry(&caller, &node)), to);
    }

    /// This tree, for what outlives a request.
    fn me(&self) -> Option<Arc<WorkTree>> {
        self.me.upgrade()
    }
}

/// Parses a name from the kernel.
fn name_of(name: &OsStr) -> Answer<FileName> {
    FileName::new(name.as_bytes()).map_err(|error| match error {
        NameError::TooLong { .. } => Rule::NameTooLong.errno(Door::Name),
        NameError::Empty | NameError::Reserved | NameError::Computed | NameError::Grammar => {
            Rule::BadName.errno(Door::Name)
        }
    })
}

/// Answers `reply` and leaves if a name is not one.
macro_rules! name_or_answer {
    ($name:expr, $reply:expr) => {
        match name_of($name) {
            Ok(name) => name,
            Err(errno) => return $reply.send(Err(errno)),
        }
    };
}

impl Tree for WorkTree {
    fn lookup(&self, caller: &Caller, parent: Ino, name: &OsStr) -> Answer<Option<Entry>> {
        let name = name_of(name)?;
        let told = self.teller(caller).and_then(|stage| stage.lookup(caller, parent, &name));
        told.map_or_else(|| self.find(caller, parent, &name), |told| told.map(Some))
    }

    fn getattr(&self, caller: &Caller, ino: Ino, handle: Option<Handle>) -> Answer<Entry> {
        self.attributes(caller, ino, handle)
    }

    fn readlink(&self, _: &Caller, ino: Ino) -> Answer<Vec<u8>> {
        if let Some(link) = Computed::of(ino) {
            let target = self.read(|read| self.link_target(read, link))?;
            // Whoever has it by its name looks that up again.
            return target.map(|name| name.as_bytes().to_vec()).ok_or(Errno::ESTALE);
        }
        self.read(|read| read.symlink(ino))?.ok_or(Errno::EINVAL)
    }

    fn open(&self, caller: &Caller, ino: Ino, flags: OpenFlags, reply: Reply<Opened>) {
        if let Some(stage) = self.teller(caller) {
            return stage.open(caller, ino, flags, reply);
        }
        self.open_file(caller, ino, flags, reply);
    }

    fn read(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        offset: u64,
        size: u32,
        reply: Reply<Vec<u8>>,
    ) {
        self.read_file(caller, ino, handle, (offset, size as usize), reply);
    }

    fn poll(
        &self,
        _: &Caller,
        _: Ino,
        handle: Handle,
        wake: Option<PollWake>,
    ) -> Answer<PollReady> {
        self.poll_file(handle, wake)
    }

    fn opendir(&self, caller: &Caller, ino: Ino) -> Answer<Opened> {
        self.open_directory(caller, ino)
    }

    fn readdir(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        cookie: u64,
        detail: Detail,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        self.list(caller, ino, (handle, cookie, detail), &mut |listed| {
            let Entry { attr, ttl, .. } = self.told(caller, listed.attr, listed.ttl);
            emit(DirEntry { attr, ttl, ..listed })
        })
    }

    fn takes_long(&self, look: Look<'_>) -> bool {
        computed::takes_long(look)
    }

    fn parent(&self, ino: Ino) -> Answer<Ino> {
        match Computed::of(ino) {
            Some(computed) => Ok(computed.parent()),
            None => {
                let node = self.read(|read| read.node(ino))?;
                Ok(node.ok_or(Rule::Gone.errno(Door::Handle))?.parent)
            }
        }
    }

    fn releasedir(&self, handle: Handle) {
        self.handles.remove(handle);
    }

    fn statfs(&self, ino: Ino) -> Answer<FsStat> {
        self.room_at(ino)
    }

    fn getxattr(&self, _: &Caller, ino: Ino, name: &OsStr) -> Answer<Vec<u8>> {
        change::require_user_attribute(name)?;
        self.read(|read| read.xattr(ino, name.as_bytes()))?
            .ok_or(Rule::NoAttribute.errno(Door::Name))
    }

    fn listxattr(&self, caller: &Caller, ino: Ino) -> Answer<Vec<Vec<u8>>> {
        let mut names = self.read(|read| read.xattr_names(ino))?;
        if caller.uid != 0 {
            // The kernel keeps their values from others (xattr(7)), but not their names.
            names.retain(|name| !name.starts_with(b"trusted."));
        }
        Ok(names)
    }

    fn seek(
        &self,
        _: &Caller,
        ino: Ino,
        handle: Handle,
        offset: u64,
        seek: SeekHole,
    ) -> Answer<u64> {
        self.seek_file(ino, handle, offset, seek)
    }

    fn locked(&self, by: (MountId, u32), ino: Ino, handle: Handle, reply: Reply<()>) {
        self.look_again_when_locked(ino, handle);
        match self.handles.get(handle).as_deref() {
            Some(Open::Plain { append: false, .. }) => {
                self.hub.settling.locked((by.0, ino), (by.1, handle), reply);
            }
            // What goes past the pages finds none.
            _ => reply.send(Ok(())),
        }
    }

    fn unlocks(&self, (mount, thread): (MountId, u32), ino: Ino) {
        self.hub.settling.unlocks(mount, ino, thread);
    }

    fn locks(&self) -> &Arc<Locks> {
        &self.hub.locks
    }

    fn requests(&self) -> Arc<Requests> {
        Arc::clone(&self.hub.requests)
    }

    fn is_own_thread(&self, thread: u32) -> bool {
        self.hub.touches.stage.is_teller(thread)
    }

    fn forget(&self, _: Ino, _: u64) {}

    fn make(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &OsStr,
        mode: u32,
        node: NewNode,
        reply: Reply<Entry>,
    ) {
        let name = name_or_answer!(name, reply);
        if let Some(stage) = self.teller(caller) {
            return stage.make(caller, Dentry::of(parent, &name), &node, reply);
        }
        self.make_node(caller, parent, name, mode, node, reply);
    }

    fn create(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &OsStr,
        mode: u32,
        flags: OpenFlags,
        reply: Reply<(Entry, Opened)>,
    ) {
        let name = name_or_answer!(name, reply);
        if self.teller(caller).is_some() {
            return reply.send(Err(Errno::EPERM));
        }
        self.create_file(caller, Dentry::of(parent, name), mode, flags, Try::First, reply);
    }

    fn setattr(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Option<Handle>,
        set: SetAttr,
        reply: Reply<Entry>,
    ) {
        self.set_attributes(caller, ino, handle, set, reply);
    }

    fn unlink(&self, caller: &Caller, parent: Ino, name: &OsStr, reply: Reply<()>) {
        let name = name_or_answer!(name, reply);
        if let Some(stage) = self.teller(caller) {
            return stage.remove(caller, Dentry::of(parent, &name), RemoveWhat::File, reply);
        }
        self.unlink_name(caller, parent, name, reply);
    }

    fn rmdir(&self, caller: &Caller, parent: Ino, name: &OsStr, reply: Reply<()>) {
        let name = name_or_answer!(name, reply);
        if let Some(stage) = self.teller(caller) {
            return stage.remove(caller, Dentry::of(parent, &name), RemoveWhat::Directory, reply);
        }
        self.remove_dir(caller, parent, name, reply);
    }

    fn rename(
        &self,
        caller: &Caller,
        (parent, name): (Ino, &OsStr),
        (new_parent, new_name): (Ino, &OsStr),
        mode: RenameMode,
        reply: Reply<()>,
    ) {
        let from = Dentry::of(parent, name_or_answer!(name, reply));
        let to = Dentry::of(new_parent, name_or_answer!(new_name, reply));
        if let Some(stage) = self.teller(caller) {
            return stage.rename(caller, from.as_ref(), to.as_ref(), reply);
        }
        self.rename_name(caller, from, to, mode, reply);
    }

    fn link(&self, caller: &Caller, ino: Ino, parent: Ino, name: &OsStr, reply: Reply<Entry>) {
        let name = name_or_answer!(name, reply);
        if self.teller(caller).is_some() {
            return reply.send(Err(Errno::EPERM));
        }
        self.link_name(caller, ino, parent, name, reply);
    }

    fn write(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        at: WriteAt,
        data: &[u8],
        reply: Reply<u32>,
    ) {
        self.write_file(caller, ino, handle, at, data, reply);
    }

    fn flush(&self, caller: &Caller, ino: Ino, handle: Handle, reply: Reply<()>) {
        self.hub.settling.unlocks(caller.mount, ino, caller.pid);
        self.judge(caller, ino, handle, Call::Flush, reply);
    }

    fn fsync(&self, caller: &Caller, ino: Ino, handle: Handle, reply: Reply<()>) {
        self.judge(caller, ino, handle, Call::Fsync, reply);
    }

    fn fsyncdir(&self, caller: &Caller, _: Ino, reply: Reply<()>) {
        self.submit(caller, Door::Name, crate::engine::Sync, reply, |()| ());
    }

    fn release(&self, ino: Ino, handle: Handle) {
        self.release_file(ino, handle);
    }

    fn fallocate(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        range: (u64, u64),
        mode: i32,
        reply: Reply<()>,
    ) {
        self.allocate(caller, ino, handle, range, mode, reply);
    }

    fn setxattr(
        &self,
        caller: &Caller,
        ino: Ino,
        name: &OsStr,
        value: &[u8],
        mode: XattrMode,
        reply: Reply<()>,
    ) {
        self.set_xattr(caller, ino, name, value, mode, reply);
    }

    fn removexattr(&self, caller: &Caller, ino: Ino, name: &OsStr, reply: Reply<()>) {
        self.remove_xattr(caller, ino, name, reply);
    }
}
