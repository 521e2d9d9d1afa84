//! Quotas of directories at the top of the tree: what is charged to which, and what is too much.
//!
//! What must stay true: everything below a directory with a quota is charged to it, and a change
//! that makes a sum larger than its limit is undone, whichever change it is. A file with several
//! names is charged where its first one lies (`nodes/names`). The sums themselves are the store's
//! (`store::quotas`). A directory with all below it that comes under another quota is walked, so
//! that such a rename costs what lies there.

use std::collections::HashSet;

use crate::config::{Config, Quota, SCRATCH_DIR};
use crate::engine::{About, Stop, Turn};
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{Ino, ROOT};
use crate::refusal::{Refusal, Rule};
use crate::store::{Node, NodeType, Read, Result, Txn};

/// Charges a directory that was just made, moved or named, and all below it, to the right quota.
pub(super) fn charge_dir(
    txn: &mut dyn Txn,
    config: &Config,
    parent: Ino,
    name: &FileName,
    dir: Ino,
) -> Result<()> {
    let quota = if parent == ROOT {
        config.quota(name).map(|_| dir)
    } else {
        txn.node(parent)?.and_then(|parent| parent.quota)
    };
    let Some(node) = txn.node(dir)?.filter(|node| node.quota != quota) else { return Ok(()) };
    if quota == Some(dir) {
        txn.open_quota(dir)?;
    }
    let mut left = vec![node.clone()];
    while let Some(mut node) = left.pop() {
        charged_below(txn, &node, &mut left)?;
        node.quota = quota;
        txn.update_node(&node)?;
    }
    if node.quota == Some(dir) {
        txn.close_quota(dir)?;
    }
    Ok(())
}

/// What lies in a node, and is charged where that is; a file with several names there as often as it has some.
fn charged_below(read: &dyn Read, node: &Node, below: &mut Vec<Node>) -> Result<()> {
    if node.node_type == NodeType::Directory {
        read.list(node.ino, None, &mut |(_, found)| {
            // Others have a further name here.
            if found.parent == node.ino {
                below.push(found);
            }
            true
        })?;
    }
    Ok(())
}

/// How many nodes are charged to a directory at the root, or would be if it had a quota.
///
/// # Errors
/// A failure of the store.
pub fn inodes_in(read: &dyn Read, dir: &Node) -> Result<u64> {
    if let Some(charged) = read.quota(dir.ino)? {
        return Ok(charged.inodes);
    }
    let (mut left, mut count, mut several) = (vec![dir.clone()], 0, HashSet::new());
    while let Some(node) = left.pop() {
        charged_below(read, &node, &mut left)?;
        let has_several = node.node_type != NodeType::Directory && node.nlink > 1;
        count += u64::from(!has_several || several.insert(node.ino));
    }
    Ok(count)
}

/// Brings the quotas in line with a configuration that may have changed since the store was open.
pub(in crate::engine) fn charge_all(txn: &mut dyn Txn, config: &Config) -> Result<()> {
    let mut dirs = Vec::new();
    txn.list(ROOT, None, &mut |(name, node)| {
        if node.node_type == NodeType::Directory {
            dirs.push((name, node.ino));
        }
        true
    })?;
    dirs.iter().try_for_each(|(name, dir)| charge_dir(txn, config, ROOT, name, *dir))
}

impl Turn<'_> {
    /// A node without a name lies nowhere, and counts nowhere while it is open.
    pub(in crate::engine) fn uncharge(&mut self, node: &mut Node) -> Result<()> {
        if node.quota == Some(node.ino) {
            self.txn.close_quota(node.ino)?;
        }
        node.quota = None;
        Ok(())
    }

    /// Refuses what has made a sum larger than its limit.
    pub(in crate::engine) fn require_quotas(&self) -> std::result::Result<(), Stop> {
        for growth in self.txn.grown()? {
            let Some(name) = self.txn.dir_name(growth.dir)? else { continue };
            let Some(&Quota { bytes, inodes, .. }) = self.config.quota(&name) else { continue };
            let over = |grew: bool, now: u64, limit: Option<u64>| {
                limit.filter(|limit| grew && now > *limit)
            };
            let reason = match (
                over(growth.bytes, growth.now.bytes, bytes),
                over(growth.inodes, growth.now.inodes, inodes),
            ) {
                (None, None) => continue,
                (Some(limit), _) => too_large(&name, limit),
                (None, Some(limit)) => too_many(&name, limit),
            };
            return Err(exceeded(reason, name));
        }
        Ok(())
    }

    /// Refuses to give a directory a name of which the quota is lower than it had, where it holds more than
    /// that. No sum grows by it, nor by what goes and comes back in one change.
    pub(in crate::engine) fn require_quota_of_name(
        &self,
        from: Dentry<&FileName>,
        to: Dentry<&FileName>,
        dir: Ino,
    ) -> std::result::Result<(), Stop> {
        let of = |at: Dentry<&FileName>| {
            Some(at.name).filter(|_| at.dir == ROOT).and_then(|name| self.config.quota(name))
        };
        let before = of(from);
        let Some((after, now)) = of(to).zip(self.txn.quota(dir)?) else { return Ok(()) };
        let over = |now: u64, limit: Option<u64>, had: Option<u64>| {
            limit.filter(|limit| now > *limit && had.is_none_or(|had| had > *limit))
        };
        let bytes = over(now.bytes, after.bytes, before.and_then(|before| before.bytes));
        let inodes = over(now.inodes, after.inodes, before.and_then(|before| before.inodes));
        match (bytes, inodes) {
            (None, None) => Ok(()),
            (Some(limit), _) => Err(exceeded(too_large(to.name, limit), to.name.clone())),
            (None, Some(limit)) => Err(exceeded(too_many(to.name, limit), to.name.clone())),
        }
    }

    /// Of what is too much, `why` names what was to be changed, where that has a name.
    pub(in crate::engine) fn told_where(&self, stop: Stop, about: Option<About>) -> Stop {
        let (Stop::Refused(refused), Some(about)) = (&stop, about) else { return stop };
        if refused.refusal.rule != Rule::Quota {
            return stop;
        }
        match about.path(self.txn) {
            Ok(path) if path != TreePath::root() => Stop::kept(refused.refusal.clone(), path),
            _ => stop,
        }
    }

    /// Refuses one node more in `dir`, before it is made, where its quota has no room for it.
    pub(in crate::engine) fn require_room(&self, dir: Ino) -> std::result::Result<(), Stop> {
        let Some(top) = self.txn.node(dir)?.and_then(|node| node.quota) else { return Ok(()) };
        let (Some(name), Some(now)) = (self.txn.dir_name(top)?, self.txn.quota(top)?) else {
            return Ok(());
        };
        let limit = self.config.quota(&name).and_then(|quota| quota.inodes);
        match limit.filter(|limit| now.inodes >= *limit) {
            Some(limit) => Err(exceeded(too_many(&name, limit), name)),
            None => Ok(()),
        }
    }
}

fn too_large(name: &FileName, limit: u64) -> String {
    format!("`{name}` may hold {limit} bytes of files")
}

fn too_many(name: &FileName, limit: u64) -> String {
    format!("`{name}` may hold {limit} files and directories")
}

fn exceeded(reason: String, name: FileName) -> Stop {
    let is_scratch = name.as_bytes() == SCRATCH_DIR;
    let old = if is_scratch { " (`workfs gc` tells of old projects)" } else { "" };
    let remedy = format!("remove what is not needed{old}, or ask for more");
    let refusal = Refusal::new(Rule::Quota, reason, remedy);
    Stop::kept(refusal, TreePath::root().join(name))
}
