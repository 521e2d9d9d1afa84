//! The calls of the kernel: into a transaction, or to the tree below.

use std::ffi::OsStr;
use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{
    Attr, Caller, Detail, DirEntry, Entry, Errno, FsStat, Handle, Locks, Look, MountId, NewNode,
    OpenFlags, Opened, PollReady, PollWake, RenameMode, Reply, Requests, SeekHole, SetAttr, Tree,
    WriteAt, XattrMode,
};

use crate::engine::{NewContent, RemoveWhat, TxnName, TxnNode};
use crate::numbers::Ino;
use crate::refusal::{Door, Rule};
use crate::tree::computed::Computed;
use crate::tree::nodes::change::content_of;
use crate::tree::{Answer, name_of};

use super::inside::is_txns;
use super::number::{ino_of, node_of};
use super::table::{TxnOpen, is_ours};
use super::view::{Below, View};
use super::{TxnTree, commits, unsupported};

impl Tree for TxnTree {
    fn lookup(&self, caller: &Caller, parent: Ino, name: &OsStr) -> Answer<Option<Entry>> {
        if is_txns(parent) {
            let txn = self.table.lock().find(caller.mount, &name_of(name)?);
            let txn = txn.ok_or(Rule::Absent.errno(Door::Name))?;
            return self.root_entry(caller, &txn).map(Some);
        }
        let Some((slot, _)) = node_of(parent) else {
            return self.below.lookup(caller, parent, name);
        };
        let name = name_of(name)?;
        let found = self.inside(caller, parent, Door::Name, |view, below, dir| {
            let found = view.find(below, dir, &name)?;
            let node = found.ok_or_else(|| crate::engine::absent(&name))?;
            Ok(Self::entry(slot, node, view.attr(below, node)?))
        });
        found.unwrap_or(Err(Rule::Gone.errno(Door::Name))).map(Some)
    }

    fn getattr(&self, caller: &Caller, ino: Ino, handle: Option<Handle>) -> Answer<Entry> {
        let Some((slot, node)) = node_of(ino) else {
            return self.below.getattr(caller, ino, handle);
        };
        let txn = self.table.lock().get(slot).filter(|txn| txn.mount == caller.mount);
        let txn = txn.ok_or(Rule::Gone.errno(Door::Handle))?;
        if txn.view.lock().root() == node {
            return self.root_entry(caller, &txn);
        }
        let open = handle.and_then(|handle| self.open_of(handle));
        let pinned = open.as_deref().and_then(TxnOpen::pinned);
        let attr = self.view(caller, &txn, node, Door::Handle, |view, below, node| {
            let attr = view.attr(below, node)?;
            Ok(Attr { size: view.size(node, pinned).unwrap_or(attr.size), ..attr })
        })?;
        Ok(Self::entry(slot, node, attr))
    }

    fn readlink(&self, caller: &Caller, ino: Ino) -> Answer<Vec<u8>> {
        let target = |view: &mut View, below: &Below<'_>, node| view.target(below, node);
        let inside = self.inside(caller, ino, Door::Name, target);
        inside.unwrap_or_else(|| self.below.readlink(caller, ino))
    }

    fn open(&self, caller: &Caller, ino: Ino, flags: OpenFlags, reply: Reply<Opened>) {
        match self.open_inside(caller, ino, flags) {
            Some(opened) => reply.send(opened),
            None => self.below.open(caller, ino, flags, reply),
        }
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
        let open = self.open_of(handle);
        let pinned = open.as_deref().and_then(TxnOpen::pinned);
        let at = (caller, ino, Door::Handle);
        if let Some(reply) = self.change(at, reply, |view, below, node| {
            view.read(below, node, pinned, (offset, size as usize))
        }) {
            Tree::read(&*self.below, caller, ino, handle, offset, size, reply);
        }
    }

    fn poll(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        wake: Option<PollWake>,
    ) -> Answer<PollReady> {
        match node_of(ino) {
            Some(_) => Ok(PollReady::BOTH),
            None => self.below.poll(caller, ino, handle, wake),
        }
    }

    fn opendir(&self, caller: &Caller, ino: Ino) -> Answer<Opened> {
        if node_of(ino).is_none() {
            return self.below.opendir(caller, ino);
        }
        self.opened(caller, TxnOpen::Directory(Mutex::default()))
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
        if is_txns(ino) {
            self.list_txns(caller, cookie, emit);
            return Ok(());
        }
        let inside = self.list_inside(caller, ino, (handle, cookie), emit);
        inside.unwrap_or_else(|| self.below.readdir(caller, ino, handle, cookie, detail, emit))
    }

    fn takes_long(&self, look: Look<'_>) -> bool {
        let (Look::At(ino) | Look::For(ino, _) | Look::Through(ino)) = look;
        node_of(ino).is_none() && self.below.takes_long(look)
    }

    fn parent(&self, ino: Ino) -> Answer<Ino> {
        let Some((slot, node)) = node_of(ino) else { return self.below.parent(ino) };
        let txn = self.table.lock().get(slot).ok_or(Rule::Gone.errno(Door::Handle))?;
        let view = txn.view.lock();
        let is_root = view.root() == node;
        Ok(if is_root { Computed::Txns.ino() } else { ino_of(slot, view.parent(node)) })
    }

    fn releasedir(&self, handle: Handle) {
        if !is_ours(handle) {
            return self.below.releasedir(handle);
        }
        self.handles.lock().remove(handle);
    }

    fn statfs(&self, ino: Ino) -> Answer<FsStat> {
        self.below.statfs(match node_of(ino) {
            Some((_, TxnNode::Stored(stored))) => stored,
            Some((_, TxnNode::Made(_))) => workfs_mount::ROOT,
            None => ino,
        })
    }

    fn getxattr(&self, caller: &Caller, ino: Ino, name: &OsStr) -> Answer<Vec<u8>> {
        match node_of(ino) {
            Some(_) => Err(unsupported(Door::Name)),
            None => self.below.getxattr(caller, ino, name),
        }
    }

    fn listxattr(&self, caller: &Caller, ino: Ino) -> Answer<Vec<Vec<u8>>> {
        match node_of(ino) {
            Some(_) => Ok(Vec::new()),
            None => self.below.listxattr(caller, ino),
        }
    }

    fn seek(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        offset: u64,
        seek: SeekHole,
    ) -> Answer<u64> {
        let attr = |view: &mut View, below: &Below<'_>, node| view.attr(below, node);
        match self.inside(caller, ino, Door::Handle, attr) {
            // A file without holes.
            Some(attr) => match (attr?.size, seek) {
                (size, _) if offset >= size => Err(Errno::ENXIO),
                (_, SeekHole::Data) => Ok(offset),
                (size, SeekHole::Hole) => Ok(size),
            },
            None => self.below.seek(caller, ino, handle, offset, seek),
        }
    }

    fn locked(&self, by: (MountId, u32), ino: Ino, handle: Handle, reply: Reply<()>) {
        match node_of(ino) {
            None => self.below.locked(by, ino, handle, reply),
            Some(_) => reply.send(Ok(())),
        }
    }

    fn unlocks(&self, by: (MountId, u32), ino: Ino) {
        self.below.unlocks(by, ino);
    }

    fn locks(&self) -> &Arc<Locks> {
        self.below.locks()
    }

    fn requests(&self) -> Arc<Requests> {
        self.below.requests()
    }

    fn is_own_thread(&self, thread: u32) -> bool {
        self.below.is_own_thread(thread)
    }

    fn forget(&self, ino: Ino, lookups: u64) {
        if node_of(ino).is_none() {
            self.below.forget(ino, lookups);
        }
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
        if is_txns(parent) {
            return match (node, name_of(name)) {
                (NewNode::Directory, Ok(name)) => self.begin(caller, name, reply),
                (NewNode::Directory, Err(errno)) => reply.send(Err(errno)),
                _ => reply.send(Err(unsupported(Door::Name))),
            };
        }
        let content = content_of(node.clone());
        match self.create_inside(caller, (parent, name), (mode, content), false) {
            Some(made) => reply.send(made),
            None => self.below.make(caller, parent, name, mode, node, reply),
        }
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
        match self.create_inside(caller, (parent, name), (mode, NewContent::File), true) {
            Some(Ok(entry)) => {
                // It is made by this, and saved, also where nothing is to be written.
                let writes = Some(entry.attr.ino);
                let open = TxnOpen::File { writes, pinned: None, _held: None };
                let opened = self.opened(caller, open);
                if opened.is_err() {
                    self.save_left(entry.attr.ino);
                }
                reply.send(opened.map(|opened| (entry, opened)));
            }
            Some(Err(errno)) => reply.send(Err(errno)),
            None => self.below.create(caller, parent, name, mode, flags, reply),
        }
    }

    fn setattr(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Option<Handle>,
        set: SetAttr,
        reply: Reply<Entry>,
    ) {
        let Some((slot, _)) = node_of(ino) else {
            return self.below.setattr(caller, ino, handle, set, reply);
        };
        self.change((caller, ino, Door::Name), reply, |view, below, node| {
            view.set(below, node, set)?;
            if handle.is_none() {
                view.save(node);
            }
            Ok(Self::entry(slot, node, view.attr(below, node)?))
        });
    }

    fn unlink(&self, caller: &Caller, parent: Ino, name: &OsStr, reply: Reply<()>) {
        if is_txns(parent) {
            return reply.send(Err(Rule::IsDirectory.errno(Door::Name)));
        }
        if node_of(parent).is_none() {
            return self.below.unlink(caller, parent, name, reply);
        }
        match name_of(name) {
            Ok(name) => {
                self.change((caller, parent, Door::Name), reply, |view, below, dir| {
                    view.remove(below, TxnName { dir, name: name.clone() }, RemoveWhat::File)
                });
            }
            Err(errno) => reply.send(Err(errno)),
        }
    }

    fn rmdir(&self, caller: &Caller, parent: Ino, name: &OsStr, reply: Reply<()>) {
        let inside = node_of(parent).is_some();
        if !inside && !is_txns(parent) {
            return self.below.rmdir(caller, parent, name, reply);
        }
        match name_of(name) {
            Ok(name) if inside => {
                self.change((caller, parent, Door::Name), reply, |view, below, dir| {
                    view.remove(below, TxnName { dir, name: name.clone() }, RemoveWhat::Directory)
                });
            }
            Ok(name) => reply.send(self.throw_away(caller, &name)),
            Err(errno) => reply.send(Err(errno)),
        }
    }

    fn rename(
        &self,
        caller: &Caller,
        (parent, name): (Ino, &OsStr),
        (new_parent, new_name): (Ino, &OsStr),
        mode: RenameMode,
        reply: Reply<()>,
    ) {
        let at = (node_of(parent), node_of(new_parent));
        if at == (None, None) && !is_txns(parent) {
            let (from, to) = ((parent, name), (new_parent, new_name));
            return self.below.rename(caller, from, to, mode, reply);
        }
        let (from, to) = match (name_of(name), name_of(new_name)) {
            (Ok(from), Ok(to)) => (from, to),
            (Err(errno), _) | (_, Err(errno)) => return reply.send(Err(errno)),
        };
        match at {
            (None, None) if commits(new_parent, &to) => self.commit(caller, &from, reply),
            (Some((slot, _)), Some((other, new_dir))) if slot == other => {
                self.change((caller, parent, Door::Rename), reply, |view, below, dir| {
                    let from = TxnName { dir, name: from.clone() };
                    let to = TxnName { dir: new_dir, name: to.clone() };
                    view.rename(below, from, to, mode)
                });
            }
            // Nothing is moved into a transaction, out of it or between two.
            _ => reply.send(Err(unsupported(Door::Rename))),
        }
    }

    fn link(&self, caller: &Caller, ino: Ino, parent: Ino, name: &OsStr, reply: Reply<Entry>) {
        if node_of(ino).is_some() || node_of(parent).is_some() {
            return reply.send(Err(unsupported(Door::Name)));
        }
        self.below.link(caller, ino, parent, name, reply);
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
        let who = (caller, ino, Door::Handle);
        if let Some(reply) = self.change(who, reply, |view, below, node| {
            view.write(below, (node, caller.files), at, data)?;
            Ok(data.len() as u32)
        }) {
            self.below.write(caller, ino, handle, at, data, reply);
        }
    }

    fn flush(&self, caller: &Caller, ino: Ino, handle: Handle, reply: Reply<()>) {
        let at = (caller, ino, Door::Handle);
        // Who only read it ends nothing of what another still writes.
        let writes = self.open_of(handle).is_some_and(|open| open.writes().is_some());
        let close = |view: &mut View, _: &Below<'_>, node| {
            if writes {
                view.close(node, caller.files);
            }
            Ok(())
        };
        if let Some(reply) = self.change(at, reply, close) {
            self.below.flush(caller, ino, handle, reply);
        }
    }

    fn fsync(&self, caller: &Caller, ino: Ino, handle: Handle, reply: Reply<()>) {
        let at = (caller, ino, Door::Handle);
        let save = |view: &mut View, _: &Below<'_>, node| {
            view.save(node);
            Ok(())
        };
        if let Some(reply) = self.change(at, reply, save) {
            self.below.fsync(caller, ino, handle, reply);
        }
    }

    fn fsyncdir(&self, caller: &Caller, ino: Ino, reply: Reply<()>) {
        match node_of(ino) {
            Some(_) => reply.send(Ok(())),
            None => self.below.fsyncdir(caller, ino, reply),
        }
    }

    fn release(&self, ino: Ino, handle: Handle) {
        if !is_ours(handle) {
            return self.below.release(ino, handle);
        }
        let is_last = {
            let mut handles = self.handles.lock();
            handles.remove(handle);
            !handles.may_be_written(ino)
        };
        // What came through a mapping that outlived its descriptor.
        if is_last {
            self.save_left(ino);
        }
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
        match node_of(ino) {
            Some(_) => reply.send(Err(unsupported(Door::Handle))),
            None => self.below.fallocate(caller, ino, handle, range, mode, reply),
        }
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
        match node_of(ino) {
            Some(_) => reply.send(Err(unsupported(Door::Name))),
            None => self.below.setxattr(caller, ino, name, value, mode, reply),
        }
    }

    fn removexattr(&self, caller: &Caller, ino: Ino, name: &OsStr, reply: Reply<()>) {
        match node_of(ino) {
            Some(_) => reply.send(Err(unsupported(Door::Name))),
            None => self.below.removexattr(caller, ino, name, reply),
        }
    }
}
