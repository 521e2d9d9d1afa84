//! The store's lease clock: it never goes back, whatever the wall clock is set to, and goes on
//! where it was when the daemon starts again.
//!
//! Within one boot it counts by the machine's steady clock, which nobody can set and which stands
//! still while the machine sleeps. After another boot, and in another time name space, the wall clock says
//! how much time has passed; if that was set back meanwhile, none has.

use std::sync::Arc;

use crate::engine::Doors;
use crate::limits::LEASE_GRACE;
use crate::numbers::{LeaseTime, UnixNanos};
use crate::store::{LeaseRow, Read, Result, Txn};

use super::nanos;

/// Where the store keeps what the next daemon must know.
const KEY: &str = "lease_clock";

/// See the module.
#[derive(Clone)]
pub struct LeaseClock {
    steady: Arc<dyn Fn() -> u64 + Send + Sync>,
    boot: Arc<str>,
    /// What is to be added to the steady clock.
    offset: i64,
    /// Where it was when the daemon started.
    started: LeaseTime,
    /// What the wall clock said when it was last kept.
    wall_before: UnixNanos,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    at: LeaseTime,
    steady: u64,
    boot: String,
    wall: UnixNanos,
}

impl LeaseClock {
    /// One that stands at the beginning.
    #[cfg(test)]
    pub fn at_rest() -> LeaseClock {
        LeaseClock::at_rest_at(0)
    }

    /// One that began there, and stands at this moment.
    #[cfg(test)]
    pub fn at_rest_at(nanos: u64) -> LeaseClock {
        let started = LeaseTime(0);
        let (steady, wall_before) = (Arc::new(move || nanos), UnixNanos(0));
        LeaseClock { steady, boot: Arc::from(""), offset: 0, started, wall_before }
    }

    /// Goes on from what the store keeps.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn start(read: &dyn Read, doors: &Doors) -> Result<LeaseClock> {
        let kept = read.meta(KEY)?.and_then(|text| serde_json::from_str::<Kept>(&text).ok());
        let steady = (doors.steady)();
        let wall_before = kept.as_ref().map_or(UnixNanos(0), |kept| kept.wall);
        let kept = kept.map_or(0, |kept| {
            let same_boot = *kept.boot == *doors.boot && steady >= kept.steady;
            let passed = if same_boot {
                steady - kept.steady
            } else {
                u64::try_from((doors.clock)().0.saturating_sub(kept.wall.0)).unwrap_or(0)
            };
            kept.at.0.saturating_add(passed)
        });
        // It is not kept with each claim: none was made later than it shows now.
        let mut at = kept;
        read.leases(&mut |(row, _)| {
            at = at.max(row.until.0.saturating_sub(row.ttl_ns));
            true
        })?;
        let offset = (at as i64).saturating_sub(steady as i64);
        let (steady, boot) = (Arc::clone(&doors.steady), Arc::clone(&doors.boot));
        Ok(LeaseClock { steady, boot, offset, started: LeaseTime(at), wall_before })
    }

    /// What the wall clock said when a daemon before this one last kept it.
    #[must_use]
    pub fn wall_before(&self) -> UnixNanos {
        self.wall_before
    }

    /// When a lease ends. One that ends about the daemon's start gets some time, which is not written: its
    /// owner could not show life. It counts from the lease's own end, so that no number of starts keeps a
    /// record with who is gone; and one that was given or renewed since the start ends no earlier.
    #[must_use]
    pub fn end_of(&self, lease: &LeaseRow) -> LeaseTime {
        if lease.runs() { self.with_grace(lease.until, lease.ttl_ns) } else { lease.until }
    }

    /// The same of a lease that was given for `ttl_ns` nanoseconds.
    pub(in crate::engine) fn with_grace(&self, until: LeaseTime, ttl_ns: u64) -> LeaseTime {
        let grace = nanos(LEASE_GRACE).min(ttl_ns);
        until.max(self.started.after(grace).min(until.after(grace)))
    }

    /// Whether some lease may have its grace still at this moment.
    pub(in crate::engine) fn gives_grace(&self, now: LeaseTime) -> bool {
        now < self.started.after(nanos(LEASE_GRACE))
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> LeaseTime {
        self.of_steady((self.steady)())
    }

    /// A moment of the machine's steady clock.
    #[must_use]
    pub fn of_steady(&self, steady: u64) -> LeaseTime {
        LeaseTime((steady as i64).saturating_add(self.offset).max(0).unsigned_abs())
    }

    /// The same moment as the machine's steady clock shows it.
    #[must_use]
    pub fn steady_at(&self, at: LeaseTime) -> u64 {
        let at = i64::try_from(at.0).unwrap_or(i64::MAX);
        at.saturating_sub(self.offset).max(0).unsigned_abs()
    }

    /// A moment of this clock as the wall clock would show it, which shows `wall` now.
    #[must_use]
    pub fn shown(&self, at: LeaseTime, wall: UnixNanos) -> UnixNanos {
        let left = (at.0 as i64).saturating_sub(self.now().0 as i64);
        UnixNanos(wall.0.saturating_add(left))
    }

    /// Keeps what the next daemon must know.
    pub(in crate::engine) fn keep(&self, txn: &mut dyn Txn, wall: UnixNanos) -> Result<()> {
        let steady = (self.steady)();
        let boot = self.boot.to_string();
        let kept = Kept { at: self.of_steady(steady), steady, boot, wall };
        // Numbers and a text: writing them as JSON cannot fail.
        txn.put_meta(KEY, &serde_json::to_string(&kept).unwrap_or_default())
    }
}
