//! Looking a name up: what is stored under it, or computed, and what the kernel may remember of it.

use std::time::Duration;

use workfs_mount::{Caller, Entry};

use crate::names::FileName;
use crate::numbers::Ino;
use crate::refusal::{Door, Rule};
use crate::store::{Class, Node, Read, StoreError};

use super::attr::attr;
use super::computed::{self, Computed};
use super::{Answer, CACHE_TTL, WorkTree};

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
    pub(super) fn find(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &FileName,
    ) -> Answer<Option<Entry>> {
        // Asked before the snapshot is taken: see `kept`.
        let is_told = self.hub.kept.tells_of(parent);
        let find = |read: &dyn Read| self.find_in(read, caller, parent, name);
        // What lies in a computed directory may be made of many rows.
        let is_computed = Computed::of(parent).is_some();
        let found = if is_computed { self.read(find) } else { self.glance(find) }?;
        if let Found::Entry(entry) = found {
            return Ok(Some(entry));
        }
        if let Some(attr) = self.ghosts.find(caller, parent, name) {
            return Ok(Some(Entry { attr, ttl: Duration::ZERO }));
        }
        if matches!(found, Found::Absent) {
            if is_told && !self.hub.touches.stage.is_going(caller, parent, name) {
                return Ok(None);
            }
            self.hub.kept.tell_of(parent);
        }
        Err(Rule::Absent.errno(Door::Name))
    }

    fn find_in(
        &self,
        read: &dyn Read,
        caller: &Caller,
        parent: Ino,
        name: &FileName,
    ) -> Result<Found, StoreError> {
        let or_hidden = |entry: Option<Entry>| entry.map_or(Found::Hidden, Found::Entry);
        if let Some(Computed::Ready(dir)) = Computed::of(parent) {
            return self.lookup_ready(read, caller, dir, name).map(or_hidden);
        }
        if Computed::of(parent).is_none()
            && let Some(node) = read.lookup(parent, name)?
        {
            let is_seen = !self.is_hidden(&node.kind(), caller);
            self.overtaken.looked(read, caller, &node)?;
            return Ok(or_hidden(is_seen.then(|| Self::seen_entry(&node))));
        }
        let (config, pasts, root) = (self.engine.config(), &self.pasts, self.root(caller));
        if let Some(found) = computed::lookup(read, &config, pasts, root, (parent, name))? {
            return self.computed_entry(read, &self.viewer(caller), found).map(Found::Entry);
        }
        match self.lookup_last(read, parent, name)? {
            Some(entry) => Ok(Found::Entry(entry)),
            None if self.is_ordinary_name(read, parent, name)? => Ok(Found::Absent),
            None => Ok(Found::Hidden),
        }
    }

    /// The entry of a stored node.
    pub(super) fn entry(node: &Node) -> Entry {
        Entry { attr: attr(node), ttl: CACHE_TTL }
    }

    /// The entry of a stored node that is looked up: a draft's name is asked for each time, since
    /// it may not be everyone's yet.
    pub(super) fn seen_entry(node: &Node) -> Entry {
        Entry { attr: attr(node), ttl: Self::seen_for(node.class) }
    }

    /// How long such a node's name is true where it is looked up or listed.
    pub(super) fn seen_for(class: Class) -> Duration {
        match class {
            Class::Draft => Duration::ZERO,
            Class::Plain | Class::Record => CACHE_TTL,
        }
    }
}
