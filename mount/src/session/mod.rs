//! One mount from its beginning to its end: [`Mount`].
//!
//! What must stay true:
//! - `start` returns when the kernel has the mount and has agreed with it (FUSE_INIT).
//! - However a session ends (our `unmount`, somebody's `umount`, an aborted connection), no mount,
//!   no thread and no open connection is left, and [`Mount::ended`] tells.
//! - Nothing here touches a file below the mount point: a daemon that waits for itself hangs.
//!
//! Deliberately not here: which trees and mounts there are, and signals.

pub(super) mod aside;
pub(super) mod calls;
pub(super) mod guard;
pub(super) mod run;
mod seen;
mod spare;

pub(crate) use run::Lies;
pub use seen::Presence;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use fuser::{Config, Session, SessionACL};
use parking_lot::Mutex;

use crate::error::MountError;
use crate::ids::{Ino, MountId};
use crate::kernel::gate::{Gate, Shut};
use crate::kernel::invalidation::Invalidation;
use crate::kernel::line::Line;
use crate::kernel::notifier::Notices;
use crate::mounting::attach::{self, Unmounting};
use crate::mounting::heal::{DirState, resolved, state_of};
use crate::mounting::options::MountOptions;
use crate::tree::Tree;
use crate::whereabouts::Whereabouts;
use aside::Aside;
use guard::Adapter;
use run::{EndSignals, Run};
use seen::LastSeen;
use spare::Spare;

/// Event threads of a mount: one would let a slow read stop everything, more are not faster.
const EVENT_THREADS: usize = 2;

/// How long `unmount` waits for the threads of a session that the kernel has let go of. Only a
/// request that is still being worked on can make it wait.
const END_WAIT: Duration = Duration::from_secs(2);

/// How long it waits for one that another mount name space has, too, and that cannot be ended there.
const ELSEWHERE_WAIT: Duration = Duration::from_secs(1);

/// A directory that serves a tree. Dropping it unmounts.
#[derive(Debug)]
pub struct Mount {
    id: MountId,
    dir: PathBuf,
    lies: Lies,
    notices: Arc<Notices>,
    seen: Arc<LastSeen>,
    ended: Receiver<()>,
    signals: Arc<EndSignals>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Serves `tree` over a connection that another process made with [`connect`], whose mount on
/// `dir` this process need not see. Its end comes from the other process.
///
/// # Errors
/// If it is no connection of FUSE, or its mount is gone again.
pub fn serve_connection(
    tree: Arc<dyn Tree>,
    id: MountId,
    dir: &Path,
    options: &MountOptions,
    connection: OwnedFd,
) -> Result<Mount, MountError> {
    lazy_buffers();
    let other = |source| MountError::Other { dir: dir.to_owned(), source };
    attach::is_connection(&connection).map_err(other)?;
    start(tree, id, dir, Lies::Elsewhere, options, connection).map_err(other)
}

/// Mounts on `dir`, to be served by another process with [`serve_connection`]; every use of the
/// mount waits until then. Only for those who may mount without the helper for users.
///
/// # Errors
/// As [`crate::serve`].
pub fn connect(dir: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    attach::attach(&mount_point(dir)?, options)
}

pub(crate) fn start(
    tree: Arc<dyn Tree>,
    id: MountId,
    dir: &Path,
    lies: Lies,
    options: &MountOptions,
    connection: OwnedFd,
) -> io::Result<Mount> {
    // The kernel itself keeps others out where they are not allowed. fuser's own check for `Owner`
    // would also refuse the FLUSH of a descriptor that was handed to another user's process.
    let acl = if options.allow_root { SessionACL::RootAndOwner } else { SessionACL::All };
    let mut config = Config::default();
    config.acl = acl;
    config.n_threads = Some(EVENT_THREADS);
    config.clone_fd = true;
    let locks = Arc::clone(tree.locks());
    let (gate, view) = (Arc::new(Gate::new(options.root)), options.view());
    // A descriptor for the second of its threads, and those.
    let spare = Spare::keep(connection.try_clone()?, EVENT_THREADS)?;
    let seen = Arc::new(LastSeen::new());
    let line = Arc::new(Line::new(connection.try_clone()?, Arc::clone(&gate), view));
    let told = (Arc::clone(&gate), Arc::clone(&line));
    let shown = (view, options.other_numbers);
    let aside = Arc::new(Aside::default());
    let beside = (Arc::clone(&seen), Arc::clone(&aside));
    let adapter = Adapter::new(tree, id, shown, told, beside);
    let device = connection.try_clone()?;
    let session = Session::from_fd(adapter, connection, acl, config)?;
    let (notices, notifier) =
        Notices::start(id.0, (session.notifier(), device), line, (gate, view))?;
    let notices = Arc::new(notices);
    let (end, ended) = bounded(0);
    let signals = Arc::new(EndSignals(Mutex::new(Some(Vec::new()))));
    let told = Arc::clone(&signals);
    let run = {
        let notices = Arc::clone(&notices);
        Run { session, spare, notices, notifier, aside, locks, end, told, id }
    };
    let (own_dir, own_place) = (dir.to_owned(), lies.clone());
    let thread = std::thread::Builder::new()
        .name(format!("workfs-m{}", id.0))
        .stack_size(256 * 1024)
        .spawn(move || run.until_the_end(&own_dir, &own_place));
    let thread = match thread {
        Ok(thread) => thread,
        Err(error) => {
            notices.stop();
            return Err(error);
        }
    };
    tracing::info!(mount = id.0, ?dir, "mounted");
    let dir = dir.to_owned();
    Ok(Mount { id, dir, lies, notices, seen, ended, signals, thread: Mutex::new(Some(thread)) })
}

impl Mount {
    /// The mount's number.
    #[must_use]
    pub fn id(&self) -> MountId {
        self.id
    }

    /// The mount point, absolute and without symbolic links, as it was called when this was mounted.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The mount point as it is called now: a directory above may have another name by now. `None` if the
    /// mount is not to be seen here, or not any more.
    #[must_use]
    pub fn place(&self) -> Option<PathBuf> {
        match &self.lies {
            Lies::Here(here) => here.dir(),
            Lies::Elsewhere => None,
        }
    }

    /// Whether the mount was made here and is nowhere to be seen any more, also where its session goes on; not
    /// where that cannot be told.
    #[must_use]
    pub fn is_out_of_sight(&self) -> bool {
        matches!(&self.lies, Lies::Here(here) if here.is_gone())
    }

    /// Whether the mount is to be seen in this process's name space.
    #[must_use]
    pub fn lies_here(&self) -> bool {
        matches!(self.lies, Lies::Here(_))
    }

    /// The device number of its files, as the kernel keeps it; `None` where it lies in another name
    /// space.
    #[must_use]
    pub fn device(&self) -> Option<u64> {
        match &self.lies {
            Lies::Here(here) => Some(here.device()),
            Lies::Elsewhere => None,
        }
    }

    /// Makes the kernel forget something, where it does not know it to be void already. Never blocks:
    /// attributes are sent at once, the rest is queued. After the end of the session it does nothing.
    pub fn invalidate<'i>(&self, invalidations: impl IntoIterator<Item = &'i Invalidation>) {
        self.notices.send(invalidations);
    }

    /// Makes the kernel ask for the next name that anybody uses, where it can: what it answers from its
    /// cache is not seen ([`Mount::last_seen_ns`]). Never blocks.
    pub fn forget_names(&self) {
        self.notices.forget_names();
    }

    /// Makes the kernel forget the attributes of all that it knows.
    pub fn forget_attributes(&self) {
        self.notices.forget_attributes();
    }

    /// Makes the kernel take what answers under way say of an inode's attributes for who asked alone, and not
    /// for the inode's. May be called while a request is answered. Never blocks.
    pub fn outdate_answers(&self, ino: Ino) {
        self.notices.outdate_answers(ino);
    }

    /// Holds back every answer that carries names or attributes until what is returned is dropped: what is
    /// committed meanwhile, and forgotten by it, is seen all at once. Waits for the answers that are under
    /// way. Whoever holds it must not call [`Mount::invalidate`].
    #[must_use]
    pub fn silence(&self) -> Silence {
        Silence { _gate: self.notices.silence(), notices: Arc::clone(&self.notices) }
    }

    /// Whether the kernel of this mount was told of an inode and has not forgotten it.
    #[must_use]
    pub fn knows(&self, ino: Ino) -> bool {
        self.notices.knows(ino)
    }

    /// Whether a name by which its kernel asks for an inode may be one that this has left: a listing that was
    /// answered before may have brought it back.
    #[must_use]
    pub fn has_left(&self, ino: Ino) -> bool {
        self.notices.has_left(ino)
    }

    /// Has its kernel let go, soon, of those of these inodes that nobody there has, where it is able to
    /// (Linux 6.18).
    pub fn let_go(&self, inodes: &[Ino]) {
        self.notices.let_go(inodes);
    }

    /// When somebody last asked for something through this mount, in nanoseconds of
    /// `CLOCK_MONOTONIC`; 0 for never.
    #[must_use]
    pub fn last_seen_ns(&self) -> u64 {
        self.seen.last()
    }

    /// When somebody asked for something through this mount, by the same clock.
    #[must_use]
    pub fn seen(&self) -> Presence {
        self.seen.anybody()
    }

    /// The same of one user, who is not the one that this process runs as; `None` for never.
    #[must_use]
    pub fn seen_of(&self, uid: u32) -> Option<Presence> {
        self.seen.other(uid)
    }

    /// The same of each such user that was seen.
    #[must_use]
    pub fn seen_of_each(&self) -> Vec<(u32, Presence)> {
        self.seen.others()
    }

    /// Becomes ready when the session has ended, for whatever reason: the channel never carries a
    /// message, it is *disconnected* then. Any number of clones may wait.
    #[must_use]
    pub fn ended(&self) -> Receiver<()> {
        self.ended.clone()
    }

    /// A descriptor on which poll(2) tells a hang-up when the session has ended.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn end_signal(&self) -> io::Result<OwnedFd> {
        let (told, tells) = io::pipe()?;
        if let Some(signals) = &mut *self.signals.0.lock() {
            signals.push(tells.into());
        }
        Ok(told.into())
    }

    /// Whether the session has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.ended.try_recv(), Err(crossbeam_channel::TryRecvError::Disconnected))
    }

    /// Whether the kernel has it, be it nowhere to be seen: in use after it was taken from sight, or in another mount
    /// name space.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        match &self.lies {
            Lies::Here(here) => here.is_connected(),
            Lies::Elsewhere => !self.has_ended(),
        }
    }

    /// Unmounts and waits for the session's threads. What another mount name space has of it ends, too, as it does
    /// there where mounts are shared. Does nothing if it is unmounted already; where it was taken from sight and is
    /// in use, it goes on. Must not be called from inside a call into the tree.
    ///
    /// # Errors
    /// EBUSY while a process has a file or its working directory in the mount (see
    /// [`Mount::detach`]), while another mount lies on top of it, or where it lies elsewhere.
    pub fn unmount(&self) -> io::Result<()> {
        let mut thread = self.thread.lock();
        if !self.has_ended() {
            let here = self.here()?;
            if here.remove(Unmounting::IfUnused)?
                && here.is_connected()
                && let Err(error) = here.abort()
            {
                // It may just let go of it there: what the connection is ended by goes before that has ended.
                let _ = self.ended.recv_timeout(ELSEWHERE_WAIT);
                if here.is_connected() {
                    tracing::warn!(mount = self.id.0, %error, "another mount name space has it");
                }
            }
            if here.is_connected() {
                return Ok(());
            }
        }
        self.wait(&mut thread);
        Ok(())
    }

    /// Takes the mount away although it is in use: nobody finds it any more, those who have files
    /// open in it go on until they close them, and then the session ends.
    ///
    /// # Errors
    /// If another mount lies on top of it, it lies elsewhere, or the kernel refuses.
    pub fn detach(&self) -> io::Result<()> {
        if self.has_ended() { Ok(()) } else { self.here()?.remove(Unmounting::Lazily).map(drop) }
    }

    /// Takes the mount away although it is in use, or was only taken from sight, and ends its session:
    /// calls of whoever still uses it fail with ENOTCONN. For the end of the process that serves it,
    /// which would bring the same. Waits as [`Mount::unmount`] does.
    ///
    /// # Errors
    /// If the kernel does not let this user end it; it is detached then, unless another mount lies on
    /// top of it or it lies elsewhere.
    pub fn cut_off(&self) -> io::Result<()> {
        let mut thread = self.thread.lock();
        let here = self.here()?;
        if !self.has_ended() {
            here.cut_off()?;
        }
        self.wait(&mut thread);
        Ok(())
    }

    fn here(&self) -> io::Result<&Whereabouts> {
        match &self.lies {
            Lies::Here(here) => Ok(here),
            Lies::Elsewhere => Err(io::Error::from_raw_os_error(libc::EBUSY)),
        }
    }

    fn wait(&self, thread: &mut Option<JoinHandle<()>>) {
        // Disconnection is the end; a message never comes.
        match self.ended.recv_timeout(END_WAIT) {
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => {
                tracing::warn!(mount = self.id.0, "unmounted, but requests are still under way");
            }
            Ok(()) | Err(crossbeam_channel::RecvTimeoutError::Disconnected) => {
                if thread.take().is_some_and(|thread| thread.join().is_err()) {
                    tracing::error!(mount = self.id.0, "the session's thread panicked");
                }
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.lies_here()
            && let Err(error) = self.unmount()
        {
            tracing::warn!(dir = ?self.dir, %error, "cannot unmount; detaching");
            if let Err(error) = self.detach() {
                tracing::error!(dir = ?self.dir, %error, "cannot detach");
            }
        }
    }
}

/// Holds answers back; see [`Mount::silence`].
pub struct Silence {
    _gate: Shut,
    notices: Arc<Notices>,
}

impl Silence {
    /// As [`Mount::invalidate`].
    pub fn invalidate<'i>(&self, invalidations: impl IntoIterator<Item = &'i Invalidation>) {
        invalidations.into_iter().for_each(|invalidation| self.notices.tell(invalidation));
    }

    /// As [`Mount::forget_attributes`].
    pub fn forget_attributes(&self) {
        self.notices.tell_of_all_attributes();
    }
}

/// The directory to mount on, absolute and without symbolic links; looking at it cannot hang.
pub(crate) fn mount_point(dir: &Path) -> Result<PathBuf, MountError> {
    match state_of(dir) {
        DirState::Absent => Err(MountError::NotFound(dir.to_owned())),
        DirState::NotADirectory => Err(MountError::NotADirectory(dir.to_owned())),
        DirState::Dead => Err(MountError::DeadMount(dir.to_owned())),
        // A directory that cannot be listed can be mounted on all the same.
        DirState::Plain { .. } | DirState::Mounted { .. } | DirState::Unreadable(_) => {
            resolved(dir).map_err(|error| MountError::of_dir(dir, error))
        }
    }
}

/// Heaps that threads share: more threads than there are processors seldom want one at once.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 4;

/// Lets buffers of several megabytes be mapped by themselves, so that pages of them that nobody
/// touched cost nothing, and keeps those of a megabyte, which each big write takes and gives back:
/// the kernel would have to clear new pages for each. A thread's own heap grows in steps of 256 KiB: by
/// single pages each claim made it longer, and shorter again. And there are few heaps: each keeps up to 8 MiB of what
/// was freed at its end, and what lies between, so that sixteen mounts that had written large files kept 92 MB for
/// nothing. Idempotent.
///
/// fuser takes a buffer of 16 MiB for each thread and one for the handshake. When the last is
/// freed, glibc raises its threshold for mapping by itself, takes the next ones from the heap and
/// must fill them with zeroes: 100 idle mounts then cost 435 MB instead of 5.
pub fn lazy_buffers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_env = "gnu")]
        // SAFETY: mallopt only sets a number in the allocator, under the allocator's lock.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 8 << 20);
            libc::mallopt(libc::M_TOP_PAD, 256 << 10);
            libc::mallopt(libc::M_ARENA_MAX, HEAPS);
        }
    });
}

/// Gives pages that nobody uses back to the system: those between what is used, too, which `free` keeps.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it only looks through the allocator's own lists, under the allocator's locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
