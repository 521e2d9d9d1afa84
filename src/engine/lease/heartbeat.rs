//! Renewing leases: by the signs of life that were noted, and by a heartbeat, which names its
//! record.

use super::back::Had;
use super::{LeaseClock, LeaseNote};
use crate::engine::change::stop::gone;
use crate::engine::{Command, Effect, Stop, Terms, Turn};
use crate::numbers::{LeaseTime, RecordKey};
use crate::refusal::{Refusal, Rule};
use crate::store::LeaseRow;

/// Writes how long leases run on, and where the lease clock is.
pub(in crate::engine) struct Renew {
    /// The leases, as they are now.
    pub leases: Vec<LeaseRow>,
    /// The clock.
    pub clock: LeaseClock,
}

impl Command for Renew {
    type Out = ();

    fn operation(&self) -> &'static str {
        "renew"
    }

    /// What power loss takes of it is no more than half of a lease, and part of that the grace at the
    /// next start gives back.
    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        self.clock.keep(turn.txn, turn.now)?;
        for row in &self.leases {
            // It may have ended, or be another's, since it was looked at.
            let now = turn.txn.lease(row.record)?;
            if now.is_some_and(|now| now.attempt == row.attempt && now.until < row.until) {
                turn.txn.put_record_lease(row)?;
                turn.effect(Effect::Lease(LeaseNote::Written(row.record, row.until)));
            }
        }
        Ok(())
    }
}

/// Renews the lease of a record by name.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat {
    /// The record.
    pub record: RecordKey,
}

impl Command for Heartbeat {
    /// Until when it runs.
    type Out = LeaseTime;

    fn operation(&self) -> &'static str {
        "heartbeat"
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<LeaseTime, Stop> {
        let record = turn.txn.record(self.record)?.ok_or_else(gone)?;
        let id = record.id.clone();
        let Some(Had { record, governed, state, path, .. }) = Had::find(turn, record)? else {
            let reason = format!("`{id}` was removed");
            return Err(Refusal::new(Rule::Absent, reason, "there is no lease to renew").into());
        };
        let may = turn.context.may_write(&governed.binding.kind, state, record.owner.as_ref());
        may.map_err(|refusal| Stop::kept(refusal, path.clone()))?;
        let lease = turn.txn.lease(self.record)?;
        let (Some(row), Some(owner)) = (lease, record.owner) else {
            let reason = format!("nobody has a lease of `{id}`");
            let refusal = Refusal::new(Rule::LeaseOver, reason, "claim it first");
            return Err(Stop::kept(refusal, path));
        };
        // One that was told of a moment ago is noted as over until that is committed.
        if row.runs() && turn.ends.has(&row) {
            let reason = format!("{owner}'s lease of `{id}` is over, which is not written yet");
            let refusal = Refusal::new(Rule::LeaseOver, reason, "claim it when it is to be had");
            return Err(Stop::kept(refusal, path));
        }
        Ok(turn.run_on(row, owner)?)
    }
}
