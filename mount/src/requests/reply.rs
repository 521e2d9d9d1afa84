//! The answer to one request: carried to whoever knows it, given exactly once.
//!
//! A `Reply` that is dropped unanswered (a panic, a lost queue) answers EIO, so that no caller
//! waits for ever.

use super::times::Under;
use crate::errno::Errno;

/// Whoever takes the answer to where it is owed.
type Answer<T> = Box<dyn FnOnce(Result<T, Errno>) + Send>;

/// An answer still owed to the kernel (or to a test).
#[must_use = "a reply must be answered"]
pub struct Reply<T> {
    answer: Option<Answer<T>>,
    /// The request that it is counted for.
    under: Option<Under>,
}

impl<T> Reply<T> {
    /// A reply that hands its answer to `answer`.
    pub fn new(answer: impl FnOnce(Result<T, Errno>) + Send + 'static) -> Self {
        Reply { answer: Some(Box::new(answer)), under: None }
    }

    /// The same, of a request that is counted when it is answered.
    pub(crate) fn counted(mut self, under: Under) -> Self {
        self.under = Some(under);
        self
    }

    /// Gives the answer.
    pub fn send(mut self, result: Result<T, Errno>) {
        if let Some(under) = self.under.take()
            && matches!(result, Err(Errno::ETIMEDOUT))
        {
            under.note_late();
        }
        if let Some(answer) = self.answer.take() {
            answer(result);
        }
    }

    /// A reply of another type that is turned into this one's when it is answered.
    pub fn map<U>(self, convert: impl FnOnce(U) -> T + Send + 'static) -> Reply<U>
    where
        T: 'static,
    {
        Reply::new(move |result: Result<U, Errno>| self.send(result.map(convert)))
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        drop(self.under.take());
        if let Some(answer) = self.answer.take() {
            answer(Err(Errno::EIO));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::requests::times::{Operation, Requests};

    #[test]
    fn a_request_is_counted_before_it_is_answered_and_once() {
        let requests: Arc<Requests> = Arc::default();
        let count = |requests: &Requests| requests.of(Operation::Read).within().iter().sum::<u64>();
        let reply = |nth| {
            let of = Arc::clone(&requests);
            let reply = Reply::new(move |_: Result<(), Errno>| assert_eq!(count(&of), nth));
            reply.counted(requests.begin(Operation::Read))
        };
        reply(1).send(Ok(()));
        // It waits behind another one, as where a tree turns the answer into another.
        reply(2).map(|()| ()).send(Err(Errno::ETIMEDOUT));
        drop(reply(3));
        assert_eq!((count(&requests), requests.late()), (3, 1));
    }
}
