//! Files that are locks by the configuration: each has a lease, which its making, a touch and a write
//! renew, and vanishes when that is over.
//!
//! What must stay true: time is that of all leases (`lease/clock`); a lease stands in the
//! transaction of the change that began or renewed it, and one that is over is not renewed, also while
//! its end cannot be written; which files have leases, and how long ones, follows the configuration, in the
//! transaction that keeps it; where that names no locks nothing is asked. Deliberately not here: `flock` and
//! `fcntl` locks, which end with their process.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{Config, Scope};
use crate::engine::{About, Command, Stop, Terms, Turn, lease_nanos, path_of_dir};
use crate::ledger::{EventName, Field, Payload};
use crate::limits::SWEPT_AT_ONCE;
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{Ino, LeaseTime, ROOT};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType, StoreError, Txn};

/// Removes the lock files whose lease is over.
#[derive(Clone, Copy, Debug)]
pub struct ExpireLocks;

impl Command for ExpireLocks {
    /// When the next lease ends, if there is one.
    type Out = Option<LeaseTime>;

    fn operation(&self) -> &'static str {
        "expire"
    }

    /// It removes names, as `rm` does. A lock that is over may be charged elsewhere then, by its next name:
    /// it must not keep all others.
    fn terms(&self) -> Terms {
        Terms { needs_no_room: true, keeps_quotas: false, ..Terms::UNFLUSHED }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Option<LeaseTime>, Stop> {
        let (over, next) = turn.locks_that_are_over()?;
        let mut left = SWEPT_AT_ONCE;
        for ino in over {
            if left == 0 {
                return Ok(Some(turn.lease_now));
            }
            let before = left;
            if turn.expire(ino, &mut left)? {
                turn.txn.delete_lease(ino)?;
                left = left.min(before - 1);
            }
        }
        Ok(if left == 0 { Some(turn.lease_now) } else { next })
    }
}

/// Gives no lock more than its whole lease when a daemon begins: after a boot with an earlier wall
/// clock nothing tells how long the last daemon's clock had gone on since it was kept.
pub(in crate::engine) fn shorten_locks(
    txn: &mut dyn Txn,
    config: &Config,
    now: LeaseTime,
) -> Result<(), StoreError> {
    if !config.files().has_locks() {
        return Ok(());
    }
    let mut leases = Vec::new();
    txn.leases_from(now, &mut |lease| (leases.push(lease), true).1)?;
    for (ino, until) in leases {
        let Some(Dentry { dir, name }) = txn.file_name(ino)? else { continue };
        let scope = config.files().scope(&path_of_dir(txn, dir)?);
        let lease = scope.and_then(|scope| config.files().lock(&scope, &name));
        let longest = lease.map(|lease| now.after(lease_nanos(lease)));
        if let Some(longest) = longest.filter(|longest| *longest < until) {
            txn.put_lease(ino, longest)?;
        }
    }
    Ok(())
}

impl Turn<'_> {
    /// Begins or renews the lease of a file that is changed, if it is a lock. One whose lease is over, and
    /// that has no other name than a lock's, is its holder's no more.
    pub(in crate::engine) fn renew_own_lock(&mut self, node: &Node) -> Result<(), Stop> {
        match self.renew_lock(node)? {
            Some(lease) => self.require_lock_runs(node, lease),
            None => Ok(()),
        }
    }

    /// Begins or renews the lease of a file, if it is a lock; gives the lease, if it is nothing else.
    pub(super) fn renew_lock(&mut self, node: &Node) -> Result<Option<Duration>, StoreError> {
        if !self.config.files().has_locks() || !node.is_plain_file() {
            return Ok(None);
        }
        let (mut longest, mut is_other) = (None, false);
        for at in self.names_of_file(node)? {
            let lease = self.renew_lock_named(at.as_ref(), node.ino)?;
            (longest, is_other) = (longest.max(lease), is_other || lease.is_none());
        }
        Ok(longest.filter(|_| !is_other))
    }

    /// The same, for a file that has this name now.
    pub(super) fn renew_lock_named(
        &mut self,
        at: Dentry<&FileName>,
        ino: Ino,
    ) -> Result<Option<Duration>, StoreError> {
        let lease = self.lock_named(at)?;
        if let Some(lease) = lease {
            self.begin_lock(ino, lease)?;
        }
        Ok(lease)
    }

    /// Gives the lock `ino` its whole lease, unless that is over.
    fn begin_lock(&mut self, ino: Ino, lease: Duration) -> Result<(), StoreError> {
        if !self.is_lock_over(ino, lease)? {
            self.txn.put_lease(ino, self.lease_now.after(lease_nanos(lease)))?;
        }
        Ok(())
    }

    /// For how long a file of this name is a lock, if it is one.
    pub(super) fn lock_named(&self, at: Dentry<&FileName>) -> Result<Option<Duration>, StoreError> {
        if !self.config.files().has_locks() {
            return Ok(None);
        }
        let scope = self.scope(at.dir)?;
        Ok(scope.and_then(|scope| self.config.files().lock(&scope, at.name)))
    }

    /// Refuses what its holder does with a lock whose lease is over, and that has not gone yet.
    pub(super) fn require_lock_runs(&self, node: &Node, lease: Duration) -> Result<(), Stop> {
        if !self.is_lock_over(node.ino, lease)? {
            return Ok(());
        }
        let reason = "the lease of this lock file is over: it goes as soon as that can be written";
        let refusal = Refusal::new(Rule::LeaseOver, reason, "make it anew when it is gone");
        Err(Stop::kept(refusal, About::Node(node.ino).path(self.txn)?))
    }

    fn is_lock_over(&self, ino: Ino, lease: Duration) -> Result<bool, StoreError> {
        let until = self.txn.lock_lease(ino)?;
        Ok(until.is_some_and(|until| self.end_of_lock(until, lease) <= self.lease_now))
    }

    /// When a lock goes whose lease of this length is noted to end at `until`: as of records, its holder has had no
    /// time to show life where the daemon has just begun.
    fn end_of_lock(&self, until: LeaseTime, lease: Duration) -> LeaseTime {
        self.lease_clock.with_grace(until, lease_nanos(lease))
    }

    /// The locks whose lease is over, or more of them than go at once, and when the next one ends.
    fn locks_that_are_over(&mut self) -> Result<(Vec<Ino>, Option<LeaseTime>), StoreError> {
        let (now, gives_grace) = (self.lease_now, self.lease_clock.gives_grace(self.lease_now));
        let (mut due, mut next) = (Vec::new(), None);
        self.txn.leases_from(LeaseTime(0), &mut |(ino, until)| {
            if until > now {
                next = Some(until);
                return false;
            }
            due.push((ino, until));
            gives_grace || due.len() <= SWEPT_AT_ONCE
        })?;
        let mut over = Vec::new();
        for (ino, until) in due {
            let mut end = until;
            if gives_grace {
                let lease = self.lease_of_lock(ino)?;
                end = self.end_of_lock(until, lease);
            }
            if end <= now {
                over.push(ino);
            } else {
                next = Some(next.map_or(end, |next| end.min(next)));
            }
        }
        Ok((over, next))
    }

    /// For how long a file is a lock by its names; for no time, if it is none.
    fn lease_of_lock(&mut self, ino: Ino) -> Result<Duration, StoreError> {
        let mut longest = Duration::ZERO;
        if let Some(node) = self.txn.node(ino)? {
            for at in self.names_of_file(&node)? {
                longest = longest.max(self.lock_named(at.as_ref())?.unwrap_or_default());
            }
        }
        Ok(longest)
    }

    /// Begins the leases of the locks that have come with the directory `dir`. All below it is looked
    /// at, so that such a rename costs what lies there; elsewhere nothing is.
    pub(super) fn begin_locks_below(&mut self, dir: Ino) -> Result<(), StoreError> {
        self.each_lock_below(dir, |turn, _, ino, lease| turn.begin_lock(ino, lease))
    }

    /// Brings leases in line with the configuration in force, where `before` was until now: a file of which
    /// the rules say something else than they did begins a lease as they say; what is a lock no more has none.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn settle_locks(&mut self, before: &Config) -> Result<(), StoreError> {
        let mut leases = Vec::new();
        self.txn.leases_from(LeaseTime(0), &mut |(ino, _)| (leases.push(ino), true).1)?;
        for ino in leases {
            let is_lock = match self.txn.node(ino)? {
                Some(node) => self.is_lock(&node)?,
                None => false,
            };
            if !is_lock {
                self.txn.delete_lease(ino)?;
            }
        }
        self.each_lock_below(ROOT, |turn, file, ino, lease| {
            let (dir, name) = file;
            let scope = before.files().scope(dir);
            let was = scope.and_then(|scope| before.files().lock(&scope, name));
            // That the rule has come, or gives more time, counts for one whose lease is over, too.
            if was != Some(lease) || turn.txn.lock_lease(ino)?.is_none() {
                turn.txn.put_lease(ino, turn.lease_now.after(lease_nanos(lease)))?;
            }
            Ok(())
        })
    }

    /// Calls `each` for each name of a lock in `dir` and below it: with the path of its directory, the name,
    /// the file, and the lease that the rule gives it.
    fn each_lock_below(
        &mut self,
        dir: Ino,
        mut each: impl FnMut(&mut Self, (&TreePath, &FileName), Ino, Duration) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let rules = self.config.files();
        if !rules.has_locks() {
            return Ok(());
        }
        let mut left = vec![(path_of_dir(self.txn, dir)?, dir)];
        while let Some((path, dir)) = left.pop() {
            if !rules.may_lock_below(&path) {
                continue;
            }
            let scope = rules.scope(&path);
            let mut locks = Vec::new();
            self.txn.list_names(dir, None, &mut |(name, node)| {
                match (node.node_type, node.class) {
                    (NodeType::Directory, _) => left.push((path.join(name), node.ino)),
                    (NodeType::File, Class::Plain) => {
                        let lease = scope.as_ref().and_then(|scope| rules.lock(scope, &name));
                        locks.extend(lease.map(|lease| (name, node.ino, lease)));
                    }
                    _ => {}
                }
                true
            })?;
            for (name, ino, lease) in locks {
                each(self, (&path, &name), ino, lease)?;
            }
        }
        Ok(())
    }

    /// Whether a file is a lock by any of its names.
    fn is_lock(&mut self, node: &Node) -> Result<bool, StoreError> {
        for at in self.names_of_file(node)? {
            if self.lock_scope(at.as_ref())?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rules of a directory in which this name is a lock's.
    fn lock_scope(&self, at: Dentry<&FileName>) -> Result<Option<Arc<Scope>>, StoreError> {
        let scope = self.scope(at.dir)?;
        Ok(scope.filter(|scope| self.config.files().lock(scope, at.name).is_some()))
    }

    /// Takes the names of a lock whose lease is over, each with an event, as long as any are `left` to be
    /// taken; says whether it has none any more.
    fn expire(&mut self, ino: Ino, left: &mut usize) -> Result<bool, Stop> {
        let Some(node) = self.txn.node(ino)?.filter(|node| node.nlink > 0) else {
            return Ok(true);
        };
        // What has a record's text is no lock, whatever it is called: with it the record would go.
        if self.txn.parked_by(ino)?.is_some() {
            return Ok(true);
        }
        for at in self.names_of_file(&node)? {
            let Some(scope) = self.lock_scope(at.as_ref())? else { continue };
            if *left == 0 {
                return Ok(false);
            }
            *left -= 1;
            self.take_name(ino, at, &scope)?;
        }
        Ok(true)
    }

    /// Takes a name of a lock away.
    fn take_name(&mut self, ino: Ino, at: Dentry, scope: &Scope) -> Result<(), Stop> {
        // With each name that goes another may have become its first.
        let Some(node) = self.txn.node(ino)? else { return Ok(()) };
        let path = scope.path.join(at.name.clone());
        self.take_away(&node, at)?;
        let shown = path.to_string();
        let payload = Payload::of(&[("path", Field::Text(&shown))]);
        let history = self.file_event(EventName::EXPIRED, &path, payload)?;
        Ok(self.txn.update_history(&history)?)
    }
}
