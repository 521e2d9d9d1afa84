//! Inodes without a name, until they go.

use std::time::{Duration, Instant};

use crate::engine::Audience;
use crate::limits::{NAMELESS_AT_ONCE, NAMELESS_HELD, NAMELESS_REST};
use crate::numbers::Ino;

/// Inodes without a name. They go together, when a moment has passed: a commit for each would be one
/// more that the next caller waits for, and who was about to open one still can.
#[derive(Default)]
pub(super) struct Nameless {
    /// Those that came since they were looked at.
    fresh: Vec<Ino>,
    /// The others: they go at the next look.
    rested: Vec<Ino>,
    /// When they are looked at.
    due: Option<Instant>,
}

impl Nameless {
    /// After a commit, which may have taken names away.
    pub fn add(&mut self, came: Vec<Ino>) {
        self.fresh.extend(came);
        let is_none = self.fresh.is_empty() && self.rested.is_empty();
        if !is_none {
            let soon = Instant::now() + NAMELESS_REST;
            self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        }
    }

    /// These could not go, or not all of them: it is tried again after `pause`.
    pub fn keep(&mut self, closed: Vec<Ino>, pause: Duration) {
        self.rested.extend(closed);
        self.due = Some(Instant::now() + pause);
    }

    /// When they are looked at.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// How long it is until they are looked at.
    pub fn left(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Whether they are to be looked at now.
    pub fn is_due(&self) -> bool {
        self.fresh.len() >= NAMELESS_AT_ONCE || self.left() == Some(Duration::ZERO)
    }

    /// Takes those out that have rested and that nobody holds.
    pub fn take(&mut self, audience: &dyn Audience) -> Vec<Ino> {
        let gone = self.rested.extract_if(.., |ino| !audience.is_in_use(*ino)).collect();
        // Those that some kernel does not use are forgotten by the next look.
        audience.let_go(&self.rested);
        audience.let_go(&self.fresh);
        let pause = match (self.fresh.is_empty(), self.rested.is_empty()) {
            (false, _) => Some(NAMELESS_REST),
            (true, false) => Some(NAMELESS_HELD),
            (true, true) => None,
        };
        self.due = pause.map(|pause| Instant::now() + pause);
        self.rested.append(&mut self.fresh);
        gone
    }
}
