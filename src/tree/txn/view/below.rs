//! What lies below a transaction: the tree as it is now.

use std::sync::Arc;

use workfs_mount::Caller;

use crate::engine::Stop;
use crate::names::FileName;
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, Read, StoreError};
use crate::tree::WorkTree;

/// The tree below a transaction, as its caller sees it now.
pub struct Below<'a> {
    pub read: &'a dyn Read,
    pub tree: &'a WorkTree,
    pub caller: &'a Caller,
    pub now: UnixNanos,
}

impl Below<'_> {
    pub fn lookup(&self, dir: Ino, name: &FileName) -> Result<Option<Node>, StoreError> {
        let found = self.read.lookup(dir, name)?;
        Ok(found.filter(|node| !self.tree.is_hidden(&node.kind(), self.caller)))
    }

    /// A node, also one without a name: whoever has it open goes on with it.
    pub fn node(&self, ino: Ino) -> Result<Node, Stop> {
        Ok(self.read.node(ino)?.ok_or_else(gone)?)
    }

    /// A node that has a name.
    pub fn named(&self, ino: Ino) -> Result<Node, Stop> {
        Ok(Some(self.node(ino)?).filter(|node| node.nlink > 0).ok_or_else(gone)?)
    }

    /// The content of a governed file, which is read whole, at `open`.
    pub fn governed(&self, node: &Node) -> Result<Option<Arc<[u8]>>, Stop> {
        let content = match node.class {
            Class::Plain => return Ok(None),
            Class::Draft => self.read.draft(node.ino)?.ok_or_else(gone)?.content,
            Class::Record => {
                let record = self.read.record_at(node.ino)?.ok_or_else(gone)?;
                self.read.version(record.version_g)?.ok_or_else(gone)?.content
            }
        };
        Ok(Some(content.into()))
    }
}

/// The refusal for what others removed.
pub fn gone() -> Refusal {
    Refusal::new(Rule::Gone, "the file is gone", "look at its directory again")
}
