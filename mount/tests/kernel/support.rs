//! A mounted tree that is gone when the test is over, however it ends.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use workfs_mount::{Mount, MountId, MountOptions, serve};

use crate::memory_tree::MemoryTree;

/// No event may be awaited for longer.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A tree, mounted. The fields are dropped in this order: the mount, then its directory.
pub struct Served {
    pub mount: Mount,
    _guard: Guard,
    pub tree: Arc<MemoryTree>,
    _dir: TempDir,
}

/// Detaches what a failed test may have left.
pub struct Guard(pub PathBuf);

impl Drop for Guard {
    fn drop(&mut self) {
        let dir = std::ffi::CString::new(self.0.as_os_str().as_bytes()).unwrap();
        while mounted(&self.0) {
            // SAFETY: the pointer is to a string that ends in NUL and outlives the call.
            if unsafe { libc::umount2(dir.as_ptr(), libc::MNT_DETACH) } != 0 {
                break;
            }
        }
    }
}

impl Served {
    pub fn new() -> Served {
        Served::with(&MountOptions::default())
    }

    pub fn with(options: &MountOptions) -> Served {
        let dir = tempfile::tempdir().unwrap();
        let tree = MemoryTree::new();
        let mount = serve(tree.clone(), next_id(), dir.path(), options).unwrap();
        let guard = Guard(mount.dir().to_owned());
        Served { mount, _guard: guard, tree, _dir: dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.mount.dir().join(name)
    }
}

/// Mount numbers that no other test of this process has.
pub fn next_id() -> MountId {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    MountId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether anything is mounted on exactly this directory.
pub fn mounted(dir: &Path) -> bool {
    line_of(dir).is_some()
}

/// The line of `/proc/self/mounts` for a directory (whose name needs no escapes).
pub fn line_of(dir: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let dir = dir.to_str().unwrap();
    mounts.lines().find(|line| line.split(' ').nth(1) == Some(dir)).map(str::to_owned)
}

/// Asks again and again until it is so; fails when that takes too long.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// The error number of a call that failed.
pub fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}
