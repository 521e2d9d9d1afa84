//! Refusals that were decided before the change came to the writer, and what the ledger is told of
//! those that role or ownership made.

use std::sync::Arc;

use super::happening::Happening;
use super::queued::Queued;
use super::stop::Refused;
use crate::engine::places::governed::{path_of, path_of_dir};
use crate::engine::{Command, Context, Origin, Stop, Terms, Turn};
use crate::ledger::{EventName, Field, Payload};
use crate::limits::{FORBIDDEN_TOLD_EVERY, REFUSALS_STRIDE, REJECTED_SMALL_BYTES};
use crate::names::{Dentry, TreePath};
use crate::numbers::{Ino, RecordKey, RefusalKey, UnixNanos};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, NodeType, Read, Record, RefusalRow, Standing, StoreError, Txn};

/// What a change is about: whoever is told that it was refused is told where.
#[derive(Clone, Debug)]
pub enum About {
    /// A name in a directory, whether it is there or not.
    Name(Dentry),
    /// What has this inode.
    Node(Ino),
    /// A record.
    Record(RecordKey),
    /// A path.
    Path(TreePath),
    /// Nothing that lies in the tree.
    Nothing,
}

/// Puts a refusal into `why`, and gives it back as the answer.
#[derive(Clone, Debug)]
pub struct Refuse {
    /// The call that was refused.
    pub operation: &'static str,
    /// What it was about.
    pub about: About,
    /// Why.
    pub refusal: Refusal,
}

impl Command for Refuse {
    type Out = ();

    fn operation(&self) -> &'static str {
        self.operation
    }

    fn terms(&self) -> Terms {
        Terms::NO_CHANGE
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        Err(self.about.kept(turn.txn, self.refusal))
    }
}

/// Puts the refusal of what is written to a record into `why`, with the bytes.
#[derive(Clone, Debug)]
pub struct RefuseText {
    /// The record's path.
    pub path: TreePath,
    /// What is written so far.
    pub bytes: Arc<[u8]>,
    /// Why.
    pub refusal: Refusal,
}

impl Command for RefuseText {
    type Out = ();

    fn operation(&self) -> &'static str {
        "write"
    }

    fn terms(&self) -> Terms {
        Terms::NO_CHANGE
    }

    fn run(self, _: &mut Turn<'_>) -> Result<(), Stop> {
        Err(Stop::rejected(self.refusal, self.path, self.bytes))
    }
}

impl About {
    /// Its path; that of the root where it has none (any more).
    pub(in crate::engine) fn path(&self, read: &dyn Read) -> Result<TreePath, StoreError> {
        let place = match self {
            About::Nothing => None,
            About::Path(path) => return Ok(path.clone()),
            About::Name(at) => Some(at.clone()),
            About::Record(record) => read.record(*record)?.and_then(place_of),
            About::Node(ino) => {
                let Some(node) = read.node(*ino)? else { return Ok(TreePath::root()) };
                match node.class {
                    _ if node.node_type == NodeType::Directory => {
                        return path_of_dir(read, node.ino);
                    }
                    Class::Record => read.record_at(node.ino)?.and_then(place_of),
                    Class::Draft => {
                        read.draft(node.ino)?.map(|draft| Dentry::of(draft.dir, draft.name))
                    }
                    Class::Plain => match read.file_name(node.ino)? {
                        Some(noted) => Some(noted),
                        None => read
                            .name_in(node.parent, node.ino)?
                            .map(|name| Dentry::of(node.parent, name)),
                    },
                }
            }
        };
        place.map_or(Ok(TreePath::root()), |at| path_of(read, at.dir, &at.name))
    }

    /// The refusal of what is about this, which goes to `why`.
    pub(in crate::engine) fn kept(&self, read: &dyn Read, refusal: Refusal) -> Stop {
        match self.path(read) {
            Ok(path) => Stop::kept(refusal, path),
            Err(error) => Stop::Store(error),
        }
    }
}

/// Where a record lies, if it lies anywhere.
fn place_of(record: Record) -> Option<Dentry> {
    match record.standing {
        Standing::Live { dir, name, .. } => Some(Dentry { dir, name }),
        Standing::Parked { .. } | Standing::Gone => None,
    }
}

impl Turn<'_> {
    /// Refuses an observer's change, whatever it is.
    pub(super) fn require_change(&self, command: &impl Command) -> Result<(), Stop> {
        match self.context.may_change() {
            Err(refusal) if command.terms().is_change => {
                Err(command.about().kept(self.txn, refusal))
            }
            _ => Ok(()),
        }
    }
}

/// Tells the ledger that somebody tried what role or ownership forbids, or a second way to a record.
struct TellForbidden {
    operation: &'static str,
    path: TreePath,
    rule: Rule,
}

/// What the ledger is to be told of a refusal, which is not in `why` yet.
fn to_tell(
    txn: &dyn Txn,
    context: &Context,
    (operation, now): (&'static str, UnixNanos),
    refused: &Refused,
) -> Result<Option<TellForbidden>, StoreError> {
    let rule = refused.refusal.rule;
    // Nobody tried what the daemon could not do by itself.
    if !matches!(rule, Rule::Forbidden | Rule::OneName) || context.origin == Origin::Daemon {
        return Ok(None);
    }
    let just = |at: UnixNanos| {
        let passed = u64::try_from(now.0.saturating_sub(at.0)).unwrap_or(0);
        u128::from(passed) < FORBIDDEN_TOLD_EVERY.as_nanos()
    };
    let last = txn.last_refusal_of(&refused.path.to_bytes())?;
    let told = last.is_some_and(|last| {
        last.actor == context.actor.name && last.why.rule == rule && just(last.at)
    });
    Ok((!told).then(|| TellForbidden { operation, path: refused.path.clone(), rule }))
}

impl Command for TellForbidden {
    type Out = ();

    fn operation(&self) -> &'static str {
        self.operation
    }

    /// The daemon tells it of whoever tried: an observer, too.
    fn terms(&self) -> Terms {
        Terms::NO_CHANGE
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let path = self.path.to_string();
        let payload = Payload::of(&[
            ("operation", Field::Text(self.operation)),
            ("path", Field::Text(&path)),
            ("rule", Field::Text(self.rule.code())),
        ]);
        turn.append(None, Happening::of(EventName::FORBIDDEN, payload))?;
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
