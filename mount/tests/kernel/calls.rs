//! System calls that programs make, and what the tree gets to see of them.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use workfs_mount::{Caching, MountOptions};

use crate::support::{Served, errno, line_of};

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn checked(result: i64) -> std::io::Result<i64> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}

fn rename2(from: &Path, to: &Path, flags: u32) -> std::io::Result<i64> {
    let (from, to) = (c(from), c(to));
    let here = libc::AT_FDCWD;
    // SAFETY: both pointers are to strings that end in NUL and outlive the call.
    checked(unsafe { libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), flags) }.into())
}

#[test]
fn files_are_made_written_appended_read_truncated() {
    let served = Served::new();
    let path = served.path("a");
    fs::write(&path, "one\n").unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"two\n").unwrap();
    file.write_all(b"three\n").unwrap();
    drop(file);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    OpenOptions::new().write(true).open(&path).unwrap().set_len(3).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    assert_eq!(fs::metadata(&path).unwrap().len(), 3);
    assert_eq!(errno(File::create_new(&path)), libc::EEXIST);
}

#[test]
fn large_files_survive_in_every_way_of_caching() {
    let served = Served::new();
    let content: Vec<u8> = (0..5_000_000u32).map(|byte| (byte % 251) as u8).collect();
    for caching in [Caching::Direct, Caching::Cached, Caching::KeepCache] {
        *served.tree.caching.lock() = caching;
        let path = served.path(&format!("{caching:?}"));
        fs::write(&path, &content).unwrap();
        assert!(fs::read(&path).unwrap() == content, "{caching:?}");
        let mut part = [0; 100];
        File::open(&path).unwrap().read_exact_at(&mut part, 4_000_001).unwrap();
        assert_eq!(part, content[4_000_001..4_000_101]);
    }
}

#[test]
fn a_stream_cannot_be_sought_but_read_on() {
    let served = Served::new();
    fs::write(served.path("log"), "abcdef").unwrap();
    *served.tree.caching.lock() = Caching::Stream;
    let mut file = File::open(served.path("log")).unwrap();
    let mut part = [0; 3];
    file.read_exact(&mut part).unwrap();
    file.read_exact(&mut part).unwrap();
    assert_eq!(&part, b"def");
    assert_eq!(errno(file.seek(SeekFrom::Start(1))), libc::ESPIPE);
}

#[test]
fn truncation_arrives_with_open() {
    let served = Served::new();
    fs::write(served.path("a"), "old content").unwrap();
    served.tree.state().log.clear();
    fs::write(served.path("a"), "new").unwrap();
    let log = served.tree.state().log.clone();
    assert!(log.contains(&"open truncate=true".to_owned()), "{log:?}");
    assert!(!log.iter().any(|line| line.starts_with("setattr")), "{log:?}");
    assert_eq!(fs::read_to_string(served.path("a")).unwrap(), "new");
}

#[test]
fn renames_replace_refuse_exchange() {
    let served = Served::new();
    let (a, b) = (served.path("a"), served.path("b"));
    fs::write(&a, "a").unwrap();
    fs::write(&b, "b").unwrap();
    assert_eq!(errno(rename2(&a, &b, libc::RENAME_NOREPLACE)), libc::EEXIST);
    rename2(&a, &b, libc::RENAME_EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(&a).unwrap(), "b");
    assert_eq!(errno(rename2(&a, &b, libc::RENAME_WHITEOUT)), libc::EINVAL);
    fs::rename(&a, &b).unwrap();
    assert_eq!(fs::read_to_string(&b).unwrap(), "b");
    assert_eq!(errno(fs::rename(&a, &b)), libc::ENOENT);
    rename2(&b, &a, libc::RENAME_NOREPLACE).unwrap();
    assert!(a.exists() && !b.exists());
}

#[test]
fn links_and_special_nodes() {
    let served = Served::new();
    fs::write(served.path("a"), "x").unwrap();
    fs::hard_link(served.path("a"), served.path("b")).unwrap();
    assert_eq!(fs::metadata(served.path("b")).unwrap().nlink(), 2);
    symlink("a", served.path("s")).unwrap();
    assert_eq!(fs::read_link(served.path("s")).unwrap(), Path::new("a"));
    assert_eq!(fs::read_to_string(served.path("s")).unwrap(), "x");
    let fifo = c(&served.path("p"));
    // SAFETY: the pointer is to a string that ends in NUL and outlives the call.
    checked(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }.into()).unwrap();
    assert!(fs::symlink_metadata(served.path("p")).unwrap().file_type().is_fifo());
    let null = c(&served.path("null"));
    let device = libc::makedev(1, 3);
    // SAFETY: as above.
    checked(unsafe { libc::mknod(null.as_ptr(), libc::S_IFCHR | 0o600, device) }.into()).unwrap();
    assert_eq!(fs::metadata(served.path("null")).unwrap().rdev(), device);
}

#[test]
fn a_file_without_a_name_lives_while_it_is_open() {
    let served = Served::new();
    fs::write(served.path("a"), "still here").unwrap();
    let mut file = File::open(served.path("a")).unwrap();
    fs::remove_file(served.path("a")).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
    assert_eq!(errno(fs::metadata(served.path("a"))), libc::ENOENT);
}

#[test]
fn a_large_directory_is_listed_whole_and_once() {
    let served = Served::new();
    fs::create_dir(served.path("d")).unwrap();
    for number in 0..5_000 {
        File::create(served.path(&format!("d/{number:04}"))).unwrap();
    }
    let listed = || -> Vec<_> {
        let mut names: Vec<_> =
            fs::read_dir(served.path("d")).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let names = listed();
    assert_eq!(names.len(), 5_000);
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    // With attributes: nothing is asked for each name, and a new name is seen at once.
    let sizes: u64 =
        fs::read_dir(served.path("d")).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(sizes, 0);
    File::create(served.path("d/new")).unwrap();
    assert_eq!(listed().len(), 5_001);
    assert_eq!(errno(fs::remove_dir(served.path("d"))), libc::ENOTEMPTY);
}

#[test]
fn listings_have_dot_and_dot_dot_with_true_numbers() {
    let served = Served::new();
    fs::create_dir_all(served.path("d/e")).unwrap();
    let output = std::process::Command::new("ls").arg("-fi1").arg(served.path("d/e")).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let mut lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    lines.sort_by_key(|line| line[1]);
    let number = |path: &str| fs::metadata(served.path(path)).unwrap().ino().to_string();
    assert_eq!(lines, vec![vec![&*number("d/e"), "."], vec![&*number("d"), ".."]]);
}

#[test]
fn extended_attributes() {
    let served = Served::new();
    fs::write(served.path("a"), "").unwrap();
    let path = c(&served.path("a"));
    let set = |name: &std::ffi::CStr, value: &[u8], flags| {
        let data = value.as_ptr().cast();
        // SAFETY: all pointers outlive the call and the length is the value's.
        let done =
            unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), data, value.len(), flags) };
        checked(done.into())
    };
    let get = |name: &std::ffi::CStr, room: &mut [u8]| {
        let data = room.as_mut_ptr().cast();
        // SAFETY: as above, of the room.
        checked(unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), data, room.len()) } as i64)
    };
    set(c"user.k", b"value", 0).unwrap();
    assert_eq!(errno(set(c"user.k", b"v", libc::XATTR_CREATE)), libc::EEXIST);
    assert_eq!(errno(set(c"user.none", b"v", libc::XATTR_REPLACE)), libc::ENODATA);
    let mut room = [0; 20];
    assert_eq!(get(c"user.k", &mut []).unwrap(), 5);
    assert_eq!(errno(get(c"user.k", &mut room[..2])), libc::ERANGE);
    assert_eq!(get(c"user.k", &mut room).unwrap(), 5);
    assert_eq!(&room[..5], b"value");
    assert_eq!(errno(get(c"user.none", &mut room)), libc::ENODATA);
    set(c"user.l", b"", 0).unwrap();
    // SAFETY: as above.
    let size = unsafe { libc::listxattr(path.as_ptr(), room.as_mut_ptr().cast(), room.len()) };
    assert_eq!(&room[..size as usize], b"user.k\0user.l\0");
    // SAFETY: both pointers are to strings that end in NUL and outlive the call.
    checked(unsafe { libc::removexattr(path.as_ptr(), c"user.k".as_ptr()) }.into()).unwrap();
    assert_eq!(errno(get(c"user.k", &mut room)), libc::ENODATA);
}

#[test]
fn times_modes_sizes_holes_and_syncs() {
    let served = Served::new();
    let file = File::create(served.path("a")).unwrap();
    let early = SystemTime::UNIX_EPOCH - Duration::new(1, 200_000_000);
    let late = SystemTime::UNIX_EPOCH + Duration::new(4_000_000_000, 7);
    file.set_times(fs::FileTimes::new().set_accessed(early).set_modified(late)).unwrap();
    let metadata = fs::metadata(served.path("a")).unwrap();
    assert_eq!((metadata.accessed().unwrap(), metadata.modified().unwrap()), (early, late));
    fs::set_permissions(served.path("a"), fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(fs::metadata(served.path("a")).unwrap().mode(), 0o100_640);
    let fd = file.as_raw_fd();
    // SAFETY: these calls take numbers only, and the descriptor is open.
    unsafe {
        checked(libc::fallocate(fd, 0, 0, 100).into()).unwrap();
        assert_eq!(checked(libc::lseek(fd, 10, libc::SEEK_HOLE)).unwrap(), 100);
        assert_eq!(checked(libc::lseek(fd, 10, libc::SEEK_DATA)).unwrap(), 10);
        assert_eq!(errno(checked(libc::lseek(fd, 100, libc::SEEK_DATA))), libc::ENXIO);
    }
    file.sync_all().unwrap();
    File::open(served.mount.dir()).unwrap().sync_all().unwrap();
    let log = served.tree.state().log.clone();
    assert!(log.contains(&"fsync".to_owned()) && log.contains(&"fsyncdir".to_owned()), "{log:?}");
    let dir = c(served.mount.dir());
    // SAFETY: all zeroes is a valid value; the pointers outlive the call.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        checked(libc::statvfs(dir.as_ptr(), &raw mut stat).into()).unwrap();
        stat
    };
    assert_eq!((stat.f_blocks, stat.f_bfree, stat.f_bavail), (1000, 600, 500));
    assert_eq!((stat.f_bsize, stat.f_files, stat.f_namemax), (4096, 90, 255));
}

#[test]
fn directly_read_files_can_be_mapped() {
    let served = Served::new();
    *served.tree.caching.lock() = Caching::Direct;
    fs::write(served.path("a"), "mapped").unwrap();
    let file = File::open(served.path("a")).unwrap();
    // SAFETY: a fresh private mapping of an open file, read within its length and then unmapped.
    unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            6,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        assert_eq!(std::slice::from_raw_parts(at.cast::<u8>(), 6), b"mapped");
        libc::munmap(at, 6);
    }
}

#[test]
fn replies_may_come_from_another_thread() {
    let served = Served::new();
    served.tree.deferred.store(true, Ordering::Relaxed);
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let dir = served.path(&format!("d{number}"));
            std::thread::spawn(move || {
                fs::create_dir(&dir).unwrap();
                for round in 0..50 {
                    fs::write(dir.join("a"), format!("{round}")).unwrap();
                    fs::rename(dir.join("a"), dir.join("b")).unwrap();
                    assert_eq!(fs::read_to_string(dir.join("b")).unwrap(), format!("{round}"));
                }
                fs::remove_file(dir.join("b")).unwrap();
                fs::remove_dir(&dir).unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn options_show() {
    let options = MountOptions::parse("ro,uid=12,gid=34,umask=027,noexec,fsname=team x").unwrap();
    let served = Served::with(&options);
    let metadata = fs::metadata(served.mount.dir()).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode()), (12, 34, 0o040_750));
    assert_eq!(errno(File::create(served.path("a"))), libc::EROFS);
    let line = line_of(served.mount.dir()).unwrap();
    for word in ["team\\040x ", " fuse.workfs ", "ro,nosuid,nodev,noexec"] {
        assert!(line.contains(word), "{word} in {line}");
    }
    assert!(!line.contains("allow_other"), "{line}");
    // Root's own mount lets nobody else in, and root passes every check.
    let is_root = line.contains("user_id=0,");
    assert_eq!(line.contains("default_permissions"), !is_root, "{line}");
}

#[test]
fn a_shared_mount_is_checked_by_the_kernel() {
    let asked = Served::with(&MountOptions::parse("default_permissions").unwrap());
    let line = line_of(asked.mount.dir()).unwrap();
    assert!(line.contains("default_permissions") && !line.contains("allow_other"), "{line}");
    let served = Served::with(&MountOptions::parse("allow_other").unwrap());
    let line = line_of(served.mount.dir()).unwrap();
    for word in ["allow_other", "default_permissions"] {
        assert!(line.contains(word), "{word} in {line}");
    }
}

#[test]
fn what_the_kernel_forgets_is_told() {
    let served = Served::new();
    fs::write(served.path("a"), "").unwrap();
    let ino = fs::metadata(served.path("a")).unwrap().ino();
    fs::remove_file(served.path("a")).unwrap();
    let line = format!("forget {ino} ");
    crate::support::until("a forget", || {
        served.tree.state().log.iter().any(|logged| logged.starts_with(&line))
    });
}
