//! How commands end.

use std::fs;

use crate::harness::{Fixture, Setup, Task, save};

// P8.2
#[test]
fn each_cause_has_its_exit_code() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("assigned/ann", &Task::new("t-2").status("assigned").owner("ann"));
    save(&fixture.path("work/inbox/draft.yaml"), b"status: [").unwrap_err();
    let dir = fixture.root().to_str().unwrap();
    let outside = fixture.outside("");
    let outside = outside.to_str().unwrap();
    let cases: [(&[&str], i32); 8] = [
        (&["no-such-command"], 2),
        (&["show", "no-such-task"], 4),
        (&["claim", "no-such-task", "--agent", "bob"], 4),
        (&["claim", "t-2", "--agent", "bob"], 5),
        (&["claim", "work/inbox/draft.yaml", "--agent", "bob"], 6),
        (&["done", "t-2", "--agent", "bob", "--summary", "x"], 6),
        (&["unmount", outside], 4),
        (&["init", "--layout", "/no/such/file"], 4),
    ];
    for (arguments, code) in cases {
        let ran = fixture.workfs(arguments).failure();
        assert_eq!(ran.code, code, "{ran}");
        assert!(ran.stdout.is_empty(), "failures go to standard error: {ran}");
        assert!(!ran.stderr.contains("panicked"), "{ran}");
    }
    fixture.workfs(&["unmount", dir]).success();
    assert_eq!(fixture.workfs(&["ps"]).code, 3);
    let elsewhere = Setup::default().prepare();
    for command in ["list", "status", "log", "fsck"] {
        let ran = elsewhere.workfs(&[command]).failure();
        assert_eq!(ran.code, 4, "there is no store: {ran}");
        assert!(!elsewhere.store().exists(), "`{command}` makes no store");
    }
}

// P8.2
#[test]
fn a_failure_says_the_rule_and_the_way_out() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    // There is no summary.
    let ran = fixture.workfs(&["done", "t-1", "--agent", "bob"]).failure();
    assert!(ran.stderr.contains("result.summary"), "{ran}");
    let ran = fixture.workfs(&["done", "t-1", "--agent", "bob", "--json"]).failure();
    let text = format!("{}{}", ran.stdout, ran.stderr);
    let value: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert!(value.to_string().contains("W015"), "{value}");
}

// P8.2
#[test]
fn a_bad_layout_is_refused_with_its_line() {
    let fixture = Setup::default().prepare();
    let layout = fixture.outside("layout.yaml");
    std::fs::write(&layout, "workspaces:\n  - path: work\n    kindd: task\n").unwrap();
    let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).failure();
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains('3') && ran.stderr.contains("kind"), "{ran}");
}

// P6.1
#[test]
fn what_is_no_store_keeps_its_mode_too() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Setup::default().prepare();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let other = fixture.outside("other.db");
    fs::write(&other, "no store at all, but longer than a header of a database would be".repeat(9))
        .unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = fixture.command_on(&other, &["status"]).output().unwrap();
    assert_eq!((ran.status.code(), mode(&other)), (Some(10), 0o644), "{ran:?}");
    let pipe = fixture.outside("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o644.into()).unwrap();
    fs::set_permissions(&pipe, fs::Permissions::from_mode(0o666)).unwrap();
    let ran = fixture.command_on(&pipe, &["status"]).output().unwrap();
    assert_eq!((ran.status.code(), mode(&pipe)), (Some(10), 0o666), "{ran:?}");
    assert!(!fixture.outside("pipe.lock").exists());
}
