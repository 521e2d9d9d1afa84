//! A directory on which one process at a time works.
//!
//! What must stay true: it is a convention of ours, and no right: one that is held for longer than
//! we wait, or that cannot be held at all, keeps nobody from anything. Deliberately not here: what
//! is done meanwhile.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often who waits looks again.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Holds a directory until [`let_go`] or its descriptor's end, as soon as nobody else does; not after so long.
pub fn hold(directory: &File, patience: Duration) {
    let begin = Instant::now();
    loop {
        match flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if begin.elapsed() < patience => std::thread::sleep(LOOK_EVERY),
            Err(Errno::INTR) => {}
            Ok(()) => return,
            Err(error) => {
                tracing::debug!(%error, "a directory is not held");
                return;
            }
        }
    }
}

/// Lets go of it. Not left to the descriptor's end: a child that is just being started has a copy of it.
pub fn let_go(directory: &File) {
    // If it fails that end is what is left.
    let _ = flock(directory, FlockOperation::Unlock);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_for_too_long_is_in_nobody_s_way() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let (first, second) = (open(), open());
        hold(&first, Duration::ZERO);
        let begin = Instant::now();
        hold(&second, Duration::from_millis(50));
        assert!(begin.elapsed() >= Duration::from_millis(50));
        let_go(&first);
        hold(&second, Duration::from_secs(60));
        assert_eq!(flock(&first, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
    }
}
