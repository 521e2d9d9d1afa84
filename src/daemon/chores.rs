//! The thread that makes the rounds of the coordinator's chores; there is none where the
//! configuration asks for none that a clock brings, or tries again.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};

use crate::engine::{Chores, Engine};
use crate::limits::CHORES_EVERY;

/// Starts it; it ends when the other end of `ends` is dropped.
///
/// # Errors
/// If the thread cannot be started.
pub fn start(engine: &Engine, ends: Receiver<()>) -> std::io::Result<()> {
    let config = engine.config();
    if !config.has_rounds() && !config.has_follows() {
        return Ok(());
    }
    let since = engine.now().0;
    let chores = Chores::new(engine, &format!("process {} of {since}", std::process::id()));
    // Many records make a long round, and it keeps the store open.
    let over = ends.clone();
    let chores = chores.until(move || over.try_recv() == Err(TryRecvError::Disconnected));
    let rounds = move || {
        let mut wait = Duration::ZERO;
        while ends.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            if let Err(refusal) = chores.round() {
                tracing::warn!(%refusal, "the chores are left for later");
            }
            wait = CHORES_EVERY;
        }
        chores.resign();
    };
    std::thread::Builder::new().name("chores".into()).spawn(rounds)?;
    Ok(())
}
