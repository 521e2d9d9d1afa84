//! Names of ordinary files: renames, links, directories.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use crate::harness::{Errno, Fixture};

fn errno(result: std::io::Result<()>) -> Option<Errno> {
    Errno::from_io_error(&result.expect_err("this should have failed"))
}

// P7.1
#[test]
fn hard_links_share_one_file() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir_all(dir.join("d")).unwrap();
    fs::write(dir.join("a"), b"a").unwrap();
    fs::hard_link(dir.join("a"), dir.join("d/b")).unwrap();
    fs::write(dir.join("d/b"), b"both").unwrap();
    assert_eq!(fs::read(dir.join("a")).unwrap(), b"both");
    let (a, b) = (fs::metadata(dir.join("a")).unwrap(), fs::metadata(dir.join("d/b")).unwrap());
    assert_eq!((a.ino(), a.nlink()), (b.ino(), 2));
    assert_eq!(errno(fs::hard_link(dir.join("a"), dir.join("d/b"))), Some(Errno::EXIST));
    fs::remove_file(dir.join("a")).unwrap();
    assert_eq!(fs::metadata(dir.join("d/b")).unwrap().nlink(), 1);
    assert_eq!(errno(fs::hard_link(dir.join("d"), dir.join("e"))), Some(Errno::PERM));
    // A lock file, as many programs make it.
    let script = "cd scratchpad; echo 1 > l.1; echo 2 > l.2; ln l.1 lock && ! ln l.2 lock";
    fixture.sh(script).success();
}

// P7.1
#[test]
fn symbolic_links_are_kept_as_they_are() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a"), b"a").unwrap();
    let long = "x/".repeat(2000);
    for (name, target) in [("b", "a"), ("c", "../nowhere"), ("d", "/etc/passwd"), ("e", &long)] {
        symlink(target, dir.join(name)).unwrap();
        assert_eq!(fs::read_link(dir.join(name)).unwrap().to_str(), Some(target));
        let size = fs::symlink_metadata(dir.join(name)).unwrap().len();
        assert_eq!(size, target.len() as u64);
    }
    assert_eq!(fs::read(dir.join("b")).unwrap(), b"a");
    assert_eq!(errno(symlink("a", dir.join("b"))), Some(Errno::EXIST));
    symlink("loop", dir.join("loop")).unwrap();
    assert_eq!(errno(fs::read(dir.join("loop")).map(drop)), Some(Errno::LOOP));
}

// P7.1
#[test]
fn rename_is_that_of_posix() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    for name in ["d1/sub", "d2", "full/x"] {
        fs::create_dir_all(dir.join(name)).unwrap();
    }
    fs::write(dir.join("f"), b"f").unwrap();
    fs::write(dir.join("g"), b"g").unwrap();
    let rename = |from: &str, to: &str| fs::rename(dir.join(from), dir.join(to));
    rename("f", "g").unwrap();
    assert_eq!(fs::read(dir.join("g")).unwrap(), b"f");
    assert!(!dir.join("f").exists());
    rename("g", "g").unwrap();
    rename("d1", "d2").unwrap();
    assert!(dir.join("d2/sub").is_dir() && !dir.join("d1").exists());
    assert_eq!(errno(rename("d2", "full")), Some(Errno::NOTEMPTY));
    assert_eq!(errno(rename("g", "d2")), Some(Errno::ISDIR));
    assert_eq!(errno(rename("d2", "g")), Some(Errno::NOTDIR));
    assert_eq!(errno(rename("none", "g")), Some(Errno::NOENT));
    assert_eq!(errno(rename("d2", "d2/sub/deeper")), Some(Errno::INVAL));
    rename("d2", "full/x").unwrap();
    assert!(dir.join("full/x/sub").is_dir());
    assert_eq!(errno(fs::remove_dir(dir.join("full"))), Some(Errno::NOTEMPTY));
    assert_eq!(errno(fs::remove_dir(dir.join("g"))), Some(Errno::NOTDIR));
    assert_eq!(errno(fs::remove_file(dir.join("full"))), Some(Errno::ISDIR));
}

// P7.1
#[test]
fn links_of_directories_are_counted() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    let links = || fs::metadata(&dir).unwrap().nlink();
    let before = links();
    fs::create_dir(dir.join("a")).unwrap();
    fs::create_dir(dir.join("b")).unwrap();
    assert_eq!(links(), before + 2);
    fs::rename(dir.join("a"), dir.join("b/a")).unwrap();
    assert_eq!(links(), before + 1);
    fs::remove_dir_all(dir.join("b")).unwrap();
    assert_eq!(links(), before);
}

// P7.1
#[test]
fn what_is_removed_below_a_working_directory_is_gone() {
    let fixture = Fixture::new();
    let script = "mkdir -p scratchpad/d; cd scratchpad/d; rmdir ../d; : > f";
    let said = fixture.sh(script).failure();
    assert!(said.stderr.contains("No such file or directory"), "{said}");
    fixture.sh("mkdir -p scratchpad/a/b/c; touch scratchpad/a/b/f; rm -r scratchpad/a").success();
}

// P7.1
#[test]
fn pipes_and_sockets_can_lie_here() {
    let fixture = Fixture::new();
    let script = "mkdir scratchpad; cd scratchpad; mkfifo p; (echo through > p &) ; cat p";
    assert_eq!(fixture.sh(script).success().stdout, "through\n");
    let socket = fixture.path("scratchpad/s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::net::UnixStream::connect(&socket).unwrap();
    drop(listener);
}
