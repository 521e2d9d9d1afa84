//! What fsck sees where rows are missing; and whole stores of which it must not say that they are damaged.

use std::fs;

use crate::harness::{Fixture, Setup, Task, run};

/// The problems of a store in which this was written.
#[track_caller]
fn told(fixture: &Fixture, sql: &str) -> Vec<String> {
    let copy = fixture.outside("copy.db");
    fs::copy(fixture.store(), &copy).unwrap();
    let open = rusqlite::Connection::open(&copy).unwrap();
    open.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
    drop(open);
    let ran = run(&mut fixture.command_on(&copy, &["fsck", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let problems = report["problems"].as_array().unwrap().iter();
    problems.map(|one| format!("{}: {}", one["thing"], one["what"]).replace('"', "")).collect()
}

// P5.2
#[test]
fn a_workspace_whose_directory_is_not_noted_and_a_past_that_is_missing_are_noticed() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("one"));
    fixture
        .sh("mkdir -p scratchpad; echo 1 > scratchpad/a; mkdir scratchpad/d; mv scratchpad/a b")
        .success();
    fixture.unmount_all();
    let none: Vec<String> = Vec::new();
    assert_eq!(told(&fixture, ""), none);
    let gone = told(&fixture, "UPDATE workspaces SET dir = NULL WHERE path = CAST('work' AS BLOB)");
    assert!(
        gone.len() == 1 && gone[0].starts_with("workspace work: is noted as gone, and has"),
        "{gone:?}"
    );
    let root = "DELETE FROM places WHERE relative = x'' AND workspace = \
                (SELECT key FROM workspaces WHERE path = CAST('work' AS BLOB))";
    let root = told(&fixture, root);
    assert!(root.len() == 1 && root[0].ends_with("is not noted as its"), "{root:?}");
    for path in ["a", "d"] {
        let past = format!("DELETE FROM histories WHERE path = CAST('scratchpad/{path}' AS BLOB)");
        let versions = format!(
            "DELETE FROM file_versions; UPDATE histories SET versions = 0, bytes = 0; {past}"
        );
        let told = told(&fixture, &versions);
        assert!(told.len() == 1 && told[0].starts_with("histories of files: "), "{told:?}");
    }
}

// P5.2
#[test]
fn a_version_of_another_time_than_its_event_is_noticed() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("one"));
    fixture.sh("mkdir -p scratchpad; echo 1 > scratchpad/a").success();
    fixture.unmount_all();
    for (table, thing) in [("versions", "record work:one"), ("file_versions", "file scratchpad/a")]
    {
        let told = told(&fixture, &format!("UPDATE {table} SET at = at - 1"));
        let is_told = told.len() == 1 && told[0].starts_with(thing);
        assert!(is_told && told[0].contains("is noted as of another time than event"), "{told:?}");
    }
}

// P5.2
#[test]
fn a_file_at_the_root_is_no_record_of_a_workspace_there() {
    let layout = "workspaces: [{ path: '.', kind: task }]\nfiles: [{ path: '**' }]\n";
    let fixture = Setup::default().layout(layout).start();
    let [one, two] =
        ["one", "two"].map(|title| Task::new("t-1").with(&format!("n: {title}\n")).text());
    for (path, text) in
        [("t-1", "1"), ("inbox/t-1.yaml", &*one), ("t-1", "2"), ("inbox/t-1.yaml", &*two)]
    {
        fs::write(fixture.path(path), text).unwrap();
    }
    fixture.fsck_clean();
}

// P5.2
#[test]
fn a_lane_of_a_kind_that_is_called_file_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kind/builtin");
    let kind = fs::read_to_string(here.join("task.kind.yaml")).unwrap();
    let kind = kind.replace("kind: task\n", "kind: file\n").replace("task.v1.json", "file.v1.json");
    fs::write(dir.path().join("file.kind.yaml"), kind).unwrap();
    fs::copy(here.join("task.v1.json"), dir.path().join("file.v1.json")).unwrap();
    let layout = format!(
        "kinds: [{{ file: '{}/file.kind.yaml' }}]\nworkspaces: [{{ path: w, kind: file }}]\n",
        dir.path().display()
    );
    let fixture = Setup::default().layout(&layout).start();
    fixture.sh("mkdir -p w/inbox; rmdir w/inbox; mkdir w/inbox").success();
    fixture.fsck_clean();
}
