//! When whoever writes is to look at the clocks, and what the wall clock did meanwhile.

use std::time::Instant;

use crate::limits::CLOCK_SLACK;
use crate::numbers::{LeaseTime, UnixNanos};

/// Moments at which the writer's thread is to look, if nothing happens before.
pub(super) struct Alarm {
    pub ripe: Option<UnixNanos>,
    pub look: Option<LeaseTime>,
    pub nameless: Option<Instant>,
}

impl Alarm {
    /// Whether who waits for `other` would oversleep. A moment that is later now is none to wake for.
    pub fn is_sooner(&self, other: &Alarm) -> bool {
        fn is_before<T: Ord>(new: Option<T>, old: Option<T>) -> bool {
            new.is_some_and(|new| old.is_none_or(|old| new < old))
        }
        is_before(self.ripe, other.ripe)
            || is_before(self.look, other.look)
            || is_before(self.nameless, other.nameless)
    }
}

/// The wall clock, as it was when it was last looked at.
pub(super) struct Wall {
    at: UnixNanos,
    /// It was set back, and what was ready by then is so still: a full disk may take no change.
    pub is_behind: bool,
}

impl Wall {
    pub fn at(at: UnixNanos) -> Self {
        Wall { at, is_behind: false }
    }

    /// Looks at it; says whether it was set back since.
    pub fn was_set_back(&mut self, now: UnixNanos) -> bool {
        let before = std::mem::replace(&mut self.at, now);
        let was_set_back = now.after(CLOCK_SLACK) < before;
        self.is_behind |= was_set_back;
        was_set_back
    }
}
