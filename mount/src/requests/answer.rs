//! Turns the FUSE library's reply objects into [`Reply`]: one function a kind of answer.
//!
//! What must stay true: each function is the only place where its kind of answer is written, so
//! that an answer given at once and one given later from another thread look the same to the
//! kernel. Deliberately not here: calls into the tree.

use std::ffi::OsStr;
use std::sync::Arc;

use fuser::{
    FileHandle, Generation, PollEvents, ReplyAttr, ReplyCreate, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyLock, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr,
};

use super::poll::PollReady;
use super::reply::Reply;
use super::view::{View, directory_flags, fopen_flags};
use crate::errno::Errno;
use crate::ids::Ino;
use crate::kernel::absent;
use crate::kernel::gate::Gate;
use crate::locks::{Kind, Lock};
use crate::tree::{Attr, Entry, FsStat, NodeType, Opened};

/// Answers `reply` and leaves where the request makes no sense.
macro_rules! or_answer {
    ($parsed:expr, $reply:expr) => {
        match $parsed {
            Ok(parsed) => parsed,
            Err(error) => return $reply.send(Err(error)),
        }
    };
}

pub(crate) use or_answer;

/// Inode numbers are never reused, so that one generation is enough.
pub(crate) const GENERATION: Generation = Generation(0);

/// The library's form of an error; one that is no error number becomes EIO.
pub(crate) fn errno(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.0)
}

/// An answer that only says whether it worked.
pub(crate) fn empty(reply: ReplyEmpty) -> Reply<()> {
    Reply::new(move |result| match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    })
}

/// A name that was made.
pub(crate) fn entry(view: View, gate: &Arc<Gate>, reply: ReplyEntry) -> Reply<Entry> {
    let gate = Arc::clone(gate);
    Reply::new(move |result: Result<Entry, Errno>| match result {
        Ok(entry) => {
            gate.note(entry.attr.ino);
            gate.note_changed(entry.attr.ino);
            reply.entry(&entry.ttl, &view.shown(&entry.attr), GENERATION);
        }
        Err(error) => reply.error(errno(error)),
    })
}

/// A name that was looked for; one that is absent is the inode 0, and is remembered if the gate says
/// so.
pub(crate) fn looked(
    view: View,
    gate: &Arc<Gate>,
    (parent, name): (Ino, &OsStr),
    reply: ReplyEntry,
) -> Reply<Option<Entry>> {
    let (gate, name) = (Arc::clone(gate), name.to_owned());
    Reply::new(move |result: Result<Option<Entry>, Errno>| match result {
        Ok(Some(entry)) => {
            gate.note(entry.attr.ino);
            let (attr, ttl, name_ttl) = (view.shown(&entry.attr), entry.ttl, entry.name_ttl);
            reply.entry_with_ttls(&ttl, &name_ttl, &attr, GENERATION);
        }
        Ok(None) if gate.note_absent(parent, &name) => {
            reply.entry(&absent::TTL, &view.shown(&Attr::bare(Ino(0), NodeType::File)), GENERATION);
        }
        Ok(None) => reply.error(errno(Errno::ENOENT)),
        Err(error) => reply.error(errno(error)),
    })
}

/// Attributes.
pub(crate) fn attr(view: View, gate: &Arc<Gate>, reply: ReplyAttr) -> Reply<Entry> {
    let gate = Arc::clone(gate);
    Reply::new(move |result: Result<Entry, Errno>| match result {
        Ok(entry) => {
            gate.note_attributes(entry.attr.ino);
            reply.attr(&entry.ttl, &view.shown(&entry.attr));
        }
        Err(error) => reply.error(errno(error)),
    })
}

/// Attributes that were changed.
pub(crate) fn changed(view: View, gate: &Arc<Gate>, reply: ReplyAttr) -> Reply<Entry> {
    let (gate, reply) = (Arc::clone(gate), attr(view, gate, reply));
    Reply::new(move |result: Result<Entry, Errno>| {
        if let Ok(entry) = &result {
            gate.note_changed(entry.attr.ino);
        }
        reply.send(result);
    })
}

/// Bytes, at most `size_max` of them: the kernel takes a longer answer for a broken one.
pub(crate) fn data(size_max: usize, reply: ReplyData) -> Reply<Vec<u8>> {
    Reply::new(move |result: Result<Vec<u8>, Errno>| match result {
        Ok(data) => reply.data(&data[..data.len().min(size_max)]),
        Err(error) => reply.error(errno(error)),
    })
}

/// An opened file.
pub(crate) fn opened(reply: ReplyOpen) -> Reply<Opened> {
    Reply::new(move |result: Result<Opened, Errno>| match result {
        Ok(opened) => reply.opened(FileHandle(opened.handle.0), fopen_flags(opened.caching)),
        Err(error) => reply.error(errno(error)),
    })
}

/// An opened directory.
pub(crate) fn opened_directory(reply: ReplyOpen) -> Reply<Opened> {
    Reply::new(move |result: Result<Opened, Errno>| match result {
        Ok(opened) => reply.opened(FileHandle(opened.handle.0), directory_flags(opened.caching)),
        Err(error) => reply.error(errno(error)),
    })
}

/// A made and opened file.
pub(crate) fn created(view: View, gate: &Arc<Gate>, reply: ReplyCreate) -> Reply<(Entry, Opened)> {
    let gate = Arc::clone(gate);
    Reply::new(move |result: Result<(Entry, Opened), Errno>| match result {
        Ok((entry, opened)) => {
            gate.note(entry.attr.ino);
            gate.note_changed(entry.attr.ino);
            reply.created(
                &entry.ttl,
                &view.shown(&entry.attr),
                GENERATION,
                FileHandle(opened.handle.0),
                fopen_flags(opened.caching),
            );
        }
        Err(error) => reply.error(errno(error)),
    })
}

/// A count of bytes written.
pub(crate) fn written(reply: ReplyWrite) -> Reply<u32> {
    Reply::new(move |result| match result {
        Ok(bytes) => reply.written(bytes),
        Err(error) => reply.error(errno(error)),
    })
}

/// The lock that is in the way of another; none is told of as F_UNLCK.
pub(crate) fn lock(reply: ReplyLock) -> Reply<Option<Lock>> {
    Reply::new(move |result: Result<Option<Lock>, Errno>| match result {
        Ok(Some(Lock { kind, start, end, pid, .. })) => {
            let kind = if kind == Kind::Shared { libc::F_RDLCK } else { libc::F_WRLCK };
            reply.locked(start, end, kind, pid);
        }
        Ok(None) => reply.locked(0, 0, libc::F_UNLCK, 0),
        Err(error) => reply.error(errno(error)),
    })
}

/// A position in a file.
pub(crate) fn position(reply: ReplyLseek) -> Reply<u64> {
    Reply::new(move |result: Result<u64, Errno>| match result.map(i64::try_from) {
        Ok(Ok(offset)) => reply.offset(offset),
        Ok(Err(_)) => reply.error(errno(Errno::EOVERFLOW)),
        Err(error) => reply.error(errno(error)),
    })
}

/// What can be done without waiting.
pub(crate) fn polled(reply: ReplyPoll) -> Reply<PollReady> {
    Reply::new(move |result: Result<PollReady, Errno>| match result {
        Ok(ready) => {
            let mut events = PollEvents::empty();
            events.set(PollEvents::POLLIN | PollEvents::POLLRDNORM, ready.read);
            events.set(PollEvents::POLLOUT | PollEvents::POLLWRNORM, ready.write);
            reply.poll(events);
        }
        Err(error) => reply.error(errno(error)),
    })
}

/// Sizes of the file system.
pub(crate) fn sizes(reply: ReplyStatfs) -> Reply<FsStat> {
    Reply::new(move |result: Result<FsStat, Errno>| match result {
        Ok(stat) => reply.statfs(
            stat.blocks,
            stat.blocks_free,
            stat.blocks_available,
            stat.files,
            stat.files_free,
            stat.block_size,
            stat.name_max,
            stat.block_size,
        ),
        Err(error) => reply.error(errno(error)),
    })
}

/// An extended attribute's value or the list of names: with room for nothing its size is asked
/// for, with too little room ERANGE is the answer.
pub(crate) fn xattr(room: u32, reply: ReplyXattr) -> Reply<Vec<u8>> {
    Reply::new(move |result: Result<Vec<u8>, Errno>| match result {
        Ok(value) => match u32::try_from(value.len()) {
            Ok(size) if room == 0 => reply.size(size),
            Ok(size) if size <= room => reply.data(&value),
            _ => reply.error(errno(Errno::ERANGE)),
        },
        Err(error) => reply.error(errno(error)),
    })
}
