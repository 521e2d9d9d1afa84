//! What `restore --at` may bring back: what the rules of today take, under each name that the file has.

use std::fs;

use crate::harness::{Fixture, Setup, Task, run, until_polled};

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

// P11.3
#[test]
fn of_a_save_that_was_too_large_to_be_kept_no_older_version_is_given() {
    let layout = "workspaces: []\nfiles:\n  - { path: \"scratchpad/**\", file_bytes: 6B }\n";
    let fixture = Setup::default().layout(layout).start();
    fs::create_dir_all(fixture.path("scratchpad")).unwrap();
    fixture.sh("for n in 1 7777777 3; do echo $n > scratchpad/f; done").success();
    fixture
        .sh("rm scratchpad/f; mkdir scratchpad/f; rmdir scratchpad/f; echo 3 > scratchpad/f")
        .success();
    let events = fixture.workfs(&["log", "--json", "scratchpad/f"]).success().json_lines();
    let at = |nth: usize| events[nth]["g"].to_string();
    // Too large; gone; a directory.
    for nth in [1, 3, 4] {
        let given = ["--at", "--g"].map(|option| match option {
            "--at" => fixture.workfs(&["restore", "scratchpad/f", option, &at(nth)]),
            _ => fixture.workfs(&["show", "scratchpad/f", option, &at(nth)]),
        });
        for ran in given {
            assert_eq!(ran.code, 4, "{nth}: {ran}");
        }
    }
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/f")).unwrap(), "3\n");
    let none = fixture.workfs(&["restore", "scratchpad/f", "--at", &at(1)]).failure();
    assert!(none.stderr.contains("is kept from then"), "{none}");
    // A save of what is the newest version already made none of its own.
    for (nth, was) in [(0, "1\n"), (2, "3\n"), (events.len() - 1, "3\n")] {
        fixture.workfs(&["restore", "scratchpad/f", "--at", &at(nth)]).success();
        assert_eq!(fs::read_to_string(fixture.path("scratchpad/f")).unwrap(), was, "{nth}");
    }
    fixture.fsck_clean();
}

// P11.3, P11.10
#[test]
fn a_lock_that_nobody_renewed_was_gone_by_then() {
    let layout = "workspaces: []\nfiles: [{ path: \"scratchpad/**\" }]\n\
                  locks: [{ path: \"**/*.lock\", lease: 1s }]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir -p scratchpad; echo me > scratchpad/a.lock").success();
    until_polled("it is over", || (!fixture.path("scratchpad/a.lock").exists()).then_some(()));
    let at = fixture.ledger().last_g().to_string();
    for ask in [["show", "--g"], ["restore", "--at"]] {
        let ran = fixture.workfs(&[ask[0], "scratchpad/a.lock", ask[1], &at]).failure();
        let told = ran.stderr.contains(&format!("event {at} removed it"));
        assert!(ran.code == 4 && told, "{ran}");
    }
    assert!(!fixture.path("scratchpad/a.lock").exists());
    fixture.fsck_clean();
}

// P11.3
#[test]
fn the_bare_name_of_a_file_that_is_gone_is_answered_with_how_it_is_named() {
    let fixture = Fixture::new();
    fixture
        .sh("mkdir -p scratchpad/documents; cd scratchpad/documents; echo 1 > f; rm f")
        .success();
    let dir = fixture.path("scratchpad/documents");
    let in_dir = |args: &[&str]| run(fixture.command(args).current_dir(&dir));
    let events = in_dir(&["log", "--json", "./f"]).success().json_lines();
    let first = events[0]["g"].to_string();
    // It counts as an id by now, whoever asks for its past.
    let asked: [&[&str]; 3] =
        [&["restore", "f", "--at", &first], &["show", "f", "--g", &first], &["log", "f"]];
    for args in asked {
        let ran = in_dir(args);
        assert!(ran.code == 4 && ran.stderr.contains("a file that was here is `./f`"), "{ran}");
    }
    in_dir(&["show", "./f", "--g", &first]).success();
    in_dir(&["restore", "./f", "--at", &first]).success();
    // One that is there is what its bare name names: another name of it leads no further.
    let ran = in_dir(&["restore", "f", "--at", "2001-01-01"]);
    assert!(ran.code == 4 && !ran.stderr.contains("./f"), "{ran}");
    fixture.fsck_clean();
}
