//! The mount point: refusals, dead mounts, and the directory below.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use workfs_mount::{
    DirState, MountError, MountOptions, Underlay, cover, detach_dead, serve, state_of, uncover,
};

use crate::memory_tree::MemoryTree;
use crate::support::{Guard, PATIENCE, Served, errno, mounted, next_id};

/// A mount that nobody answers: dead once the returned file is closed.
fn unanswered(dir: &Path) -> File {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
    let data = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let (dir, data) =
        (CString::new(dir.as_os_str().as_bytes()).unwrap(), CString::new(data).unwrap());
    // SAFETY: all pointers are to strings that end in NUL and outlive the call.
    let done = unsafe {
        let source = c"test".as_ptr();
        libc::mount(source, dir.as_ptr(), c"fuse.test".as_ptr(), 0, data.as_ptr().cast())
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    device
}

fn refusal(dir: &Path) -> MountError {
    serve(MemoryTree::new(), next_id(), dir, &MountOptions::default()).unwrap_err()
}

#[test]
fn a_place_that_is_no_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let error = refusal(&missing);
    assert!(matches!(&error, MountError::NotFound(place) if *place == missing));
    assert!(error.to_string().ends_with("/missing\" does not exist"));
    assert_eq!(error.remedy().as_deref(), Some("make it first (`mkdir`)"));
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(matches!(refusal(&dir.path().join("file")), MountError::NotADirectory(_)));
    assert!(matches!(refusal(&dir.path().join("file/in")), MountError::NotADirectory(_)));
}

#[test]
fn mounts_are_found_through_symbolic_links() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("real", &link).unwrap();
    let mount = serve(MemoryTree::new(), next_id(), &link, &MountOptions::default()).unwrap();
    assert_eq!(mount.dir(), dir.path().join("real").canonicalize().unwrap());
    assert!(matches!(state_of(&link), DirState::Mounted { fs_type, source }
        if fs_type == "fuse.workfs" && source == "workfs"));
}

#[test]
fn a_dead_mount_is_seen_refused_and_detached() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("a place");
    fs::create_dir(&place).unwrap();
    let _guard = Guard(place.clone());
    drop(unanswered(&place));
    assert_eq!(state_of(&place), DirState::Dead);
    assert!(matches!(refusal(&place), MountError::DeadMount(_)));
    assert_eq!(errno(fs::metadata(&place)), libc::ENOTCONN);
    detach_dead(&place).unwrap();
    assert_eq!(state_of(&place), DirState::Plain { empty: true, entries: Vec::new() });
    detach_dead(&place).unwrap();
    drop(serve(MemoryTree::new(), next_id(), &place, &MountOptions::default()).unwrap());
}

#[test]
fn looking_at_a_mount_that_does_not_answer_ends() {
    let dir = tempfile::tempdir().unwrap();
    let _guard = Guard(dir.path().to_owned());
    let device = unanswered(dir.path());
    let begin = Instant::now();
    assert!(matches!(state_of(dir.path()), DirState::Mounted { fs_type, .. }
        if fs_type == "fuse.test"));
    detach_dead(dir.path()).unwrap();
    assert!(begin.elapsed() < PATIENCE);
    assert_eq!(errno(Underlay::open(dir.path())), libc::EBUSY);
    drop(device);
    assert_eq!(state_of(dir.path()), DirState::Dead);
}

#[test]
fn a_mount_is_found_where_its_directory_is_by_now() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| dir.path().join(name));
    fs::create_dir_all(old.join("m")).unwrap();
    let serve_at =
        |dir: &Path| serve(MemoryTree::new(), next_id(), dir, &MountOptions::default()).unwrap();
    let mount = serve_at(&old.join("m"));
    fs::rename(&old, &new).unwrap();
    assert_eq!(mount.place(), Some(new.join("m")));
    // Another mount where it was is not this one.
    fs::create_dir_all(old.join("m")).unwrap();
    let other = serve_at(&old.join("m"));
    mount.unmount().unwrap();
    assert!(!mounted(&new.join("m")) && mounted(&old.join("m")));
    assert_eq!(mount.place(), None);
    // Nor is one that the kernel has given its number.
    drop(other);
    let next = serve_at(&old.join("m"));
    assert_eq!(mount.place(), None);
    mount.unmount().unwrap();
    assert!(mounted(&old.join("m")) && next.place().is_some());
}

/// Takes the cover off also when an assertion fails.
struct Uncovered(workfs_mount::Cover);

impl Drop for Uncovered {
    fn drop(&mut self) {
        let _ = uncover(&self.0);
    }
}

#[test]
fn cover_mount_unmount_uncover() {
    let served = Served::new();
    served.mount.unmount().unwrap();
    let dir = served.mount.dir();
    let before = fs::metadata(dir).unwrap().mode();
    let guard = Uncovered(cover(dir).unwrap());
    let mount = serve(MemoryTree::new(), next_id(), dir, &MountOptions::default()).unwrap();
    fs::write(dir.join("a"), "in the mount").unwrap();
    assert_eq!(errno(uncover(&guard.0)), libc::EBUSY);
    mount.unmount().unwrap();
    assert!(!mounted(dir));
    assert_eq!(fs::metadata(dir).unwrap().mode() & 0o222, 0);
    if Underlay::open(dir).unwrap().cover().immutable {
        assert_eq!(errno(fs::write(dir.join("lost"), "")), libc::EPERM);
    } else {
        eprintln!("no immutable flag here: root can write below the mount");
    }
    uncover(&guard.0).unwrap();
    assert_eq!(fs::metadata(dir).unwrap().mode(), before);
    fs::write(dir.join("b"), "").unwrap();
}

#[test]
fn the_directory_below_can_be_covered_while_it_is_mounted_on() {
    let dir = tempfile::tempdir().unwrap();
    let underlay = Underlay::open(dir.path()).unwrap();
    let guard = Uncovered(underlay.cover().clone());
    let mount = serve(MemoryTree::new(), next_id(), dir.path(), &MountOptions::default()).unwrap();
    underlay.apply().unwrap();
    drop(underlay);
    fs::write(dir.path().join("a"), "in the mount").unwrap();
    mount.unmount().unwrap();
    assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o222, 0);
    uncover(&guard.0).unwrap();
    assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o7777, guard.0.mode);
}
