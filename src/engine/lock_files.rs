//! Files that are locks by the configuration: each has a lease, which its making, a touch and a write
//! renew, and vanishes when that is over.
//!
//! What must stay true: time is that of all leases (`lease/clock`); a lease stands in the transaction of the change that began or renewed it;
//! where the configuration names no locks nothing is asked. Deliberately not here: `flock` and
//! `fcntl` locks, which end with their process.

use crate::ledger::{EventName, Field, Payload};
use crate::limits::SWEPT_AT_ONCE;
use crate::names::FileName;
use crate::numbers::{Ino, LeaseTime};
use crate::store::{Class, Durability, Node, NodeType, StoreError};

use super::{Command, Effect, Fate, Stop, Turn, lease_nanos};

/// Removes the lock files whose lease is over.
#[derive(Clone, Copy, Debug)]
pub struct ExpireLocks;

impl Command for ExpireLocks {
    /// When the next lease ends, if there is one.
    type Out = Option<LeaseTime>;

    fn operation(&self) -> &'static str {
        "expire"
    }

    fn durability(&self) -> Durability {
        Durability::Process
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Option<LeaseTime>, Stop> {
        for _ in 0..SWEPT_AT_ONCE {
            match turn.txn.next_lease()? {
                Some((ino, until)) if until <= turn.lease_now => {
                    turn.txn.delete_lease(ino)?;
                    // It may have more than one name.
                    while turn.expire(ino)? {}
                }
                next => return Ok(next.map(|(_, until)| until)),
            }
        }
        Ok(Some(turn.lease_now))
    }
}

impl Turn<'_> {
    /// Begins or renews the lease of a file, if it is a lock.
    pub(super) fn renew_lock(&mut self, node: &Node) -> Result<(), StoreError> {
        if !self.config.files().has_locks()
            || node.node_type != NodeType::File
            || node.class != Class::Plain
        {
            return Ok(());
        }
        let Some((dir, name)) = self.name_of_file(node)? else { return Ok(()) };
        self.renew_lock_named(dir, &name, node.ino)
    }

    /// The same, for a file that has this name now.
    pub(super) fn renew_lock_named(
        &mut self,
        dir: Ino,
        name: &FileName,
        ino: Ino,
    ) -> Result<(), StoreError> {
        if !self.config.files().has_locks() {
            return Ok(());
        }
        let Some(scope) = self.scope(dir)? else { return Ok(()) };
        let Some(lease) = self.config.files().lock(&scope, name) else { return Ok(()) };
        let until = self.lease_now.after(lease_nanos(lease));
        self.txn.put_file_name(ino, dir, name)?;
        self.txn.put_lease(ino, until)
    }

    /// Takes a name of a lock whose lease is over, with an event; false if it has none.
    fn expire(&mut self, ino: Ino) -> Result<bool, Stop> {
        let Some(node) = self.txn.node(ino)?.filter(|node| node.nlink > 0) else {
            return Ok(false);
        };
        let Some((dir, name)) = self.name_of_file(&node)? else { return Ok(false) };
        let Some(scope) = self.scope(dir)? else { return Ok(false) };
        if self.config.files().lock(&scope, &name).is_none() {
            return Ok(false);
        }
        let parent = self.directory(dir)?;
        self.txn.delete_entry(dir, &name)?;
        self.txn.delete_file_name(ino)?;
        self.unname(&node)?;
        self.touch_dir(parent, 0)?;
        let path = scope.path.join(name.clone());
        let shown = path.to_string();
        let payload = Payload::of(&[("path", Field::Text(&shown))]);
        let history = self.file_event(EventName::EXPIRED, &path, payload)?;
        self.txn.update_history(&history)?;
        let fate = Fate::Removed(node.node_type);
        self.effect(Effect::Name { parent: dir, name, ino, also_origin: true, fate });
        Ok(true)
    }
}
