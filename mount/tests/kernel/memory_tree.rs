//! A file tree in memory, as small as the tests allow. Everything may be cached for an hour.
//!
//! Looking up a name that begins with `panic` panics, and so does making or removing one that begins with `boom`, with
//! the reply in its hands. Removing a name that begins with `held` is answered only when the test says so. With
//! `deferred` on, every reply comes from another thread.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::{Mutex, MutexGuard};
use workfs_mount::*;

use crate::slow::Slow;

const TTL: Duration = Duration::from_secs(3600);

pub struct Node {
    pub attr: Attr,
    pub data: Vec<u8>,
    pub parent: Ino,
    /// Names by cookie.
    pub entries: BTreeMap<u64, (Vec<u8>, Ino)>,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

pub struct State {
    pub nodes: HashMap<Ino, Node>,
    pub handles: HashMap<Handle, (Ino, OpenFlags)>,
    pub log: Vec<String>,
    next: u64,
}

type Later = Box<dyn FnOnce() + Send>;

pub struct MemoryTree {
    state: Mutex<State>,
    locks: Arc<Locks>,
    pub deferred: AtomicBool,
    pub slow: Slow,
    /// How files are opened.
    pub caching: Mutex<Caching>,
    later: Sender<Later>,
    hold: Sender<Later>,
    /// Answers to removals of `held…`, to be called by the test.
    pub held: Receiver<Later>,
}

fn now() -> UnixNanos {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
}

fn spring(trap: &[u8], name: &OsStr) {
    assert!(!name.as_bytes().starts_with(trap), "a panic that a test asked for");
}

impl State {
    pub fn make(&mut self, parent: Ino, node_type: NodeType, mode: u32) -> Ino {
        self.next += 1;
        let ino = Ino(self.next);
        let time = now();
        let attr = Attr {
            ino,
            node_type,
            mode,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            blocks: 0,
            atime_ns: time,
            mtime_ns: time,
            ctime_ns: time,
            is_fixed: false,
        };
        let (entries, xattrs) = (BTreeMap::new(), BTreeMap::new());
        self.nodes.insert(ino, Node { attr, data: Vec::new(), parent, entries, xattrs });
        ino
    }

    pub fn node(&mut self, ino: Ino) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&ino).ok_or(Errno::ESTALE)
    }

    pub fn find(&self, parent: Ino, name: &[u8]) -> Option<(u64, Ino)> {
        let entries = &self.nodes.get(&parent)?.entries;
        entries
            .iter()
            .find(|(_, (other, _))| other == name)
            .map(|(cookie, (_, ino))| (*cookie, *ino))
    }

    pub fn put(&mut self, parent: Ino, name: &[u8], ino: Ino) {
        self.next += 1;
        let cookie = self.next + 10;
        self.nodes.get_mut(&parent).unwrap().entries.insert(cookie, (name.to_vec(), ino));
    }

    pub fn take(&mut self, parent: Ino, name: &[u8]) -> Result<Ino, Errno> {
        let (cookie, ino) = self.find(parent, name).ok_or(Errno::ENOENT)?;
        self.nodes.get_mut(&parent).unwrap().entries.remove(&cookie);
        Ok(ino)
    }

    fn drop_name(&mut self, ino: Ino) {
        let node = self.nodes.get_mut(&ino).unwrap();
        node.attr.nlink -= 1;
        self.sweep(ino);
    }

    fn sweep(&mut self, ino: Ino) {
        let open = self.handles.values().any(|(other, _)| *other == ino);
        if !open && self.nodes.get(&ino).is_some_and(|node| node.attr.nlink == 0) {
            self.nodes.remove(&ino);
        }
    }

    pub fn resize(&mut self, ino: Ino, size: usize) -> Result<(), Errno> {
        let node = self.node(ino)?;
        node.data.resize(size, 0);
        node.attr.size = size as u64;
        node.attr.mtime_ns = now();
        Ok(())
    }

    fn entry(&mut self, ino: Ino) -> Result<Entry, Errno> {
        Ok(Entry::new(self.node(ino)?.attr, TTL))
    }

    fn handle(&mut self, ino: Ino, flags: OpenFlags) -> Handle {
        self.next += 1;
        let handle = Handle(self.next);
        self.handles.insert(handle, (ino, flags));
        handle
    }
}

impl MemoryTree {
    pub fn new() -> Arc<MemoryTree> {
        let ((later, work), (hold, held)) = (unbounded::<Later>(), unbounded());
        std::thread::spawn(move || work.iter().for_each(|answer| answer()));
        let (nodes, handles) = (HashMap::new(), HashMap::new());
        let mut state = State { nodes, handles, log: Vec::new(), next: 0 };
        assert_eq!(state.make(ROOT, NodeType::Directory, 0o755), ROOT);
        Arc::new(MemoryTree {
            locks: Arc::default(),
            state: Mutex::new(state),
            deferred: AtomicBool::new(false),
            slow: Slow::new(),
            caching: Mutex::new(Caching::Cached),
            later,
            hold,
            held,
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn answer<T: Send + 'static>(&self, reply: Reply<T>, result: Result<T, Errno>) {
        if self.deferred.load(Ordering::Relaxed) {
            self.later.send(Box::new(move || reply.send(result))).unwrap();
        } else {
            reply.send(result);
        }
    }

    fn opened(&self, state: &mut State, ino: Ino, flags: OpenFlags) -> Opened {
        Opened { handle: state.handle(ino, flags), caching: *self.caching.lock() }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> Result<T, Errno>) -> Result<T, Errno> {
        change(&mut self.state.lock())
    }
}

impl Tree for MemoryTree {
    fn locks(&self) -> &Arc<Locks> {
        &self.locks
    }

    fn lookup(&self, _: &Caller, parent: Ino, name: &OsStr) -> Result<Option<Entry>, Errno> {
        spring(b"panic", name);
        self.slow.look(parent);
        self.with(|state| {
            let (_, ino) = state.find(parent, name.as_bytes()).ok_or(Errno::ENOENT)?;
            state.entry(ino).map(Some)
        })
    }
    fn getattr(&self, _: &Caller, ino: Ino, _: Option<Handle>) -> Result<Entry, Errno> {
        self.slow.look(ino);
        self.with(|state| state.entry(ino))
    }
    fn readlink(&self, _: &Caller, ino: Ino) -> Result<Vec<u8>, Errno> {
        self.with(|state| Ok(state.node(ino)?.data.clone()))
    }
    fn open(&self, _: &Caller, ino: Ino, flags: OpenFlags, reply: Reply<Opened>) {
        self.slow.look(ino);
        let result = self.with(|state| {
            state.log.push(format!("open truncate={}", flags.truncate));
            if flags.truncate {
                state.resize(ino, 0)?;
            }
            Ok(self.opened(state, ino, flags))
        });
        self.answer(reply, result);
    }
    fn read(&self, _: &Caller, ino: Ino, _: Handle, offset: u64, size: u32, reply: Reply<Vec<u8>>) {
        let result = self.with(|state| {
            let data = &state.node(ino)?.data;
            let begin = data.len().min(offset as usize);
            Ok(data[begin..data.len().min(begin + size as usize)].to_vec())
        });
        self.answer(reply, result);
    }
    fn opendir(&self, _: &Caller, ino: Ino) -> Result<Opened, Errno> {
        let caching = Caching::Direct;
        self.with(|state| Ok(Opened { handle: state.handle(ino, OpenFlags::default()), caching }))
    }
    fn readdir(
        &self,
        _: &Caller,
        ino: Ino,
        _: Handle,
        cookie: u64,
        _: Detail,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), Errno> {
        self.slow.look(ino);
        self.with(|state| {
            state.log.push(format!("readdir {cookie}"));
            let entries = &state.nodes.get(&ino).ok_or(Errno::ESTALE)?.entries;
            for (cookie, (name, ino)) in entries.range(cookie + 1..) {
                let attr = state.nodes.get(ino).ok_or(Errno::EIO)?.attr;
                if !emit(DirEntry { name: name.clone(), attr, cookie: *cookie, ttl: TTL }) {
                    break;
                }
            }
            Ok(())
        })
    }
    fn takes_long(&self, look: Look<'_>) -> bool {
        self.slow.is_asked(look)
    }
    fn parent(&self, ino: Ino) -> Result<Ino, Errno> {
        self.with(|state| Ok(state.node(ino)?.parent))
    }
    fn releasedir(&self, handle: Handle) {
        self.state().handles.remove(&handle);
    }
    fn statfs(&self, _: Ino) -> Result<FsStat, Errno> {
        Ok(FsStat {
            block_size: 4096,
            blocks: 1000,
            blocks_free: 600,
            blocks_available: 500,
            files: 90,
            files_free: 80,
            name_max: 255,
        })
    }
    fn getxattr(&self, _: &Caller, ino: Ino, name: &OsStr) -> Result<Vec<u8>, Errno> {
        self.with(|state| {
            state.node(ino)?.xattrs.get(name.as_bytes()).cloned().ok_or(Errno::ENODATA)
        })
    }
    fn listxattr(&self, _: &Caller, ino: Ino) -> Result<Vec<Vec<u8>>, Errno> {
        self.with(|state| Ok(state.node(ino)?.xattrs.keys().cloned().collect()))
    }
    fn seek(
        &self,
        _: &Caller,
        ino: Ino,
        _: Handle,
        offset: u64,
        seek: SeekHole,
    ) -> Result<u64, Errno> {
        let size = self.with(|state| Ok(state.node(ino)?.attr.size))?;
        match seek {
            _ if offset >= size => Err(Errno::ENXIO),
            SeekHole::Data => Ok(offset),
            SeekHole::Hole => Ok(size),
        }
    }
    fn forget(&self, ino: Ino, lookups: u64) {
        self.state().log.push(format!("forget {} {lookups}", ino.0));
    }
    fn make(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &OsStr,
        mode: u32,
        node: NewNode,
        reply: Reply<Entry>,
    ) {
        spring(b"boom", name);
        let result = self.with(|state| {
            let (node_type, data, rdev) = match node {
                NewNode::Directory => (NodeType::Directory, Vec::new(), 0),
                NewNode::File => (NodeType::File, Vec::new(), 0),
                NewNode::Symlink(target) => (NodeType::Symlink, target, 0),
                NewNode::Special(node_type, rdev) => (node_type, Vec::new(), rdev),
            };
            let ino = state.make(parent, node_type, mode);
            let node = state.node(ino)?;
            node.attr.size = data.len() as u64;
            node.attr.rdev = rdev;
            node.attr.uid = caller.uid;
            node.data = data;
            state.put(parent, name.as_bytes(), ino);
            state.entry(ino)
        });
        self.answer(reply, result);
    }
    fn create(
        &self,
        _: &Caller,
        parent: Ino,
        name: &OsStr,
        mode: u32,
        flags: OpenFlags,
        reply: Reply<(Entry, Opened)>,
    ) {
        spring(b"boom", name);
        let result = self.with(|state| {
            let ino = match state.find(parent, name.as_bytes()) {
                Some(_) if flags.exclusive => return Err(Errno::EEXIST),
                Some((_, ino)) => ino,
                None => {
                    let ino = state.make(parent, NodeType::File, mode);
                    state.put(parent, name.as_bytes(), ino);
                    ino
                }
            };
            Ok((state.entry(ino)?, self.opened(state, ino, flags)))
        });
        self.answer(reply, result);
    }
    fn setattr(&self, _: &Caller, ino: Ino, _: Option<Handle>, set: SetAttr, reply: Reply<Entry>) {
        let time = |time| match time {
            TimeOrNow::At(at) => at,
            TimeOrNow::Now => now(),
        };
        let result = self.with(|state| {
            if let Some(size) = set.size {
                state.log.push(format!("setattr size={size}"));
                state.resize(ino, size as usize)?;
            }
            let attr = &mut state.node(ino)?.attr;
            attr.mode = set.mode.unwrap_or(attr.mode);
            attr.uid = set.uid.unwrap_or(attr.uid);
            attr.gid = set.gid.unwrap_or(attr.gid);
            attr.atime_ns = set.atime.map_or(attr.atime_ns, time);
            attr.mtime_ns = set.mtime.map_or(attr.mtime_ns, time);
            state.entry(ino)
        });
        self.answer(reply, result);
    }
    fn unlink(&self, _: &Caller, parent: Ino, name: &OsStr, reply: Reply<()>) {
        spring(b"boom", name);
        let result = self.with(|state| {
            let ino = state.take(parent, name.as_bytes())?;
            state.drop_name(ino);
            Ok(())
        });
        if name.as_bytes().starts_with(b"held") {
            return self.hold.send(Box::new(move || reply.send(result))).unwrap();
        }
        self.answer(reply, result);
    }
    fn rmdir(&self, _: &Caller, parent: Ino, name: &OsStr, reply: Reply<()>) {
        let result = self.with(|state| {
            let (_, ino) = state.find(parent, name.as_bytes()).ok_or(Errno::ENOENT)?;
            if !state.node(ino)?.entries.is_empty() {
                return Err(Errno::ENOTEMPTY);
            }
            state.take(parent, name.as_bytes())?;
            state.drop_name(ino);
            Ok(())
        });
        self.answer(reply, result);
    }
    fn rename(
        &self,
        _: &Caller,
        (parent, name): (Ino, &OsStr),
        (new_parent, new_name): (Ino, &OsStr),
        mode: RenameMode,
        reply: Reply<()>,
    ) {
        let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
        let result = self.with(|state| {
            let taken = state.find(new_parent, new_name).map(|(_, ino)| ino);
            if mode == RenameMode::NoReplace && taken.is_some() {
                return Err(Errno::EEXIST);
            }
            let moved = state.take(parent, name)?;
            if let Some(other) = taken {
                state.take(new_parent, new_name)?;
                match mode {
                    RenameMode::Exchange => state.put(parent, name, other),
                    RenameMode::Replace | RenameMode::NoReplace => state.drop_name(other),
                }
            }
            state.put(new_parent, new_name, moved);
            Ok(())
        });
        self.answer(reply, result);
    }
    fn link(&self, _: &Caller, ino: Ino, parent: Ino, name: &OsStr, reply: Reply<Entry>) {
        let result = self.with(|state| {
            state.node(ino)?.attr.nlink += 1;
            state.put(parent, name.as_bytes(), ino);
            state.entry(ino)
        });
        self.answer(reply, result);
    }
    fn write(&self, _: &Caller, ino: Ino, _: Handle, at: WriteAt, data: &[u8], reply: Reply<u32>) {
        let result = self.with(|state| {
            let size = state.node(ino)?.data.len();
            let begin = match at {
                WriteAt::Offset(offset) => offset as usize,
                WriteAt::End => size,
            };
            state.resize(ino, size.max(begin + data.len()))?;
            state.node(ino)?.data[begin..begin + data.len()].copy_from_slice(data);
            Ok(data.len() as u32)
        });
        self.answer(reply, result);
    }
    fn flush(&self, _: &Caller, _: Ino, _: Handle, reply: Reply<()>) {
        self.answer(reply, Ok(()));
    }
    fn fsync(&self, _: &Caller, _: Ino, _: Handle, reply: Reply<()>) {
        self.state().log.push("fsync".into());
        self.answer(reply, Ok(()));
    }
    fn fsyncdir(&self, _: &Caller, _: Ino, reply: Reply<()>) {
        self.state().log.push("fsyncdir".into());
        self.answer(reply, Ok(()));
    }
    fn release(&self, ino: Ino, handle: Handle) {
        let mut state = self.state();
        state.handles.remove(&handle);
        state.sweep(ino);
    }
    fn fallocate(
        &self,
        _: &Caller,
        ino: Ino,
        _: Handle,
        (offset, length): (u64, u64),
        mode: i32,
        reply: Reply<()>,
    ) {
        let result = match mode {
            0 => self.with(|state| {
                let size = state.node(ino)?.data.len();
                state.resize(ino, size.max((offset + length) as usize))
            }),
            _ => Err(Errno::EOPNOTSUPP),
        };
        self.answer(reply, result);
    }
    fn setxattr(
        &self,
        _: &Caller,
        ino: Ino,
        name: &OsStr,
        value: &[u8],
        mode: XattrMode,
        reply: Reply<()>,
    ) {
        let result = self.with(|state| {
            let xattrs = &mut state.node(ino)?.xattrs;
            match (mode, xattrs.contains_key(name.as_bytes())) {
                (XattrMode::Create, true) => Err(Errno::EEXIST),
                (XattrMode::Replace, false) => Err(Errno::ENODATA),
                _ => {
                    xattrs.insert(name.as_bytes().to_vec(), value.to_vec());
                    Ok(())
                }
            }
        });
        self.answer(reply, result);
    }
    fn removexattr(&self, _: &Caller, ino: Ino, name: &OsStr, reply: Reply<()>) {
        let result = self.with(|state| {
            state.node(ino)?.xattrs.remove(name.as_bytes()).map(|_| ()).ok_or(Errno::ENODATA)
        });
        self.answer(reply, result);
    }
}
