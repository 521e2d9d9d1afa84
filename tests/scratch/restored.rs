//! What `restore --at` may bring back: what the rules of today take, under each name that the file has.

use std::fs;

use crate::harness::{Fixture, Setup, Task};

/// The event of the last save of a path.
fn saved(fixture: &Fixture, path: &str) -> String {
    let ledger = fixture.ledger();
    let of_path = |event: &&_| {
        let event: &crate::harness::Event = event;
        event.name() == "saved" && event.0["payload"]["path"] == path
    };
    ledger.0.iter().rfind(of_path).unwrap().0["g"].to_string()
}

// P11.3 P3.1
#[test]
fn no_plain_file_comes_back_under_a_record_s_name() {
    let files = "files: [{ path: '**' }]\n";
    let fixture = Setup::default().layout(&format!("workspaces: []\n{files}")).start();
    let task = Task::new("t-1").text();
    fs::write(fixture.outside("task"), &task).unwrap();
    fixture
        .sh("mkdir -p proj/inbox; cd proj/inbox; cp $OUT/task t-1.yaml; \
             echo 'not: [a task' > t-3.yaml; rm t-*")
        .success();
    let layout = fixture.outside("governed.yaml");
    fs::write(&layout, format!("workspaces: [{{ path: proj, kind: task }}]\n{files}")).unwrap();
    fixture.unmount_all();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    fixture.mount_all();
    for (name, told) in [("t-1.yaml", "a record's name now"), ("t-3.yaml", "W0")] {
        let path = format!("proj/inbox/{name}");
        let g = saved(&fixture, &path);
        let ran = fixture.workfs(&["restore", &path, "--at", &g]).failure();
        assert!(ran.stderr.contains(told), "{ran}");
        let listed = fixture.sh("ls -A proj/inbox").success().stdout;
        assert_eq!(listed, "", "{name}");
        // The way out that is told of it.
        if let Some((_, way)) = ran.stderr.split_once("which judges it: ") {
            let ran = fixture.sh(way);
            assert_eq!(ran.code == 0, name == "t-1.yaml", "{ran}");
            fixture.sh(&format!("rm -f {path}")).success();
        }
    }
    fixture.fsck_clean();
}

// P11.3 P11.7
#[test]
fn what_comes_back_is_judged_by_each_name_of_the_file() {
    let layout = "workspaces: []\nfiles: [{ path: 'e/**' }]\nchecks: [{ path: 'd/*.json' }]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir d e; echo 'not json {' > e/x").success();
    let bad = saved(&fixture, "e/x");
    fixture.sh("echo '{\"ok\":1}' > e/x; ln e/x d/x.json").success();
    let good = saved(&fixture, "e/x");
    let ran = fixture.workfs(&["restore", "e/x", "--at", &bad]).failure();
    assert!(ran.code == 7 && ran.stderr.contains("W010"), "{ran}");
    assert_eq!(fs::read(fixture.path("d/x.json")).unwrap(), b"{\"ok\":1}\n");
    fixture.sh("echo 2 > e/x").success();
    fixture.workfs(&["restore", "e/x", "--at", &good]).success();
    assert_eq!(fs::read(fixture.path("d/x.json")).unwrap(), b"{\"ok\":1}\n");
    fixture.fsck_clean();
}
