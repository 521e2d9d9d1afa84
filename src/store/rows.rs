//! Rows as the rest of the program sees them: typed, and impossible ones unrepresentable.

use super::{Result, StoreError};
use crate::limits::NAME_BYTES_MAX;
use crate::names::{AgentName, FileName, RecordId, StateName, TreePath};
use crate::numbers::{
    Attempt, G, Ino, Lapses, RecordKey, RefusalKey, UnixNanos, Version, WorkspaceKey,
};
use crate::refusal::{Refusal, Rule, TextPlace};
pub use workfs_mount::NodeType;

/// Whose care a node is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nobody's: an ordinary node.
    Plain,
    /// A record-like file that is not (yet) valid.
    Draft,
    /// A record's file.
    Record,
}

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub ino: Ino,
    /// Its type, for ever.
    pub node_type: NodeType,
    /// Whose care it is in.
    pub class: Class,
    /// Permission bits (0o7777).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u32,
    /// Names.
    pub nlink: u32,
    /// Bytes.
    pub size: u64,
    /// Last access.
    pub atime: UnixNanos,
    /// Last change of content.
    pub mtime: UnixNanos,
    /// Last change of anything.
    pub ctime: UnixNanos,
    /// A directory's parent (of other nodes: the directory they were made in).
    pub parent: Ino,
    /// Stored chunks of a plain file.
    pub chunks: u64,
    /// The directory at the top of the tree whose quota it is charged to, if one has a quota.
    pub quota: Option<Ino>,
}

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeKind {
    /// Its number.
    pub ino: Ino,
    /// Its type.
    pub node_type: NodeType,
    /// Whose care it is in.
    pub class: Class,
}

impl Node {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> NodeKind {
        NodeKind { ino: self.ino, node_type: self.node_type, class: self.class }
    }

    /// Whether it is a regular file without the rules of records and drafts.
    #[must_use]
    pub fn is_plain_file(&self) -> bool {
        self.node_type == NodeType::File && self.class == Class::Plain
    }
}

/// An inode to be made.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// Type.
    pub node_type: NodeType,
    /// Whose care it is in.
    pub class: Class,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u32,
    /// Names it will have at once.
    pub nlink: u32,
    /// Bytes.
    pub size: u64,
    /// All its times.
    pub at: UnixNanos,
    /// The directory it is made in.
    pub parent: Ino,
    /// As [`Node::quota`].
    pub quota: Option<Ino>,
}

impl NewNode {
    /// An empty one, with the names that its type has at once; whose it is and what they may do says
    /// who makes it.
    #[must_use]
    pub fn empty(
        node_type: NodeType,
        class: Class,
        parent: Ino,
        quota: Option<Ino>,
        at: UnixNanos,
    ) -> NewNode {
        let nlink = if node_type == NodeType::Directory { 2 } else { 1 };
        let (mode, uid, gid, rdev, size) = (0, 0, 0, 0, 0);
        NewNode { node_type, class, mode, uid, gid, rdev, nlink, size, at, parent, quota }
    }

    /// The inode with its number.
    #[must_use]
    pub fn made(&self, ino: Ino) -> Node {
        Node {
            ino,
            node_type: self.node_type,
            class: self.class,
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            rdev: self.rdev,
            nlink: self.nlink,
            size: self.size,
            atime: self.at,
            mtime: self.at,
            ctime: self.at,
            parent: self.parent,
            chunks: 0,
            quota: self.quota,
        }
    }
}

/// What a directory is to a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceRow {
    /// The workspace.
    pub workspace: WorkspaceKey,
    /// The workspace's path from the root of the tree.
    pub path: TreePath,
    /// The path from the workspace's directory, `assigned/bob`; empty for the directory itself.
    pub relative: Vec<FileName>,
}

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRow {
    /// Its key.
    pub key: WorkspaceKey,
    /// Its path from the root of the tree.
    pub path: TreePath,
    /// Its directory; `None` after that was removed (its history stays).
    pub dir: Option<Ino>,
    /// The kind of its records.
    pub kind: String,
}

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has a file.
    Live {
        /// The file.
        ino: Ino,
        /// The directory the file lies in.
        dir: Ino,
        /// The file's name.
        name: FileName,
        /// Whether its content is valid (under the policy `flag` it may not be).
        valid: bool,
    },
    /// Its name went to a backup (`X.yaml~`); it comes back when the name does.
    Parked {
        /// The directory it lay in.
        dir: Ino,
    },
    /// Removed, or moved out of its workspace; its history stays.
    Gone,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its key (0 before it is stored).
    pub key: RecordKey,
    /// Its workspace.
    pub workspace: WorkspaceKey,
    /// Its id.
    pub id: RecordId,
    /// Whether and where it has a file.
    pub standing: Standing,
    /// Its state.
    pub state: StateName,
    /// Who has it, where the state is one that is owned.
    pub owner: Option<AgentName>,
    /// How often it was claimed.
    pub attempt: Attempt,
    /// The status that its content says, so that a move need not read the content for it. Where that is
    /// flagged, the one that it said last when it was not: what the next move of status is judged by.
    pub status: Option<String>,
    /// Its current version.
    pub version: Version,
    /// The event that made the current version.
    pub version_g: G,
    /// Its last event.
    pub last_g: G,
    /// The trace that all its events belong to.
    pub trace: [u8; 16],
    /// How it stands in the order of work.
    pub readiness: super::Readiness,
    /// How long its content asks to be leased for, in seconds.
    pub lease_s: Option<u32>,
    /// Whose lease of it ran out last. If that is its owner, the owner may not change it.
    pub lapsed: Option<AgentName>,
    /// How many of its leases ran out since its retries were last counted from the beginning.
    pub lapses: Lapses,
}

/// What a guarded update expects to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The version.
    pub version: Version,
    /// The state.
    pub state: StateName,
    /// The file.
    pub ino: Option<Ino>,
    /// Who had it.
    pub owner: Option<AgentName>,
    /// The claim.
    pub attempt: Attempt,
    /// It had no file.
    pub gone: bool,
}

impl Record {
    /// Its file, if it has one.
    #[must_use]
    pub fn ino(&self) -> Option<Ino> {
        match self.standing {
            Standing::Live { ino, .. } => Some(ino),
            Standing::Parked { .. } | Standing::Gone => None,
        }
    }

    /// What a guarded update of this record expects: it, as it is now.
    #[must_use]
    pub fn expected(&self) -> Expected {
        Expected {
            version: self.version,
            state: self.state.clone(),
            ino: self.ino(),
            owner: self.owner.clone(),
            attempt: self.attempt,
            gone: self.version == Version(0) || self.standing == Standing::Gone,
        }
    }

    /// Whether its owner's lease ran out where it lies.
    #[must_use]
    pub fn is_lapsed(&self) -> bool {
        self.owner.is_some() && self.owner == self.lapsed
    }

    /// Where it was removed and one is made under its id again: what was claimed is over, its age is a
    /// new one, and no number of an attempt counts twice.
    pub fn begin_again(&mut self, is_owned: bool) {
        if self.standing == Standing::Gone {
            (self.lapsed, self.lapses) = (None, Lapses(0));
            self.readiness.since = UnixNanos(0);
            self.attempt = if is_owned { self.attempt.next() } else { self.attempt };
        }
    }

    /// Whether it has a file with valid content.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        matches!(self.standing, Standing::Live { valid: true, .. })
    }
}

/// A version of a record's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow {
    /// The record.
    pub record: RecordKey,
    /// Its number.
    pub version: Version,
    /// The event that made the version before; 0 for the first.
    pub before_g: G,
    /// When it was saved.
    pub at: UnixNanos,
    /// The bytes.
    pub content: Vec<u8>,
}

/// A draft: a record-like file that is not valid, or has not been judged yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The file.
    pub ino: Ino,
    /// The directory it lies in.
    pub dir: Ino,
    /// Its name.
    pub name: FileName,
    /// Why it is not a record; `None` while nothing was judged.
    pub why: Option<RefusedText>,
    /// The bytes.
    pub content: Vec<u8>,
}

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedText {
    /// The rule.
    pub rule: Rule,
    /// What is wrong.
    pub reason: String,
    /// The way out.
    pub remedy: String,
    /// Where.
    pub place: Option<TextPlace>,
}

impl From<Refusal> for RefusedText {
    fn from(refusal: Refusal) -> Self {
        let Refusal { rule, reason, remedy, place } = refusal;
        RefusedText { rule, reason, remedy, place }
    }
}

/// The event that comes before `g` in a past, where the row of `g` says that `before` does. Whoever goes back that way
/// relies on coming to an end.
///
/// # Errors
/// Of a damaged row, which leads to itself or onwards.
pub fn earlier(g: G, before: G) -> Result<G> {
    if before < g {
        return Ok(before);
    }
    let before = before.0.cast_signed();
    Err(StoreError::Impossible(format!("event {before} is said to be before event {g}")))
}

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Its place in the order.
    pub g: G,
    /// The record's event before it; 0 if there is none.
    pub before_g: G,
    /// Where its line ends in the NDJSON of all events, in bytes, with the newline.
    pub end: u64,
    /// The line, without the newline.
    pub line: String,
}

impl EventRow {
    /// What its line says; of a damaged one nothing.
    #[must_use]
    pub fn said(&self) -> serde_json::Value {
        self.parsed().unwrap_or_default()
    }

    /// The same for what goes by it.
    ///
    /// # Errors
    /// Of a damaged line.
    pub fn parsed(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.line)
            .map_err(|why| StoreError::Impossible(format!("event {}: {why}", self.g)))
    }
}

/// A refusal as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalRow {
    /// Its place in the order (0 before it is stored).
    pub key: RefusalKey,
    /// When.
    pub at: UnixNanos,
    /// Through which mount; `None` for the socket.
    pub mount: Option<u32>,
    /// Who it was refused to.
    pub actor: AgentName,
    /// The caller's user id.
    pub uid: u32,
    /// The caller's thread id, a label.
    pub pid: u32,
    /// The operation, such as `rename`.
    pub operation: String,
    /// The path it was about.
    pub path: Vec<u8>,
    /// The errno's name.
    pub errno: String,
    /// What was refused and why.
    pub why: RefusedText,
    /// Bytes kept; 0 if none.
    pub rejected_bytes: u64,
}

impl RefusalRow {
    /// The name below `.workfs/rejected/` of the bytes that were kept: `17-X.yaml`, the refusal's number
    /// and the file's name.
    #[must_use]
    pub fn rejected_name(&self) -> Vec<u8> {
        let last = self.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let mut name = format!("{}-", self.key).into_bytes();
        name.extend(last.iter().take(NAME_BYTES_MAX - name.len()));
        name
    }
}

/// Bytes that were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Who wrote them.
    pub uid: u32,
    /// They.
    pub content: Vec<u8>,
}

/// Sizes of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Inodes.
    pub nodes: u64,
    /// Bytes of the main file.
    pub bytes: u64,
    /// Those of them that nothing uses any more, and that what comes next is written to.
    pub free_bytes: u64,
}
