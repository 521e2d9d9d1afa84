//! What `statfs` tells of a directory with a quota: what `df` shows there is what can be used.

use workfs_mount::FsStat;

use crate::config::{Config, Quota};
use crate::numbers::Ino;
use crate::store::{Charged, Read, Result};

/// A quota and what is charged to it.
pub(super) struct Limited {
    limits: Quota,
    charged: Charged,
}

/// The quota that a node is charged to.
pub(super) fn of(read: &dyn Read, config: &Config, ino: Ino) -> Result<Option<Limited>> {
    let Some(dir) = read.node(ino)?.and_then(|node| node.quota) else { return Ok(None) };
    let (Some(charged), Some(name)) = (read.quota(dir)?, read.dir_name(dir)?) else {
        return Ok(None);
    };
    Ok(config.quota(&name).map(|limits| Limited { limits: limits.clone(), charged }))
}

impl Limited {
    /// The same file system within the limits.
    pub fn share(&self, whole: FsStat) -> FsStat {
        let mut share = whole;
        if let Some(limit) = self.limits.bytes {
            let block = u64::from(share.block_size.max(1));
            let free = limit.saturating_sub(self.charged.bytes) / block;
            share.blocks = limit / block;
            share.blocks_free = free.min(share.blocks_free);
            share.blocks_available = free.min(share.blocks_available);
        }
        if let Some(limit) = self.limits.inodes {
            share.files = limit;
            share.files_free = limit.saturating_sub(self.charged.inodes).min(share.files_free);
        }
        share
    }
}
