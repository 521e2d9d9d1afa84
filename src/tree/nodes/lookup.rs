//! Looking a name up: what is stored under it, or computed, and what the kernel may remember of it.

use std::time::Duration;

use workfs_mount::{Attr, Caller, Entry};

use crate::engine::{NEXT, ScopeTicket, for_roles, goes_by_roles};
use crate::limits::CACHE_TTL;
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Door, Rule};
use crate::store::{Class, Node, NodeType, Read, StoreError};
use crate::tree::computed::pasts::PastDir;
use crate::tree::computed::{self, Computed, at::as_of, hold};
use crate::tree::{Answer, WorkTree};

use super::attr::attr;

/// What a snapshot has under a name.
enum Found {
    Entry(Entry),
    /// Nothing for this caller, or nothing yet.
    Hidden,
    /// Nothing but that it is not there: the kernel hears of it when that changes.
    Absent,
}

impl WorkTree {
    /// Finds a name; `None`: it is absent, and the kernel may remember that.
    pub(in crate::tree) fn find(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &FileName,
    ) -> Answer<Option<Entry>> {
        if name.as_bytes() == NEXT
            && let Some(entry) = self.find_next(caller, parent)?
        {
            return Ok(Some(entry));
        }
        // Asked before the snapshot is taken: see `kernels/absent`.
        let is_told = self.hub.absent.tells_of(parent);
        let ticket = self.hub.scopes.ticket();
        let (dir, at) = (Computed::of(parent), Dentry::of(parent, name));
        let find = |read: &dyn Read| self.find_in(ticket, read, caller, (dir, at));
        // What lies in a computed directory may be made of many rows.
        let found = if dir.is_some() { self.read(find) } else { self.glance(find) }?;
        if let Found::Entry(entry) = found {
            return Ok(Some(entry));
        }
        // Who looks for the second time and finds nothing has no `open` any more that is made once more.
        self.overtaken.end(caller);
        if let Some(attr) = self.ghosts.find(caller, parent, name) {
            return Ok(Some(Entry::new(attr, Duration::ZERO)));
        }
        if matches!(found, Found::Absent) {
            if is_told && !self.hub.touches.stage.is_going(caller, parent, name) {
                return Ok(None);
            }
            self.hub.absent.tell_of(parent);
        }
        Err(Rule::Absent.errno(Door::Name))
    }

    fn find_in(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        caller: &Caller,
        (dir, at): (Option<Computed>, Dentry<&FileName>),
    ) -> Result<Found, StoreError> {
        let or_hidden = |entry: Option<Entry>| entry.map_or(Found::Hidden, Found::Entry);
        match dir {
            None if !self.is_at_root(caller, at) => {
                if let Some(node) = read.lookup(at.dir, at.name)? {
                    let seen_for = self.seen_for(&node.kind(), caller);
                    self.note_looked(ticket, read, caller, &node)?;
                    let attr = self.shown(read, caller, &node)?;
                    return Ok(or_hidden(seen_for.map(|ttl| self.told(caller, attr, ttl))));
                }
            }
            Some(Computed::Ready(dir)) => {
                return self.lookup_ready(read, caller, dir, at.name).map(or_hidden);
            }
            Some(Computed::HoldDir) => {
                let viewer = self.viewer(caller);
                let root = Dentry { dir: viewer.root, ..at };
                let found = hold::find(read, root, Some(&viewer.actor))?;
                let entry = found.map(|found| self.computed_entry(read, &viewer, found));
                return entry.transpose().map(or_hidden);
            }
            Some(Computed::History(PastDir::AT)) => {
                if let Some(g) = as_of(read, at.name, self.engine.now())? {
                    let link = self.computed_entry(read, &self.viewer(caller), Computed::AsOf(g));
                    return link.map(Found::Entry);
                }
            }
            _ => {}
        }
        let (config, pasts, root) = (self.engine.config(), &self.pasts, self.root(caller));
        if let Some(found) = computed::lookup(read, &config, pasts, root, at)? {
            return self.computed_entry(read, &self.viewer(caller), found).map(Found::Entry);
        }
        let is_ordinary = self.is_ordinary_name(read, at.dir, at.name)?;
        Ok(if is_ordinary { Found::Absent } else { Found::Hidden })
    }

    /// Whether a name at the root of the caller's mount is workfs's own. That comes before what is stored
    /// there: another mount in which it is no root takes a name as any other.
    pub(super) fn is_at_root(&self, caller: &Caller, at: Dentry<&FileName>) -> bool {
        at.name.is_computed() && at.dir == self.root(caller)
    }

    /// The attributes of a stored node, as the caller's mount shows them.
    pub(in crate::tree) fn shown(
        &self,
        read: &dyn Read,
        caller: &Caller,
        node: &Node,
    ) -> Result<Attr, StoreError> {
        let mut shown = attr(node);
        if self.shows_roles(caller) && goes_by_roles(read, &self.engine.config(), node)? {
            shown.mode = for_roles(shown.mode);
        }
        Ok(shown)
    }

    /// The entry of a stored node that a change has given.
    pub(in crate::tree) fn entry(&self, caller: &Caller, node: &Node) -> Entry {
        let mut entry = self.told(caller, attr(node), CACHE_TTL);
        if self.shows_roles(caller) {
            match (node.node_type, node.class) {
                // What it is to a workspace is known when it is asked for.
                (NodeType::Directory, _) => entry.ttl = Duration::ZERO,
                (_, Class::Plain) => {}
                _ => entry.attr.mode = for_roles(entry.attr.mode),
            }
        }
        entry
    }
}
