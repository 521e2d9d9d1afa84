//! A command's turn: its transaction, its clock, its caller, and the events it appends.

use std::sync::Arc;

use super::happening::Happening;
use super::queued::Queued;
use super::refuse::keep_refusal;
use super::stop::{Refused, Stop, absent};
use crate::config::Config;
use crate::engine::{
    Audience, Context, Doors, Effect, Ends, Fate, LeaseClock, Ranks, Scopes, Undone,
};
use crate::ledger::{self, Event, EventName, Hash, Trace};
use crate::limits::HISTORY_STEPS_MAX;
use crate::names::{Dentry, FileName};
use crate::numbers::{G, Ino, LeaseTime, RecordKey, UnixNanos};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Durability, EventRow, Node, NodeType, Record, StoreError, Txn, earlier};

/// What a record's history says of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Lookback {
    /// There was one.
    HasIt,
    /// There was none.
    HasNot,
    /// Not among so many as are looked at, and there are more.
    TooLong,
}

/// The end of the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub g: G,
    pub hash: Hash,
    pub end: u64,
}

/// A command's turn.
pub struct Turn<'a> {
    /// The transaction.
    pub txn: &'a mut dyn Txn,
    /// When the batch began.
    pub now: UnixNanos,
    /// The same, by the lease clock.
    pub lease_now: LeaseTime,
    pub(in crate::engine) lease_clock: &'a LeaseClock,
    /// The caller.
    pub context: &'a Context,
    /// The operation's name, for `why`.
    pub operation: &'static str,
    /// The configuration.
    pub config: &'a Config,
    /// The trace of all its events, where they are one piece of work.
    pub trace: Option<[u8; 16]>,
    /// Which step of somebody else's the next event continues.
    pub(in crate::engine) continues: Option<Trace>,
    pub(crate) doors: &'a Doors,
    pub(crate) scopes: &'a Scopes,
    pub(in crate::engine) ranks: &'a Ranks,
    pub(crate) audience: &'a dyn Audience,
    pub(crate) head: Head,
    /// The names of the events that it appended.
    pub(in crate::engine) happened: Vec<EventName>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) nameless: Vec<Ino>,
    pub(crate) durability: Durability,
    pub(in crate::engine) undone: &'a Arc<Undone>,
    /// Leases that are over, of which the rows do not say so yet.
    pub(in crate::engine) ends: &'a Ends,
    /// What follows in the same transaction.
    pub(in crate::engine) follows: Vec<Queued>,
}

impl Turn<'_> {
    /// The commit must survive power loss although the command does not say so of itself: it has
    /// turned out to be about what is governed.
    pub fn must_survive_power_loss(&mut self) {
        self.durability = self.durability.max(Durability::Power);
    }

    /// Adds an effect.
    pub fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// The place in the ledger that the next event will have.
    #[must_use]
    pub fn next_g(&self) -> G {
        self.head.g.next()
    }

    /// Puts a refusal into `why` although the command goes on (a draft keeps its bytes).
    ///
    /// # Errors
    /// A failure of the store.
    pub fn keep(&mut self, refused: Refused) -> Result<(), StoreError> {
        let what = (self.operation, self.now);
        keep_refusal(self.txn, self.context, what, refused, &mut self.follows)
    }

    /// The trace of a new piece of work: random bytes, if this is not a part of a larger one.
    #[must_use]
    pub fn new_trace(&self) -> [u8; 16] {
        if let Some(trace) = self.trace {
            return trace;
        }
        let mut bytes = [0; 16];
        (self.doors.random)(&mut bytes);
        bytes
    }

    /// Appends an event about `record` (or about no record) to the ledger.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn append(
        &mut self,
        record: Option<&Record>,
        happening: Happening<'_>,
    ) -> Result<G, StoreError> {
        let before = record.filter(|r| r.key != RecordKey(0)).map_or(G(0), |r| r.last_g);
        self.append_after(before, record, happening)
    }

    /// The same after the event `before_g` about the same thing; 0 if there is none.
    pub(in crate::engine) fn append_after(
        &mut self,
        before_g: G,
        record: Option<&Record>,
        happening: Happening<'_>,
    ) -> Result<G, StoreError> {
        // What is governed survives power loss with `--sync full`; files are flushed by `fsync`.
        if record.is_some() || happening.workspace.is_some() {
            self.must_survive_power_loss();
        }
        let g = self.next_g();
        let mut span = [0; 8];
        (self.doors.random)(&mut span);
        let own = record.filter(|_| self.trace.is_none()).map(|record| record.trace);
        let trace = match self.continues.take() {
            Some(sender) => sender.child(span),
            None => Trace::new(own.unwrap_or_else(|| self.new_trace()), span),
        };
        let event = Event {
            name: happening.name,
            workspace: happening.workspace.cloned(),
            kind: happening.kind.cloned(),
            id: record.map(|record| record.id.clone()),
            actor: self.context.actor.clone(),
            before: happening.before,
            after: happening.after,
            payload: happening.payload,
            trace,
            idempotency_key: None,
        };
        let sealed = ledger::seal(&event, g, self.now, &self.head.hash);
        let end = self.head.end + sealed.line.len() as u64 + 1;
        self.txn.insert_event(&EventRow { g, before_g, end, line: sealed.line })?;
        self.head = Head { g, hash: sealed.hash, end };
        self.happened.push(event.name);
        Ok(g)
    }

    /// Whether there was an event about `record` of which `is_it` holds.
    pub(in crate::engine) fn past_of(
        &self,
        record: &Record,
        is_it: impl Fn(&serde_json::Value) -> bool,
    ) -> Result<Lookback, StoreError> {
        let mut at = record.last_g;
        for _ in 0..=HISTORY_STEPS_MAX {
            let Some(row) = self.txn.event(at)? else { return Ok(Lookback::HasNot) };
            if is_it(&row.parsed()?) {
                return Ok(Lookback::HasIt);
            }
            at = earlier(at, row.before_g)?;
        }
        Ok(Lookback::TooLong)
    }

    /// The directory `ino`, if it is one and still has a name.
    ///
    /// # Errors
    /// ENOENT or ENOTDIR, or a failure of the store.
    pub fn directory(&self, ino: Ino) -> Result<Node, Stop> {
        let node = self.txn.node(ino)?.filter(|node| node.nlink > 0).ok_or_else(|| {
            Refusal::new(Rule::Absent, "the directory is gone", "look at its parent again")
        })?;
        if node.node_type != NodeType::Directory {
            return Err(Refusal::new(
                Rule::NotDirectory,
                "this is not a directory",
                "name a directory",
            )
            .into());
        }
        Ok(node)
    }

    /// What `name` stands for in `parent`.
    ///
    /// # Errors
    /// ENOENT, or a failure of the store.
    pub fn existing(&self, parent: Ino, name: &FileName) -> Result<Node, Stop> {
        let found = self.txn.lookup(parent, name)?;
        Ok(found.ok_or_else(|| absent(name))?)
    }

    /// Notes that a directory's entries changed now, and by how many directories.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn touch_dir(&mut self, mut dir: Node, directories: i32) -> Result<(), StoreError> {
        dir.mtime = self.now;
        dir.ctime = self.now;
        dir.nlink = dir.nlink.saturating_add_signed(directories);
        self.effects.push(Effect::Times(dir.ino));
        self.txn.update_node(&dir)
    }

    /// Takes the name `name` in `dir` from a node; without a name it lives on only for its open
    /// handles.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn unname(&mut self, node: &Node, dir: Ino, name: &FileName) -> Result<(), StoreError> {
        let mut node = node.clone();
        node.ctime = self.now;
        node.nlink = match node.node_type {
            NodeType::Directory => 0,
            _ => node.nlink.saturating_sub(1),
        };
        let next = if node.nlink == 0 {
            self.uncharge(&mut node)?;
            None
        } else {
            self.lose_name(&mut node, dir, name)?
        };
        self.txn.update_node(&node)?;
        self.forget_file_name(&node, dir, next)?;
        self.effects.push(Effect::Attr { ino: node.ino, also_origin: node.nlink > 0 });
        if node.nlink == 0 {
            if node.class == Class::Draft {
                self.txn.delete_draft(node.ino)?;
            }
            self.txn.insert_orphan(node.ino)?;
            self.nameless.push(node.ino);
        }
        Ok(())
    }

    /// Takes a file's name away that nobody asked to remove: each kernel hears of it, also the caller's.
    pub(in crate::engine) fn take_away(
        &mut self,
        node: &Node,
        Dentry { dir, name }: Dentry,
    ) -> Result<(), Stop> {
        let parent = self.directory(dir)?;
        self.txn.delete_entry(dir, &name)?;
        self.unname(node, dir, &name)?;
        self.touch_dir(parent, 0)?;
        let fate = Fate::Removed(node.node_type);
        self.effect(Effect::Name { parent: dir, name, ino: node.ino, also_origin: true, fate });
        Ok(())
    }
}
