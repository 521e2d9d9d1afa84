//! What must happen outside after a commit: returned as data, performed by the audience.

use std::sync::Arc;

use crate::engine::{LeaseNote, Origin};
use crate::names::{AgentName, Dentry, FileName};
use crate::numbers::{
    Attempt, G, Ino, LeaseTime, RecordKey, Requests, UnixNanos, Version, WorkspaceKey,
};
use crate::store::{NodeType, Record};

/// One consequence of a committed change: something a kernel may have cached is not true any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// An inode's attributes changed.
    Attr {
        /// The inode.
        ino: Ino,
        /// Whether the caller's own kernel has to be told, too: it does not know that the daemon
        /// changed more than it was asked to, or would take what it asked for before the change, and hears
        /// after it, for new.
        also_origin: bool,
    },
    /// An inode's owner, group, or special bits (set-user-id, set-group-id, sticky) changed; of its attributes another
    /// effect tells.
    Rights {
        /// The inode.
        ino: Ino,
        /// As in `Attr`.
        also_origin: bool,
    },
    /// The times and links of an inode changed with a name, of which other effects tell: a directory's with its
    /// entries, those of what is moved. No watcher hears of them. The caller's own kernel is always told: it would
    /// take what it asked for before the change, and hears after it, for new (`fuse_dir_changed` in the
    /// kernel's `fs/fuse/dir.c` begins no new version of attributes).
    Times(Ino),
    /// A plain file's content changed.
    Data(Ino),
    /// A name vanished, or stands for another inode.
    Name {
        /// The directory.
        parent: Ino,
        /// The name.
        name: FileName,
        /// What it stood for.
        ino: Ino,
        /// As in `Attr`.
        also_origin: bool,
        /// What became of it.
        fate: Fate,
    },
    /// A record became ready, or is ready and has a new text.
    Ready(WorkspaceKey, RecordKey),
    /// A record becomes ready by itself at this time.
    Due(UnixNanos),
    /// Another set of agents is registered.
    Agents,
    /// What a kernel is to be shown of permission bits is another than before.
    Modes,
    /// A name came; a kernel may have cached that it was not there, if it is in a plain directory.
    Appeared {
        /// The directory.
        parent: Ino,
        /// The name.
        name: FileName,
        /// What it stands for.
        node_type: NodeType,
    },
    /// A version was made of a record by somebody whom no kernel names: a command, or the end of a
    /// transaction. Who made it has seen it.
    Made {
        /// The record.
        record: RecordKey,
        /// The version.
        version: Version,
        /// The version that it was made of.
        moved: Option<Version>,
        /// Whose call it was, by process or thread id.
        by: u32,
    },
    /// A plain file has come to lie where rules count, and lay where none did: what is saved by descriptors from
    /// before counts, too.
    Counts(Ino),
    /// A directory has another path, and so have all below it.
    DirectoryMoved,
    /// What happened to a lease.
    Lease(LeaseNote),
}

/// While it lives, no mount is told of names or attributes.
pub trait Silence {}

/// Where there are no mounts.
impl Silence for () {}

/// What became of a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is gone; it stood for such a node.
    Removed(NodeType),
    /// What it stood for, such a node, has another name now.
    Moved {
        /// The directory and the name.
        to: Dentry,
        /// What was moved.
        node_type: NodeType,
        /// What that name stood for before.
        over: Option<(Ino, NodeType)>,
    },
    /// It stands for what was moved to it.
    Replaced,
}

/// See [`Audience::live`].
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// How many mounts there are.
    pub mounts: usize,
    /// How many files and directories are open in them.
    pub open: u64,
    /// What their kernels have asked.
    pub requests: Arc<Requests>,
}

/// Who performs effects: the mounts. Who waits for events hears the [`crate::engine::Bell`].
pub trait Audience: Send + Sync {
    /// After a commit, before the caller is answered: what kernels know must be true when its call
    /// returns. Must not block.
    fn make_forget(&self, effects: &[(Origin, Effect)]);
    /// In place of it, before the commit of changes that must be seen whole: kernels forget what is
    /// changed, and learn nothing new until what is returned is dropped. Telling them again
    /// afterwards would do harm: a kernel ignores attributes that it asked for before it is told to
    /// forget them, and keeps the pages that it had.
    fn silence(&self, effects: &[(Origin, Effect)]) -> Box<dyn Silence>;
    /// After each commit: who watches is told soon, and paths that are not true any more go.
    fn note(&self, _: &[(Origin, Effect)]) {}
    /// What the mounts do now, for whoever watches over them.
    fn live(&self) -> Live {
        Live::default()
    }
    /// Whether an inode is open, or held by a kernel otherwise; if not, a nameless one is reclaimed.
    fn is_in_use(&self, ino: Ino) -> bool;
    /// Asks kernels to let go of nameless inodes that nobody there has. Another one than that of whoever took the
    /// name keeps what it was told of it, until it is asked for.
    fn let_go(&self, _: &[Ino]) {}
    /// Whether somebody has written to a file, or to the record that it is, what is not judged yet.
    fn is_written(&self, _: Ino, _: Option<&Record>) -> bool {
        false
    }
    /// Whether somebody has mapped what a record's inode was: a new version gets another one.
    fn is_mapped(&self, _: Ino) -> bool {
        false
    }
    /// Whether somebody has, or may have: a shorter version gets another one.
    fn may_be_mapped(&self, _: Ino) -> bool {
        false
    }
    /// A directory leaves a name, before that is committed: kernels other than the mover's may know it
    /// there.
    fn moves_away(&self, _: Origin, _: Dentry<&FileName>, _: Ino) {}
    /// Whether the caller's kernel may take a directory that left this name for the one that lies there;
    /// it is to be asked once more, and asks again.
    fn takes_moved_away(&self, _: Origin, _: Dentry<&FileName>) -> bool {
        false
    }
    /// When something was last asked for through an agent's mounts, but not after this moment of the steady
    /// clock.
    fn last_seen(&self, _: &AgentName, _: u64) -> Option<u64> {
        None
    }
    /// The same of a user who is bound to an agent, through any mount.
    fn last_seen_user(&self, _: u32, _: u64) -> Option<u64> {
        None
    }
    /// Nothing was seen of an agent, or of the user who is bound to it: what it does next must be.
    fn listen_for(&self, _: &AgentName, _: Option<u32>) {}
    /// Whether a mount shows owners and permission bits as they are stored, so that its kernel goes
    /// by them.
    fn shows_stored(&self, _: u32) -> bool {
        true
    }
    /// Whether a thread that waits for its call may do with any file what its owner may, as its kernel asks it.
    fn acts_as_owner(&self, _: u32) -> bool {
        false
    }
    /// Kernels have heard of all events up to this one.
    fn told_up_to(&self, _: G) {}
    /// Whether a thread that waits for its call may read any file, as its kernel asks it.
    fn reads_all(&self, _: u32) -> bool {
        false
    }
    /// Whether a group is one of the further ones of a thread that waits for its call.
    fn is_of_group(&self, _thread: u32, _group: u32) -> bool {
        false
    }
    /// Whether a descriptor holds a record for its owner, under this claim, and one did at this moment.
    fn is_held(&self, _: RecordKey, _: Attempt, _: LeaseTime) -> bool {
        false
    }
}

/// Nobody hears of changes: there are no mounts and no handles.
pub struct Nobody;

impl Audience for Nobody {
    fn make_forget(&self, _: &[(Origin, Effect)]) {}
    fn silence(&self, _: &[(Origin, Effect)]) -> Box<dyn Silence> {
        Box::new(())
    }
    fn is_in_use(&self, _: Ino) -> bool {
        false
    }
}
