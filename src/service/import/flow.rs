//! Many changes under way at once, so that they share commits.

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::engine::{Placed, Put};
use crate::refusal::{Refusal, Rule};

use super::super::{Caller, Service};

/// Changes under way: well below what the writer's queue holds, which others use, too.
const CHANGES_MAX: usize = 768;

/// Bytes under way.
const BYTES_MAX: usize = 64 << 20;

/// An answer: what was put, and how that ended.
pub(super) type Answer<T> = (T, Result<Placed, Refusal>);

/// Sends changes and takes their answers.
pub(super) struct Flow<'s, T> {
    service: &'s Service,
    caller: &'s Caller,
    send: Sender<(usize, Answer<T>)>,
    receive: Receiver<(usize, Answer<T>)>,
    changes: usize,
    bytes: usize,
}

/// Answers even if the writer drops the change: then that it was not made.
struct Ticket<T> {
    send: Sender<(usize, Answer<T>)>,
    bytes: usize,
    about: Option<T>,
}

impl<T> Ticket<T> {
    fn answer(&mut self, result: Result<Placed, Refusal>) {
        if let Some(about) = self.about.take() {
            // The receiver goes first only when the whole import is off.
            let _ = self.send.send((self.bytes, (about, result)));
        }
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        let reason = "the writer did not take the change in time";
        let lost = Refusal::new(Rule::Deadline, reason, "import again to take the rest");
        self.answer(Err(lost));
    }
}

impl<'s, T: Send + 'static> Flow<'s, T> {
    pub fn new(service: &'s Service, caller: &'s Caller) -> Self {
        let (send, receive) = unbounded();
        Flow { service, caller, send, receive, changes: 0, bytes: 0 }
    }

    /// Sends a change; takes answers first while too much is under way.
    pub fn put(&mut self, about: T, put: Put, bytes: usize, take: &mut dyn FnMut(Answer<T>)) {
        while self.changes >= CHANGES_MAX || (self.changes > 0 && self.bytes + bytes > BYTES_MAX) {
            self.take_one(take);
        }
        self.changes += 1;
        self.bytes += bytes;
        let mut ticket = Ticket { send: self.send.clone(), bytes, about: Some(about) };
        self.service.engine.submit(self.caller.context(), put, move |result| ticket.answer(result));
        while let Ok(answered) = self.receive.try_recv() {
            self.taken(answered, take);
        }
    }

    /// Waits for all answers.
    pub fn finish(&mut self, take: &mut dyn FnMut(Answer<T>)) {
        while self.changes > 0 {
            self.take_one(take);
        }
    }

    fn take_one(&mut self, take: &mut dyn FnMut(Answer<T>)) {
        match self.receive.recv() {
            Ok(answered) => self.taken(answered, take),
            // Cannot be: this has a sender itself.
            Err(_) => self.changes = 0,
        }
    }

    fn taken(&mut self, (bytes, answer): (usize, Answer<T>), take: &mut dyn FnMut(Answer<T>)) {
        self.changes = self.changes.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        take(answer);
    }
}
