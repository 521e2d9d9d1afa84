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
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use fuser::Notifier;
use parking_lot::Mutex;

use super::gate::{Gate, Shut};
use super::invalidation::Invalidation;
use super::line::{self, Line};
use crate::ids::Ino;
use crate::requests::view::View;

/// How long after the last inode left a name all are forgotten once more, which a listing may have brought back:
/// long after whoever lists has read the answer, and before that inode is not remembered any more (`stale`). Those
/// that left before it are forgotten by the epochs in between.
const EPOCH_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum Notice {
    /// What a name of a directory stands for.
    Forget(Ino, Vec<u8>),
    LetGo(Vec<Ino>),
    /// The first inode has left a name that a listing may bring still.
    Left,
    Stop,
}

/// The way of invalidations into the kernel.
#[derive(Debug)]
pub(crate) struct Notices {
    line: Arc<Line>,
    queue: Sender<Notice>,
    gate: Arc<Gate>,
    left: Left,
}

/// When an inode last left a name that a listing may bring still, if no epoch has begun in peace since.
type Left = Arc<Mutex<Option<Instant>>>;

impl Notices {
    /// Starts the mount's notifier thread.
    pub(crate) fn start(
        mount: u32,
        (notifier, device): (Notifier, OwnedFd),
        line: Arc<Line>,
        (gate, view): (Arc<Gate>, View),
    ) -> io::Result<(Notices, JoinHandle<()>)> {
        let (queue, notices) = unbounded();
        let left = Left::default();
        let kernel =
            Kernel { notifier, device, view, line: Arc::clone(&line), left: Arc::clone(&left) };
        let thread = std::thread::Builder::new()
            .name(format!("workfs-i{mount}"))
            .stack_size(256 * 1024)
            .spawn(move || kernel.hear(&notices))?;
        Ok((Notices { line, queue, gate, left }, thread))
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
        self.tell_of_all_attributes();
    }

    /// See [`Line::outdate_answers`]. It waits for no answer that is under way.
    pub(crate) fn outdate_answers(&self, ino: Ino) {
        self.line.outdate_answers(ino);
    }

    /// Waits for the answers with attributes that are under way; none leaves until the guard is dropped.
    pub(crate) fn silence(&self) -> Shut {
        self.gate.shut()
    }

    /// [`forget_attributes`](Self::forget_attributes), for whoever has seen to answers under way.
    pub(crate) fn tell_of_all_attributes(&self) {
        self.gate.known().into_iter().for_each(|ino| self.line.forget_attributes(ino));
    }

    /// [`send`](Self::send), for whoever has seen to answers under way.
    pub(crate) fn tell(&self, invalidation: &Invalidation) {
        match invalidation {
            Invalidation::Restless(dir) => self.gate.stir(*dir),
            Invalidation::Appeared { parent, name } => {
                // Told only where there are epochs.
                if self.gate.take_absent(*parent, name) {
                    self.line.forget_names();
                }
            }
            Invalidation::Attr(ino) => self.line.forget_attributes(*ino),
            Invalidation::Rights(ino) if !self.gate.knows(*ino) => {}
            Invalidation::Rights(_) => {
                // An older kernel hears of attributes alone.
                self.line.forget_names();
            }
            Invalidation::Entry { child, .. } if !self.gate.knows(*child) => {}
            Invalidation::Entry { parent, name, child } => {
                if self.gate.leave(*child) && self.left.lock().replace(Instant::now()).is_none() {
                    // The queue is gone only when the session is.
                    drop(self.queue.send(Notice::Left));
                }
                if !self.line.forget_names() {
                    drop(self.queue.send(Notice::Forget(*parent, name.clone())));
                }
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

/// What the mount's own thread tells its kernel.
struct Kernel {
    notifier: Notifier,
    device: OwnedFd,
    view: View,
    line: Arc<Line>,
    left: Left,
}

impl Kernel {
    fn hear(&self, notices: &Receiver<Notice>) {
        let mut due = None;
        loop {
            match next(notices, due) {
                Ok(Notice::Forget(parent, name)) => {
                    let (parent, name) = (self.view.number(parent), OsStr::from_bytes(&name));
                    log(self.notifier.inval_entry(parent, name));
                }
                Ok(Notice::LetGo(inodes)) => line::prune(&self.device, self.view, &inodes),
                Ok(Notice::Left) | Err(RecvTimeoutError::Timeout) => {
                    due = due_again(&self.left);
                    if due.is_none() {
                        self.line.forget_all_names();
                    }
                }
                Ok(Notice::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// The next notice, waited for until something else is due.
fn next(notices: &Receiver<Notice>, due: Option<Instant>) -> Result<Notice, RecvTimeoutError> {
    match due {
        Some(due) => notices.recv_deadline(due),
        None => notices.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

/// When names are to be forgotten once more; `None`: now, since none has left for so long.
fn due_again(left: &Left) -> Option<Instant> {
    let mut left = left.lock();
    let due = left.map(|last| last + EPOCH_AGAIN).filter(|due| *due > Instant::now());
    if due.is_none() {
        *left = None;
    }
    due
}

/// What the kernel does not know needs no forgetting; a session that ends answers ENOTCONN.
fn log(told: io::Result<()>) {
    if let Err(error) = told {
        tracing::debug!(%error, "the kernel took no invalidation");
    }
}
