//! The end of a descriptor that held a record: the record is free at once.
//!
//! What must stay true: where it cannot be given back, because of what is in its way or of a store that
//! cannot be written, the lease is over all the same, and the record goes back as at the end of a lease.

use parking_lot::Mutex;

use crate::engine::records::save::home_of;
use crate::engine::{Command, Rename, Stop, Turn};
use crate::names::Dentry;
use crate::numbers::{Attempt, RecordKey};
use crate::store::Standing;

use super::back::home_in;
use super::{Cause, Expire, Fence};

/// Gives a record back, if it is still claimed as it was when it was held.
#[derive(Clone, Debug)]
pub(in crate::engine) struct ReleaseHold {
    /// The record.
    pub record: RecordKey,
    /// The claim.
    pub fence: Fence,
}

/// Claims whose descriptors are gone and that were not given back, until the book takes note of them.
#[derive(Default)]
pub(in crate::engine) struct LetGo(Mutex<Vec<(RecordKey, Attempt)>>);

impl LetGo {
    pub fn add(&self, record: RecordKey, attempt: Attempt) {
        self.0.lock().push((record, attempt));
    }

    pub fn take(&self) -> Vec<(RecordKey, Attempt)> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Command for ReleaseHold {
    /// Whether there was something to give back.
    type Out = bool;

    fn operation(&self) -> &'static str {
        "release"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let Some(record) = turn.txn.record(self.record)? else { return Ok(false) };
        // Whoever finished it, or lost it, has nothing to give back.
        let Some(lease) = turn.txn.lease(self.record)? else { return Ok(false) };
        if self.fence.require(&record).is_err() {
            return Ok(false);
        }
        let (dir, name) = match record.standing.clone() {
            Standing::Live { dir, name, .. } => (dir, name),
            // An editor was killed in the middle of a save: there is no file to be moved, and its lease ends
            // as it does where nothing is heard of an owner.
            Standing::Parked { .. } => {
                turn.follow(Expire::now(self.record, lease.attempt, Cause::LetGo));
                return Ok(true);
            }
            Standing::Gone => return Ok(false),
        };
        let lies = home_of(turn, &record)?;
        let to = (lies.kind().initial(), record.owner.as_ref());
        let home = home_in(turn, &lies.governed, &lies.name, to)?;
        Rename::to_free(Dentry::of(dir, name.clone()), Dentry::of(home.dir, name)).run(turn)?;
        Ok(true)
    }
}
