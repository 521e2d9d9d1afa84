//! The end of a mount, wanted and unwanted.

use std::fs;
use std::io::Write;

use rustix::process::Signal;

use crate::harness::{
    Errno, Fixture, Setup, Task, await_end, left_out, lies, mounted_below, pid_alive, pile,
    processes_of, send_signal, until_polled,
};

#[track_caller]
fn nothing_is_left(fixture: &Fixture, pid: u32) {
    await_end(pid);
    assert!(mounted_below(fixture.base()).is_empty());
    assert!(processes_of(fixture.store()).is_empty());
    for mount in fixture.mounts() {
        assert_eq!(fs::read_dir(mount).unwrap().count(), 0);
        fs::write(mount.join("probe"), b"").expect("the directory is as it was");
        fs::remove_file(mount.join("probe")).unwrap();
    }
}

/// The log has been moved into the store.
#[track_caller]
fn the_store_is_one_file(fixture: &Fixture) {
    for ending in ["db-wal", "db-shm"] {
        let path = fixture.store().with_extension(ending);
        assert!(!path.exists(), "{}", path.display());
    }
}

// P6.3
#[test]
fn unmount_of_the_last_mount_ends_the_daemon() {
    let fixture = Setup::default().mounts(2).start();
    let pid = fixture.daemon_pid();
    fixture.workfs(&["unmount", fixture.mount(1).to_str().unwrap()]).success();
    assert_eq!(mounted_below(fixture.base()), [fixture.mount(0)]);
    fs::read_dir(fixture.root()).unwrap();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.workfs(&["unmount", fixture.mount(0).to_str().unwrap()]).success();
    nothing_is_left(&fixture, pid);
    the_store_is_one_file(&fixture);
}

// P6.3
#[test]
fn sigterm_unmounts_all_and_keeps_what_was_done() {
    let fixture = Setup::default().mounts(2).start();
    fixture.task("inbox", &Task::new("t-1"));
    let pid = fixture.daemon_pid();
    send_signal(pid, Signal::TERM);
    await_end(pid);
    nothing_is_left(&fixture, pid);
    the_store_is_one_file(&fixture);
    fixture.mount_all();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    fixture.fsck_clean();
}

// P6.3
#[test]
fn a_mount_that_somebody_stands_in_ends_too() {
    let fixture = Fixture::new();
    let pid = fixture.daemon_pid();
    let file = fs::File::create(fixture.path("open")).unwrap();
    let mut child = std::process::Command::new("sleep");
    let mut child = child.arg("600").current_dir(fixture.work()).spawn().unwrap();
    let ran = fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]);
    println!("{ran}");
    if ran.ok() {
        assert!(mounted_below(fixture.base()).is_empty());
    } else {
        // Then it says so, and nothing has changed.
        assert!(ran.stderr.to_lowercase().contains("use"), "{ran}");
        fs::read_dir(fixture.root()).unwrap();
        send_signal(pid, Signal::TERM);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(file);
    await_end(pid);
    nothing_is_left(&fixture, pid);
    the_store_is_one_file(&fixture);
}

// P6.4
#[test]
fn a_dead_mount_is_healed_by_the_next_mount() {
    let fixture = Setup::default().mounts(2).start();
    fixture.task("inbox", &Task::new("t-1"));
    let seen = fs::File::open(fixture.path("work/inbox/t-1.yaml")).unwrap();
    fixture.kill_daemon();
    // A dead mount answers at once, with an error.
    let error = fs::read_dir(fixture.root()).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOTCONN));
    assert!(std::io::read_to_string(seen).is_err());
    fixture.mount_all();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    assert_eq!(mounted_below(fixture.base()).len(), 2, "nothing lies on a dead mount");
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.fsck_clean();
}

// P6.4
#[test]
fn a_dead_mount_can_be_unmounted() {
    let fixture = Fixture::new();
    let pid = fixture.daemon_pid();
    fixture.kill_daemon();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    nothing_is_left(&fixture, pid);
}

// P6.4
#[test]
fn commands_work_after_the_daemon_has_died() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.kill_daemon();
    let listed = fixture.workfs(&["list", "--json"]).success();
    assert!(listed.stdout.contains("t-1"), "{listed}");
    fixture.fsck_clean();
}

// P6.7
#[test]
fn a_stopped_daemon_hangs_no_command() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let pid = fixture.daemon_pid();
    let copy = fixture.outside("copy.db");
    let commands: [&[&str]; 7] = [
        &["status"],
        &["ps"],
        &["list"],
        &["log", "--follow"],
        &["claim", "t-1", "--agent", "bob"],
        &["claim", "--wait", "--timeout", "1s", "--agent", "bob"],
        &["backup", copy.to_str().unwrap()],
    ];
    send_signal(pid, Signal::STOP);
    let deadline = std::time::Duration::from_secs(60);
    let ran: Vec<_> = std::thread::scope(|scope| {
        let fixture = &fixture;
        let run = |command| scope.spawn(move || fixture.workfs_within(command, deadline));
        let running: Vec<_> = commands.into_iter().map(run).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    send_signal(pid, Signal::CONT);
    for ran in ran {
        assert_eq!(ran.code, 75, "{ran}");
        assert!(ran.stderr.contains("does not answer"), "{ran}");
    }
    // What was asked for is not done behind the back of whoever was told that it was not.
    fixture.workfs(&["status"]).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    assert!(!copy.exists());
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
}

// P6.3
#[test]
fn a_fixture_leaves_nothing_also_when_its_test_fails() {
    let (mut base, mut store, mut pid) = (None, None, 0);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let fixture = Setup::default().mounts(2).start();
        base = Some(fixture.base().to_owned());
        store = Some(fixture.store().to_owned());
        pid = fixture.daemon_pid();
        fixture.kill_daemon();
        fixture.mount_at(fixture.root()).success();
        pid = fixture.daemon_pid();
        panic!("on purpose");
    }));
    assert!(failed.is_err());
    assert!(!base.as_ref().unwrap().exists());
    assert!(mounted_below(base.as_ref().unwrap()).is_empty());
    assert!(processes_of(store.as_ref().unwrap()).is_empty() && !pid_alive(pid));
}

// P6.4
#[test]
fn what_a_mount_had_open_when_it_was_cut_off_hinders_nobody() {
    let fixture = Setup::default().mounts(2).start();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let cut = fixture.mount(1);
    let opened = fs::OpenOptions::new().write(true).open(cut.join("work/inbox/t-1.yaml"));
    let mut writer = opened.unwrap();
    writer.write_all(b"id").unwrap();
    let flags = rustix::mount::UnmountFlags::FORCE | rustix::mount::UnmountFlags::DETACH;
    if let Err(error) = rustix::mount::unmount(cut, flags) {
        return left_out(&format!("cutting a mount off needs root ({error})"));
    }
    assert_eq!(crate::harness::close(writer), Err(Errno::NOTCONN));
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    until_polled("the record is free", || fs::rename(&from, &to).ok());
    fixture.fsck_clean();
}

// P6.4 P10.3
#[test]
fn in_the_dead_mount_of_an_agent_nobody_acts_without_a_name() {
    let fixture = Fixture::new();
    let dir = fixture.base().join("eve");
    fs::create_dir(&dir).unwrap();
    fixture.workfs(&["mount", dir.to_str().unwrap(), "--agent", "eve"]).success();
    let script = format!(
        "cd \"$DIR\"; kill -9 {}; \"$WORKFS\" --store \"$STORE\" agent add intruder",
        fixture.daemon_pid()
    );
    let shell = fixture.bash().with("WORKFS", env!("CARGO_BIN_EXE_workfs")).with("DIR", &dir);
    let ran = shell.with("STORE", fixture.store()).run(&script).failure();
    assert!(ran.code == 6 && ran.stderr.contains("whose mount"), "{ran}");
    let agents = fixture.workfs(&["agent", "list"]).success();
    assert!(!agents.stdout.contains("intruder"), "{agents}");
    fixture.workfs(&["unmount", dir.to_str().unwrap()]).success();
}
