//! How long a store that another process has is waited for.
//!
//! What must stay true: nobody is told to end a daemon that is just beginning or ending, however
//! slow the disk: it will listen, or let go. Whoever holds a store otherwise may keep it for long,
//! and is waited for only a moment. Deliberately not here: the lock itself (`store::sqlite`).

use std::time::Instant;

use crate::daemon::mounts::users::Process;
use crate::daemon::paths::StorePaths;
use crate::limits::{DAEMON_START_WAIT, LOCK_PATIENCE};
use crate::store::sqlite::{self, named_holder};

/// The wait for a store that another process has; it begins with the first question.
pub struct HeldWait<'p> {
    paths: &'p StorePaths,
    first: Option<Instant>,
    /// Since when no daemon that begins or ends has the store.
    since: Option<Instant>,
}

impl<'p> HeldWait<'p> {
    /// For this store.
    #[must_use]
    pub fn of(paths: &'p StorePaths) -> Self {
        HeldWait { paths, first: None, since: None }
    }

    /// Whether to look again in a moment: of a store that was held just now.
    pub fn goes_on(&mut self) -> bool {
        let now = Instant::now();
        let first = *self.first.get_or_insert(now);
        if named_holder(self.paths.store()).is_some_and(begins_or_ends) {
            self.since = None;
            return now - first < DAEMON_START_WAIT;
        }
        now - *self.since.get_or_insert(now) < LOCK_PATIENCE
    }
}

/// Whether a process has the store for itself: another one cannot open it.
#[must_use]
pub fn is_held(paths: &StorePaths) -> bool {
    sqlite::is_held(paths.store())
}

/// Whether a process is a daemon that does not listen yet, or not any more. One whose socket's name was removed
/// listens all the same; and of another user's nothing is known.
fn begins_or_ends(holder: u32) -> bool {
    let process = Process::of(holder);
    process.is_daemon() && process.listens() == Some(false) && !process.is_stopped()
}
