//! What the session's own thread does: to serve until the end, and to leave nothing behind.
//!
//! What must stay true: where the session cannot begin, for want of a descriptor or a thread, its maker hears of it.
//! Deliberately not here: making mounts (`session`).

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::Sender;
use fuser::Session;
use parking_lot::Mutex;

use super::aside::Aside;
use super::guard::Adapter;
use super::spare::Spare;
use crate::ids::MountId;
use crate::kernel::notifier::Notices;
use crate::locks::Locks;
use crate::mounting::attach::Unmounting;
use crate::whereabouts::Whereabouts;

/// What is closed when a session has ended, for those who wait for it by poll(2); `None` from then
/// on.
#[derive(Debug)]
pub(crate) struct EndSignals(pub(crate) Mutex<Option<Vec<OwnedFd>>>);

/// Where a mount is to be seen.
#[derive(Clone, Debug)]
pub(crate) enum Lies {
    /// In this process's name space.
    Here(Arc<Whereabouts>),
    /// In a name space that this process does not see: whoever made it takes it away.
    Elsewhere,
}

/// What the session's own thread holds.
pub(crate) struct Run {
    pub(crate) session: Session<Adapter>,
    /// In place of what the session takes when it begins.
    pub(crate) spare: Spare,
    pub(crate) notices: Arc<Notices>,
    pub(crate) notifier: JoinHandle<()>,
    pub(crate) aside: Arc<Aside>,
    pub(crate) locks: Arc<Locks>,
    /// Never sent on: letting go of it is the message.
    pub(crate) end: Sender<()>,
    pub(crate) told: Arc<EndSignals>,
    pub(crate) id: MountId,
}

impl Run {
    pub(crate) fn until_the_end(self, dir: &Path, lies: &Lies) {
        self.spare.give();
        if let Err(error) = self.session.run() {
            tracing::error!(mount = self.id.0, %error, "the session ended with an error");
        }
        self.aside.end();
        // After an orderly end nothing is held any more.
        self.locks.unmounted(self.id);
        // First, since to look for the mount takes a descriptor.
        self.notices.stop();
        if self.notifier.join().is_err() {
            tracing::error!(mount = self.id.0, "the notifier thread panicked");
        }
        // An aborted connection leaves its mount behind, on which every call fails.
        if let Lies::Here(here) = lies {
            take_away(dir, here);
            here.end();
        }
        tracing::info!(mount = self.id.0, ?dir, "unmounted");
        drop(self.end);
        *self.told.0.lock() = None;
    }
}

/// Detaches what is left of our mount.
pub(crate) fn take_away(dir: &Path, here: &Whereabouts) {
    if let Err(error) = here.remove(Unmounting::Lazily) {
        tracing::error!(?dir, %error, "cannot take the mount away");
    }
}
