//! Who has the store's file, where another user runs its daemon.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;

use serde_json::json;

use crate::harness::{Fixture, Ran, Shell, Task, asked, left_out, needs, program};

const BOB: u32 = 64_011;
const OWNER: u32 = 64_012;

/// A store whose file is another user's, and that root's daemon serves; `None` if that cannot be had.
fn served_by_root() -> Option<Fixture> {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        left_out("acting as another user needs root and setpriv");
        return None;
    }
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(fixture.store(), Some(OWNER), None).unwrap();
    chown(fixture.store().parent().unwrap(), Some(OWNER), None).unwrap();
    fixture.unmount_all();
    // Root makes all that lies beside it, and now everybody may come to the socket, and is asked who he is.
    for end in ["lock", "log"] {
        fs::remove_file(beside(&fixture, end)).unwrap();
    }
    fixture.mount_all();
    Some(fixture)
}

fn beside(fixture: &Fixture, end: &str) -> PathBuf {
    fixture.store().with_extension(format!("db.{end}"))
}

/// `workfs ARGUMENTS` about the store, called by whom its file is.
fn as_owner(fixture: &Fixture, arguments: &str) -> Ran {
    let user = format!("setpriv --reuid {OWNER} --regid {OWNER} --clear-groups");
    let (workfs, store) = (program(), fixture.store().display());
    let script = format!("cd /; HOME=/tmp {user} {workfs} --store {store} {arguments}");
    Shell::bash(fixture.base()).run(&script)
}

// P10.2 P6.4
#[test]
fn who_has_the_store_s_file_is_not_locked_out_by_another_s_daemon_whether_it_lives_or_not() {
    let Some(fixture) = served_by_root() else { return };
    let told = as_owner(&fixture, "status").success();
    assert!(told.stdout.contains("served by process"), "{told}");
    as_owner(&fixture, "claim t-1 --agent bob").success();
    // An older one's, say, to which nobody else could come.
    fs::set_permissions(beside(&fixture, "sock"), fs::Permissions::from_mode(0o600)).unwrap();
    let refused = as_owner(&fixture, "list").failure();
    assert!(refused.code == 6 && refused.stderr.contains("Permission denied"), "{refused}");
    fixture.kill_daemon();
    assert_eq!(fs::metadata(beside(&fixture, "lock")).unwrap().uid(), OWNER);
    let listed = as_owner(&fixture, "list").success();
    assert!(listed.stdout.contains("t-1"), "{listed}");
    let told = as_owner(&fixture, "doctor");
    assert!(told.stdout.contains("ok    store: whole"), "{told}");
    as_owner(&fixture, "release t-1 --agent bob").success();
}

// P10.2
#[test]
fn who_has_the_store_s_file_does_nothing_with_the_rights_of_whom_its_daemon_runs_as() {
    let Some(fixture) = served_by_root() else { return };
    fs::create_dir(fixture.outside("closed")).unwrap();
    fs::write(fixture.outside("closed/secret"), "root's").unwrap();
    fs::set_permissions(fixture.outside("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    let (closed, root) = (fixture.outside("closed"), fixture.root());
    let made = fixture.outside("closed/made");
    fixture.workfs(&["agent", "add", "bob", "--uid", &BOB.to_string()]).success();
    let of_owner = fixture.connected_as(OWNER);
    for outside in [
        json!({"do": {"import": {"from": closed, "to": "loot"}}}),
        json!({"do": {"export": {"to": made}}}),
        json!({"within": {"root": "work", "do": {"export": {"to": made}}}}),
        json!({"do": {"backup": {"file": made}}}),
        json!({"mount": {"dir": closed}}),
        json!({"mount": {"dir": closed, "hold": true, "temporary": true, "private": true}}),
        json!({"unmount": {"dir": root, "lazy": true}}),
        json!("stop"),
    ] {
        let said = asked(&of_owner, &outside);
        assert!(said.contains("with the rights of user 0"), "{outside}: {said}");
        assert!(said.contains("W022"), "{outside}: {said}");
    }
    assert!(!made.exists() && !fixture.path("loot").exists());
    // What acts in the tree is his to ask.
    for inside in [
        json!({"do": {"claim": {"what": "t-1", "agent": "bob"}}}),
        json!({"do": "fsck"}),
        json!({"do": {"agent_add": {"name": "ann"}}}),
    ] {
        let said = asked(&of_owner, &inside);
        assert!(!said.contains("failed") && !said.contains("error\""), "{inside}: {said}");
    }
    let as_owner = |arguments: &str| as_owner(&fixture, arguments);
    let ran = as_owner("exec -- true");
    assert_eq!(ran.code, 6, "{ran}");
    assert!(ran.stderr.contains("`workfs unmount --all` by user 0"), "{ran}");
    assert_eq!(as_owner(&format!("export {}", made.display())).code, 6);
    assert_eq!(as_owner("unmount --all").code, 6);
    // Whoever runs the store is told.
    let why = fixture.workfs(&["why", "-n", "100"]).success().stdout;
    assert!(why.contains("`import` acts outside of the tree"), "{why}");
    // The way out: the daemon is that user's.
    for (program, user) in [("lent", BOB), ("own", OWNER)] {
        let make = format!("echo > {program}; chown {user}:{user} {program}; chmod 6755 {program}");
        fixture.sh(&make).success();
    }
    fixture.unmount_all();
    for path in fs::read_dir(fixture.store().parent().unwrap()).unwrap() {
        chown(path.unwrap().path(), Some(OWNER), None).unwrap();
    }
    let own = fixture.outside("own");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(OWNER), None).unwrap();
    as_owner(&format!("export {}/it", own.display())).success();
    assert!(own.join("it/work").is_dir());
    // What it writes is its user's, whoever let a program run as themselves.
    let mode = |name: &str| fs::metadata(own.join("it").join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("lent"), mode("own")), (0o755, 0o6755));
}
