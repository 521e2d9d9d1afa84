//! The answer to one request: carried to whoever knows it, given exactly once.
//!
//! A `Reply` that is dropped unanswered (a panic, a lost queue) answers EIO, so that no caller
//! waits for ever.

use crate::errno::Errno;

/// Whoever takes the answer to where it is owed.
type Answer<T> = Box<dyn FnOnce(Result<T, Errno>) + Send>;

/// An answer still owed to the kernel (or to a test).
#[must_use = "a reply must be answered"]
pub struct Reply<T> {
    answer: Option<Answer<T>>,
}

impl<T> Reply<T> {
    /// A reply that hands its answer to `answer`.
    pub fn new(answer: impl FnOnce(Result<T, Errno>) + Send + 'static) -> Self {
        Reply { answer: Some(Box::new(answer)) }
    }

    /// Gives the answer.
    pub fn send(mut self, result: Result<T, Errno>) {
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
        if let Some(answer) = self.answer.take() {
            answer(Err(Errno::EIO));
        }
    }
}
