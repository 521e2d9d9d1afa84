//! Asking a file system that may not answer.
//!
//! What must stay true: whoever asks goes on when his time is over, whatever becomes of the
//! question.

use std::io;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

/// What `ask` says if it does so in time, else `None`. It runs in a thread of its own, which one that
/// is stopped holds until it goes on or the process ends.
///
/// # Errors
/// If there can be no such thread.
pub fn within<T: Send + 'static>(
    patience: Duration,
    ask: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (tell, told) = bounded(1);
    let run = move || {
        // Nobody waits any more if it took too long.
        let _ = tell.send(ask());
    };
    thread::Builder::new().name("asking".into()).spawn(run)?;
    match told.recv_timeout(patience) {
        Ok(answer) => Ok(Some(answer)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the question broke off")),
    }
}
