//! Transactions: `mkdir .workfs/txn/<name>` makes a copy of the tree to work in, a move of it into
//! `.workfs/commit` makes all its changes at once, `rmdir` throws it away.
//!
//! This is the tree that the mounts serve: what lies in a transaction is answered here, all else by
//! the tree below. What must stay true: what is done inside a transaction is seen nowhere else
//! before its commit. Deliberately not here: keeping transactions over the daemon's end. They are in
//! memory, and one that was not committed is gone with the daemon or its mount.

mod inside;
mod number;
mod serve;
mod table;
mod view;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use workfs_mount::{Attr, Caller, Entry, Errno, MountId, Reply};

use crate::engine::{About, Commit, Context, Origin, Refuse, Stop, TxnNode, path_of_dir};
use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::{Door, Refusal, Rule};
use crate::tree::computed::Computed;
use crate::tree::{Answer, WorkTree};

use number::{Slot, ino_of, node_of};
use table::{Handles, Table, Txn};
use view::{Below, View};

/// The tree of one store with its transactions, served by all its mounts.
pub struct TxnTree {
    below: Arc<WorkTree>,
    table: Arc<Mutex<Table>>,
    handles: Mutex<Handles>,
}

impl TxnTree {
    /// Transactions over the tree `below`.
    #[must_use]
    pub fn new(below: Arc<WorkTree>) -> Arc<TxnTree> {
        Arc::new(TxnTree { below, table: Arc::default(), handles: Mutex::default() })
    }

    /// A mount has ended, and with it all that was held or begun through it.
    pub fn end_mount(&self, mount: MountId) {
        self.table.lock().end_mount(mount);
        self.handles.lock().end_mount(mount);
        self.below.end_mount(mount);
    }

    /// At the daemon's end, when no mount is left: what was saved and has no event yet gets it.
    pub fn end_saves(&self) {
        self.below.end_saves();
    }

    /// Does something in the transaction that `ino` is of; `None` if it is of none.
    fn inside<T>(
        &self,
        caller: &Caller,
        ino: Ino,
        door: Door,
        work: impl FnMut(&mut View, &Below<'_>, TxnNode) -> Result<T, Stop>,
    ) -> Option<Answer<T>> {
        let (slot, node) = node_of(ino)?;
        let txn = self.table.lock().get(slot).filter(|txn| txn.mount == caller.mount);
        let Some(txn) = txn else { return Some(Err(Rule::Gone.errno(door))) };
        if !txn.is_of(caller) {
            return Some(Err(Rule::Forbidden.errno(door)));
        }
        Some(self.view(caller, &txn, node, door, work))
    }

    fn view<T>(
        &self,
        caller: &Caller,
        txn: &Txn,
        node: TxnNode,
        door: Door,
        mut work: impl FnMut(&mut View, &Below<'_>, TxnNode) -> Result<T, Stop>,
    ) -> Answer<T> {
        let now = self.below.engine.now();
        let mut view = txn.view.lock();
        if view.committing {
            return Err(Rule::BeingWritten.errno(door));
        }
        let done = self.below.read(|read| {
            let below = Below { read, tree: &self.below, caller, now };
            match work(&mut view, &below, node) {
                Ok(out) => Ok(Ok(out)),
                Err(Stop::Refused(refused)) => Ok(Err(refused.refusal)),
                Err(Stop::Store(error)) => Err(error),
            }
        })?;
        let refusal: Refusal = match done {
            Ok(out) => return Ok(out),
            Err(refusal) => refusal,
        };
        let is_limit = matches!(refusal.rule, Rule::TooLarge | Rule::TooManyHandles);
        let is_news = is_limit && view.is_news(&refusal.reason);
        drop(view);
        Err(match is_news {
            true => self.tell(caller, &txn.name, door, refusal),
            false => refusal.rule.errno(door),
        })
    }

    /// Puts into `why` that a transaction has met a limit: no program that works in it, or begins it, says which.
    fn tell(&self, caller: &Caller, txn: &FileName, door: Door, refusal: Refusal) -> Errno {
        let about = About::Path(path_of_txn(txn));
        self.below.refuse(caller, door, Refuse { operation: "txn", about, refusal })
    }

    /// The entry of a node: the kernel keeps nothing of a transaction.
    fn entry(slot: Slot, node: TxnNode, attr: Attr) -> Entry {
        Entry::new(Attr { ino: ino_of(slot, node), ..attr }, Duration::ZERO)
    }

    /// The entry of a transaction's root: its maker's alone.
    fn root_entry(&self, caller: &Caller, txn: &Txn) -> Answer<Entry> {
        let root = txn.view.lock().root();
        let attr =
            self.view(caller, txn, root, Door::Name, |view, below, node| view.attr(below, node))?;
        let (mode, uid, gid) = (0o700, txn.maker.0, txn.maker.1);
        Ok(Self::entry(txn.slot, root, Attr { mode, uid, gid, is_fixed: true, ..attr }))
    }

    /// `mkdir .workfs/txn/NAME`. Who may change nothing has nothing to begin, and takes nobody's room.
    fn begin(&self, caller: &Caller, name: FileName, reply: Reply<Entry>) {
        let context = self.below.context(caller, Door::Name);
        if let Err(refusal) = self.below.may_begin_txn(caller, &context) {
            let about = About::Path(path_of_txn(&name));
            let refuse = Refuse { operation: "txn", about, refusal };
            return self.below.refuse_and_answer(caller, refuse, reply);
        }
        let root = self.below.root(caller);
        let begun = self.below.read(|read| path_of_dir(read, root)).and_then(|path| {
            let whose = (caller, context.actor.name);
            let view = View::new(root, path, self.below.pins.charge(caller.uid));
            let txn = self.table.lock().begin(whose, name.clone(), view);
            let txn = txn.map_err(|refusal| match refusal.rule {
                Rule::TooManyHandles => self.tell(caller, &name, Door::Name, refusal),
                rule => rule.errno(Door::Name),
            })?;
            self.root_entry(caller, &txn)
        });
        reply.send(begun);
    }

    /// `rmdir .workfs/txn/NAME`: its maker's to do, and an operator's, who frees what others forgot.
    fn throw_away(&self, caller: &Caller, name: &FileName) -> Answer<()> {
        let is_operator = self.below.is_operator(caller);
        let mut table = self.table.lock();
        let txn = table.find(caller.mount, name).ok_or(Rule::Absent.errno(Door::Name))?;
        if !txn.is_of(caller) && !is_operator {
            drop(table);
            return Err(self.tell(caller, name, Door::Name, not_theirs(name)));
        }
        if txn.view.lock().committing {
            return Err(Rule::BeingWritten.errno(Door::Name));
        }
        table.end(txn.slot);
        Ok(())
    }

    /// `mv .workfs/txn/NAME .workfs/commit`.
    fn commit(&self, caller: &Caller, name: &FileName, reply: Reply<()>) {
        let Some(txn) = self.table.lock().find(caller.mount, name) else {
            return reply.send(Err(Rule::Absent.errno(Door::Rename)));
        };
        if !txn.is_of(caller) {
            return reply.send(Err(self.tell(caller, name, Door::Rename, not_theirs(name))));
        }
        let command = {
            let mut view = txn.view.lock();
            if view.committing {
                return reply.send(Err(Rule::BeingWritten.errno(Door::Rename)));
            }
            view.committing = true;
            let (steps, used, unsaved) = view.finished();
            let is_written = self.below.hub.is_written();
            Commit { path: path_of_txn(name), steps, used, unsaved, is_written }
        };
        // The mount's own kernel knows nothing of these changes either.
        let context = self.below.context(caller, Door::Rename);
        let context = Context { origin: Origin::Socket, ..context };
        let table = Arc::clone(&self.table);
        self.below.engine.submit(context, command, move |result| {
            match &result {
                Ok(()) => table.lock().end(txn.slot),
                Err(_) => txn.view.lock().committing = false,
            }
            reply.send(result.map_err(|refusal| refusal.rule.errno(Door::Rename)));
        });
    }
}

/// `.workfs/txn/NAME`.
fn path_of_txn(name: &FileName) -> TreePath {
    let above = TreePath::parse(".workfs/txn").unwrap_or_default();
    above.join(name.clone())
}

/// Who has not begun a transaction neither commits it nor, but for operators, throws it away.
fn not_theirs(name: &FileName) -> Refusal {
    let reason = format!("the transaction `{name}` is another user's or agent's");
    let remedy = "have it committed by whoever began it; an operator can throw it away (`rmdir`)";
    Refusal::new(Rule::Forbidden, reason, remedy)
}

/// Whether a rename from `.workfs/txn` into this directory is a commit.
fn commits(to: Ino, name: &FileName) -> bool {
    match Computed::of(to) {
        Some(Computed::Commit) => true,
        Some(Computed::Control) => name.as_bytes() == b"commit",
        _ => false,
    }
}

/// The errno for what cannot be done in a transaction.
fn unsupported(door: Door) -> Errno {
    Rule::Unsupported.errno(door)
}
