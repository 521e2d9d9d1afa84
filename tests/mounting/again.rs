//! A mount point that is used again at once.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;

use crate::harness::{
    Fixture, await_end, left_out, mounted_below, run, send_signal, state_of, until_polled,
};

/// Takes a mount away as umount(8) does, but asks nobody anything.
fn take_away(dir: &Path) {
    unmount(dir, UnmountFlags::empty()).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root() || {
        left_out("umount(2) needs root");
        false
    }
}

// P6.3
#[test]
fn a_daemon_that_hears_late_of_its_mount_s_end_takes_nobody_else_s_away() {
    if !is_root() {
        return;
    }
    for next in ["another store's", "a volume"] {
        let fixture = Fixture::new();
        let (old, dir) = (fixture.daemon_pid(), fixture.root());
        let other = fixture.outside("other.db");
        send_signal(old, Signal::STOP);
        take_away(dir);
        // The kernel gives it the number that the old one had.
        match next {
            "a volume" => run(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(dir)),
            _ => run(&mut fixture.command_on(&other, &["mount", dir.to_str().unwrap()])),
        }
        .success();
        send_signal(old, Signal::CONT);
        await_end(old);
        assert_eq!(mounted_below(fixture.base()), [dir], "{next}");
        fs::write(dir.join("file"), "x").unwrap();
        match next {
            "a volume" => take_away(dir),
            _ => {
                run(&mut fixture.command_on(&other, &["unmount", "--all"])).success();
            }
        }
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "{next}");
    }
}

// P6.3
#[test]
fn a_directory_is_given_back_however_soon_it_is_mounted_on_again() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    // The daemon stays for the first mount.
    let dir = fixture.outside("again");
    fs::create_dir(&dir).unwrap();
    for round in 0..30 {
        let ran = fixture.workfs(&["mount", dir.to_str().unwrap()]).success();
        assert!(!ran.stderr.contains("killed"), "round {round}: {ran}");
        take_away(&dir);
    }
    fixture.workfs(&["unmount", "--all"]).success();
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o755);
    fs::write(dir.join("file"), "x").unwrap();
}

// P6.1
#[test]
fn the_same_options_are_the_same_in_any_order_and_with_words_of_others() {
    let fixture = Fixture::new();
    let dir = fixture.outside("dir");
    fs::create_dir(&dir).unwrap();
    let mount = |options: &str| fixture.workfs(&["mount", dir.to_str().unwrap(), "-o", options]);
    mount("noatime,ro,agent=bob,_netdev").success();
    for same in ["ro,noatime,agent=bob", "agent=bob,role=agent,nonempty,x-any,noatime,ro"] {
        let ran = mount(same).success();
        assert!(ran.stderr.contains("is mounted already\n"), "{ran}");
    }
    for other in ["ro,agent=bob", "noatime,ro", "noatime,ro,agent=eve"] {
        let ran = mount(other).failure();
        assert_eq!(ran.code, 5, "{ran}");
        assert!(ran.stderr.contains("is mounted already, with other options"), "{ran}");
    }
    let ran = mount("noatime,ro,agent=bob,role=builder").failure();
    assert_eq!(ran.code, 5, "{ran}");
    assert!(ran.stderr.contains("bob is registered as agent, not as builder"), "{ran}");
}

/// How many requests the process behind a mount has not answered.
fn waiting(control: &Path, dir: &Path) -> u64 {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line =
        all.lines().find(|line| line.split(' ').nth(4).is_some_and(|at| Path::new(at) == dir));
    let device = line.expect("it is mounted").split(' ').nth(2).unwrap();
    let connection = device.split_once(':').unwrap().1;
    let waiting = fs::read_to_string(control.join(connection).join("waiting")).unwrap();
    waiting.trim().parse().unwrap()
}

// P6.4
#[test]
fn a_mount_that_dies_while_it_is_looked_at_is_replaced() {
    if !is_root() {
        return;
    }
    // Each look is a request, and one that is not answered for a second counts as an answer. Where a store has a
    // daemon already it is that which looks a second time.
    for (is_running, look) in [(false, 1), (false, 2), (true, 3), (true, 4)] {
        let fixture = Fixture::new();
        let (old, dir) = (fixture.daemon_pid(), fixture.root());
        let (control, elsewhere) = (fixture.outside("control"), fixture.outside("elsewhere"));
        fs::create_dir(&control).unwrap();
        run(Command::new("mount").args(["-t", "fusectl", "none"]).arg(&control)).success();
        let other = fixture.outside("other.db");
        let mount = |on: &Path| fixture.command_on(&other, &["mount", on.to_str().unwrap()]);
        if is_running {
            fs::create_dir(&elsewhere).unwrap();
            run(&mut mount(&elsewhere)).success();
        }
        send_signal(old, Signal::STOP);
        until_polled("the daemon stands still", || (state_of(old) == Some('T')).then_some(()));
        let before = waiting(&control, dir);
        let mounting = mount(dir).spawn();
        until_polled("a look", || (waiting(&control, dir) >= before + look).then_some(()));
        send_signal(old, Signal::KILL);
        let ended = mounting.unwrap().wait().unwrap();
        take_away(&control);
        assert!(ended.success(), "look {look}, a daemon runs: {is_running}: {ended}");
        assert!(mounted_below(fixture.base()).contains(&dir.to_owned()), "look {look}");
        fs::write(dir.join("file"), "x").unwrap();
        run(&mut fixture.command_on(&other, &["unmount", "--all"])).success();
    }
}
