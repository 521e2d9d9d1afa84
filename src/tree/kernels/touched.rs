//! What changed, for those who watch it through another mount.
//!
//! What must stay true: nothing here blocks; a full queue loses events, as inotify's own does;
//! where a store has one mount nothing is queued of what that mount does, except what becomes ready
//! by it. Deliberately not here: who watches, and telling them.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use workfs_mount::MountId;

use crate::engine::{Effect, Fate, Origin};
use crate::limits::NUDGES_MAX;
use crate::names::Dentry;
use crate::numbers::{Ino, WorkspaceKey};
use crate::store::NodeType;
use crate::tree::saves::unborn::Unborn;

use super::told::Stage;

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Touch {
    /// A name came.
    Made(Dentry, NodeType),
    /// A name that was hidden can be seen.
    Born(Ino),
    /// A name went that stood for this inode. Of a file that was hidden only the mount that it was made through
    /// has told that it came.
    Removed(Dentry, Ino, NodeType, Option<MountId>),
    /// A name became another.
    Moved {
        /// The old one.
        from: Dentry,
        /// The new one.
        to: Dentry,
        /// What was moved.
        node_type: NodeType,
        /// What the new one stood for.
        over: Option<(Ino, NodeType)>,
    },
    /// A file's content.
    Content(Ino),
    /// A file that was written is closed.
    Closed(Ino),
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
pub(in crate::tree) struct Touches {
    send: Sender<Touched>,
    receive: Receiver<Touched>,
    pub stage: Arc<Stage>,
}

impl Default for Touches {
    fn default() -> Self {
        let (send, receive) = bounded(NUDGES_MAX);
        Touches { send, receive, stage: Arc::default() }
    }
}

impl Touches {
    pub fn receiver(&self) -> Receiver<Touched> {
        self.receive.clone()
    }

    /// Notes the changes of a batch.
    pub fn note(&self, effects: &[(Origin, Effect)], unborn: &Unborn, mounts: usize) {
        if !self.stage.is_there() {
            return;
        }
        // What the only mount did itself its kernel has told.
        let told = |origin: &Origin| mounts > usize::from(matches!(origin, Origin::Mount(_)));
        for (origin, effect) in effects {
            // Of what was not asked for by a name its own kernel knows as little as the others'.
            let origin = match effect {
                Effect::Name { also_origin: true, .. } => &Origin::Daemon,
                _ => origin,
            };
            let what = match effect {
                Effect::Ready(workspace, _) => Touch::Ready(*workspace),
                _ if !told(origin) => continue,
                Effect::Appeared { parent, name, node_type } => {
                    Touch::Made(Dentry::of(*parent, name.clone()), *node_type)
                }
                Effect::Name { parent, name, ino, fate, .. } => {
                    let at = Dentry::of(*parent, name.clone());
                    match fate {
                        Fate::Removed(node_type) => {
                            Touch::Removed(at, *ino, *node_type, unborn.made_through(*ino))
                        }
                        Fate::Moved { to, node_type, over } => {
                            let (node_type, over) = (*node_type, *over);
                            Touch::Moved { from: at, to: to.clone(), node_type, over }
                        }
                        Fate::Replaced => continue,
                    }
                }
                Effect::Data(ino) => Touch::Content(*ino),
                Effect::Attr { ino, .. } => Touch::Attributes(*ino),
                Effect::Rights { .. }
                | Effect::Times(_)
                | Effect::DirectoryMoved
                | Effect::Made { .. }
                | Effect::Counts(_)
                | Effect::Due(_)
                | Effect::Agents
                | Effect::Modes
                | Effect::Lease(_) => continue,
            };
            self.push(*origin, what);
        }
    }

    /// Notes what a program did to a file through a mount, besides what its changes say.
    pub fn note_file(&self, mount: MountId, mounts: usize, what: Touch) {
        if self.stage.is_there() && mounts > 1 {
            self.push(Origin::Mount(mount), what);
        }
    }

    fn push(&self, origin: Origin, what: Touch) {
        let _ = self.send.try_send(Touched { origin, what });
    }
}
