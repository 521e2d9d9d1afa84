//! One mount's ear at the kernel.
//!
//! What must stay true: whoever asks is seen ([`Adapter::note`]). Deliberately not here: the callbacks themselves
//! (see `adapter`).

use std::sync::Arc;

use fuser::{FileHandle, INodeNo, LockOwner, Request};

use super::aside::Aside;
use super::calls::Calls;
use super::seen::LastSeen;
use crate::errno::Errno;
use crate::ids::{Handle, Ino, MountId};
use crate::kernel::gate::Gate;
use crate::kernel::line::Line;
use crate::locks::{Ask, Kind, Lock, Locks, Owner, Wanted, family_of};
use crate::requests::reply::Reply;
use crate::requests::view::View;
use crate::tree::{Caller, ELSEWHERE, Look, Tree};

/// One mount's ear at the kernel.
pub(crate) struct Adapter {
    pub(crate) calls: Calls,
    /// See `MountOptions::other_numbers`.
    other_numbers: bool,
    seen: Arc<LastSeen>,
    pub(crate) view: View,
    pub(crate) gate: Arc<Gate>,
    line: Arc<Line>,
    pub(crate) locks: Arc<Locks>,
    /// For what takes long.
    aside: Arc<Aside>,
}

/// The tree's handle that the kernel names.
pub(crate) fn handle(number: FileHandle) -> Handle {
    Handle(number.0)
}

impl Adapter {
    /// An adapter that serves `tree` as mount `mount`.
    pub(crate) fn new(
        tree: Arc<dyn Tree>,
        mount: MountId,
        (view, other_numbers): (View, bool),
        (gate, line): (Arc<Gate>, Arc<Line>),
        (seen, aside): (Arc<LastSeen>, Arc<Aside>),
    ) -> Adapter {
        let (locks, requests) = (Arc::clone(tree.locks()), tree.requests());
        let calls = Calls { tree, mount, requests };
        Adapter { calls, other_numbers, seen, view, gate, line, locks, aside }
    }

    /// The tree's number of an inode that the kernel names.
    pub(crate) fn ino(&self, number: INodeNo) -> Ino {
        self.view.of_kernel(number)
    }

    /// A lock's owner, of this mount.
    pub(crate) fn owner(&self, number: u64) -> Owner {
        Owner { mount: self.calls.mount, number }
    }

    /// The lock that is asked for, and whether it is to be let go of; `kind` is F_RDLCK, F_WRLCK or F_UNLCK.
    pub(crate) fn lock(
        &self,
        request: &Request,
        (fh, owner): (FileHandle, LockOwner),
        (start, end): (u64, u64),
        (kind, pid): (i32, u32),
    ) -> (Lock, bool) {
        let (family, owner) = (family_of(request, fh.0, owner.0), self.owner(owner.0));
        let (handle, user, is_unlock) = (handle(fh), request.uid(), kind == libc::F_UNLCK);
        let kind = if kind == libc::F_RDLCK { Kind::Shared } else { Kind::Exclusive };
        let lock = Lock { family, owner, handle, kind, start, end, pid, user, closed: None };
        (lock, is_unlock)
    }

    /// The kernel asks for more of a listing, or closes it: what it was told of it before it has read.
    pub(crate) fn listing_was_read(&self, handle: Handle) {
        if self.gate.take_listing(handle) {
            self.line.forget_names();
        }
    }

    /// The answer to a close: what the process had locked in the file is free when it leaves, and
    /// not before what it wrote is judged.
    pub(crate) fn unlocking(
        &self,
        (ino, handle): (Ino, Handle),
        owner: u64,
        reply: Reply<()>,
    ) -> Reply<()> {
        if !self.locks.is_held(ino) {
            return reply;
        }
        let (locks, owner) = (Arc::clone(&self.locks), self.owner(owner));
        Reply::new(move |result| {
            locks.closed(ino, owner, handle);
            reply.send(result);
        })
    }

    /// Takes or lets go of a lock, or waits for it; the tree hears that it is had before who asked does.
    pub(crate) fn set_lock(&self, wanted: Wanted, reply: Reply<()>) {
        let (ino, handle) = (wanted.ino, wanted.lock.handle);
        let (calls, by) = (self.calls.clone(), (self.calls.mount, wanted.thread));
        if wanted.ask == Ask::Unlock {
            calls.guard("unlocks", |tree| tree.unlocks(by, ino));
            return self.locks.set(wanted, reply);
        }
        let reply = Reply::new(move |result: Result<(), Errno>| match result {
            Ok(()) => drop(calls.guard("locked", |tree| tree.locked(by, ino, handle, reply))),
            Err(_) => reply.send(result),
        });
        self.locks.set(wanted, reply);
    }

    /// Somebody uses the mount: a sign of life.
    pub(crate) fn note(&self, request: &Request) {
        if !self.calls.tree.is_own_thread(self.thread(request)) {
            self.seen.note(request.uid());
        }
    }

    /// The thread that asks, as [`Caller::pid`] has it.
    fn thread(&self, request: &Request) -> u32 {
        match request.pid() {
            0 => 0,
            pid if self.other_numbers => pid | ELSEWHERE,
            pid => pid,
        }
    }

    /// Who asks.
    pub(crate) fn caller(&self, request: &Request) -> Caller {
        self.note(request);
        Caller {
            mount: self.calls.mount,
            uid: request.uid(),
            gid: request.gid(),
            pid: self.thread(request),
            files: None,
            nonblocking: false,
        }
    }

    /// Has a look answered: here, or by a thread for what takes long.
    pub(crate) fn look(&self, look: Look<'_>, answer: impl FnOnce(&Calls) + Send + 'static) {
        if self.calls.takes_long(look) { self.aside(answer) } else { answer(&self.calls) }
    }

    /// The same of what a kernel may keep, so inside of the gate; what takes long no kernel keeps.
    pub(crate) fn look_inside(&self, look: Look<'_>, answer: impl FnOnce(&Calls) + Send + 'static) {
        if self.calls.takes_long(look) {
            return self.aside(answer);
        }
        let _inside = self.gate.enter();
        answer(&self.calls);
    }

    fn aside(&self, answer: impl FnOnce(&Calls) + Send + 'static) {
        let calls = self.calls.clone();
        self.aside.run(move || answer(&calls));
    }
}
