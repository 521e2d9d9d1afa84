//! How far something long is, told now and then, and whether anybody still waits for it.
//!
//! What must stay true: both are asked by the clock, not by a number of things, since these differ in size;
//! so whoever works asks [`Pace::goes_on`] before each thing, and in the middle of a large one.

use std::time::Instant;

use super::{Reply, Sink};
use crate::limits::TOLD_EVERY;

/// The pace of one command.
pub(super) struct Pace<'s> {
    sink: Sink<'s>,
    told: Option<(Instant, String)>,
    is_over: bool,
}

impl<'s> Pace<'s> {
    pub fn new(sink: Sink<'s>) -> Self {
        Pace { sink, told: None, is_over: false }
    }

    /// Tells how far it is, if that is due or is of something else than before; `total` is 0 where it is not
    /// known. False when nobody waits for the end any more, and so from then on.
    pub fn goes_on(&mut self, done: u64, total: u64, what: &str) -> bool {
        let soon = |at: Instant| at.elapsed() < TOLD_EVERY;
        let is_told = |(at, last): &(Instant, String)| last == what && soon(*at);
        if self.told.as_ref().is_some_and(is_told) {
            !self.is_over
        } else {
            self.tell(done, total, what)
        }
    }

    /// The same, in any case: before what cannot be ended half-way.
    pub fn tell(&mut self, done: u64, total: u64, what: &str) -> bool {
        if !self.is_over {
            self.told = Some((Instant::now(), what.to_owned()));
            self.is_over = !(self.sink)(Reply::Progress { done, total, what: what.to_owned() });
        }
        !self.is_over
    }

    /// Whether nobody waits for the end any more, as far as was heard.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_at_once_and_who_goes_away_is_asked_no_more() {
        let mut told = Vec::new();
        let mut sink = |reply: Reply| {
            let Reply::Progress { done, what, .. } = reply else { panic!("{reply:?}") };
            told.push(format!("{done} {what}"));
            what != "bytes"
        };
        let mut pace = Pace::new(&mut sink);
        assert!(pace.goes_on(0, 9, "files") && pace.goes_on(1, 9, "files") && !pace.is_over());
        assert!(!pace.goes_on(2, 9, "bytes") && pace.is_over() && !pace.goes_on(3, 9, "files"));
        assert_eq!(told, ["0 files", "2 bytes"]);
    }
}
