//! A write for which there was no room, so that it can be made later.

use sha2::{Digest as _, Sha256};
use workfs_mount::WriteAt;

use crate::refusal::Refusal;

/// A write for which there was no room: the handle takes that one, when there is, and no other.
pub(in crate::tree) struct Unmade {
    at: WriteAt,
    length: usize,
    sha256: [u8; 32],
    pub refusal: Refusal,
}

impl Unmade {
    pub(super) fn new(at: WriteAt, data: &[u8], refusal: Refusal) -> Self {
        Unmade { at, length: data.len(), sha256: Sha256::digest(data).into(), refusal }
    }

    /// Whether this write makes it: programs keep what they could not write, and may have more by then.
    pub fn is_made_by(&self, at: WriteAt, data: &[u8]) -> bool {
        let same = data.get(..self.length).map(|begin| <[u8; 32]>::from(Sha256::digest(begin)));
        self.at == at && same == Some(self.sha256)
    }
}
