//! What the bits of the directory allow that is a transaction's root.
//!
//! The kernel is shown it as its maker's own, who is to move it to commit, and so asks nothing of what it asks
//! outside. What must stay true: in a transaction nobody does to that directory what its bits forbid.
//! Deliberately not here: all other directories, of which the kernel is shown the truth.

use workfs_mount::{Attr, SetAttr, TimeOrNow};

use crate::engine::{Stop, TxnNode, is_stuck};
use crate::refusal::{Refusal, Rule};
use crate::tree::callers::caller::allows;

use super::{Below, View};

/// To read, and to write and search a directory.
pub const READ: u32 = 0o4;
pub const CHANGE: u32 = 0o3;

impl View {
    /// Refuses what the bits of `dir` do not allow.
    pub fn require_bits(&self, below: &Below<'_>, dir: TxnNode, bits: u32) -> Result<(), Stop> {
        match self.asked(below, dir)? {
            Some(root) if !allows(&root, below.caller, bits) => Err(forbidden().into()),
            _ => Ok(()),
        }
    }

    /// The same for the name of `node`, which goes.
    pub(super) fn require_taking(
        &self,
        below: &Below<'_>,
        dir: TxnNode,
        node: TxnNode,
    ) -> Result<(), Stop> {
        self.require_bits(below, dir, CHANGE)?;
        let Some(root) = self.asked(below, dir)? else { return Ok(()) };
        let owners = [root.uid, self.shown(below, node)?.uid];
        match is_stuck(root.mode, owners, below.caller.uid) {
            true => Err(forbidden().into()),
            false => Ok(()),
        }
    }

    /// Refuses a change of attributes to who does not own them.
    pub(super) fn require_owner(
        &self,
        below: &Below<'_>,
        node: TxnNode,
        set: &SetAttr,
    ) -> Result<(), Stop> {
        let Some(root) = self.asked(below, node)? else { return Ok(()) };
        let is_now = |time: Option<TimeOrNow>| time.is_none_or(|time| time == TimeOrNow::Now);
        let touches = SetAttr { atime: set.atime, mtime: set.mtime, ..SetAttr::default() } == *set
            && is_now(set.atime)
            && is_now(set.mtime);
        if root.uid == below.caller.uid || touches && allows(&root, below.caller, 0o2) {
            return Ok(());
        }
        Err(forbidden().into())
    }

    /// The root as the kernel would ask it outside, if it is that and the kernel would ask.
    fn asked(&self, below: &Below<'_>, dir: TxnNode) -> Result<Option<Attr>, Stop> {
        if dir != self.root || below.caller.uid == 0 {
            return Ok(None);
        }
        let identity = below.tree.hub.identity(below.caller.mount);
        let asks = identity.is_some_and(|identity| identity.asks.is_some());
        if asks { self.shown(below, dir).map(Some) } else { Ok(None) }
    }

    fn shown(&self, below: &Below<'_>, node: TxnNode) -> Result<Attr, Stop> {
        let attr = self.attr(below, node)?;
        let identity = below.tree.hub.identity(below.caller.mount);
        let shows = identity.and_then(|identity| identity.asks);
        Ok(shows.map_or(attr, |shows| shows.shown(&attr)))
    }
}

fn forbidden() -> Refusal {
    let reason = "the directory that is the transaction's root does not allow it";
    Refusal::new(Rule::Forbidden, reason, "ask its owner to allow it (`chmod`)")
}
