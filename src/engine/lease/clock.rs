//! The store's lease clock: it never goes back, whatever the wall clock is set to, and goes on
//! where it was when the daemon starts again.
//!
//! Within one boot it counts by the machine's steady clock, which nobody can set and which stands
//! still while the machine sleeps. After another boot the wall clock says how much time has passed;
//! if that was set back meanwhile, none has.

use std::sync::Arc;

use crate::numbers::{LeaseTime, UnixNanos};
use crate::store::{Read, Result, Txn};

use super::super::Doors;

/// Where the store keeps what the next daemon must know.
const KEY: &str = "lease_clock";

/// See the module.
#[derive(Clone)]
pub struct LeaseClock {
    steady: Arc<dyn Fn() -> u64 + Send + Sync>,
    boot: Arc<str>,
    /// What is to be added to the steady clock.
    offset: i64,
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
        LeaseClock { steady: Arc::new(|| 0), boot: Arc::from(""), offset: 0 }
    }

    /// Goes on from what the store keeps.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn start(read: &dyn Read, doors: &Doors) -> Result<LeaseClock> {
        let kept = read.meta(KEY)?.and_then(|text| serde_json::from_str::<Kept>(&text).ok());
        let steady = (doors.steady)();
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
        Ok(LeaseClock { steady: Arc::clone(&doors.steady), boot: Arc::clone(&doors.boot), offset })
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

    /// Keeps what the next daemon must know.
    pub(in crate::engine) fn keep(&self, txn: &mut dyn Txn, wall: UnixNanos) -> Result<()> {
        let steady = (self.steady)();
        let boot = self.boot.to_string();
        let kept = Kept { at: self.of_steady(steady), steady, boot, wall };
        // Numbers and a text: writing them as JSON cannot fail.
        txn.put_meta(KEY, &serde_json::to_string(&kept).unwrap_or_default())
    }
}
