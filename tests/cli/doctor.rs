//! What `workfs doctor` finds in odd places, and the way out that it names.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{
    Fixture, Ran, Setup, left_out, needs, processes_of, program, run, run_within, send_signal,
    until_polled,
};

/// Doctor's findings that are not well, by what they are of; each must name a way out.
#[track_caller]
fn findings(ran: &Ran) -> Vec<(String, String, String)> {
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let report = ran.json();
    let all = report["findings"].as_array().unwrap().iter();
    let wrong = all.filter(|one| one["health"] != "ok").map(|one| {
        let (found, remedy) = (text(one, "found"), text(one, "remedy"));
        assert!(!found.is_empty() && !remedy.is_empty(), "no way out: {one}");
        (text(one, "what"), found, remedy)
    });
    wrong.collect()
}

#[track_caller]
fn doctor(fixture: &Fixture, store: &Path, code: i32) -> Vec<(String, String, String)> {
    let ran = run(&mut fixture.command_on(store, &["doctor", "--json"]));
    assert_eq!(ran.code, code, "{ran}");
    findings(&ran)
}

// P8.1
#[test]
fn a_store_that_is_none_yet_or_none_at_all_has_its_own_way_out() {
    let fixture = Setup::default().prepare();
    let found = doctor(&fixture, fixture.store(), 0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == "store file" && found[0].2.contains("workfs mount"), "{found:?}");
    assert!(!fixture.store().exists());

    let other = fixture.outside("other.txt");
    fs::write(&other, "not a store").unwrap();
    let found = doctor(&fixture, &other, 11);
    assert!(found.iter().any(|one| one.2.contains("--store")), "{found:?}");
    assert!(!found.iter().any(|one| one.2.contains("chmod")), "another's file: {found:?}");

    fixture.workfs(&["init"]).success();
    let mut bytes = fs::read(fixture.store()).unwrap();
    bytes[4096..32_768].fill(0xa5);
    fs::write(fixture.store(), bytes).unwrap();
    let found = doctor(&fixture, fixture.store(), 11);
    assert!(found.iter().any(|one| one.2.contains("workfs restore")), "{found:?}");
    // Every command names the file that is damaged.
    let [store, root] = [fixture.store(), fixture.root()].map(|path| path.to_str().unwrap());
    for arguments in [&["list"][..], &["init"], &["mount", root]] {
        let ran = fixture.workfs(arguments);
        assert!(
            ran.code == 10 && ran.stderr.contains(&format!("{store}: the store is damaged")),
            "{ran}"
        );
    }
}

// P8.1
#[test]
fn a_dead_mount_is_told_of_its_own_store_alone() {
    let [dead, other] = [Fixture::new(), Setup::default().prepare()];
    dead.kill_daemon();
    let found = doctor(&dead, dead.store(), 11);
    let root = dead.root().to_str().unwrap();
    assert!(found.iter().any(|one| one.0 == "mount" && one.2.ends_with(root)), "{found:?}");
    other.workfs(&["init"]).success();
    assert_eq!(doctor(&other, other.store(), 0), []);
}

// P8.1
#[test]
fn a_machine_without_what_it_needs_is_told_how_to_get_it() {
    if !rustix::process::geteuid().is_root() || !needs(&["unshare"]) {
        return left_out("a machine without /dev/fuse or /proc needs root and unshare");
    }
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let without = |hide: &str| {
        let mut command = Command::new("unshare");
        let script = format!("{hide} && exec \"$WORKFS\" --store \"$STORE\" doctor --json");
        command.args(["--mount", "sh", "-c", &script]).env("STORE", fixture.store());
        findings(&run(command.env("WORKFS", program())))
    };
    let found = without("mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3");
    assert!(found[0].0 == "/dev/fuse" && found[0].2.contains("modprobe"), "{found:?}");
    let found = without("mount -t tmpfs none /proc");
    assert!(found.iter().any(|one| one.1.contains("/proc is not there")), "{found:?}");
}

// P8.1
#[test]
fn mounts_that_are_not_to_be_looked_into_are_not_called_dead() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Fixture::new();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(program()).args(["doctor", "--json"]).current_dir("/");
    command.env("HOME", "/nonexistent").env_remove("WORKFS_STORE").env_remove("XDG_DATA_HOME");
    let ran = run(&mut command);
    assert!(!ran.stdout.contains(fixture.base().to_str().unwrap()), "{ran}");
}

// P8.1
#[test]
fn a_daemon_that_hangs_is_a_finding() {
    let fixture = Fixture::new();
    let daemon = fixture.daemon_pid();
    send_signal(daemon, rustix::process::Signal::STOP);
    let patience = workfs::limits::DAEMON_ANSWER_WAIT * 2;
    let ran = run_within(&mut fixture.command(&["doctor", "--json"]), patience);
    send_signal(daemon, rustix::process::Signal::CONT);
    assert!(findings(&ran).iter().any(|one| one.0 == "store"), "{ran}");
    // By asking that daemon nothing is unmounted.
    assert!(ran.stdout.contains("workfs unmount --lazy /"), "{ran}");
    assert_eq!(processes_of(fixture.store()).len(), 1);
}

// P8.1
#[test]
fn doctor_takes_no_lock_from_the_daemon_that_it_asks() {
    use std::os::unix::fs::MetadataExt as _;
    let fixture = Fixture::new();
    let inode = format!(":{} ", fs::metadata(fixture.store()).unwrap().ino());
    let locks = || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().filter(|lock| lock.contains("POSIX") && lock.contains(&inode)).count()
    };
    let before = locks();
    assert!(before > 0, "SQLite holds its store");
    fixture.workfs(&["doctor"]);
    fixture.workfs(&["status"]).success();
    // The kernel's list, which is read in pieces, can miss one while others come and go; one that is lost stays so.
    until_polled("its locks are listed", || (locks() == before).then_some(()));
}
