//! What changed, for those who watch it through another mount.
//!
//! What must stay true: nothing here blocks; a full queue loses events, as inotify's own does, and
//! a store with one mount queues nothing of what that mount does but what becomes ready by it. Deliberately not here: who
//! watches, and telling them.

use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::engine::{Effect, Origin};
use crate::limits::NUDGES_MAX;
use crate::names::FileName;
use crate::numbers::{Ino, WorkspaceKey};

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Touch {
    /// A name came, went, or stands for something else.
    Name(Ino, FileName),
    /// A file's content.
    Content(Ino),
    /// Attributes.
    Attributes(Ino),
    /// What is ready in a workspace: `ready/` is computed, so that no kernel hears of it.
    Ready(WorkspaceKey),
}

/// A change and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Touched {
    /// Whose own kernel raised its events by itself.
    pub origin: Origin,
    /// What.
    pub what: Touch,
}

/// The changes that are to be told.
pub(super) struct Touches {
    send: Sender<Touched>,
    receive: Receiver<Touched>,
    /// The thread whose calls tell; 0 while there is none.
    toucher: AtomicU32,
}

impl Default for Touches {
    fn default() -> Self {
        let (send, receive) = bounded(NUDGES_MAX);
        Touches { send, receive, toucher: AtomicU32::new(0) }
    }
}

impl Touches {
    pub fn receiver(&self) -> Receiver<Touched> {
        self.receive.clone()
    }

    pub fn set_toucher(&self, thread: u32) {
        self.toucher.store(thread, Ordering::Release);
    }

    /// Whether this thread only tells watchers, and changes nothing.
    pub fn is_toucher(&self, thread: u32) -> bool {
        thread != 0 && thread == self.toucher.load(Ordering::Relaxed)
    }

    /// Notes the changes of a batch.
    pub fn note(&self, effects: &[(Origin, Effect)], mounts: usize) {
        if self.toucher.load(Ordering::Relaxed) == 0 {
            return;
        }
        // What the only mount did itself its kernel has told.
        let told = |origin: &Origin| mounts > usize::from(matches!(origin, Origin::Mount(_)));
        for (origin, effect) in effects {
            let what = match effect {
                Effect::Ready(workspace, _) => Touch::Ready(*workspace),
                _ if !told(origin) => continue,
                Effect::Appeared { parent, name } | Effect::Name { parent, name, .. } => {
                    Touch::Name(*parent, name.clone())
                }
                Effect::Data(ino) => Touch::Content(*ino),
                Effect::Attr { ino, .. } => Touch::Attributes(*ino),
                Effect::DirectoryMoved | Effect::Due(_) | Effect::Agents | Effect::Lease(_) => {
                    continue;
                }
            };
            let _ = self.send.try_send(Touched { origin: *origin, what });
        }
    }
}
