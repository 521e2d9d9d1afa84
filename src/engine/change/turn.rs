//! A command's turn: its transaction, its clock, its caller, and the events it appends.

use std::sync::Arc;

use crate::config::Config;
use crate::engine::places::governed::Home;
use crate::engine::{Audience, Context, Doors, Effect, Ends, Scopes, Undone};
use crate::ledger::{self, Event, EventName, Hash, Payload, Trace};
use crate::limits::{HISTORY_STEPS_MAX, REFUSALS_STRIDE, REJECTED_SMALL_BYTES};
use crate::names::{FileName, TreePath};
use crate::numbers::{G, Ino, LeaseTime, RecordKey, RefusalKey, UnixNanos, Version};
use crate::refusal::{Refusal, Rule};
use crate::store::{
    Class, Durability, EventRow, Node, NodeType, Record, RefusalRow, StoreError, Txn, earlier,
};

use super::queued::Queued;
use super::refuse::to_tell;

/// A refusal with what is to be kept of it.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// The path it was about.
    pub path: TreePath,
    /// The bytes that were refused.
    pub rejected: Option<Arc<[u8]>>,
    /// Whether it goes to `why`: refusals that any file system would give do not.
    pub kept: bool,
}

/// Why a command stopped.
#[derive(Debug)]
pub enum Stop {
    /// A rule said no.
    Refused(Box<Refused>),
    /// The store failed; the whole transaction is off, but where it met damage (see [`Stop::alone`]).
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Stop::Store(error)
    }
}

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

/// A refusal that any file system would give: answered, not kept.
impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        let path = TreePath::root();
        Stop::Refused(Box::new(Refused { refusal, path, rejected: None, kept: false }))
    }
}

impl Stop {
    /// What a whole change ends with: a row or a content that is damaged is in the way of who came upon it, and
    /// of nobody else.
    pub(super) fn alone(self) -> Self {
        match self {
            Stop::Store(damage @ StoreError::Impossible(_)) => {
                tracing::error!(%damage, "a change is not made");
                Refusal::from(damage).into()
            }
            stop => stop,
        }
    }

    /// A refusal that goes to `why`.
    #[must_use]
    pub fn kept(refusal: Refusal, path: TreePath) -> Self {
        Stop::Refused(Box::new(Refused { refusal, path, rejected: None, kept: true }))
    }

    /// A refusal of content, which is kept with it.
    #[must_use]
    pub fn rejected(refusal: Refusal, path: TreePath, bytes: Arc<[u8]>) -> Self {
        Stop::Refused(Box::new(Refused { refusal, path, rejected: Some(bytes), kept: true }))
    }
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
    pub(crate) audience: &'a dyn Audience,
    pub(crate) head: Head,
    pub(crate) effects: Vec<Effect>,
    pub(crate) nameless: Vec<Ino>,
    pub(crate) durability: Durability,
    pub(in crate::engine) undone: &'a Arc<Undone>,
    /// Leases that are over, of which the rows do not say so yet.
    pub(in crate::engine) ends: &'a Ends,
    /// What follows in the same transaction.
    pub(in crate::engine) follows: Vec<Queued>,
}

/// What happened, for [`Turn::append`].
pub struct Happening<'a> {
    /// The event's name.
    pub name: EventName,
    /// The kind of the record.
    pub kind: Option<&'a crate::names::KindName>,
    /// The workspace's path.
    pub workspace: Option<&'a TreePath>,
    /// The version before.
    pub before: Option<Version>,
    /// The version after.
    pub after: Option<Version>,
    /// What more there is to say.
    pub payload: Payload,
}

impl Happening<'static> {
    /// An event about no record.
    pub fn of(name: EventName, payload: Payload) -> Self {
        Happening { name, kind: None, workspace: None, before: None, after: None, payload }
    }
}

impl<'a> Happening<'a> {
    /// An event about what has its place at `home`, and of no version of it.
    pub fn at(home: &'a Home, name: EventName, payload: Payload) -> Self {
        let (kind, workspace) = (Some(home.kind().name()), Some(&home.governed.path));
        Happening { kind, workspace, ..Happening::of(name, payload) }
    }
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
            let line = serde_json::from_str(&row.line)
                .map_err(|why| StoreError::Impossible(format!("event {at}: {why}")))?;
            if is_it(&line) {
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
}

/// Puts a refusal into `why` and into the log, and has the ledger told of those that it is to know;
/// the oldest go beyond the limits.
pub(in crate::engine) fn keep_refusal(
    txn: &mut dyn Txn,
    context: &Context,
    (operation, now): (&'static str, UnixNanos),
    refused: Refused,
    follows: &mut Vec<Queued>,
) -> Result<(), StoreError> {
    if let Some(told) = to_tell(txn, context, (operation, now), &refused)? {
        follows.push(Queued::new(context.clone(), told, |_| {}));
    }
    let Refused { refusal, path, rejected, .. } = refused;
    let errno = refusal.rule.errno(context.door);
    // Not the reason: it may quote content, which is never logged. `why` has it, and all of it: the log
    // does not grow by what anybody has refused.
    tracing::debug!(
        operation,
        path = %path,
        errno = errno.name(),
        rule = refusal.rule.code(),
        actor = %context.actor.name,
        place = ?refusal.place,
        "refused"
    );
    let row = RefusalRow {
        key: RefusalKey(0),
        at: now,
        mount: context.actor.mount,
        actor: context.actor.name.clone(),
        uid: context.actor.uid,
        pid: context.actor.pid.unwrap_or(0),
        operation: operation.to_owned(),
        path: path.to_bytes(),
        errno: errno.name().to_owned(),
        why: refusal.into(),
        rejected_bytes: 0,
    };
    let key = txn.insert_refusal(&row, rejected.as_deref())?;
    // In strides, which keeps the cost away from the single refusal; of one with many bytes it is small.
    let is_large = rejected.is_some_and(|bytes| bytes.len() > REJECTED_SMALL_BYTES);
    if is_large || key.0.is_multiple_of(REFUSALS_STRIDE) { txn.prune_refusals() } else { Ok(()) }
}

/// The refusal for a name that is not there.
#[must_use]
pub fn absent(name: &FileName) -> Refusal {
    Refusal::new(
        Rule::Absent,
        format!("`{name}` is not there (any more)"),
        "list the directory again: someone else may have claimed, moved or removed it",
    )
}

/// The refusal for a name that is taken.
#[must_use]
pub fn taken(name: &FileName) -> Refusal {
    Refusal::new(
        Rule::Taken,
        format!("`{name}` is there already"),
        "choose another name, or look at what is there",
    )
}

/// The refusal for an inode that is gone.
pub(in crate::engine) fn gone() -> Refusal {
    Refusal::new(
        Rule::Gone,
        "the file of this handle is gone",
        "open it again by its name: it may have been moved or removed",
    )
}
