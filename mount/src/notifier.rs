//! Tells the kernel what to forget.
//!
//! A notice that takes a lock in the kernel (INVAL_ENTRY: the directory's; INVAL_INODE with pages:
//! theirs) waits for whoever holds it, and that is a caller who waits for us. While we live that
//! only delays the notice; if we are killed then, the waiting thread cannot die, keeps the
//! connection open, and all callers hang for ever. So no such notice is sent where the kernel has
//! another way: attributes are invalidated without a lock, pages are dropped by the reader that
//! sees new attributes (AUTO_INVAL_DATA), and names by a new epoch (`line`).
//!
//! What the kernel has forgotten already it is not told again (`stale`): of sixteen mounts that look on
//! while one directory changes, each is told once, until it asks again.
//!
//! What must stay true: [`Notices::send`] never blocks, and on kernels with epochs what it says is
//! true when it returns. On older kernels names are invalidated one by one from the mount's own
//! thread, with the risk named above. Deliberately not here: deciding what changed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use fuser::Notifier;

use crate::gate::{Gate, Shut};
use crate::line::{self, Line};
use crate::tree::{Ino, Invalidation};
use crate::view::View;

/// When names are forgotten once more that a listing may have brought after they were not true any more: long
/// after whoever lists has read the answer, and before those that left them are not remembered any more (`stale`).
const EPOCH_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum Notice {
    Forget(Invalidation),
    LetGo(Vec<Ino>),
    /// A listing may bring names that are not true any more.
    Left,
    Stop,
}

/// The way of invalidations into the kernel.
#[derive(Debug)]
pub(crate) struct Notices {
    line: Arc<Line>,
    queue: Sender<Notice>,
    gate: Arc<Gate>,
    /// Another epoch is to begin in a while.
    again: Arc<AtomicBool>,
}

impl Notices {
    /// Starts the mount's notifier thread.
    pub(crate) fn start(
        mount: u32,
        (notifier, device): (Notifier, OwnedFd),
        line: Arc<Line>,
        (gate, view): (Arc<Gate>, View),
    ) -> io::Result<(Notices, JoinHandle<()>)> {
        let (queue, notices) = unbounded();
        let again = Arc::new(AtomicBool::new(false));
        let (own_line, own_again) = (Arc::clone(&line), Arc::clone(&again));
        let thread = std::thread::Builder::new()
            .name(format!("workfs-i{mount}"))
            .stack_size(256 * 1024)
            .spawn(move || {
                let mut due = None;
                while let Some(notice) = next(&notices, due) {
                    match notice {
                        Some(Notice::Left) => due = Some(Instant::now() + EPOCH_AGAIN),
                        Some(Notice::Stop) => return,
                        Some(notice) => deliver(&notifier, &device, view, notice),
                        None => {
                            due = None;
                            own_again.store(false, Ordering::Release);
                            own_line.forget_all_names();
                        }
                    }
                }
            })?;
        Ok((Notices { line, queue, gate, again }, thread))
    }

    /// Sends or queues invalidations; after the session's end it does nothing.
    pub(crate) fn send<'i>(&self, invalidations: impl IntoIterator<Item = &'i Invalidation>) {
        let mut invalidations = invalidations.into_iter().peekable();
        if invalidations.peek().is_none() {
            return;
        }
        // Answers under way must arrive first, or they would bring back what is forgotten here.
        self.gate.settle();
        invalidations.for_each(|invalidation| self.tell(invalidation));
    }

    /// Makes the kernel forget all names, where it has epochs: the next use of any is asked for.
    pub(crate) fn forget_names(&self) {
        self.gate.settle();
        self.line.forget_all_names();
    }

    /// Makes the kernel forget the attributes of all that it knows.
    pub(crate) fn forget_attributes(&self) {
        self.gate.settle();
        self.gate.known().into_iter().for_each(|ino| self.line.forget_attributes(ino));
    }

    /// See [`Line::outdate_answers`]. It waits for no answer that is under way.
    pub(crate) fn outdate_answers(&self, ino: Ino) {
        self.line.outdate_answers(ino);
    }

    /// The same as [`send`](Self::send), and of answers with attributes none leaves until the guard
    /// is dropped.
    pub(crate) fn silence<'i>(
        &self,
        invalidations: impl IntoIterator<Item = &'i Invalidation>,
    ) -> Shut {
        let shut = self.gate.shut();
        invalidations.into_iter().for_each(|invalidation| self.tell(invalidation));
        shut
    }

    fn tell(&self, invalidation: &Invalidation) {
        if let Invalidation::Appeared { parent, .. } | Invalidation::Entry { parent, .. } =
            invalidation
        {
            self.gate.stir(*parent);
        }
        match invalidation {
            Invalidation::Appeared { parent, name } => {
                // Told only where there are epochs.
                if self.gate.take_absent(*parent, name) {
                    self.line.forget_names();
                }
            }
            Invalidation::Attr(ino) => self.line.forget_attributes(*ino),
            Invalidation::Entry { child, .. } if !self.gate.knows(*child) => {}
            Invalidation::Entry { child, .. } if self.line.forget_names() => {
                if self.gate.leave(*child) && !self.again.swap(true, Ordering::AcqRel) {
                    drop(self.queue.send(Notice::Left));
                }
            }
            // The queue is gone only when the session is.
            Invalidation::Entry { .. } => {
                drop(self.queue.send(Notice::Forget(invalidation.clone())));
            }
        }
    }

    /// Whether a name by which the kernel asks for an inode may be one that this has left.
    pub(crate) fn has_left(&self, ino: Ino) -> bool {
        self.gate.has_left(ino)
    }

    /// Whether the kernel may have cached anything of an inode.
    pub(crate) fn knows(&self, ino: Ino) -> bool {
        self.gate.knows(ino)
    }

    /// Has the kernel let go, soon, of those of these that it knows and that nobody there has.
    pub(crate) fn let_go(&self, inodes: &[Ino]) {
        let known: Vec<Ino> = inodes.iter().copied().filter(|ino| self.gate.knows(*ino)).collect();
        if !known.is_empty() {
            // The queue is gone only when the session is.
            drop(self.queue.send(Notice::LetGo(known)));
        }
    }

    /// Ends the thread and lets go of the connection.
    pub(crate) fn stop(&self) {
        self.line.end();
        drop(self.queue.send(Notice::Stop));
    }
}

/// The next notice, or none at the time when one is due; `None` where there will be no more.
fn next(notices: &Receiver<Notice>, due: Option<Instant>) -> Option<Option<Notice>> {
    let Some(due) = due else { return notices.recv().ok().map(Some) };
    match notices.recv_deadline(due) {
        Ok(notice) => Some(Some(notice)),
        Err(RecvTimeoutError::Timeout) => Some(None),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

fn deliver(notifier: &Notifier, device: &OwnedFd, view: View, notice: Notice) {
    match notice {
        Notice::Forget(Invalidation::Entry { parent, name, .. }) => {
            log(notifier.inval_entry(view.number(parent), OsStr::from_bytes(&name)));
        }
        Notice::LetGo(inodes) => line::prune(device, view, &inodes),
        Notice::Forget(_) | Notice::Left | Notice::Stop => {}
    }
}

/// What the kernel does not know needs no forgetting; a session that ends answers ENOTCONN.
fn log(told: io::Result<()>) {
    if let Err(error) = told {
        tracing::debug!(%error, "the kernel took no invalidation");
    }
}
