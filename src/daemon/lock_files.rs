//! The thread that lets lock files go when their lease is over; there is none where the
//! configuration names no locks.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::engine::{Context, Engine, ExpireLocks};

/// The longest time between two looks: a lease that began meanwhile may be short.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Starts it; it ends when the other end of `ends` is dropped.
///
/// # Errors
/// If the thread cannot be started.
pub fn start(engine: &Engine, ends: Receiver<()>) -> std::io::Result<()> {
    if !engine.config().files().has_locks() {
        return Ok(());
    }
    let engine = engine.clone();
    let look = move || {
        let mut wait = Duration::ZERO;
        while ends.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = match engine.run(Context::daemon(), ExpireLocks) {
                Ok(next) => next.map_or(LOOK_EVERY, |at| {
                    let left = at.0.saturating_sub(engine.lease_now().0);
                    Duration::from_nanos(left).min(LOOK_EVERY)
                }),
                Err(refusal) => {
                    tracing::warn!(%refusal, "lock files stay although their lease is over");
                    LOOK_EVERY
                }
            };
        }
    };
    std::thread::Builder::new().name("locks".into()).spawn(look)?;
    Ok(())
}
