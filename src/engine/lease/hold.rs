//! The end of a descriptor that held a record: the record is free at once.

use crate::numbers::RecordKey;
use crate::store::Standing;

use super::super::save::home_of;
use super::super::sight::{Base, Sight};
use super::super::{Command, Rename, RenameMode, Stop, Turn};
use super::Fence;
use super::back::home_in;

/// Gives a record back, if it is still claimed as it was when it was held.
#[derive(Clone, Debug)]
pub struct ReleaseHold {
    /// The record.
    pub record: RecordKey,
    /// The claim.
    pub fence: Fence,
}

impl Command for ReleaseHold {
    /// Whether there was something to give back.
    type Out = bool;

    fn operation(&self) -> &'static str {
        "release"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let Some(record) = turn.txn.record(self.record)? else { return Ok(false) };
        let Standing::Live { dir, name, .. } = record.standing.clone() else { return Ok(false) };
        // Whoever finished it, or lost it, has nothing to give back.
        if self.fence.require(&record).is_err() || turn.txn.lease(self.record)?.is_none() {
            return Ok(false);
        }
        let lies = home_of(turn, &record)?;
        let to = lies.kind().initial();
        let home = match home_in(turn, &lies.governed, &lies.name, to) {
            Ok(home) => home,
            Err(Stop::Refused(_)) => return Ok(false),
            Err(stop) => return Err(stop),
        };
        let rename = Rename {
            parent: dir,
            name: name.clone(),
            new_parent: home.dir,
            new_name: name,
            mode: RenameMode::NoReplace,
            sight: Sight::Known(Base::Unseen),
        };
        rename.run(turn).map(|_| true)
    }
}
