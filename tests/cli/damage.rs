//! Stores that somebody else wrote in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::harness::{Fixture, Ran, Task, run, save};

/// A store with something of everything, which nobody serves.
fn store() -> Fixture {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("free").with("blocks: [later]\nlease: 30m\n"));
    fixture.task("inbox", &Task::new("waits").with("dependencies: [free]\n"));
    fixture.task("inbox", &Task::new("later").with("not_before: '2100-01-01'\n"));
    fixture.task("inbox", &Task::new("gone"));
    fs::remove_file(fixture.path("work/inbox/gone.yaml")).unwrap();
    fixture.task("inbox", &Task::new("mine"));
    fixture.workfs(&["claim", "mine", "--agent", "bob"]).success();
    fixture.task("inbox", &Task::new("aside"));
    fs::rename(fixture.path("work/inbox/aside.yaml"), fixture.path("work/inbox/aside.yaml~"))
        .unwrap();
    save(&fixture.path("work/inbox/draft.yaml"), b"status: [").unwrap_err();
    fs::write(fixture.path("plain"), [b'x'; 9_000]).unwrap();
    symlink("plain", fixture.path("link")).unwrap();
    fixture.workfs(&["agent", "add", "carl"]).success();
    fixture.unmount_all();
    fixture
}

/// A copy of the store in which this was written.
fn with(fixture: &Fixture, sql: &str) -> PathBuf {
    let copy = fixture.outside("copy.db");
    fs::copy(fixture.store(), &copy).unwrap();
    let open = rusqlite::Connection::open(&copy).unwrap();
    let no_checks = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;";
    open.execute_batch(&format!("{no_checks} {sql}")).unwrap_or_else(|why| panic!("{sql}: {why}"));
    copy
}

fn asked(fixture: &Fixture, sql: &str, arguments: &[&str]) -> Ran {
    let copy = with(fixture, sql);
    run(&mut fixture.command_on(&copy, arguments))
}

/// What a command meets that cannot be read: what was written into the store, what fsck says of it, and the
/// command.
fn illegible() -> Vec<(String, &'static str, Vec<&'static str>)> {
    let entry = |name: &str| format!("UPDATE entries SET name = {name} WHERE name = x'6c696e6b'");
    let export = vec!["export", "outside/export"];
    let (list, show, log) = (vec!["list"], vec!["show", "free"], vec!["log"]);
    vec![
        (entry("x'612f62'"), "name `a/b` in node 1: is none that a file can", export.clone()),
        (entry("x'2e2e'"), "name `..` in node 1: is none that a file can have", export.clone()),
        (
            "UPDATE nodes SET mode = -1 WHERE size = 9000".into(),
            "cannot be read: -1 is out of range",
            export,
        ),
        (
            "UPDATE records SET id = 'a/b' WHERE id = 'mine'".into(),
            ": cannot be read: ",
            list.clone(),
        ),
        (
            "UPDATE records SET trace = x'' WHERE id = 'mine'".into(),
            "cannot be read: a trace that is not 16",
            list.clone(),
        ),
        (
            "UPDATE workspaces SET path = x'2e2e' WHERE path <> x'776f726b'".into(),
            "workspace 2: cannot be read",
            list.clone(),
        ),
        (
            "UPDATE events SET line = CAST(x'ff' AS TEXT) WHERE g = 2".into(),
            "event 2: cannot be read: a text is not UTF-8",
            log,
        ),
        ("UPDATE agents SET role = 'king'".into(), "agents: cannot be read: role `king`", list),
        (
            "DROP TABLE edges".into(),
            "table edges: is missing",
            vec!["done", "mine", "--agent", "bob", "--summary", "x"],
        ),
        ("DROP TABLE orphans".into(), "table orphans: is missing", vec!["mount", "m0"]),
        ("DROP TABLE leader".into(), "table leader: is missing", show.clone()),
        ("DROP TABLE versions".into(), "table versions: is missing", show),
    ]
}

// P8.2
#[test]
fn what_cannot_be_read_is_damage_to_whoever_meets_it() {
    let fixture = store();
    for (sql, _, arguments) in illegible() {
        let ran = asked(&fixture, &sql, &arguments).failure();
        assert!(ran.code == 10 && ran.stderr.contains("the store is damaged"), "{sql}: {ran}");
    }
}
