//! Refusals: one that was decided before the writer, and what the ledger tells of those by right.

use crate::ledger::{EventName, Field, Payload};
use crate::limits::FORBIDDEN_TOLD_EVERY;
use crate::names::{FileName, TreePath};
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::{Refusal, Rule};
use crate::store::{Durability, StoreError, Txn};

use super::governed::path_of;
use super::turn::{Happening, Refused};
use super::{Command, Context, Stop, Turn};

/// Puts a refusal into `why`, and gives it back as the answer.
#[derive(Clone, Debug)]
pub struct Refuse {
    /// The call that was refused.
    pub operation: &'static str,
    /// The directory of the name that it was about.
    pub dir: Ino,
    /// The name.
    pub name: FileName,
    /// Why.
    pub refusal: Refusal,
}

impl Command for Refuse {
    type Out = ();

    fn operation(&self) -> &'static str {
        self.operation
    }

    fn durability(&self) -> Durability {
        Durability::Process
    }

    fn is_change(&self) -> bool {
        false
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let path = path_of(turn.txn, self.dir, &self.name)?;
        Err(Stop::kept(self.refusal, path))
    }
}

/// Tells the ledger that somebody tried what role or ownership forbids, or a second way to a record.
pub(super) struct TellForbidden {
    operation: &'static str,
    path: TreePath,
    rule: Rule,
}

/// What the ledger is to be told of a refusal, which is not in `why` yet.
pub(super) fn to_tell(
    txn: &dyn Txn,
    context: &Context,
    (operation, now): (&'static str, UnixNanos),
    refused: &Refused,
) -> Result<Option<TellForbidden>, StoreError> {
    let rule = refused.refusal.rule;
    if !matches!(rule, Rule::Forbidden | Rule::OneName) {
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

    fn durability(&self) -> Durability {
        Durability::Process
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let path = self.path.to_string();
        let payload = Payload::of(&[
            ("operation", Field::Text(self.operation)),
            ("path", Field::Text(&path)),
            ("rule", Field::Text(self.rule.code())),
        ]);
        let happening = Happening {
            name: EventName::FORBIDDEN,
            kind: None,
            workspace: None,
            before: None,
            after: None,
            payload,
        };
        turn.append(None, happening)?;
        Ok(())
    }
}
