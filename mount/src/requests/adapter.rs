//! The kernel's requests, handed to a [`crate::Tree`]: each callback reads the request, calls the tree,
//! replies.
//!
//! What must stay true: every call of the tree goes through [`Calls`](crate::session::calls::Calls), which
//! catches its panics and counts it. Names and contents are not logged. Deliberately not here: rules of any kind;
//! `copy_file_range`, `ioctl` and `bmap` (ENOSYS: the kernel then does without or does it itself).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, FileHandle, Filesystem, INodeNo, KernelConfig, LockOwner,
    PollEvents, PollFlags, PollNotifier, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen,
    ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, Request, WriteFlags,
};

use super::answer::{self, or_answer};
use super::listing::{self, Place};
use super::times::Operation;
use super::view;
use super::write_at::WriteAt;
use crate::errno::Errno;
use crate::locks::{Ask, Wanted};
use crate::mounting::negotiate::negotiate;
use crate::session::guard::{Adapter, handle};
use crate::tree::{Caller, Look, NewNode, SetAttr};

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        self.gate.remember_absent(negotiate(config));
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (caller, dir) = (self.caller(request), self.ino(parent));
        let reply = answer::looked(self.view, &self.gate, (dir, name), reply);
        let owned = name.to_owned();
        self.look_inside(Look::For(dir, name), move |calls| {
            calls.ask(Operation::Lookup, reply, |tree| tree.lookup(&caller, dir, &owned));
        });
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.gate.forget(self.ino(number), lookups);
        self.calls.tell(Operation::Forget, |tree| tree.forget(self.ino(number), lookups));
    }

    fn getattr(
        &self,
        request: &Request,
        number: INodeNo,
        fh: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        let (caller, ino, fh) = (self.caller(request), self.ino(number), fh.map(handle));
        let reply = answer::attr(self.view, &self.gate, reply);
        self.look_inside(Look::At(ino), move |calls| {
            calls.ask(Operation::Getattr, reply, |tree| tree.getattr(&caller, ino, fh));
        });
    }

    /// Asked where the kernel does not check permissions, which is where only root comes in: root may
    /// do anything, but run what nobody may.
    fn access(&self, request: &Request, number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let reply = answer::empty(reply);
        if !mask.contains(AccessFlags::X_OK) {
            return reply.send(Ok(()));
        }
        self.calls.ask(Operation::Access, reply, |tree| {
            let entry = tree.getattr(&self.caller(request), self.ino(number), None)?;
            self.view.may_run(&entry.attr).then_some(()).ok_or(Errno::EACCES)
        });
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<fuser::TimeOrNow>,
        mtime: Option<fuser::TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = SetAttr {
            mode: mode.map(|mode| mode & 0o7777),
            uid,
            gid,
            size,
            atime: atime.map(view::time_or_now),
            mtime: mtime.map(view::time_or_now),
        };
        let reply = answer::changed(self.view, &self.gate, reply);
        self.calls.hand(Operation::Setattr, reply, |tree, reply| {
            tree.setattr(&self.caller(request), self.ino(number), fh.map(handle), set, reply);
        });
    }

    fn readlink(&self, request: &Request, number: INodeNo, reply: ReplyData) {
        let reply = answer::data(libc::PATH_MAX as usize, reply);
        self.calls.ask(Operation::Readlink, reply, |tree| {
            tree.readlink(&self.caller(request), self.ino(number))
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let reply = answer::entry(self.view, &self.gate, reply);
        let node = or_answer!(view::new_node(mode, rdev), reply);
        self.calls.hand(Operation::Mknod, reply, |tree, reply| {
            tree.make(&self.caller(request), self.ino(parent), name, mode & 0o7777, node, reply);
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let reply = answer::entry(self.view, &self.gate, reply);
        self.calls.hand(Operation::Mkdir, reply, |tree, reply| {
            tree.make(
                &self.caller(request),
                self.ino(parent),
                name,
                mode & 0o7777,
                NewNode::Directory,
                reply,
            );
        });
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let reply = answer::empty(reply);
        self.calls.hand(Operation::Unlink, reply, |tree, reply| {
            tree.unlink(&self.caller(request), self.ino(parent), name, reply)
        });
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let reply = answer::empty(reply);
        self.calls.hand(Operation::Rmdir, reply, |tree, reply| {
            tree.rmdir(&self.caller(request), self.ino(parent), name, reply)
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let reply = answer::entry(self.view, &self.gate, reply);
        let node = NewNode::Symlink(target.as_os_str().as_bytes().to_vec());
        self.calls.hand(Operation::Symlink, reply, |tree, reply| {
            tree.make(&self.caller(request), self.ino(parent), name, 0o777, node, reply);
        });
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let reply = answer::empty(reply);
        let mode = or_answer!(view::rename_mode(flags), reply);
        self.calls.hand(Operation::Rename, reply, |tree, reply| {
            let (from, to) = ((self.ino(parent), name), (self.ino(new_parent), new_name));
            tree.rename(&self.caller(request), from, to, mode, reply);
        });
    }

    fn link(
        &self,
        request: &Request,
        number: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        let reply = answer::entry(self.view, &self.gate, reply);
        self.calls.hand(Operation::Link, reply, |tree, reply| {
            tree.link(
                &self.caller(request),
                self.ino(number),
                self.ino(new_parent),
                new_name,
                reply,
            );
        });
    }

    fn open(&self, request: &Request, number: INodeNo, flags: fuser::OpenFlags, reply: ReplyOpen) {
        let (caller, ino) = (self.caller(request), self.ino(number));
        let (flags, reply) = (view::open_flags(flags.0), answer::opened(reply));
        self.look(Look::At(ino), move |calls| {
            calls.hand(Operation::Open, reply, |tree, reply| tree.open(&caller, ino, flags, reply));
        });
    }

    fn read(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        flags: fuser::OpenFlags,
        lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let reply = answer::data(size as usize, reply);
        let files = lock_owner.map(|owner| owner.0);
        // As they are now: the kernel sends what `fcntl` made of them, too.
        let nonblocking = flags.0 & libc::O_NONBLOCK != 0;
        let caller = Caller { files, nonblocking, ..self.caller(request) };
        self.calls.hand(Operation::Read, reply, |tree, reply| {
            tree.read(&caller, self.ino(number), handle(fh), offset, size, reply);
        });
    }

    /// A write from the page cache (a mapping's) may name another caller or none: passed on as
    /// it is, a tree takes its caller at `open`.
    fn write(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        from: WriteFlags,
        flags: fuser::OpenFlags,
        lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let reply = answer::written(reply);
        let files = lock_owner.map(|owner| owner.0);
        let caller = Caller { files, ..self.caller(request) };
        let at = WriteAt::of_request(offset, from, flags);
        self.calls.hand(Operation::Write, reply, |tree, reply| {
            tree.write(&caller, self.ino(number), handle(fh), at, data, reply);
        });
    }

    fn flush(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let closed = (self.ino(number), handle(fh));
        let reply = self.unlocking(closed, lock_owner.0, answer::empty(reply));
        let caller = Caller { files: Some(lock_owner.0), ..self.caller(request) };
        self.calls.hand(Operation::Flush, reply, |tree, reply| {
            tree.flush(&caller, self.ino(number), handle(fh), reply)
        });
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        fh: FileHandle,
        _flags: fuser::OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let reply = answer::empty(reply);
        self.calls.ask(Operation::Release, reply, |tree| {
            tree.release(self.ino(number), handle(fh));
            self.locks.released(self.ino(number), handle(fh));
            Ok(())
        });
    }

    fn fsync(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let reply = answer::empty(reply);
        self.calls.hand(Operation::Fsync, reply, |tree, reply| {
            tree.fsync(&self.caller(request), self.ino(number), handle(fh), reply)
        });
    }

    fn poll(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        ph: PollNotifier,
        _events: PollEvents,
        flags: PollFlags,
        reply: ReplyPoll,
    ) {
        let (reply, wake) = (answer::polled(reply), view::poll_wake(ph, flags));
        self.calls.ask(Operation::Poll, reply, |tree| {
            tree.poll(&self.caller(request), self.ino(number), handle(fh), wake)
        });
    }

    fn opendir(
        &self,
        request: &Request,
        number: INodeNo,
        _flags: fuser::OpenFlags,
        reply: ReplyOpen,
    ) {
        let reply = answer::opened_directory(reply);
        self.calls.ask(Operation::Opendir, reply, |tree| {
            tree.opendir(&self.caller(request), self.ino(number))
        });
    }

    fn readdir(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        let place = Place { ino: self.ino(number), handle: handle(fh), cookie: offset };
        let (caller, view) = (self.caller(request), self.view);
        self.look(Look::Through(place.ino), move |calls| {
            listing::plain(calls, &caller, &place, view, reply);
        });
    }

    fn readdirplus(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let place = Place { ino: self.ino(number), handle: handle(fh), cookie: offset };
        let (caller, view, gate) = (self.caller(request), self.view, Arc::clone(&self.gate));
        self.listing_was_read(place.handle);
        self.look_inside(Look::Through(place.ino), move |calls| {
            listing::with_attributes(calls, &caller, &place, (view, &gate), reply);
        });
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        _flags: fuser::OpenFlags,
        reply: ReplyEmpty,
    ) {
        let reply = answer::empty(reply);
        self.listing_was_read(handle(fh));
        self.calls.ask(Operation::Releasedir, reply, |tree| {
            tree.releasedir(handle(fh));
            Ok(())
        });
    }

    fn fsyncdir(
        &self,
        request: &Request,
        number: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let reply = answer::empty(reply);
        self.calls.hand(Operation::Fsyncdir, reply, |tree, reply| {
            tree.fsyncdir(&self.caller(request), self.ino(number), reply)
        });
    }

    fn statfs(&self, request: &Request, number: INodeNo, reply: ReplyStatfs) {
        let reply = answer::sizes(reply);
        self.note(request);
        self.calls.ask(Operation::Statfs, reply, |tree| tree.statfs(self.ino(number)));
    }

    fn setxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let reply = answer::empty(reply);
        let mode = or_answer!(view::xattr_mode(flags), reply);
        self.calls.hand(Operation::Setxattr, reply, |tree, reply| {
            tree.setxattr(&self.caller(request), self.ino(number), name, value, mode, reply);
        });
    }

    fn getxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let reply = answer::xattr(size, reply);
        self.calls.ask(Operation::Getxattr, reply, |tree| {
            tree.getxattr(&self.caller(request), self.ino(number), name)
        });
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let reply = answer::xattr(size, reply);
        self.calls.ask(Operation::Listxattr, reply, |tree| {
            let names = tree.listxattr(&self.caller(request), self.ino(number))?;
            Ok(names.into_iter().flat_map(|name| name.into_iter().chain([0])).collect())
        });
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let reply = answer::empty(reply);
        self.calls.hand(Operation::Removexattr, reply, |tree, reply| {
            tree.removexattr(&self.caller(request), self.ino(number), name, reply)
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = view::open_flags(flags);
        let reply = answer::created(self.view, &self.gate, reply);
        self.calls.hand(Operation::Create, reply, |tree, reply| {
            tree.create(&self.caller(request), self.ino(parent), name, mode & 0o7777, flags, reply);
        });
    }

    fn fallocate(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let reply = answer::empty(reply);
        self.calls.hand(Operation::Fallocate, reply, |tree, reply| {
            let (caller, range) = (self.caller(request), (offset, length));
            tree.fallocate(&caller, self.ino(number), handle(fh), range, mode, reply);
        });
    }

    fn lseek(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let reply = answer::position(reply);
        let (seek, offset) = or_answer!(view::seek_hole(offset, whence), reply);
        self.calls.ask(Operation::Lseek, reply, |tree| {
            tree.seek(&self.caller(request), self.ino(number), handle(fh), offset, seek)
        });
    }

    fn getlk(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let (lock, unlock) = self.lock(request, (fh, owner), (start, end), (kind, pid));
        let (ino, thread) = (self.ino(number), self.caller(request).pid);
        let reply = answer::lock(reply).counted(self.calls.requests.begin(Operation::Getlk));
        match unlock {
            true => reply.send(Ok(self.locks.own(ino, &lock))),
            false => self.locks.test((ino, lock, thread), reply),
        }
    }

    fn setlk(
        &self,
        request: &Request,
        number: INodeNo,
        fh: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        wait: bool,
        reply: ReplyEmpty,
    ) {
        let (lock, unlock) = self.lock(request, (fh, owner), (start, end), (kind, pid));
        let (ino, thread) = (self.ino(number), self.caller(request).pid);
        let ask = match (unlock, wait) {
            (true, _) => Ask::Unlock,
            (false, true) => Ask::Wait,
            (false, false) => Ask::Try,
        };
        let wanted = Wanted { ino, lock, ask, thread };
        let reply = answer::empty(reply).counted(self.calls.requests.begin(Operation::Setlk));
        self.set_lock(wanted, reply);
    }
}
