//! Mounts where descriptors are short; alone in its process, because it changes the process's limit.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../kernel/memory_tree.rs"]
mod memory_tree;
#[allow(dead_code)]
#[path = "../kernel/slow.rs"]
mod slow;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use workfs_mount::{MountId, MountOptions, mount_at, serve};

/// Allows descriptors up to this number; gives back what was allowed before.
fn allow(most: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls are given a whole structure that outlives them.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        let before = std::mem::replace(&mut limit.rlim_cur, most);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
        before
    }
}

/// The next descriptor that is free.
fn next_free() -> u64 {
    File::open("/dev/null").unwrap().as_raw_fd().unsigned_abs().into()
}

#[test]
fn a_mount_is_made_that_lasts_or_none() {
    let tree = memory_tree::MemoryTree::new();
    let dir = tempfile::tempdir().unwrap();
    let is_mounted = |dir: &Path| mount_at(dir).unwrap().is_some();
    let mut made = 0;
    for free in 0..16 {
        let before = allow(next_free() + free);
        let served = serve(tree.clone(), MountId(1), dir.path(), &MountOptions::default());
        let ends = served.as_ref().ok().map(|mount| {
            // It would end at once.
            mount.ended().recv_timeout(Duration::from_millis(200))
        });
        allow(before);
        match ends {
            None => assert!(!is_mounted(dir.path()), "{free} are free: what was refused is there"),
            Some(ends) => {
                made += 1;
                assert_eq!(ends, Err(RecvTimeoutError::Timeout), "{free} are free");
                assert!(is_mounted(dir.path()), "{free} are free");
                std::fs::write(dir.path().join("file"), "text").unwrap();
                std::fs::remove_file(dir.path().join("file")).unwrap();
            }
        }
        drop(served);
        assert!(!is_mounted(dir.path()), "{free} are free: it is there still");
    }
    assert!((1..16).contains(&made), "{made} mounts were made");
}
