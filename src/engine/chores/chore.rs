//! One thing that a chore does, in a turn of its own or in that of what brought it.

use crate::engine::{About, Refused, Stop, Turn};
use crate::numbers::G;
use crate::store::Record;

/// What a chore does in its turn; whether it did anything.
pub(super) trait Chore: Send + 'static {
    /// What it is about, for who is told that it cannot be done.
    fn about(&self) -> About;

    /// The name of the operation, by which `why` remembers that it could not be done.
    fn operation(&self) -> &'static str {
        "chore"
    }

    /// Whether the next daemon knows by `why` that it is still to be done.
    fn is_recalled(&self) -> bool {
        false
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop>;
}

/// Does it, if no quota is in its way either.
pub(super) fn attempt(chore: impl Chore, turn: &mut Turn<'_>) -> Result<bool, Stop> {
    let (about, is_recalled) = (chore.about(), chore.is_recalled());
    let did = chore.run(turn).and_then(|did| turn.require_quotas().map(|()| did));
    did.map_err(|stop| {
        let stop = turn.told_where(stop, Some(about.clone()));
        undone(turn, &about, stop, is_recalled)
    })
}

/// What keeps a chore from being done is told of where that is not known yet: at what the chore is about,
/// since where it would go nothing lies.
fn undone(turn: &Turn<'_>, about: &About, stop: Stop, is_recalled: bool) -> Stop {
    let Stop::Refused(refused) = stop else { return stop };
    let Refused { mut refusal, path, .. } = *refused;
    let at = about.path(turn.txn).map(|at| {
        // A refusal that any file system would give names none; of what has none any more it is all there is.
        if at.names().is_empty() {
            return path;
        }
        if !path.names().is_empty() && path != at {
            refusal.reason = format!("{}, on its way to `{path}`", refusal.reason);
        }
        at
    });
    match at.and_then(|at| turn.leave_undone(at, refusal, is_recalled)) {
        Ok(refused) => Stop::Refused(Box::new(refused)),
        Err(error) => Stop::Store(error),
    }
}

/// Whether nothing has happened to a record since it was found.
pub(super) fn is_unchanged(record: &Record, last_g: G) -> bool {
    record.last_g == last_g && record.ino().is_some()
}
