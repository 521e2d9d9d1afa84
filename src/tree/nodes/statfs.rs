//! What `statfs` tells: the room of the disk, and in a directory with a quota what is left of that, so that
//! `df` shows what can be used.

use workfs_mount::{Errno, FsStat};

use crate::config::{Config, Quota};
use crate::limits::NAME_BYTES_MAX;
use crate::numbers::Ino;
use crate::store::{Charged, Read, Result};
use crate::tree::{Answer, WorkTree};

impl WorkTree {
    /// The room that what lies at this inode can take.
    pub(in crate::tree) fn room_at(&self, ino: Ino) -> Answer<FsStat> {
        let below = self.engine.readers().disk();
        let below = below.map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))?;
        let usage = self.read(|read| read.usage())?;
        // The store keeps what was removed, for what comes next.
        let kept = usage.free_bytes / below.f_frsize.max(1);
        let free = below.f_bavail.saturating_add(kept);
        let whole = FsStat {
            block_size: u32::try_from(below.f_frsize).unwrap_or(4096),
            blocks: below.f_blocks,
            blocks_free: below.f_bfree.saturating_add(kept),
            blocks_available: free,
            files: usage.nodes.saturating_add(free),
            files_free: free,
            name_max: NAME_BYTES_MAX as u32,
        };
        let quota = self.read(|read| quota_of(read, &self.engine.config(), ino))?;
        Ok(quota.map_or(whole, |(limits, charged)| share(whole, &limits, charged)))
    }
}

/// The quota that a node is charged to, with what is charged to it.
fn quota_of(read: &dyn Read, config: &Config, ino: Ino) -> Result<Option<(Quota, Charged)>> {
    let Some(dir) = read.node(ino)?.and_then(|node| node.quota) else { return Ok(None) };
    let (Some(charged), Some(name)) = (read.quota(dir)?, read.dir_name(dir)?) else {
        return Ok(None);
    };
    Ok(config.quota(&name).map(|limits| (limits.clone(), charged)))
}

/// The same file system within the limits of a quota.
fn share(whole: FsStat, limits: &Quota, charged: Charged) -> FsStat {
    let mut share = whole;
    if let Some(limit) = limits.bytes {
        let block = u64::from(share.block_size.max(1));
        let free = limit.saturating_sub(charged.bytes) / block;
        share.blocks = limit / block;
        share.blocks_free = free.min(share.blocks_free);
        share.blocks_available = free.min(share.blocks_available);
    }
    if let Some(limit) = limits.inodes {
        share.files = limit;
        share.files_free = limit.saturating_sub(charged.inodes).min(share.files_free);
    }
    share
}
