//! Who opens a file that is replaced again and again.
//!
//! An `open` that finds its file without a name is answered ESTALE, upon which the kernel looks the name
//! up once more, but not a third time. Who is overtaken twice is given the file that was there a moment
//! ago, as on other file systems: a plain one is still there, and of a record the version that the name
//! stands for now. Deliberately not here: how long nameless files stay (the engine's desk).

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use parking_lot::Mutex;
use workfs_mount::{Caller, MountId, OpenFlags, Opened, Reply};

use crate::engine::{Effect, Fate, Origin, ScopeTicket};
use crate::limits::{NAMELESS_AT_ONCE, OVERTAKEN_MAX, OVERTAKEN_TWICE_WITHIN};
use crate::numbers::Ino;
use crate::refusal::{Door, Rule};
use crate::store::{Class, Node, NodeType, Read, StoreError};

use super::WorkTree;
use super::handles::{Held, Open};
use super::open::{Looked, plain};
use super::plain_save::Wrote;
use super::told::At;

/// Names that files lost a moment ago.
#[derive(Default)]
pub(super) struct Lost(Mutex<VecDeque<(Ino, At)>>);

impl Lost {
    /// Notes what a commit took names from.
    pub fn note(&self, effects: &[(Origin, Effect)]) {
        for (_, effect) in effects {
            let Effect::Name { parent, name, ino, fate, .. } = effect else { continue };
            if matches!(fate, Fate::Replaced | Fate::Removed(NodeType::File)) {
                let mut lost = self.0.lock();
                if lost.len() >= 2 * NAMELESS_AT_ONCE {
                    lost.pop_front();
                }
                lost.push_back((*ino, (*parent, name.clone())));
            }
        }
    }

    fn name(&self, ino: Ino) -> Option<At> {
        let lost = self.0.lock();
        lost.iter().rev().find(|(known, _)| *known == ino).map(|(_, at)| at.clone())
    }
}

/// Threads whose `open` was overtaken, and is made once more.
#[derive(Default)]
pub(super) struct Overtaken(Mutex<HashMap<(MountId, u32), Instant>>);

impl Overtaken {
    /// Whether this is the second time in one `open`.
    fn is_again(&self, caller: &Caller) -> bool {
        let thread = (caller.mount, caller.pid);
        let mut threads = self.0.lock();
        let is_recent = |at: &Instant| at.elapsed() < OVERTAKEN_TWICE_WITHIN;
        if threads.remove(&thread).is_some_and(|at| is_recent(&at)) {
            return true;
        }
        if threads.len() >= OVERTAKEN_MAX {
            threads.retain(|_, at| is_recent(at));
        }
        if threads.len() < OVERTAKEN_MAX {
            threads.insert(thread, Instant::now());
        }
        false
    }
}

impl WorkTree {
    /// Opens an inode that has no name.
    pub(super) fn open_overtaken(
        &self,
        caller: &Caller,
        held: Held,
        (ticket, flags): (ScopeTicket, OpenFlags),
        reply: Reply<Opened>,
    ) {
        let only_reads = !flags.write && !flags.truncate;
        if !only_reads || !self.overtaken.is_again(caller) {
            return reply.send(Err(Rule::Gone.errno(Door::Handle)));
        }
        let ino = held.ino();
        reply.send(match self.read(|read| self.look_back(ticket, read, caller, ino, flags)) {
            Ok(Some(open)) => self.opened(caller, held, open),
            Ok(None) => Err(Rule::Gone.errno(Door::Handle)),
            Err(errno) => Err(errno),
        });
    }

    /// What a file without a name was, or what lies in its place; `None` if neither is to be had.
    fn look_back(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        caller: &Caller,
        ino: Ino,
        flags: OpenFlags,
    ) -> Result<Option<Open>, StoreError> {
        let Some(gone) = read.node(ino)? else { return Ok(None) };
        match gone.class {
            Class::Plain => {
                let is_seen = !self.is_hidden(&gone.kind(), caller);
                let open = || plain(flags, Wrote::new(gone.parent, caller, false));
                Ok(is_seen.then(open))
            }
            Class::Record => {
                let Some((dir, name)) = self.hub.lost.name(ino) else { return Ok(None) };
                // The kernel has asked for the rights of the one that is gone.
                let here = read.lookup(dir, &name)?.filter(|here| {
                    let rights = |node: &Node| (node.mode, node.uid, node.gid);
                    here.class == Class::Record && rights(here) == rights(&gone)
                });
                let Some(here) = here else { return Ok(None) };
                Ok(match self.look(ticket, read, caller, here.ino, flags)? {
                    Some(Looked::Open(open)) => Some(open),
                    _ => None,
                })
            }
            Class::Draft => Ok(None),
        }
    }
}
