//! What several calls of the kernel share: changing, making and listing inside a transaction.

use std::ffi::OsStr;
use std::sync::Arc;

use workfs_mount::{Caching, Caller, DirEntry, Entry, Errno, Handle, OpenFlags, Opened, Reply};

use crate::engine::{NewContent, Stop, TxnName, TxnNode};
use crate::numbers::Ino;
use crate::refusal::Door;
use crate::tree::computed::Computed;
use crate::tree::handles::pins::Text;
use crate::tree::nodes::cursor::FIRST_COOKIE;
use crate::tree::{Answer, name_of};

use super::TxnTree;
use super::number::node_of;
use super::table::{Listed, TxnOpen, is_ours};
use super::view::{Below, READ, View};

/// Whether an inode is the directory of the transactions.
pub fn is_txns(ino: Ino) -> bool {
    Computed::of(ino) == Some(Computed::Txns) && node_of(ino).is_none()
}

impl TxnTree {
    /// Changes something in the transaction of `ino` and answers, or gives the reply back.
    pub(super) fn change<T>(
        &self,
        (caller, ino, door): (&Caller, Ino, Door),
        reply: Reply<T>,
        work: impl FnMut(&mut View, &Below<'_>, TxnNode) -> Result<T, Stop>,
    ) -> Option<Reply<T>> {
        match self.inside(caller, ino, door, work) {
            Some(answer) => {
                reply.send(answer);
                None
            }
            None => Some(reply),
        }
    }

    /// What a handle has open; `None` if it is none of a transaction.
    pub(super) fn open_of(&self, handle: Handle) -> Option<Arc<TxnOpen>> {
        if is_ours(handle) { self.handles.lock().get(handle) } else { None }
    }

    /// Opens what was found or made.
    pub(super) fn opened(&self, caller: &Caller, open: TxnOpen) -> Answer<Opened> {
        let handle = self.handles.lock().insert(caller, open)?;
        Ok(Opened { handle, caching: Caching::Direct })
    }

    /// Opens a file of a transaction; `None` if it is of none.
    pub(super) fn open_inside(
        &self,
        caller: &Caller,
        ino: Ino,
        flags: OpenFlags,
    ) -> Option<Answer<Opened>> {
        // First, so that it is not reclaimed while we look at it.
        let held = match node_of(ino)?.1 {
            TxnNode::Stored(stored) => Some(self.below.handles.hold(stored)),
            TxnNode::Made(_) => None,
        };
        let writes = flags.changes().then_some(ino);
        let open =
            |held, pinned| self.opened(caller, TxnOpen::File { writes, pinned, _held: held });
        if flags.truncate {
            // What cannot be opened stays as it is; what was emptied has no text of before.
            let opened = match open(held, None) {
                Ok(opened) => opened,
                refused => return Some(refused),
            };
            let handle = opened.handle;
            let cut = self
                .inside(caller, ino, Door::Name, |view, below, node| view.open(below, node, flags));
            if !matches!(cut, Some(Ok(_))) {
                self.handles.lock().remove(handle);
            }
            return cut.map(|cut| cut.map(|_| opened));
        }
        let pinned = self
            .inside(caller, ino, Door::Name, |view, below, node| view.open(below, node, flags))?;
        Some(pinned.and_then(|pinned| {
            let pinned = pinned.map(|bytes| self.below.counted(caller, Text::of(bytes)));
            open(held, pinned.transpose()?)
        }))
    }

    /// Makes a node in a transaction; `None` if it is in none. `opens`: it is opened, and its `close` is its
    /// save.
    pub(super) fn create_inside(
        &self,
        caller: &Caller,
        (parent, name): (Ino, &OsStr),
        (mode, content): (u32, NewContent),
        opens: bool,
    ) -> Option<Answer<Entry>> {
        let (slot, _) = node_of(parent)?;
        let name = match name_of(name) {
            Ok(name) => name,
            Err(errno) => return Some(Err(errno)),
        };
        self.inside(caller, parent, Door::Name, |view, below, dir| {
            let node =
                view.create(below, TxnName { dir, name: name.clone() }, mode, content.clone())?;
            if !opens {
                view.save(node);
            }
            Ok(Self::entry(slot, node, view.attr(below, node)?))
        })
    }

    /// Saves what was written to a file that nobody closes any more.
    pub(super) fn save_left(&self, ino: Ino) {
        let txn = node_of(ino).and_then(|(slot, node)| Some((self.table.lock().get(slot)?, node)));
        if let Some((txn, node)) = txn {
            txn.view.lock().save(node);
        }
    }

    pub(super) fn list_txns(
        &self,
        caller: &Caller,
        cookie: u64,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) {
        let txns: Vec<_> = self.table.lock().of(caller.mount).cloned().collect();
        for (txn, at) in txns.iter().zip(FIRST_COOKIE..).skip_while(|(_, at)| *at <= cookie) {
            let Ok(Entry { attr, ttl, .. }) = self.root_entry(caller, txn) else { continue };
            let name = txn.name.as_bytes().to_vec();
            if !emit(DirEntry { name, attr, cookie: at, ttl }) {
                break;
            }
        }
    }

    pub(super) fn list_inside(
        &self,
        caller: &Caller,
        dir: Ino,
        (handle, cookie): (Handle, u64),
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Option<Answer<()>> {
        let (slot, _) = node_of(dir)?;
        let open = self.open_of(handle);
        let Some(TxnOpen::Directory(listed)) = open.as_deref() else {
            return Some(Err(Errno::EBADF));
        };
        let mut listed = listed.lock();
        self.inside(caller, dir, Door::Name, |view, below, node| {
            view.require_bits(below, node, READ)?;
            if cookie < FIRST_COOKIE {
                *listed = Listed::default();
                let names = view.list(below, node)?;
                let charge = self.below.pins.names(caller.uid, names.len())?;
                *listed = Listed { names, _charge: Some(charge) };
            }
            for ((name, node), at) in listed.names.iter().zip(FIRST_COOKIE..) {
                if at <= cookie {
                    continue;
                }
                // One that is gone by now is left out.
                let attr = view.attr(below, *node).ok().filter(|attr| attr.nlink > 0);
                let Some(attr) = attr else { continue };
                let Entry { attr, ttl, .. } = Self::entry(slot, *node, attr);
                if !emit(DirEntry { name: name.as_bytes().to_vec(), attr, cookie: at, ttl }) {
                    break;
                }
            }
            Ok(())
        })
    }
}
