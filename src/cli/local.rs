//! Opening the store in this process, where no daemon serves it.
//!
//! What must stay true: the store's lock is held for the command's time only; another command that
//! has it is waited for a moment. Deliberately not here: what is done with it.

use std::sync::Arc;

use super::output::{Output, Stop};
use crate::config::Config;
use crate::daemon::{self, Cause, Failure, HeldWait, LOOK_AGAIN, OpenStore, StorePaths};
use crate::engine::Nobody;
use crate::limits::DAEMON_END_WAIT;
use crate::store::Durability;

/// Opens the store; makes it where there is none. To set that up is the caller's.
pub fn open(
    paths: &StorePaths,
    sync: Durability,
    config: Option<Arc<Config>>,
    output: &Output,
) -> Result<OpenStore, Stop> {
    let mut wait = HeldWait::of(paths);
    let closes = paths.closes_to_others();
    loop {
        match daemon::open(paths, sync, config.clone(), Arc::new(Nobody)) {
            Err(failure) if failure.cause == Cause::Held && wait.goes_on() => {
                std::thread::sleep(LOOK_AGAIN);
            }
            opened => {
                let store = opened?;
                closes.iter().for_each(|note| output.note(note));
                store.engine.catch_up();
                return Ok(store);
            }
        }
    }
}

/// Opens the store without waiting; one that is made, or whose making was broken off, gets its
/// workspaces' directories, if it is not `bare`.
pub fn try_open(paths: &StorePaths, bare: bool, output: &Output) -> Result<OpenStore, Failure> {
    let closes = paths.closes_to_others();
    let store = daemon::open(paths, Durability::Power, None, Arc::new(Nobody))?;
    closes.iter().for_each(|note| output.note(note));
    let setup = daemon::Setup { bare, ..daemon::Setup::default() };
    if let Err(failure) = store.set_up(paths, &setup) {
        discard(store, paths);
        return Err(failure);
    }
    // What a daemon would have done meanwhile.
    store.engine.catch_up();
    Ok(store)
}

/// Removes one that was made in vain.
pub fn discard(store: OpenStore, paths: &StorePaths) {
    store.discard(paths, DAEMON_END_WAIT);
}

/// Closes it; what was queued is done.
pub fn close(store: OpenStore) {
    store.close(DAEMON_END_WAIT);
}
