//! Commands whose working directory lies in a mount that its path does not lead to any more, and where nothing tells of
//! mounts.

use std::fs;
use std::process::Command;

use crate::harness::{Fixture, Ran, Setup, Task, left_out, needs, program, run, send_signal};

/// Mounts the fixture's store once more.
fn mount(fixture: &Fixture, name: &str, arguments: &[&str]) -> String {
    let dir = fixture.base().join(name);
    fs::create_dir(&dir).unwrap();
    let dir = dir.to_str().unwrap().to_owned();
    fixture.workfs(&[&["mount", &dir], arguments].concat()).success();
    dir
}

/// Runs a script in this directory: `fs` is `workfs` on the store that the place tells, of which it prints the exit
/// code; `named` the same on the fixture's.
fn script(fixture: &Fixture, dir: &str, text: &str) -> Ran {
    let named = fixture.command(&[]);
    let mut command = Command::new("bash");
    let functions =
        "fs() { \"$W\" \"$@\" >&2 && echo 0 || echo $?; }; named() { fs --store \"$S\" \"$@\"; }";
    command.arg("-ec").arg(format!("{functions}\n{text}")).current_dir(dir);
    for (name, value) in named.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("W", named.get_program()).env("S", fixture.store()).env("D", dir);
    run(&mut command).success()
}

/// What the default store has for agents, which nobody was to touch.
fn no_intruder(fixture: &Fixture) {
    let outside = fixture.base().to_str().unwrap().to_owned();
    let ran = script(fixture, &outside, "fs agent list");
    assert!(ran.stdout == "0\n" && !ran.stderr.contains("intruder"), "{ran}");
    let agents = fixture.workfs(&["agent", "list"]).success();
    assert!(!agents.stdout.contains("intruder"), "{agents}");
}

/// With a default store beside it.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let outside = fixture.base().to_str().unwrap().to_owned();
    assert_eq!(script(&fixture, &outside, "fs init").stdout, "0\n");
    fixture
}

// P6.4 P10.3
#[test]
fn who_stands_in_a_directory_that_was_removed_is_still_in_its_mount() {
    let fixture = fixture();
    fixture.task("inbox", &Task::new("t-1"));
    let root = fixture.root().to_str().unwrap();
    let ran = script(&fixture, root, "mkdir d; cd d; rmdir \"$D/d\"; fs claim --next");
    assert!(ran.stdout == "0\n" && ran.stderr.contains("t-1.yaml"), "{ran}");
    let eve = mount(&fixture, "eve", &["--agent", "eve"]);
    let add = "fs agent add intruder --role operator";
    let ran = script(&fixture, &eve, &format!("mkdir d; cd d; rmdir \"$D/d\"; {add}"));
    assert!(ran.stdout == "6\n" && ran.stderr.contains("eve (agent) may not"), "{ran}");
    // In a transaction that was thrown away there is none to change anything in.
    let txn = format!("mkdir .workfs/txn/z; cd .workfs/txn/z; rmdir \"$D/.workfs/txn/z\"; {add}");
    let ran = script(&fixture, &eve, &txn);
    assert!(ran.stdout == "2\n" && ran.stderr.contains("not the transaction z"), "{ran}");
    no_intruder(&fixture);
}

// P6.4 P10.3
#[test]
fn who_stands_below_what_was_mounted_over_a_mount_is_still_in_it() {
    if !rustix::process::geteuid().is_root() {
        return left_out("mounting over a mount needs root");
    }
    let fixture = fixture();
    let eve = mount(&fixture, "eve", &["--agent", "eve"]);
    let over = "cd work; mount -t tmpfs over \"$D\"; fs agent add intruder; umount \"$D\"";
    let ran = script(&fixture, &eve, over);
    assert!(ran.stdout == "6\n" && ran.stderr.contains("eve (agent) may not"), "{ran}");
    no_intruder(&fixture);
}

// P6.4 P10.3
#[test]
fn in_a_mount_that_was_taken_from_sight_only_its_store_is_used_and_as_in_it() {
    let fixture = fixture();
    let lazily = "cd work; \"$W\" unmount --lazy \"$D\" 2>/dev/null;";
    let eve = mount(&fixture, "eve", &["--agent", "eve"]);
    let text = "fs agent add intruder; fs list; named agent add intruder; named list";
    let ran = script(&fixture, &eve, &format!("{lazily} {text}"));
    // The daemon of the store that is named knows it; of others nothing tells.
    assert_eq!(ran.stdout, "6\n6\n6\n0\n", "{ran}");
    assert!(ran.stderr.contains("eve (agent) may not"), "{ran}");
    assert_eq!(ran.stderr.matches("it was taken from sight").count(), 2, "{ran}");
    let read_only = mount(&fixture, "ro", &["-o", "ro"]);
    let ran = script(&fixture, &read_only, &format!("{lazily} named project new intruder"));
    assert!(ran.stdout == "6\n" && ran.stderr.contains("is read-only"), "{ran}");
    let part = mount(&fixture, "part", &["--root", "work"]);
    let ran = script(&fixture, &part, "\"$W\" unmount -l \"$D\" 2>/dev/null; named status");
    assert!(ran.stdout == "6\n" && ran.stderr.contains("about the whole store"), "{ran}");
    no_intruder(&fixture);
}

// P6.4 P10.3
#[test]
fn in_a_mount_whose_daemon_has_ended_nothing_is_changed_without_a_name() {
    let fixture = fixture();
    let root = fixture.root().to_str().unwrap();
    let term = format!(
        "cd work; kill {}; while stat -f . >/dev/null 2>&1; do :; done
         while \"$W\" --store \"$S\" ps >/dev/null 2>&1; do :; done
         fs agent add intruder; fs list; named agent add intruder; named list",
        fixture.daemon_pid()
    );
    let ran = script(&fixture, root, &term);
    assert_eq!(ran.stdout, "8\n8\n8\n0\n", "{ran}");
    fixture.mount_all();
    let kill = format!(
        "cd work; kill -9 {}; while stat -f . >/dev/null 2>&1; do :; done
         \"$W\" --store \"$S\" mount \"$D\" 2>/dev/null; fs agent add intruder; fs list",
        fixture.daemon_pid()
    );
    assert_eq!(script(&fixture, root, &kill).stdout, "8\n8\n");
    no_intruder(&fixture);
}

// P6.4
#[test]
fn nobody_waits_for_a_stopped_daemon_whose_mount_was_taken_from_sight() {
    let fixture = fixture();
    let pid = fixture.daemon_pid();
    let root = fixture.root().to_str().unwrap();
    let stop = format!("cd work; kill -STOP {pid}; \"$W\" unmount -l \"$D\" 2>/dev/null;");
    let ran = script(&fixture, root, &format!("{stop} fs claim --next; named claim --next"));
    send_signal(pid, rustix::process::Signal::CONT);
    assert_eq!(ran.stdout, "6\n75\n", "{ran}");
}

// P6.4
#[test]
fn a_store_that_only_has_the_path_that_a_mount_tells_is_not_taken_for_the_mount_s() {
    let fixture = fixture();
    let other = fixture.outside("other.db");
    run(&mut fixture.command_on(&other, &["init"])).success();
    // As the daemon of a container tells a path that the host has, too.
    let dir = mount(&fixture, "told", &["-o", &format!("fsname={}", other.display())]);
    let ran = script(&fixture, &dir, "fs list; fs claim --next");
    assert_eq!(ran.stdout, "6\n6\n", "{ran}");
    assert!(ran.stderr.contains("it cannot be told"), "{ran}");
}

// P6.4 P10.3
#[test]
fn without_proc_no_store_is_taken_for_that_of_the_mount_one_is_in() {
    if !rustix::process::geteuid().is_root() || !needs(&["unshare"]) {
        return left_out("to be without /proc needs root and unshare");
    }
    let fixture = fixture();
    let eve = mount(&fixture, "eve", &["--agent", "eve"]);
    let outside = fixture.base().to_str().unwrap().to_owned();
    let hide = "mount -t tmpfs none /proc;";
    let text = "fs agent add intruder; named agent add intruder; named list; cd \"$O\"; fs list";
    let text = format!("export -f fs named; unshare --mount bash -c '{hide} {text}'");
    let ran = script(&fixture, &eve, &format!("export O={outside}; {text}"));
    // The daemon of the store that is named knows it.
    assert_eq!(ran.stdout, "6\n6\n0\n0\n", "{ran}");
    assert!(ran.stderr.contains("/proc, which would tell, is not there"), "{ran}");
    assert!(ran.stderr.contains("eve (agent) may not"), "{ran}");
    no_intruder(&fixture);
}

// P6.7
#[test]
fn where_proc_is_not_there_what_is_mounted_cannot_be_told() {
    if !rustix::process::geteuid().is_root() {
        return left_out("a name space of mounts needs root");
    }
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let script = "mount -t tmpfs none /proc && exec \"$W\" unmount \"$M\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).env("W", program());
    let ran = run(command.env("M", fixture.root()).env("WORKFS_STORE", fixture.store()));
    assert!(ran.code == 8 && ran.stderr.contains("mount -t proc"), "{ran}");
}
