//! What a session takes when it begins, kept for it: by then nobody could be told that there is none.
//!
//! What must stay true: it is free again when [`Spare::give`] returns. Deliberately not here: the session.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long the kernel may take to let go of a thread that has ended.
const ENDED_WITHIN: Duration = Duration::from_millis(100);

/// A descriptor, and threads.
#[derive(Debug)]
pub(crate) struct Spare {
    connection: OwnedFd,
    threads: Vec<Kept>,
}

/// A thread that waits for its end.
#[derive(Debug)]
struct Kept {
    /// Letting go of this ends it.
    ends: Sender<()>,
    thread: JoinHandle<()>,
    /// Where the kernel counts it.
    place: PathBuf,
}

impl Spare {
    /// This descriptor, and so many threads.
    ///
    /// # Errors
    /// If the system has no more of them.
    pub fn keep(connection: OwnedFd, threads: usize) -> io::Result<Spare> {
        let threads = (0..threads).map(|_| Kept::start()).collect::<io::Result<_>>()?;
        Ok(Spare { connection, threads })
    }

    /// Lets go of all of it.
    pub fn give(self) {
        drop(self.connection);
        let begin = Instant::now();
        for Kept { ends, thread, place } in self.threads {
            drop(ends);
            if thread.join().is_err() {
                continue;
            }
            // It is counted for a moment more.
            while place.exists() && begin.elapsed() < ENDED_WITHIN {
                std::thread::yield_now();
            }
        }
    }
}

impl Kept {
    fn start() -> io::Result<Kept> {
        let ((ends, end), (tell, told)) = (channel::<()>(), channel());
        let waits = move || {
            // Who asks has the other end; nothing is ever sent by `ends`.
            let _ = tell.send(rustix::thread::gettid());
            let _ = end.recv();
        };
        let thread = Builder::new().name("spare".into()).spawn(waits)?;
        let number = told.recv().map_err(io::Error::other)?;
        let place = format!("/proc/self/task/{}", number.as_raw_nonzero()).into();
        Ok(Kept { ends, thread, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_free_when_it_is_given() {
        let (kept, _) = io::pipe().unwrap();
        let spare = Spare::keep(kept.into(), 2).unwrap();
        let places: Vec<_> = spare.threads.iter().map(|kept| kept.place.clone()).collect();
        assert!(places.len() == 2 && places.iter().all(|place| place.exists()));
        spare.give();
        assert!(places.iter().all(|place| !place.exists()));
    }
}
