//! Who has the store's file, where another user runs its daemon.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use serde_json::json;

use crate::harness::{Fixture, Task, asked, left_out, needs};

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
    // Now everybody may come to the socket, and is asked who he is.
    fixture.workfs(&["agent", "add", "bob", "--uid", &BOB.to_string()]).success();
    Some(fixture)
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
    let user = format!("setpriv --reuid {OWNER} --regid {OWNER} --clear-groups");
    let as_owner = |arguments: &str| {
        let (workfs, store) = (env!("CARGO_BIN_EXE_workfs"), fixture.store().display());
        fixture.sh(&format!("cd /; HOME=/tmp {user} {workfs} --store {store} {arguments}"))
    };
    let ran = as_owner("exec -- true");
    assert_eq!(ran.code, 6, "{ran}");
    assert!(ran.stderr.contains("`workfs unmount --all` by user 0"), "{ran}");
    assert_eq!(as_owner(&format!("export {}", made.display())).code, 6);
    assert_eq!(as_owner("unmount --all").code, 6);
    // Whoever runs the store is told.
    let why = fixture.workfs(&["why", "-n", "100"]).success().stdout;
    assert!(why.contains("`import` acts outside of the tree"), "{why}");
    // The way out: the daemon is that user's.
    fixture.unmount_all();
    for path in fs::read_dir(fixture.store().parent().unwrap()).unwrap() {
        chown(path.unwrap().path(), Some(OWNER), None).unwrap();
    }
    let own = fixture.outside("own");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(OWNER), None).unwrap();
    as_owner(&format!("export {}/it", own.display())).success();
    assert!(own.join("it/work").is_dir());
}
