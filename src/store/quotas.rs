//! Quotas: how much of what they limit is used. Each node says which one it is charged to; the sums
//! change with the nodes, in the same transaction. Deliberately not here: the limits themselves.

use crate::limits::CHUNK_BYTES;
use crate::numbers::Ino;

use super::{Class, Node, NodeType, Result};

/// What is charged to a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    /// Bytes of plain files; holes and records' texts are free. A claim writes a record's text, and
    /// should not pay for a sum.
    pub bytes: u64,
    /// Nodes of any type.
    pub inodes: u64,
}

impl Charged {
    /// What one node is charged with.
    #[must_use]
    pub fn of(node: &Node) -> Charged {
        let bytes = match (node.node_type, node.class) {
            (NodeType::File, Class::Plain) => stored_bytes(node),
            _ => 0,
        };
        Charged { bytes, inodes: 1 }
    }
}

/// Bytes of a plain file that are not holes.
#[must_use]
pub fn stored_bytes(node: &Node) -> u64 {
    node.size.min(node.chunks * CHUNK_BYTES as u64)
}

/// A sum that a change has made larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The quota's directory.
    pub dir: Ino,
    /// The sum now.
    pub now: Charged,
    /// Whether the bytes have grown.
    pub bytes: bool,
    /// Whether the nodes have become more.
    pub inodes: bool,
}

/// What can be asked of quotas.
pub trait ReadQuotas {
    /// All sums, by directory.
    fn quotas(&self) -> Result<Vec<(Ino, Charged)>>;
    /// The sum of one directory, if it has a quota.
    fn quota(&self, dir: Ino) -> Result<Option<Charged>>;
}

/// The operations that change quotas. Making, changing and deleting nodes changes their sums.
pub trait TxnQuotas {
    /// The directory has a quota from now on; nothing is charged to it yet.
    fn open_quota(&mut self, dir: Ino) -> Result<()>;
    /// The directory has none any more.
    fn close_quota(&mut self, dir: Ino) -> Result<()>;
    /// The sums that have grown since the last savepoint.
    fn grown(&self) -> Result<Vec<Growth>>;
}
