//! How far a long command is, told now and then, and whether anybody still waits for it.
//!
//! What must stay true: both are asked by the clock, not once in so many things, since these differ
//! in size; so whoever works asks [`Pace::goes_on`] before each thing, and in the middle of a large
//! one.

use std::time::Instant;

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::limits::TOLD_EVERY;
use crate::service::{Reply, Sink};

type Work<T> = Box<dyn FnOnce() -> T + Send>;

/// The pace of one command.
pub(in crate::service) struct Pace<'s> {
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

    /// Does what cannot be ended half-way as long as somebody waits for it; `None` when nobody does any more. It
    /// goes on by itself then.
    pub fn while_waited_for<T: Send + 'static>(
        &mut self,
        (done, what): (u64, &str),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let ((give, given), (tell, told)) = (bounded(1), bounded(1));
        let run = move || {
            // Whoever gives it waits, but not without end.
            let _ = given.recv().map(|work: Work<T>| tell.send(work()));
        };
        let work: Work<T> = Box::new(work);
        if std::thread::Builder::new().name("awaited".into()).spawn(run).is_err() {
            return Some(work());
        }
        give.send(work).ok()?;
        loop {
            match told.recv_timeout(TOLD_EVERY) {
                Ok(came) => return Some(came),
                Err(RecvTimeoutError::Timeout) if self.tell(done, 0, what) => {}
                Err(_) => return None,
            }
        }
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

    #[test]
    fn what_cannot_be_ended_is_waited_for_as_long_as_somebody_waits() {
        let mut asked = 0;
        let mut sink = |_| {
            asked += 1;
            asked < 3
        };
        let mut pace = Pace::new(&mut sink);
        assert_eq!(pace.while_waited_for((1, "files"), || 7), Some(7));
        let (hold, held) = bounded::<()>(0);
        let wait = move || held.recv().is_err();
        assert_eq!(pace.while_waited_for((1, "files"), wait), None);
        assert!(pace.is_over() && asked == 3);
        drop(hold);
    }
}
