//! The doors through which the outside comes into the engine: clock, randomness, faults.
//!
//! What must stay true: tests use the same doors as production. Deliberately not here: a global.

use std::sync::Arc;

use crate::numbers::UnixNanos;

/// A named moment in the life of a change, at which a test may end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// The changes have run, COMMIT has not.
    BeforeCommit,
    /// COMMIT has returned, nobody was told.
    AfterCommit,
    /// Other mounts know, the caller does not.
    BeforeReply,
}

impl FaultPoint {
    /// The name that `WORKFS_FAULT` uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FaultPoint::BeforeCommit => "before-commit",
            FaultPoint::AfterCommit => "after-commit",
            FaultPoint::BeforeReply => "before-reply",
        }
    }
}

/// Fills a buffer with random bytes.
pub type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Clock, randomness and faults of one engine.
#[derive(Clone)]
pub struct Doors {
    /// The wall clock.
    pub clock: Arc<dyn Fn() -> UnixNanos + Send + Sync>,
    /// Nanoseconds since some moment of this boot; never set, never going back.
    pub steady: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Which boot `steady` counts in, and by which of its steady clocks: time name spaces have their own.
    pub boot: Arc<str>,
    /// Fills a buffer with random bytes.
    pub random: Random,
    /// Called at each point, once a batch.
    pub fault: Arc<dyn Fn(FaultPoint) + Send + Sync>,
}

impl Default for Doors {
    /// The system's clock and randomness, and no faults.
    fn default() -> Self {
        Doors {
            clock: Arc::new(system_now),
            steady: Arc::new(steady_now),
            boot: boot_id(),
            random: Arc::new(fill),
            fault: Arc::new(|_| {}),
        }
    }
}

fn system_now() -> UnixNanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    wall_time(now.tv_sec, now.tv_nsec)
}

/// A clock may be set to what nobody can name.
fn wall_time(seconds: i64, nanos: i64) -> UnixNanos {
    let time = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    UnixNanos(time).min(UnixNanos::LAST)
}

/// Time that the machine sleeps does not count: neither do its owners work then.
fn steady_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Where the kernel does not say, each daemon counts as a boot of its own.
fn boot_id() -> Arc<str> {
    let Ok(said) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
        return format!("process {}", std::process::id()).into();
    };
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    format!("{}{}", said.trim(), shift(&offsets)).into()
}

/// By how much this time name space's steady clock is off the machine's; nothing where it is that, as in all that
/// stores have from before this was told.
fn shift(offsets: &str) -> String {
    let of_steady = offsets.lines().find_map(|line| line.strip_prefix("monotonic"));
    let parts: Vec<_> = of_steady.into_iter().flat_map(str::split_whitespace).collect();
    if parts.iter().all(|part| *part == "0") {
        return String::new();
    }
    format!(" shifted {}", parts.join(" "))
}

/// Trace ids need to be unique, not secret; where the kernel gives no bytes they stay zero, which
/// the ledger turns into a valid id.
fn fill(buffer: &mut [u8]) {
    let _ = rustix::rand::getrandom(buffer, rustix::rand::GetRandomFlags::empty());
}

/// Ends the process with SIGKILL at the `nth` time that `point` is passed: `WORKFS_FAULT` in the
/// form `point:nth`, for crash tests.
#[must_use]
pub fn kill_at(setting: &str) -> Option<Arc<dyn Fn(FaultPoint) + Send + Sync>> {
    let (point, nth) = setting.split_once(':')?;
    let (point, nth) = (point.to_owned(), nth.parse::<u64>().ok()?);
    let passed = std::sync::atomic::AtomicU64::new(0);
    Some(Arc::new(move |at: FaultPoint| {
        if at.name() == point
            && passed.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 == nth
        {
            let me = rustix::process::getpid();
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_s_own_steady_clock_counts_in_its_boot_and_another_in_one_of_its_own() {
        let own = "monotonic           0         0\nboottime            0         0\n";
        assert_eq!([shift(own), shift("")], ["", ""]);
        let other = "monotonic       20000         7\nboottime            0         0\n";
        assert_eq!(shift(other), " shifted 20000 7");
    }

    #[test]
    fn no_clock_shows_a_time_that_cannot_be_read_again() {
        for seconds in [i64::MAX / 1_000_000_000, i64::MAX] {
            let shown = wall_time(seconds, 999_999_999);
            assert_eq!(UnixNanos::parse_rfc3339(&shown.rfc3339()), Some(shown));
        }
        assert_eq!(wall_time(7, 8), UnixNanos(7_000_000_008));
    }
}
