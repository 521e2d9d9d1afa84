//! The policy `flag`: what it does not take, and what holds a flagged record.

use std::ffi::CString;
use std::fs;
use std::path::Path;

use crate::harness::{Fixture, Ran, Setup, Shell, Task, save};

const LAYOUT: &str = "workspaces: [ { path: work, kind: task, policy: flag } ]\n";

/// A mount of the operator's, and one of bob's.
fn flagging() -> Fixture {
    let fixture = Setup::default().mounts(2).prepare();
    lay_out(&fixture, LAYOUT);
    fixture.mount_at(fixture.root()).success();
    fixture.make_directories();
    let bob = fixture.mount(1).to_str().unwrap();
    fixture.workfs(&["mount", bob, "--agent", "bob"]).success();
    fixture
}

fn lay_out(fixture: &Fixture, layout: &str) {
    let file = fixture.outside("layout.yaml");
    fs::write(&file, layout).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
}

/// Bash in the workspace, as bob sees it; `save FILE TEXT` says whether the save was taken.
fn bob(fixture: &Fixture, script: &str) -> Ran {
    let save = "save() { printf \"$2\" > $OUT/text; cp $OUT/text $1; }";
    let shell = Shell::bash(fixture.mount(1)).with("OUT", fixture.base().join("outside"));
    shell.run(&format!("cd work; {save}; {script}"))
}

/// A task of bob's with this status, and what that requires.
fn has(fixture: &Fixture, id: &str, status: &str) {
    fixture.task("inbox", &Task::new(id));
    let text = format!("status: {status}\\nagent: bob\\nerror: {{ message: it broke }}\\n");
    bob(fixture, &format!("mv inbox/{id}.yaml assigned/bob/")).success();
    bob(fixture, &format!("save assigned/bob/{id}.yaml '{text}'")).success();
}

fn rows(fixture: &Fixture) -> Vec<serde_json::Value> {
    fixture.workfs(&["list", "--json"]).success().json()["rows"].as_array().unwrap().clone()
}

fn why(fixture: &Fixture, path: &str) -> String {
    fs::read_to_string(fixture.path(&format!("work/{path}.why"))).unwrap()
}

// P3.6 P1.3
#[test]
fn flag_takes_no_move_of_status_that_is_another_role_s() {
    let fixture = flagging();
    has(&fixture, "t-1", "error");
    let path = fixture.path("work/assigned/bob/t-1.yaml");
    let before = fs::read(&path).unwrap();
    // Also where something else is wrong with it, which would be taken.
    for text in ["status: assigned\\nagent: bob\\n", "status: assigned\\nartefacts: 5\\n"] {
        for way in [
            "save assigned/bob/t-1.yaml",
            "x() { printf \"$1\" > assigned/bob/t-1.yaml; }; x",
            "x() { printf \"$1\" > x.tmp; mv x.tmp assigned/bob/t-1.yaml; }; x",
        ] {
            let ran = bob(&fixture, &format!("{way} '{text}'")).failure();
            assert!(ran.stderr.contains("ermission denied"), "{ran}");
            assert_eq!(fs::read(&path).unwrap(), before, "{way}");
        }
    }
    assert!(why(&fixture, "assigned/bob/t-1.yaml").contains("W022"));
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed", "saved"]);
    // The operator may.
    save(&path, b"status: assigned\nagent: bob\n").unwrap();
    assert_eq!(rows(&fixture)[0]["rule"], serde_json::Value::Null);
    fixture.fsck_clean();
}

// P3.6
#[test]
fn flag_takes_what_is_no_yaml_whichever_way_it_is_saved() {
    let fixture = flagging();
    has(&fixture, "t-1", "blocked");
    for (nth, text) in ["id: t-1\\nid: t-1\\n", "status: blocked\\n}\\n"].iter().enumerate() {
        for way in [
            "save assigned/bob/t-1.yaml",
            "x() { printf \"$1\" > assigned/bob/t-1.yaml; }; x",
            "x() { printf \"$1\" > x.tmp; mv x.tmp assigned/bob/t-1.yaml; }; x",
        ] {
            bob(&fixture, &format!("{way} '{text}# {nth} {}\\n'", way.len())).success();
            assert_eq!(rows(&fixture)[0]["rule"], "W010", "{way}: {text}");
            bob(&fixture, "mv assigned/bob/t-1.yaml done/bob/").failure();
        }
    }
    assert_eq!(fixture.ledger().counts("saved")["t-1"], 7);
    assert!(fixture.rejected().is_empty());
    fixture.fsck_clean();
}

// P3.6 P2.5
#[test]
fn a_move_of_status_that_is_none_stays_flagged_until_a_right_text_comes() {
    let fixture = flagging();
    // A move that there is not, and a status that vanishes.
    for (id, text) in [("t-1", "status: assigned\\nagent: bob\\n"), ("t-2", "agent: bob\\n")] {
        has(&fixture, id, "blocked");
        let file = format!("assigned/bob/{id}.yaml");
        bob(&fixture, &format!("save {file} '{text}'")).success();
        let events = fixture.ledger().names(id).len();
        // The same bytes, in place and by a rename, are no version and mend nothing.
        bob(&fixture, &format!("save {file} '{text}'")).success();
        bob(&fixture, &format!("cp {file} x.tmp; mv x.tmp {file}")).success();
        assert_eq!(fixture.ledger().names(id).len(), events);
        // A text that is right by itself is not right by what was right last.
        bob(&fixture, &format!("save {file} 'status: assigned\\nagent: bob\\nmore: x\\n'"))
            .success();
        for command in [
            format!("mv {file} done/bob/"),
            format!("mv {file} {file}~; mv {file}~ {file}; mv {file} done/bob/"),
            format!("cp {file} done/bob/{id}.yaml"),
        ] {
            bob(&fixture, &command).failure();
            let said = why(&fixture, &file);
            assert!(said.contains("W014") && said.contains("from blocked it can become"), "{said}");
        }
        // The copy is a draft, like each that is not valid.
        bob(&fixture, &format!("rm done/bob/{id}.yaml")).success();
        for more in [&[][..], &["--summary", "s"]] {
            let ran = fixture.workfs(&[&["done", id], more].concat()).failure();
            assert!(ran.stderr.contains("W014") && ran.stderr.contains("W021"), "{ran}");
        }
        fixture.workfs(&["release", id]).failure();
        assert!(!fixture.path(&format!("work/done/bob/{id}.yaml")).exists());
        bob(&fixture, &format!("save {file} 'status: in_progress\\nagent: bob\\n'")).success();
        fixture.workfs(&["done", id, "--summary", "s"]).success();
        fixture.fsck_clean();
    }
}

// P3.6 P9.4
#[test]
fn flag_takes_no_circle() {
    let fixture = flagging();
    for (id, more) in [("t-1", ""), ("t-2", "dependencies: [t-1]\n")] {
        fixture.task("inbox", &Task::new(id).with(more));
    }
    let circle = Task::new("t-1").with("dependencies: [t-2]\n").text();
    save(&fixture.path("work/inbox/t-1.yaml"), circle.as_bytes()).unwrap_err();
    assert!(why(&fixture, "inbox/t-1.yaml").contains("W016"));
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    assert!(fixture.path("work/ready/t-1.yaml").exists());
    fixture.fsck_clean();
}

// P3.6
#[test]
fn who_asks_hears_why_a_record_is_flagged_and_what_to_do() {
    let fixture = flagging();
    has(&fixture, "t-1", "blocked");
    bob(&fixture, "save assigned/bob/t-1.yaml 'status: assigned\\nagent: bob\\n'").success();
    let row = &rows(&fixture)[0];
    assert_eq!((&row["rule"], &row["status"]), (&"W014".into(), &"blocked".into()), "{row}");
    for (command, more) in [("list", ""), ("show", "t-1"), ("why", "t-1")] {
        let arguments: Vec<&str> = [command, more].into_iter().filter(|a| !a.is_empty()).collect();
        let said = fixture.workfs(&arguments).success().stdout;
        assert!(said.contains("cannot go from blocked to assigned [W014]"), "{said}");
        assert!(command == "list" || said.contains("from blocked it can become"), "{said}");
    }
    let said = why(&fixture, "assigned/bob/t-1.yaml");
    assert!(said.contains("  rule:   W014") && said.contains("  do:     from blocked"), "{said}");
    let log = fixture.workfs(&["log", "t-1"]).success().stdout;
    let flagged: Vec<bool> = log.lines().map(|line| line.ends_with(" flagged")).collect();
    assert_eq!(flagged, [false, false, false, true], "{log}");
    // Also while it has no name.
    bob(&fixture, "mv assigned/bob/t-1.yaml assigned/bob/t-1.yaml~").success();
    let said = fixture.workfs(&["list"]).success().stdout;
    assert!(said.contains("parked, flagged") && said.contains("W014"), "{said}");
    // It is counted, though it lies in no directory.
    let status = fixture.workfs(&["status"]).success().stdout;
    assert!(status.contains("assigned 0, ") && status.contains(", parked 1\n"), "{status}");
    let status = fixture.workfs(&["status", "--json"]).success().json();
    assert_eq!(status["workspaces"][0]["parked"], 1, "{status}");
    let status = fs::read_to_string(fixture.path(".workfs/status")).unwrap();
    assert!(status.ends_with("\n  parked: 1\n"), "{status}");
    let metrics = fs::read_to_string(fixture.path(".workfs/metrics")).unwrap();
    let parked = "\nworkfs_parked_records{workspace=\"work\",kind=\"task\"} 1\n";
    assert!(metrics.contains(parked), "{metrics}");
    fixture.fsck_clean();
}

// P3.6 P9.1
#[test]
fn a_flag_of_rules_that_hold_no_more_holds_nothing() {
    let strict = LAYOUT.replace("flag", "flag, strict: true");
    let fixture = Setup::default().layout(&strict).start();
    fixture.sh("mkdir -p work/inbox work/assigned/bob").success();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let other = fixture.task("inbox", &Task::new("t-2"));
    save(&path, b"title: no status\ndependencies: [t-3]\n").unwrap();
    save(&other, b"artefacts: 7\n").unwrap();
    let waits = fixture.task("inbox", &Task::new("t-4").with("dependencies: [t-5]\n"));
    let circle = fixture.task("inbox", &Task::new("t-5"));
    let text = b"title: no status\ndependencies: [t-4]\n";
    save(&circle, text).unwrap();
    let is_flagged = || rows(&fixture).iter().map(|row| !row["why"].is_null()).collect::<Vec<_>>();
    assert_eq!(is_flagged(), [true, true, false, true]);
    fixture.unmount_all();
    fixture.await_no_daemon();
    lay_out(&fixture, LAYOUT);
    fixture.mount_all();
    assert_eq!(is_flagged(), [false, true, false, true]);
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "mended"]);
    // What it says counts again.
    let said = why(&fixture, "inbox/t-1.yaml");
    assert!(said.contains("it waits for `t-3`"), "{said}");
    fixture.fsck_clean();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.sh("mv work/inbox/t-2.yaml work/assigned/bob/").failure();
    // What is wrong by the present rules is told, also where something else was; and that nothing is.
    assert!(why(&fixture, "inbox/t-5.yaml").contains("W016"));
    save(&waits, Task::new("t-4").text().as_bytes()).unwrap();
    let said = why(&fixture, "inbox/t-5.yaml");
    assert!(said.contains("nothing is wrong with it now"), "{said}");
    save(&circle, text).unwrap();
    assert_eq!(fixture.ledger().names("t-5"), ["created", "saved", "mended"]);
    let said = why(&fixture, "inbox/t-5.yaml");
    assert!(said.contains("it waits for `t-4`"), "{said}");
    fixture.fsck_clean();
}

// P3.6
#[test]
fn a_command_flags_nothing() {
    let fixture = flagging();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let before = fs::read(&path).unwrap();
    let ran = fixture.workfs(&["fail", "t-1", "--agent", "eve", "--message", "x"]).failure();
    assert!(ran.code == 7 && ran.stderr.contains("W013"), "{ran}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    // In a transaction files are saved, by whoever begins it.
    let script = "cd work/inbox && echo 'status: nonsense' > t-1.yaml";
    let root = fixture.root().to_str().unwrap();
    let ran = fixture.sh(&format!("cd {root}; mkdir .workfs/txn/a; cd .workfs/txn/a; {script}"));
    ran.success();
    fixture.sh("mv .workfs/txn/a .workfs/commit").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    assert!(why(&fixture, "inbox/t-1.yaml").contains("flagged"));
    fixture.fsck_clean();
}

// P3.1 P3.6
#[test]
fn flag_empties_no_record() {
    let fixture = flagging();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let before = fs::read(&path).unwrap();
    assert_eq!(cut(&path), -1);
    fixture.sh(": > work/inbox/t-1.yaml; truncate -s 0 work/inbox/t-1.yaml").success();
    fixture.sh("touch work/x.tmp; mv work/x.tmp work/inbox/t-1.yaml").failure();
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    fixture.fsck_clean();
}

/// truncate(2) to nothing.
fn cut(path: &Path) -> i32 {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a path that ends with NUL.
    unsafe { libc::truncate(path.as_ptr(), 0) }
}

// P3.6
#[test]
fn a_copy_of_a_flagged_record_with_a_bad_status_hears_which_the_target_takes() {
    let fixture = flagging();
    let path = fixture.task("inbox", &Task::new("t-1"));
    save(&path, b"status: nonsense\n").unwrap();
    let copy = "printf 'status: nonsense\\nmore: x\\n' > x.tmp; mv x.tmp assigned/bob/t-1.yaml";
    bob(&fixture, copy).failure();
    let said = fixture.workfs(&["why", "t-1"]).success().stdout;
    assert!(said.contains("assigned, in_progress, blocked, error"), "{said}");
    fixture.fsck_clean();
}

// P3.6 P1.3
#[test]
fn no_copy_of_a_flagged_text_moves_it_also_where_it_would_be_right() {
    let fixture = flagging();
    has(&fixture, "t-1", "blocked");
    // That the status has gone is wrong in the lane only.
    let text = "agent: bob\\nresult: { summary: it works }\\n";
    bob(&fixture, &format!("save assigned/bob/t-1.yaml '{text}'")).success();
    for copy in [
        "cp assigned/bob/t-1.yaml done/bob/",
        "cp assigned/bob/t-1.yaml x.tmp && mv x.tmp done/bob/t-1.yaml",
    ] {
        bob(&fixture, copy).failure();
        assert!(why(&fixture, "assigned/bob/t-1.yaml").contains("W014"), "{copy}");
        bob(&fixture, "rm -f done/bob/t-1.yaml x.tmp; test -e assigned/bob/t-1.yaml").success();
    }
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed", "saved", "saved"]);
    fixture.fsck_clean();
}

// P3.6 P11.3
#[test]
fn no_flagged_version_is_brought_back() {
    let fixture = flagging();
    let path = fixture.task("inbox", &Task::new("t-1"));
    save(&path, b"status: new\nartefacts: 5\n").unwrap();
    let flagged = fixture.ledger().last_g().to_string();
    let good = Task::new("t-1").text();
    save(&path, good.as_bytes()).unwrap();
    let ran = fixture.workfs(&["restore", "work/inbox/t-1.yaml", "--at", &flagged]).failure();
    assert!(ran.code == 7 && ran.stderr.contains("W011"), "{ran}");
    assert_eq!(fs::read_to_string(&path).unwrap(), good);
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "saved"]);
    fixture.fsck_clean();
}
