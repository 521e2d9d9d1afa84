//! A dead mount: what it says of itself, and what takes its place.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use crate::harness::{Fixture, Ran, Setup, program, run};

/// A mount of bob's with a record in it, and its directory.
fn bobs() -> (Fixture, String) {
    let fixture = Setup::default().prepare();
    let dir = fixture.root().to_str().unwrap().to_owned();
    fixture.workfs(&["mount", "--agent", "bob", "-o", "noatime", &dir]).success();
    fs::write(Path::new(&dir).join("work/inbox/t-1.yaml"), "title: x\n").unwrap();
    (fixture, dir)
}

/// A command that is told of no store, outside of any mount.
fn unnamed(fixture: &Fixture, arguments: &[&str]) -> Ran {
    let named = fixture.command(arguments);
    let mut command = Command::new(named.get_program());
    command.args(arguments).current_dir(fixture.base());
    for (name, value) in named.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    run(&mut command)
}

// P6.4
#[test]
fn the_way_out_of_a_dead_mount_is_what_made_it() {
    let (fixture, dir) = bobs();
    let words = format!("`workfs mount --agent bob -o noatime {dir}`");
    let shell = fixture.bash().with("WORKFS", program()).with("M", &dir);
    let in_it = format!(
        "cd \"$M\"; kill -9 {}; while stat -f \"$M\" >/dev/null 2>&1; do :; done; \"$WORKFS\" claim t-1",
        fixture.daemon_pid()
    );
    let ran = shell.run(&in_it);
    assert!(ran.code == 8 && ran.stderr.contains(&words), "{ran}");
    let ran = unnamed(&fixture, &["mount", "--agent", "bob", "-o", "noatime", &dir]);
    assert!(ran.code == 0 && ran.stderr.contains("it was detached"), "{ran}");
    assert!(!ran.stderr.contains("otherwise"), "{ran}");
    assert!(Path::new(&dir).join("work/inbox/t-1.yaml").exists());
}

// P6.4
#[test]
fn a_mount_in_the_place_of_a_dead_one_is_of_its_store_and_says_what_is_otherwise() {
    let (fixture, dir) = bobs();
    fixture.kill_daemon();
    let ran = unnamed(&fixture, &["mount", &dir]);
    assert_eq!(ran.code, 0, "{ran}");
    let made = format!("made by `workfs mount --agent bob -o noatime {dir}`");
    assert!(ran.stderr.contains(&made) && ran.stderr.contains("otherwise"), "{ran}");
    assert!(Path::new(&dir).join("work/inbox/t-1.yaml").exists());
}

// P6.1 P6.4 P6.8
#[test]
fn a_mount_that_is_refused_leaves_a_dead_one_where_it_is() {
    let (fixture, dir) = bobs();
    fixture.kill_daemon();
    let write = || fs::write(Path::new(&dir).join("file"), b"x").map_err(|e| e.raw_os_error());
    let refused = |arguments: &[&str], code: i32| {
        let ran = fixture.workfs(&[arguments, &[&dir]].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {ran}");
        assert_eq!(write(), Err(Some(libc::ENOTCONN)), "{arguments:?}: {ran}");
    };
    refused(&["mount", "--root", "nowhere"], 4);
    refused(&["mount", "--agent", "bob", "--role", "observer"], 5);
    // The daemon of another mount runs with another level.
    let other = fixture.outside("other");
    fs::create_dir(&other).unwrap();
    fixture.workfs(&["mount", "--sync", "full", other.to_str().unwrap()]).success();
    refused(&["mount", "--sync", "normal"], 5);
    fixture.workfs(&["mount", &dir]).success();
    assert_eq!(write(), Ok(()));
}

// P6.4 P6.8
#[test]
fn the_directory_is_given_back_after_another_store_s_mount_in_the_place_of_a_dead_one() {
    let (fixture, dir) = bobs();
    let mode = || fs::metadata(&dir).unwrap().mode() & 0o7777;
    fixture.workfs(&["unmount", &dir]).success();
    let before = mode();
    fixture.workfs(&["mount", &dir]).success();
    fixture.kill_daemon();
    let other = fixture.outside("other.db");
    let ran = run(&mut fixture.command_on(&other, &["mount", &dir])).success();
    assert!(!ran.stderr.contains("chattr"), "{ran}");
    run(&mut fixture.command_on(&other, &["unmount", &dir])).success();
    assert_eq!(mode(), before);
    fs::write(Path::new(&dir).join("file"), b"x").unwrap();
}
