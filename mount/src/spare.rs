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
    /// Letting go of each ends its thread.
    threads: Vec<(Sender<()>, JoinHandle<PathBuf>)>,
}

impl Spare {
    /// This descriptor, and so many threads.
    ///
    /// # Errors
    /// If the system has no more of them.
    pub fn keep(connection: OwnedFd, threads: usize) -> io::Result<Spare> {
        let thread = |_| {
            let (ends, end) = channel();
            let waits = move || {
                // Nothing is ever sent.
                let _ = end.recv();
                format!("/proc/self/task/{}", rustix::thread::gettid().as_raw_nonzero()).into()
            };
            Ok((ends, Builder::new().name("spare".into()).spawn(waits)?))
        };
        let threads = (0..threads).map(thread).collect::<io::Result<_>>()?;
        Ok(Spare { connection, threads })
    }

    /// Lets go of all of it.
    pub fn give(self) {
        drop(self.connection);
        let begin = Instant::now();
        for (ends, thread) in self.threads {
            drop(ends);
            let Ok(place) = thread.join() else { continue };
            // It is counted for a moment more.
            while place.exists() && begin.elapsed() < ENDED_WITHIN {
                std::thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_free_when_it_is_given() {
        let count = || {
            std::fs::read_dir("/proc/self/task")
                .unwrap()
                .flatten()
                .map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default())
                .filter(|name| name.trim_end() == "spare")
                .count()
        };
        let (kept, _) = io::pipe().unwrap();
        let spare = Spare::keep(kept.into(), 2).unwrap();
        assert_eq!(count(), 2);
        spare.give();
        assert_eq!(count(), 0);
    }
}
