//! `workfs mount -f`: one signal ends it, whatever it is about when that comes.

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use workfs::daemon::StorePaths;
use workfs::store::sqlite::Lock;

use crate::harness::{Fixture, Setup, await_end, mounted_below, send_signal, until_polled};

fn begun(fixture: &Fixture) -> Child {
    let root = fixture.root().to_str().unwrap();
    let mut command = fixture.command(&["mount", "-f", "--json", root]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Whether the process has a thread that waits for signals.
fn listens(child: &Child) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let mut names = tasks.flat_map(|task| fs::read_to_string(task.path().join("comm")));
    names.any(|name| name.trim_end() == "signals")
}

// P6.3
#[test]
fn one_signal_ends_it_while_it_waits_for_the_store() {
    for signal in [Signal::TERM, Signal::INT] {
        let fixture = Setup::default().prepare();
        fixture.workfs(&["init"]).success();
        let held = Lock::take(fixture.store()).unwrap();
        let mut child = begun(&fixture);
        until_polled("it hears signals", || listens(&child).then_some(()));
        send_signal(child.id(), signal);
        await_end(child.id());
        assert_eq!(child.wait().unwrap().code(), Some(130), "that is why, and not that it is held");
        drop(held);
        assert!(mounted_below(fixture.base()).is_empty());
    }
}

// P6.3
#[test]
fn one_signal_ends_it_where_it_serves_after_another_daemon_was_just_ending() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let socket = StorePaths::of(fixture.store()).unwrap().socket();
    // A daemon that is about to end hears what is asked, and answers nothing.
    let ending = UnixListener::bind(&socket).unwrap();
    let mut child = begun(&fixture);
    let (asks, _) = ending.accept().unwrap();
    let mut asked = String::new();
    BufReader::new(&asks).read_line(&mut asked).unwrap();
    assert!(asked.contains("\"hold\":true"), "{asked}");
    fs::remove_file(&socket).unwrap();
    drop((ending, asks));
    let mut told = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(mounted_below(fixture.base()), [fixture.root()], "{told}");
    fs::write(fixture.path("f"), b"x").unwrap();
    send_signal(child.id(), Signal::TERM);
    await_end(child.id());
    assert!(child.wait().unwrap().success());
    assert!(mounted_below(fixture.base()).is_empty());
    for ending in ["sock", "covers"] {
        assert!(!fixture.store().with_extension(format!("db.{ending}")).exists(), "{ending}");
    }
    for ending in ["db-wal", "db-shm"] {
        assert!(!fixture.store().with_extension(ending).exists(), "{ending}");
    }
    fixture.mount_all();
    assert_eq!(fs::read(fixture.path("f")).unwrap(), b"x");
}

// P6.3
#[test]
fn who_leaves_a_mount_that_is_in_use_leaves_it_to_who_uses_it_and_the_directory_to_all() {
    let fixture = Setup::default().mounts(2).start();
    let held = fixture.outside("held");
    fs::create_dir(&held).unwrap();
    let mut command = fixture.command(&["mount", "-f", "--json", held.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let used = fs::File::open(held.join("AGENTS.md")).unwrap();
    send_signal(child.id(), Signal::TERM);
    assert!(child.wait().unwrap().success());
    expect_known_and_given_back(&fixture, &held, used);
}

/// As where it is taken from sight by `umount -l` before: with it the last use of it would end.
#[test]
fn who_leaves_a_mount_that_somebody_took_from_sight_leaves_it_to_who_uses_it() {
    let fixture = Fixture::new();
    let held = fixture.outside("held");
    fs::create_dir(&held).unwrap();
    let mut command = fixture.command(&["mount", "-f", "--json", held.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let mut used = fs::File::open(held.join("AGENTS.md")).unwrap();
    // The last other mount, so that the daemon lives by this one.
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    rustix::mount::unmount(&held, rustix::mount::UnmountFlags::DETACH).unwrap();
    send_signal(child.id(), Signal::TERM);
    assert!(child.wait().unwrap().success());
    used.read_to_end(&mut Vec::new()).unwrap();
    expect_known_and_given_back(&fixture, &held, used);
}

fn expect_known_and_given_back(fixture: &Fixture, held: &Path, used: fs::File) {
    let known = || {
        let known = fixture.workfs(&["ps", "--json"]).json()["mounts"].clone();
        let all = known.as_array().cloned().unwrap_or_default();
        all.into_iter().find(|mount| mount["dir"] == held.to_str().unwrap())
    };
    // It is known for what it is, and nothing is in the way of what is done there next.
    assert_eq!(known().expect("it is known")["detached"], true);
    let ran = fixture.workfs(&["unmount", held.to_str().unwrap()]).failure();
    assert!(ran.stderr.contains("nothing is mounted"), "{ran}");
    fs::write(held.join("file"), b"x").unwrap();
    drop(used);
    until_polled("it ends with its last user", || known().is_none().then_some(()));
}
