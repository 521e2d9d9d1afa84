//! What mounts cost that nobody uses; alone in its process, because it weighs the process.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../kernel/memory_tree.rs"]
mod memory_tree;
#[allow(dead_code)]
#[path = "../kernel/slow.rs"]
mod slow;

use workfs_mount::{MountId, MountOptions, serve};

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_hundred_idle_mounts_cost_little_memory() {
    let tree = memory_tree::MemoryTree::new();
    let dirs: Vec<_> = (0..100).map(|_| tempfile::tempdir().unwrap()).collect();
    let before = resident();
    let mounts: Vec<_> = dirs
        .iter()
        .zip(0..)
        .map(|(dir, id)| {
            serve(tree.clone(), MountId(id), dir.path(), &MountOptions::default()).unwrap()
        })
        .collect();
    for dir in &dirs {
        std::fs::write(dir.path().join("a"), "used once").unwrap();
    }
    let cost = resident() - before;
    drop(mounts);
    // Without `lazy_buffers` it is more than 400 MB.
    assert!(cost < 20_000, "{cost} KiB");
    eprintln!("100 idle mounts: {cost} KiB");
}
