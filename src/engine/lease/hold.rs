//! The end of a descriptor that held a record: the record is free at once.

use crate::numbers::RecordKey;
use crate::store::{LeaseRow, Standing};

use super::super::save::home_of;
use super::super::sight::{Base, Sight};
use super::super::{Command, Rename, RenameMode, Stop, Turn};
use super::back::home_in;
use super::{Expire, Fence};

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
                turn.txn.put_record_lease(&LeaseRow { until: turn.lease_now, ..lease })?;
                turn.follow(Expire { record: self.record, attempt: lease.attempt });
                return Ok(true);
            }
            Standing::Gone => return Ok(false),
        };
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
