//! Tells the kernel what to forget.
//!
//! A notice that takes a lock in the kernel (INVAL_ENTRY: the directory's; INVAL_INODE with pages:
//! theirs) waits for whoever holds it, and that is a caller who waits for us. While we live that
//! only delays the notice; if we are killed then, the waiting thread cannot die, keeps the
//! connection open, and all callers hang for ever. So no such notice is sent where the kernel has
//! another way: attributes are invalidated without a lock, pages are dropped by the reader that
//! sees new attributes (AUTO_INVAL_DATA), and names by a new epoch (FUSE_NOTIFY_INC_EPOCH, Linux
//! 6.16), after which every name is looked up anew when it is next used.
//!
//! What the kernel has forgotten already it is not told again (`stale`): of sixteen mounts that look on
//! while one directory changes, each is told once, until it asks again.
//!
//! What must stay true: [`Notices::send`] never blocks, and on kernels with epochs what it says is
//! true when it returns. On older kernels names are invalidated one by one from the mount's own
//! thread, with the risk named above. Deliberately not here: deciding what changed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use fuser::Notifier;
use parking_lot::RwLock;

use crate::gate::{Gate, Shut};
use crate::tree::{Ino, Invalidation};
use crate::view::View;

#[derive(Debug)]
enum Notice {
    Forget(Invalidation),
    Stop,
}

/// What is held of the connection; it must go when the session has ended.
#[derive(Debug)]
struct Direct {
    notifier: Notifier,
    device: OwnedFd,
}

/// The way of invalidations into the kernel.
#[derive(Debug)]
pub(crate) struct Notices {
    direct: RwLock<Option<Direct>>,
    has_epochs: AtomicBool,
    queue: Sender<Notice>,
    gate: Arc<Gate>,
    view: View,
}

impl Notices {
    /// Starts the mount's notifier thread; `device` is a descriptor of its connection.
    pub(crate) fn start(
        mount: u32,
        notifier: Notifier,
        device: OwnedFd,
        (gate, view): (Arc<Gate>, View),
    ) -> io::Result<(Notices, JoinHandle<()>)> {
        let (queue, notices) = unbounded();
        let own = notifier.clone();
        let thread = std::thread::Builder::new()
            .name(format!("workfs-i{mount}"))
            .stack_size(256 * 1024)
            .spawn(move || deliver(&own, view, &notices))?;
        let direct = RwLock::new(Some(Direct { notifier, device }));
        Ok((Notices { direct, has_epochs: AtomicBool::new(true), queue, gate, view }, thread))
    }

    /// Sends or queues invalidations; after the session's end it does nothing.
    pub(crate) fn send<'i>(&self, invalidations: impl IntoIterator<Item = &'i Invalidation>) {
        let mut invalidations = invalidations.into_iter().peekable();
        let direct = self.direct.read();
        let Some(direct) = direct.as_ref().filter(|_| invalidations.peek().is_some()) else {
            return;
        };
        // Answers under way must arrive first, or they would bring back what is forgotten here.
        self.gate.settle();
        invalidations.for_each(|invalidation| self.tell(direct, invalidation));
    }

    /// The same, and of answers with attributes none leaves until the guard is dropped.
    pub(crate) fn silence<'i>(
        &self,
        invalidations: impl IntoIterator<Item = &'i Invalidation>,
    ) -> Shut {
        let shut = self.gate.shut();
        if let Some(direct) = &*self.direct.read() {
            invalidations.into_iter().for_each(|invalidation| self.tell(direct, invalidation));
        }
        shut
    }

    fn tell(&self, direct: &Direct, invalidation: &Invalidation) {
        match invalidation {
            Invalidation::Appeared { parent, name } => {
                // Told only where there are epochs.
                if self.gate.take_absent(*parent, name) {
                    self.new_epoch(direct);
                }
            }
            // A negative offset means attributes only.
            Invalidation::Attr(ino) if self.gate.take_attributes(*ino) => {
                log(direct.notifier.inval_inode(self.view.number(*ino), -1, 0));
            }
            Invalidation::Attr(_) => {}
            Invalidation::Entry { child, .. } if !self.gate.knows(*child) => {}
            Invalidation::Entry { .. } if self.new_epoch(direct) => {}
            // The queue is gone only when the session is.
            Invalidation::Entry { .. } => {
                drop(self.queue.send(Notice::Forget(invalidation.clone())));
            }
        }
    }

    /// Begins a new epoch of names, unless no name was told in this one; false where the kernel has none.
    fn new_epoch(&self, direct: &Direct) -> bool {
        if !self.has_epochs.load(Ordering::Relaxed) {
            return false;
        }
        if !self.gate.take_names() {
            return true;
        }
        // `struct fuse_out_header`: length, notification code, and 0 for "no request".
        const INC_EPOCH: u32 = 8;
        let mut header = [0u8; 16];
        header[..4].copy_from_slice(&16u32.to_ne_bytes());
        header[4..8].copy_from_slice(&INC_EPOCH.to_ne_bytes());
        match nix_write(&direct.device, &header) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                tracing::info!("this kernel has no epochs of names; they are invalidated singly");
                self.has_epochs.store(false, Ordering::Relaxed);
                false
            }
            Err(error) => {
                log(Err(error));
                true
            }
        }
    }

    /// Whether the kernel may have cached anything of an inode.
    pub(crate) fn knows(&self, ino: Ino) -> bool {
        self.gate.knows(ino)
    }

    /// Ends the thread and lets go of the connection.
    pub(crate) fn stop(&self) {
        *self.direct.write() = None;
        drop(self.queue.send(Notice::Stop));
    }
}

fn nix_write(device: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let (fd, length) = (device.as_fd().as_raw_fd(), bytes.len());
    // SAFETY: the buffer is as long as said, and the descriptor is open while it is borrowed.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), length) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn deliver(notifier: &Notifier, view: View, notices: &Receiver<Notice>) {
    while let Ok(Notice::Forget(invalidation)) = notices.recv() {
        if let Invalidation::Entry { parent, name, .. } = invalidation {
            log(notifier.inval_entry(view.number(parent), OsStr::from_bytes(&name)));
        }
    }
}

/// What the kernel does not know needs no forgetting; a session that ends answers ENOTCONN.
fn log(told: io::Result<()>) {
    if let Err(error) = told {
        tracing::debug!(%error, "the kernel took no invalidation");
    }
}
