//! An inode at which, and into which, it takes long to look: as long as the test says.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;
use workfs_mount::{Ino, Look};

/// A test that fails must not leave a request for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which inode it is, and who looks.
pub struct Slow {
    pub ino: Mutex<Option<Ino>>,
    tell: Sender<()>,
    /// Somebody looks.
    pub looks: Receiver<()>,
    pub allow: Sender<()>,
    allowed: Receiver<()>,
}

impl Slow {
    pub fn new() -> Slow {
        let ((tell, looks), (allow, allowed)) = (unbounded(), unbounded());
        Slow { ino: Mutex::new(None), tell, looks, allow, allowed }
    }

    pub fn is_asked(&self, look: Look<'_>) -> bool {
        let (Look::At(ino) | Look::For(ino, _) | Look::Through(ino)) = look;
        *self.ino.lock() == Some(ino)
    }

    /// Waits until the test allows it, where it is this one.
    pub fn look(&self, ino: Ino) {
        if *self.ino.lock() == Some(ino) {
            self.tell.send(()).unwrap();
            self.allowed.recv_timeout(PATIENCE).unwrap();
        }
    }
}
