//! The directory below a mount.

use std::fs;

use rustix::mount::{UnmountFlags, unmount};

use crate::harness::{Fixture, Setup, left_out, mounted_below};

/// Kills the daemon and takes its dead mount away, as an administrator might.
fn uncovered(fixture: &Fixture) {
    fixture.kill_daemon();
    unmount(fixture.root(), UnmountFlags::DETACH).unwrap();
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        left_out("taking a mount away needs root");
    }
    root
}

// P6.8
#[test]
fn nothing_can_be_written_below_a_mount_that_has_died() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    uncovered(&fixture);
    let error = fs::write(fixture.path("lost"), b"to everyone").unwrap_err();
    println!("{error}");
    fixture.mount_all();
    fs::write(fixture.path("kept"), b"x").unwrap();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    fs::write(fixture.path("allowed"), b"again").unwrap();
    fs::remove_file(fixture.path("allowed")).unwrap();
}

// P6.8
#[test]
fn files_found_below_are_named() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    uncovered(&fixture);
    let chattr = "cd /; chattr -i \"$DIR\"; chmod u+w \"$DIR\"; echo x > \"$DIR/stray-file\"";
    let base = fixture.base().to_owned();
    let shell = crate::harness::Shell::bash(&base).with("DIR", fixture.root());
    shell.run(chattr).success();
    let said = fixture.mount_at(fixture.root()).failure();
    assert!(said.stderr.contains("stray-file"), "{said}");
    assert!(mounted_below(fixture.base()).is_empty());
    fs::remove_file(fixture.path("stray-file")).unwrap();
    fixture.mount_all();
    fs::read_dir(fixture.path("work/inbox")).unwrap();
}

// P6.8
#[test]
fn a_directory_with_files_is_not_hidden() {
    let fixture = Setup::default().prepare();
    for name in ["one", "two"] {
        fs::write(fixture.path(name), b"x").unwrap();
    }
    let said = fixture.mount_at(fixture.root()).failure();
    assert!(said.stderr.contains("one") && said.stderr.contains("two"), "{said}");
    assert!(mounted_below(fixture.base()).is_empty());
    assert_eq!(fs::read(fixture.path("one")).unwrap(), b"x");
    fs::write(fixture.path("three"), b"still writable").unwrap();
}
