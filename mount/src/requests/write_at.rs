//! Where a write goes.

use fuser::{OpenFlags, WriteFlags};

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAt {
    /// At this offset.
    Offset(u64),
    /// At the end, whatever that is when it happens.
    End,
}

impl WriteAt {
    /// Of a request of the kernel. What a mapping has changed comes from the page cache, by whatever
    /// descriptor of the file the kernel finds, and goes to where it was mapped. `flags` are those of the
    /// descriptor as it is now: `F_SETFL` may have changed them since it was opened.
    pub(crate) fn of_request(offset: u64, from: WriteFlags, flags: OpenFlags) -> WriteAt {
        let appends = flags.0 & libc::O_APPEND != 0 && !from.contains(WriteFlags::FUSE_WRITE_CACHE);
        if appends { WriteAt::End } else { WriteAt::Offset(offset) }
    }
}
