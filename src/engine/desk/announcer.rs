//! The announcer: tells of what was committed. Where a batch has many moves, it does so on a thread
//! of its own while the desk makes the next changes.
//!
//! To answer sixteen callers costs as much as a sixth of their claims. Nobody but those callers
//! goes by what they are answered: that is why another thread may answer them, and why only moves
//! are told in this way ([`crate::engine::Terms::is_told_apart`]).
//!
//! What must stay true: kernels forget before a caller is answered; callers are answered before
//! those are woken who wait for events; all of one batch comes before all of the next. Deliberately
//! not here: what the desk notes for itself.

use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

use crate::engine::change::queued::Finish;
use crate::engine::{Audience, Bell, Doors, Effect, FaultPoint, Line, Origin, or_abort};
use crate::numbers::G;

/// What is to be told of a batch.
pub(super) struct News {
    pub effects: Vec<(Origin, Effect)>,
    /// Kernels have forgotten before the commit.
    pub is_forgotten: bool,
    pub finishes: Vec<Finish>,
    /// The last event, where there are new ones.
    pub newest: Option<G>,
}

/// Whom it is told.
pub(super) struct Ears {
    pub audience: Arc<dyn Audience>,
    pub bell: Arc<Bell>,
    pub line: Arc<Line>,
    pub doors: Doors,
}

impl Ears {
    fn hear(&self, news: News) {
        let News { effects, is_forgotten, finishes, newest } = news;
        if !is_forgotten {
            self.audience.make_forget(&effects);
        }
        if let Some(newest) = newest {
            self.audience.told_up_to(newest);
        }
        // Whoever is told now finds that the kernels have forgotten.
        self.audience.note(&effects);
        (self.doors.fault)(FaultPoint::BeforeReply);
        for finish in finishes {
            finish(Ok(()));
        }
        if let Some(newest) = newest {
            self.bell.ring(newest);
        }
        for (_, effect) in &effects {
            if let Effect::Ready(workspace, _) = effect {
                self.line.call(*workspace);
            }
        }
    }
}

/// Tells, and has a thread for what it is handed. That ends when this is dropped.
pub(super) struct Announcer {
    ears: Arc<Ears>,
    handover: Arc<Handover>,
}

#[derive(Default)]
struct Handover {
    state: Mutex<State>,
    came: Condvar,
    told: Condvar,
}

#[derive(Default)]
struct State {
    news: Vec<News>,
    is_telling: bool,
    is_over: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.news.is_empty() && !self.is_telling
    }
}

impl Announcer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If there can be none.
    pub fn start(ears: Ears) -> std::io::Result<Announcer> {
        let (ears, handover) = (Arc::new(ears), Arc::new(Handover::default()));
        let (own_ears, own) = (Arc::clone(&ears), Arc::clone(&handover));
        let run = move || or_abort("the announcer", || own.tell_all(&own_ears));
        thread::Builder::new().name("announcer".into()).spawn(run)?;
        Ok(Announcer { ears, handover })
    }

    /// Tells it now; all before must have been told.
    pub fn tell(&self, news: News) {
        self.ears.hear(news);
    }

    /// Leaves it to the thread.
    pub fn hand(&self, news: News) {
        self.handover.state.lock().news.push(news);
        self.handover.came.notify_one();
    }

    /// Whether all that was handed over is told.
    pub fn is_idle(&self) -> bool {
        self.handover.state.lock().is_idle()
    }

    /// Waits until it is.
    pub fn await_idle(&self) {
        let mut state = self.handover.state.lock();
        while !state.is_idle() {
            self.handover.told.wait(&mut state);
        }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.handover.state.lock().is_over = true;
        self.handover.came.notify_one();
    }
}

impl Handover {
    fn tell_all(&self, ears: &Ears) {
        let mut state = self.state.lock();
        loop {
            if state.news.is_empty() {
                state.is_telling = false;
                self.told.notify_all();
                if state.is_over {
                    return;
                }
                self.came.wait(&mut state);
                continue;
            }
            let news = std::mem::take(&mut state.news);
            state.is_telling = true;
            drop(state);
            news.into_iter().for_each(|one| ears.hear(one));
            state = self.state.lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::ThreadId;

    use super::*;
    use crate::engine::Silence;
    use crate::numbers::Ino;

    type Log = Arc<Mutex<Vec<(String, ThreadId)>>>;

    fn write(log: &Log, what: String) {
        log.lock().push((what, thread::current().id()));
    }

    struct Heard {
        log: Log,
        forgotten: AtomicUsize,
    }

    impl Audience for Heard {
        fn make_forget(&self, _: &[(Origin, Effect)]) {
            let nth = self.forgotten.fetch_add(1, Ordering::Relaxed);
            write(&self.log, format!("forget {nth}"));
        }

        fn silence(&self, _: &[(Origin, Effect)]) -> Box<dyn Silence> {
            Box::new(())
        }

        fn is_in_use(&self, _: Ino) -> bool {
            false
        }
    }

    fn announcer() -> (Announcer, Log, Arc<Bell>) {
        let (log, bell) = (Log::default(), Arc::new(Bell::default()));
        let audience = Heard { log: Arc::clone(&log), forgotten: AtomicUsize::new(0) };
        let (audience, line) = (Arc::new(audience), Arc::new(Line::default()));
        let ears = Ears { audience, bell: Arc::clone(&bell), line, doors: Doors::default() };
        (Announcer::start(ears).unwrap(), log, bell)
    }

    fn news(log: &Log, bell: &Arc<Bell>, nth: u64) -> News {
        let answer = |caller: u64| -> Finish {
            let (log, heard) = (Arc::clone(log), bell.subscribe());
            Box::new(move |committed| {
                committed.unwrap();
                write(&log, format!("answer {nth}.{caller} with {} rung", heard.last().0));
            })
        };
        let finishes = vec![answer(0), answer(1)];
        News { effects: Vec::new(), is_forgotten: false, finishes, newest: Some(G(nth + 1)) }
    }

    #[test]
    fn one_batch_comes_after_the_other_and_answers_between_kernels_and_bell() {
        let (announcer, log, bell) = announcer();
        (0..3).for_each(|nth| announcer.hand(news(&log, &bell, nth)));
        announcer.await_idle();
        assert!(announcer.is_idle());
        announcer.tell(news(&log, &bell, 3));
        let log = log.lock();
        let expected = (0..4).flat_map(|nth| {
            let answer = move |caller| format!("answer {nth}.{caller} with {nth} rung");
            [format!("forget {nth}"), answer(0), answer(1)]
        });
        assert!(log.iter().map(|(what, _)| what.clone()).eq(expected), "{log:?}");
        let is_here = |(_, by): &(String, ThreadId)| *by == thread::current().id();
        assert_eq!(log.iter().position(is_here), Some(9), "what is handed over the thread tells");
        assert_eq!(bell.subscribe().last(), G(4));
    }
}
