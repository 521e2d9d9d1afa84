//! What is agreed with the kernel when a mount begins (FUSE_INIT).
//!
//! What must stay true: what the running kernel lacks is left out, never a reason to fail; what
//! is left out on purpose is named below with its reason.

use std::time::Duration;

use fuser::{InitFlags, KernelConfig};

/// The largest write the kernel may send, in bytes: a larger record is refused anyway, and the
/// kernel's own limit of pages a request is the same.
pub(crate) const WRITE_BYTES_MAX: u32 = 1 << 20;

/// Requests the kernel may have under way without a caller that waits: read-ahead and RELEASE.
/// fuser's 16 would let a burst of closes wait behind each other.
const BACKGROUND_MAX: u16 = 64;

/// What is wanted, each where the kernel has it.
///
/// Deliberately not wanted:
/// - WRITEBACK_CACHE: writes could not be staged and judged, readers saw NULs.
/// - NO_OPEN_SUPPORT: the version a reader sees is pinned at `open`.
/// - EXPLICIT_INVAL_DATA: a file's pages could then only be dropped by a notice that waits for page
///   locks, which a caller of ours may hold (see `notifier`).
/// - POSIX_ACL: not part of the tree.
/// - DONT_MASK: the kernel applies the caller's umask.
const WANTED: [InitFlags; 12] = [
    InitFlags::FUSE_ASYNC_READ,
    // A reader that learns of a new size or modification time drops the pages itself.
    InitFlags::FUSE_AUTO_INVAL_DATA,
    InitFlags::FUSE_BIG_WRITES,
    InitFlags::FUSE_MAX_PAGES,
    // O_TRUNC arrives with `open`, so that old content is not lost before the new is judged.
    InitFlags::FUSE_ATOMIC_O_TRUNC,
    // Else each write asks for the attribute `security.capability`.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_PARALLEL_DIROPS,
    // Record files are opened with direct I/O; programs map them all the same.
    InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
    // Locks hold between mounts, too (see `locks`).
    InitFlags::FUSE_POSIX_LOCKS,
    InitFlags::FUSE_FLOCK_LOCKS,
    // Not FUSE_CACHE_SYMLINKS: a computed link's target changes, and no notice of attributes makes a
    // kernel drop the one that it has.
];

/// The protocol's version from which on names have epochs (Linux 6.16).
const EPOCHS_SINCE: (u32, u32) = (7, 44);

/// Answers FUSE_INIT; whether all that the kernel knows of names can be forgotten at once.
pub(crate) fn negotiate(config: &mut KernelConfig) -> bool {
    for flag in WANTED {
        if config.add_capabilities(flag).is_err() {
            tracing::debug!(?flag, "this kernel lacks a FUSE capability; going on without it");
        }
    }
    // These three refuse values out of their range only, which these are not.
    let _ = config.set_max_write(WRITE_BYTES_MAX);
    let _ = config.set_max_background(BACKGROUND_MAX);
    let _ = config.set_time_granularity(Duration::from_nanos(1));
    let version = config.kernel_abi();
    (version.0, version.1) >= EPOCHS_SINCE
}
