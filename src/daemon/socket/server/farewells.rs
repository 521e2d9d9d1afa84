//! Those who wait for the daemon's end: their connections are closed by nothing but the end of the process.
//!
//! What must stay true: whoever was told that the daemon ends since its last mount is gone waits no longer
//! than until there is another.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use parking_lot::Mutex;

use crate::daemon::socket::lines::Lines;

/// Why a client takes it that the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It has no mount any more; it goes on if one comes before it has ended.
    Idle,
    /// It was told to.
    Told,
}

/// Those who wait.
#[derive(Debug, Default)]
pub(super) struct Farewells(Mutex<Vec<(UnixStream, Why)>>);

impl Farewells {
    /// One more.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn note(&self, lines: &Lines, why: Why) -> io::Result<()> {
        let stream = lines.stream().try_clone()?;
        self.0.lock().push((stream, why));
        Ok(())
    }

    /// There is a mount again.
    pub fn goes_on(&self) {
        self.0.lock().retain(|(stream, why)| {
            let waits_on = *why == Why::Told;
            if !waits_on {
                // Fails where it is gone, and so waits for nothing.
                let _ = stream.shutdown(Shutdown::Both);
            }
            waits_on
        });
    }

    /// All of them.
    pub fn take(&self) -> Vec<UnixStream> {
        self.0.lock().drain(..).map(|(stream, _)| stream).collect()
    }
}
