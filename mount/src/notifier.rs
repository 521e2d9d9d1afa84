//! Tells the kernel what to forget.
//!
//! What must stay true: [`Notices::send`] never blocks. Attributes are sent at once (the kernel
//! takes no lock for them that a request may hold); pages and names wait for locks that a caller
//! of ours may hold until it is answered, so they leave from the mount's own thread, in order.
//! That thread ends with the session. Deliberately not here: deciding what changed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use fuser::{INodeNo, Notifier};
use parking_lot::RwLock;

use crate::gate::Gate;
use crate::tree::{Ino, Invalidation};

#[derive(Debug)]
enum Notice {
    Forget(Invalidation),
    Stop,
}

/// The way of invalidations into the kernel.
#[derive(Debug)]
pub(crate) struct Notices {
    /// `None` when the session has ended. It holds the connection open, so it must go then.
    direct: RwLock<Option<Notifier>>,
    queue: Sender<Notice>,
    gate: Arc<Gate>,
}

impl Notices {
    /// Starts the mount's notifier thread.
    pub(crate) fn start(
        mount: u32,
        notifier: Notifier,
        gate: Arc<Gate>,
    ) -> io::Result<(Notices, JoinHandle<()>)> {
        let (queue, notices) = unbounded();
        let (own, own_gate) = (notifier.clone(), Arc::clone(&gate));
        let thread = std::thread::Builder::new()
            .name(format!("workfs-i{mount}"))
            .stack_size(256 * 1024)
            .spawn(move || deliver(&own, &own_gate, &notices))?;
        Ok((Notices { direct: RwLock::new(Some(notifier)), queue, gate }, thread))
    }

    /// Sends or queues one invalidation; after the session's end it does nothing.
    pub(crate) fn send(&self, invalidation: Invalidation) {
        match invalidation {
            Invalidation::Attr(_) => {
                if let Some(notifier) = &*self.direct.read() {
                    tell(notifier, &self.gate, &invalidation);
                }
            }
            // The queue is gone only when the session is.
            queued => drop(self.queue.send(Notice::Forget(queued))),
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

fn deliver(notifier: &Notifier, gate: &Gate, notices: &Receiver<Notice>) {
    while let Ok(Notice::Forget(invalidation)) = notices.recv() {
        tell(notifier, gate, &invalidation);
    }
}

fn tell(notifier: &Notifier, gate: &Gate, invalidation: &Invalidation) {
    let about = match invalidation {
        Invalidation::Attr(ino) | Invalidation::Data(ino) => *ino,
        Invalidation::Entry { child, .. } => *child,
    };
    gate.settle();
    if !gate.knows(about) {
        return;
    }
    let told = match invalidation {
        // A negative offset means attributes only; 0 and 0 mean all pages.
        Invalidation::Attr(ino) => notifier.inval_inode(INodeNo(ino.0), -1, 0),
        Invalidation::Data(ino) => notifier.inval_inode(INodeNo(ino.0), 0, 0),
        Invalidation::Entry { parent, name, .. } => {
            notifier.inval_entry(INodeNo(parent.0), OsStr::from_bytes(name))
        }
    };
    // What the kernel does not know needs no forgetting; a session that ends answers ENOTCONN.
    if let Err(error) = told {
        tracing::debug!(%error, "the kernel took no invalidation");
    }
}
