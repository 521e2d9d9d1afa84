//! The line by which a kernel is made to forget at once, and without a lock: attributes, and all
//! names by a new epoch (FUSE_NOTIFY_INC_EPOCH, Linux 6.16), after which it looks each up anew when
//! it is next used.
//!
//! The library's own notices of attributes hide that the kernel does not know the inode. Where it was
//! told of it, that means that the caller has not yet read the answer, which will be taken for new then.
//! So all names are forgotten: the one that was asked for before is looked up anew, with what is true.
//!
//! What must stay true: nothing here blocks; when it returns, the kernel has forgotten, also where
//! another thread was just telling it. Deliberately not here: deciding what must go.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::gate::Gate;
use crate::ids::Ino;
use crate::requests::view::View;

/// `enum fuse_notify_code` of the kernel's `include/uapi/linux/fuse.h`.
const INVAL_INODE: u32 = 2;
const INC_EPOCH: u32 = 8;
const PRUNE: u32 = 9;

/// Inodes in one notice: the kernel lets go of them in one go.
const PRUNED_AT_ONCE: usize = 64;

/// The line to one mount's kernel.
#[derive(Debug)]
pub(crate) struct Line {
    /// The connection; it must go when the session has ended. Held until the kernel was told.
    device: Mutex<Option<OwnedFd>>,
    has_epochs: AtomicBool,
    gate: Arc<Gate>,
    view: View,
}

impl Line {
    /// To the kernel at the other end of `device`.
    pub(crate) fn new(device: OwnedFd, gate: Arc<Gate>, view: View) -> Line {
        Line { device: Mutex::new(Some(device)), has_epochs: AtomicBool::new(true), gate, view }
    }

    /// Makes the kernel forget an inode's attributes, unless it was told none since it last did. After
    /// [`end`](Self::end) it does nothing.
    pub(crate) fn forget_attributes(&self, ino: Ino) {
        let device = self.device.lock();
        let Some(device) = &*device else { return };
        if !self.gate.take_attributes(ino) {
            return;
        }
        if let Err(error) = self.void_attributes(device, ino) {
            self.gate.note_attributes(ino);
            if error.raw_os_error() == Some(libc::ENOENT) {
                self.new_epoch(device);
            } else {
                tracing::debug!(%error, "the kernel took no notice of attributes");
            }
        }
    }

    /// Makes the kernel take no answer with attributes of an inode that is under way for true of the inode:
    /// only who asked is told by it. It takes none that it asked for before it last heard of the inode
    /// (`attr_version` in its `fs/fuse/inode.c`).
    pub(crate) fn outdate_answers(&self, ino: Ino) {
        let device = self.device.lock();
        let Some(device) = &*device else { return };
        if let Err(error) = self.void_attributes(device, ino) {
            tracing::debug!(%error, "the kernel took no notice of attributes");
        }
    }

    fn void_attributes(&self, device: &OwnedFd, ino: Ino) -> io::Result<()> {
        // `struct fuse_notify_inval_inode_out`: a negative offset means attributes only.
        let [number, offset, length] = [self.view.number(ino).0.cast_signed(), -1, 0];
        tell(device, INVAL_INODE, &[number, offset, length])
    }

    /// Makes the kernel forget all names, unless it was told none since it last did; false where it
    /// has no epochs. After [`end`](Self::end) it does nothing.
    pub(crate) fn forget_names(&self) -> bool {
        match &*self.device.lock() {
            Some(device) => self.new_epoch(device),
            None => true,
        }
    }

    /// The same, whatever the kernel was told: names that it made or moved itself it knows without that.
    pub(crate) fn forget_all_names(&self) {
        if let Some(device) = &*self.device.lock()
            && self.has_epochs.load(Ordering::Relaxed)
        {
            self.gate.take_names();
            self.begin_epoch(device);
        }
    }

    fn new_epoch(&self, device: &OwnedFd) -> bool {
        if !self.has_epochs.load(Ordering::Relaxed) {
            return false;
        }
        !self.gate.take_names() || self.begin_epoch(device)
    }

    fn begin_epoch(&self, device: &OwnedFd) -> bool {
        match tell(device, INC_EPOCH, &[]) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                tracing::info!("this kernel has no epochs of names; they are invalidated singly");
                self.has_epochs.store(false, Ordering::Relaxed);
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

/// Makes a kernel let go of inodes that nobody there has (FUSE_NOTIFY_PRUNE, Linux 6.18; it takes no lock of a
/// directory): then it tells that it has forgotten them. A name that it does not look up any more it keeps
/// otherwise, and the inode with it.
pub(crate) fn prune(device: &OwnedFd, view: View, inodes: &[Ino]) {
    for some in inodes.chunks(PRUNED_AT_ONCE) {
        // `struct fuse_notify_prune_out`: the count, padding, 8 bytes that are spare; then the numbers.
        let count = [some.len() as u32, 0];
        let mut numbers = vec![i64::from_ne_bytes(both(count)), 0];
        numbers.extend(some.iter().map(|ino| view.number(*ino).0.cast_signed()));
        if let Err(error) = tell(device, PRUNE, &numbers) {
            // An older one lets go of them when it has too many.
            return tracing::debug!(%error, "the kernel lets go of nothing");
        }
    }
}

/// Two numbers as they lie beside each other in a structure of C.
fn both([one, other]: [u32; 2]) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&one.to_ne_bytes());
    bytes[4..].copy_from_slice(&other.to_ne_bytes());
    bytes
}

/// Writes a notice: `struct fuse_out_header` (length, code, and 0 for "no request"), then its numbers.
fn tell(device: &OwnedFd, code: u32, numbers: &[i64]) -> io::Result<()> {
    let length = 16 + 8 * numbers.len();
    let mut notice = Vec::with_capacity(length);
    notice.extend((length as u32).to_ne_bytes());
    notice.extend(code.to_ne_bytes());
    notice.extend([0; 8]);
    numbers.iter().for_each(|number| notice.extend(number.to_ne_bytes()));
    // SAFETY: the buffer is as long as said, and the descriptor is open while it is borrowed.
    let written = unsafe { libc::write(device.as_raw_fd(), notice.as_ptr().cast(), notice.len()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
