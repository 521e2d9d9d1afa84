//! Epochs of names: with a new one (FUSE_NOTIFY_INC_EPOCH, Linux 6.16) the kernel looks every name up
//! anew when it is next used.
//!
//! What must stay true: beginning one never blocks; when it returns, the kernel has forgotten, also where
//! another thread had just begun one. Deliberately not here: deciding when.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::gate::Gate;

/// The epochs of one mount's kernel.
#[derive(Debug)]
pub(crate) struct Epochs {
    /// The connection; it must go when the session has ended. Held until the kernel was told.
    device: Mutex<Option<OwnedFd>>,
    are_known: AtomicBool,
    gate: Arc<Gate>,
}

impl Epochs {
    /// Of the kernel at the other end of `device`.
    pub(crate) fn new(device: OwnedFd, gate: Arc<Gate>) -> Epochs {
        Epochs { device: Mutex::new(Some(device)), are_known: AtomicBool::new(true), gate }
    }

    /// Makes the kernel forget all names, unless none was told since it last did; false where it has no
    /// epochs. After [`end`](Self::end) it does nothing.
    pub(crate) fn begin(&self) -> bool {
        if !self.are_known.load(Ordering::Relaxed) {
            return false;
        }
        let device = self.device.lock();
        let Some(device) = &*device else { return true };
        if !self.gate.take_names() {
            return true;
        }
        match increase(device) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                tracing::info!("this kernel has no epochs of names; they are invalidated singly");
                self.are_known.store(false, Ordering::Relaxed);
                false
            }
            Err(error) => {
                tracing::debug!(%error, "the kernel took no new epoch");
                true
            }
        }
    }

    /// Lets go of the connection.
    pub(crate) fn end(&self) {
        *self.device.lock() = None;
    }
}

fn increase(device: &OwnedFd) -> io::Result<()> {
    // `struct fuse_out_header`: length, notification code, and 0 for "no request".
    const INC_EPOCH: u32 = 8;
    let mut header = [0u8; 16];
    header[..4].copy_from_slice(&16u32.to_ne_bytes());
    header[4..8].copy_from_slice(&INC_EPOCH.to_ne_bytes());
    // SAFETY: the buffer is as long as said, and the descriptor is open while it is borrowed.
    let written = unsafe { libc::write(device.as_raw_fd(), header.as_ptr().cast(), header.len()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
