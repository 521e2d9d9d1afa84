//! Who is told to use a mount.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use rustix::mount::{UnmountFlags, unmount};

use crate::harness::{Setup, Task, await_end, left_out, mounted_below, needs, run};
use crate::{Idle, may_have_a_name_space};

// P6.3
#[test]
fn who_uses_a_mount_is_named_and_nobody_else() {
    let fixture = Setup::default().prepare();
    // It stands in the directory below, and hinders nobody.
    let below = Idle::standing_in(fixture.root());
    fixture.mount_all();
    fixture.make_directories();
    let task = fixture.task("inbox", &Task::new("t-1"));
    let daemon = fixture.daemon_pid();
    let inside = Idle::standing_in(&fixture.work());
    let task = std::fs::File::open(task).unwrap();
    let reads = Idle::of(Command::new("sleep").arg("600").stdin(task));
    let ran = fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]);
    let users = [inside.0.id(), reads.0.id()];
    assert_eq!(ran.code, 5, "{ran}");
    let named = |pid: u32| ran.stderr.contains(&format!("({pid})"));
    assert!(users.into_iter().all(named) && !named(daemon) && !named(below.0.id()), "{ran}");
}

// P6.3
#[test]
fn who_unmounts_from_inside_is_not_in_its_own_way() {
    let fixture = Setup::default().mounts(2).start();
    let inside = |mount: &std::path::Path, dir: &str| {
        let mut command = fixture.command(&["unmount", dir]);
        run(command.current_dir(mount)).success();
    };
    inside(&fixture.mount(1).join("work"), "..");
    inside(fixture.root(), ".");
    assert!(mounted_below(fixture.base()).is_empty());
}

// P6.3
#[test]
fn unmount_all_leaves_to_those_who_use_one_what_they_use() {
    let fixture = Setup::default().mounts(4).start();
    let used = fixture.mount(1).to_str().unwrap();
    let inside = Idle::standing_in(fixture.mount(1));
    let others = [2, 3].map(|nth| Idle::standing_in(fixture.mount(nth)));
    let ran = fixture.workfs(&["unmount", "--all"]);
    let dirs = [2, 3].map(|nth| fixture.mount(nth).to_str().unwrap()).join(", ");
    assert!(ran.code == 5 && ran.stderr.contains(&format!("; so stay {dirs}\n")), "{ran}");
    drop(others);
    let ran = fixture.workfs(&["unmount", "--all"]);
    assert!(ran.code == 5 && !ran.stderr.contains("so stay"), "{ran}");
    assert!(
        ran.stderr.contains(used) && ran.stderr.contains(&format!("({})", inside.0.id())),
        "{ran}"
    );
    // The others are gone, and what is used goes on being served.
    assert_eq!(mounted_below(fixture.base()), [fixture.mount(1)]);
    std::fs::read(fixture.mount(1).join("AGENTS.md")).unwrap();
    drop(inside);
    fixture.workfs(&["unmount", "--all"]).success();
    assert!(mounted_below(fixture.base()).is_empty());
}

// P6.3
#[test]
fn unmount_all_leaves_a_command_its_mount() {
    if !may_have_a_name_space() {
        return;
    }
    let fixture = Setup::default().start();
    let mut command =
        fixture.command(&["exec", "--agent", "bob", "--", "sh", "-c", "echo; read end; ls"]);
    let mut command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(command.stdout.take().unwrap()).lines();
    told.next().unwrap().unwrap();
    let ran = fixture.workfs(&["unmount", "--all"]);
    assert!(ran.code == 5 && ran.stderr.contains("a command of bob"), "{ran}");
    writeln!(command.stdin.as_ref().unwrap()).unwrap();
    assert!(told.map(Result::unwrap).any(|line| line == "AGENTS.md"));
    assert!(command.wait().unwrap().success());
}

// P6.3
#[test]
fn what_was_taken_from_sight_by_others_is_told_of_as_that() {
    if !rustix::process::geteuid().is_root() {
        return left_out("umount(2) needs root");
    }
    let fixture = Setup::default().mounts(2).start();
    let dir = fixture.mount(1).to_str().unwrap();
    let used = std::fs::File::open(fixture.mount(1).join("AGENTS.md")).unwrap();
    unmount(fixture.mount(1), UnmountFlags::DETACH).unwrap();
    let known = fixture.workfs(&["ps", "--json"]).success().json()["mounts"].clone();
    assert_eq!((&known[1]["dir"], &known[1]["detached"]), (&dir.into(), &true.into()));
    // What it lay on can be had back all the same.
    fixture.workfs(&["unmount", dir]).success();
    std::fs::write(fixture.mount(1).join("file"), b"x").unwrap();
    drop(used);
}

// P6.3
#[test]
fn a_mount_that_another_name_space_has_too_ends_there_as_well() {
    if !may_have_a_name_space() || !needs(&["unshare"]) {
        return;
    }
    let fixture = Setup::default().start();
    let (dir, daemon) = (fixture.root().to_str().unwrap(), fixture.daemon_pid());
    // It ends when this test lets go of its input, also by failing.
    let mut elsewhere = Command::new("unshare");
    let script = "echo; read unmounted; cat \"$1/AGENTS.md\" 2>&1 || :; read ended";
    elsewhere.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh", dir]);
    elsewhere.env("LC_ALL", "C");
    let mut elsewhere = elsewhere.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(elsewhere.stdout.take().unwrap()).lines();
    told.next().unwrap().unwrap();
    fixture.workfs(&["unmount", dir]).success();
    std::fs::write(fixture.root().join("file"), b"x").expect("the directory is as it was");
    await_end(daemon);
    let log = fixture.store().with_extension("db-wal");
    assert!(!log.exists(), "the log has been moved into the store");
    writeln!(elsewhere.stdin.as_ref().unwrap()).unwrap();
    let told = told.next().unwrap().unwrap();
    assert!(told.ends_with("Transport endpoint is not connected"), "{told}");
    drop(elsewhere.stdin.take());
    elsewhere.wait().unwrap();
}
