//! How mounts end, and that nothing is left of them.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crossbeam_channel::RecvTimeoutError;
use workfs_mount::{Invalidation, Mount, MountOptions, ROOT, serve};

use crate::memory_tree::MemoryTree;
use crate::support::{PATIENCE, Served, errno, mounted, next_id, until};

fn await_end(mount: &Mount) {
    assert_eq!(mount.ended().recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    assert!(mount.has_ended());
}

/// Names of this process's threads.
fn threads() -> Vec<String> {
    fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect()
}

#[test]
fn unmount_leaves_no_mount_and_no_thread() {
    let served = Served::new();
    let id = served.mount.id().0;
    let ours = [format!("workfs-m{id}"), format!("workfs-i{id}")];
    // A thread gives itself its name when it first runs.
    until("the threads have names", || ours.iter().all(|name| threads().contains(name)));
    assert!(mounted(served.mount.dir()));
    served.mount.unmount().unwrap();
    assert!(!mounted(served.mount.dir()));
    assert!(served.mount.has_ended());
    assert!(!ours.iter().any(|name| threads().contains(name)));
    served.mount.unmount().unwrap();
    served.mount.detach().unwrap();
    served.mount.invalidate([&Invalidation::Attr(ROOT)]);
    served.mount.invalidate([&Invalidation::Attr(ROOT)]);
    assert!(served.mount.dir().exists());
}

#[test]
fn dropping_unmounts_and_the_place_can_be_used_again() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let tree = MemoryTree::new();
        let mount = serve(tree, next_id(), dir.path(), &MountOptions::default()).unwrap();
        fs::write(mount.dir().join("a"), "").unwrap();
        let path = mount.dir().to_owned();
        drop(mount);
        assert!(!mounted(&path));
        assert!(!path.join("a").exists());
    }
}

#[test]
fn an_unmount_from_outside_is_noticed() {
    let served = Served::new();
    assert!(!served.mount.has_ended());
    assert!(Command::new("umount").arg(served.mount.dir()).status().unwrap().success());
    await_end(&served.mount);
    served.mount.unmount().unwrap();
}

#[test]
fn a_busy_mount_says_so_and_can_be_detached() {
    let served = Served::new();
    fs::write(served.path("a"), "open").unwrap();
    let file = fs::File::open(served.path("a")).unwrap();
    assert_eq!(errno(served.mount.unmount()), libc::EBUSY);
    assert!(mounted(served.mount.dir()) && !served.mount.has_ended());
    served.mount.detach().unwrap();
    assert!(!mounted(served.mount.dir()));
    assert!(!served.mount.has_ended(), "who has a file open goes on");
    assert_eq!(std::io::read_to_string(&file).unwrap(), "open");
    drop(file);
    await_end(&served.mount);
}

#[test]
fn an_aborted_connection_leaves_no_dead_mount() {
    let served = Served::new();
    fs::write(served.path("a"), "").unwrap();
    let file = fs::File::open(served.path("a")).unwrap();
    let dir = CString::new(served.mount.dir().as_os_str().as_bytes()).unwrap();
    // The mount is in use and stays; its connection is cut, as by `umount -f` or fusectl.
    // SAFETY: the pointer is to a string that ends in NUL and outlives the call.
    assert_ne!(unsafe { libc::umount2(dir.as_ptr(), libc::MNT_FORCE) }, 0);
    await_end(&served.mount);
    assert!(!mounted(served.mount.dir()));
    drop(file);
}

#[test]
fn another_mount_on_top_is_not_taken_away() {
    let below = Served::new();
    let dir = below.mount.dir().to_owned();
    let above = serve(MemoryTree::new(), next_id(), &dir, &MountOptions::default()).unwrap();
    assert_eq!(errno(below.mount.unmount()), libc::EBUSY);
    fs::write(dir.join("a"), "above").unwrap();
    above.unmount().unwrap();
    assert!(!dir.join("a").exists());
    below.mount.unmount().unwrap();
    assert!(!mounted(&dir));
}

#[test]
fn many_mounts_at_once_serve_one_tree() {
    let tree = MemoryTree::new();
    let dirs: Vec<_> = (0..30).map(|_| tempfile::tempdir().unwrap()).collect();
    let mounts: Vec<_> = dirs
        .iter()
        .map(|dir| serve(tree.clone(), next_id(), dir.path(), &MountOptions::default()).unwrap())
        .collect();
    fs::write(dirs[0].path().join("a"), "shared").unwrap();
    for dir in &dirs {
        assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "shared");
    }
    drop(mounts);
    assert!(dirs.iter().all(|dir| !mounted(dir.path())));
}
