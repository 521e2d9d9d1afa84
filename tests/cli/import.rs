//! `workfs import`: what is taken, what is not, and how that is told.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use crate::harness::{DEADLINE, Fixture, Setup, left_out, needs, program, run, until_polled};
use crate::lose_big_files;

/// A directory outside, with these files.
fn source(fixture: &Fixture, name: &str, files: &[(&str, &str)]) -> String {
    let dir = fixture.outside(name);
    fs::create_dir_all(&dir).unwrap();
    for (path, text) in files {
        let file = dir.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    dir.to_str().unwrap().to_owned()
}

// P8.2 P10.3
#[test]
fn who_may_not_import_is_refused_whatever_comes() {
    let fixture = Fixture::new();
    let plain = source(&fixture, "plain", &[("f", "hello\n")]);
    let records = source(&fixture, "records", &[("inbox/t-1.yaml", "title: x\n")]);
    let empty = source(&fixture, "empty", &[]);
    for (from, to) in [
        (&plain, "scratchpad"),
        (&plain, "work"),
        (&records, "work"),
        (&empty, "work"),
        (&empty, "."),
    ] {
        let mut command = fixture.command(&["import", from, to]);
        let ran = run(command.env("WORKFS_AGENT", "bob")).failure();
        assert!(ran.code == 6 && ran.stderr.contains("bob (agent) may not import"), "{ran}");
    }
    assert!(!fixture.path("scratchpad/f").exists() && !fixture.path("work/f").exists());
}

// P8.3
#[test]
fn where_an_import_goes_is_made_as_mkdir_makes_it() {
    let fixture = Fixture::new();
    let from = source(&fixture, "from", &[("f", "hello\n")]);
    let import = |umask: &str, to: &str| {
        let script = format!("umask {umask} && \"$W\" --store \"$STORE\" import \"$FROM\" {to}");
        let shell = fixture.bash().with("W", program()).with("STORE", fixture.store());
        shell.with("FROM", &from).run(&script).success();
        let mode = |path: &str| fs::metadata(fixture.path(path)).unwrap().mode() & 0o7777;
        let above = to.split_once('/').map_or(to, |(above, _)| above);
        (mode(above), mode(to), mode(&format!("{to}/f")))
    };
    let of_source = fs::metadata(format!("{from}/f")).unwrap().mode() & 0o7777;
    assert_eq!(import("077", "own/a"), (0o700, 0o700, of_source));
    assert_eq!(import("022", "all/a"), (0o755, 0o755, of_source));
    // What is there stays as it is.
    assert_eq!(import("002", "own/b"), (0o700, 0o775, of_source));
    fixture.unmount_all();
    let shell = fixture.bash().with("W", program()).with("STORE", fixture.store());
    let alone = "cd /; umask 027 && \"$W\" --store \"$STORE\" import \"$FROM\" alone";
    shell.with("FROM", &from).run(alone).success();
    fixture.mount_all();
    assert_eq!(fs::metadata(fixture.path("alone")).unwrap().mode() & 0o7777, 0o750);
}

// P8.2
#[test]
fn a_store_that_was_made_for_an_import_that_failed_goes_with_it() {
    let fixture = Setup::default().prepare();
    let records = source(&fixture, "records", &[("inbox/t-1.yaml", "title: x\n")]);
    let none = fixture.outside("none");
    let stores = || fs::read_dir(fixture.store().parent().unwrap()).unwrap().count();
    let before = stores();
    for (arguments, code) in
        [(["import", none.to_str().unwrap(), "work"], 4), (["import", &records, "../work"], 2)]
    {
        let ran = fixture.workfs(&arguments);
        assert_eq!(ran.code, code, "{ran}");
        assert_eq!(stores(), before, "{ran}");
    }
    fixture.workfs(&["import", &records, "work"]).success();
    assert!(fixture.store().is_file());
}

// P8.3
#[test]
fn what_is_not_taken_is_named_and_importing_again_is_not_that() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("plain")).unwrap();
    fs::write(fixture.path("plain/f"), "mine\n").unwrap();
    fs::write(fixture.path("plain/d"), "a file\n").unwrap();
    let from = source(
        &fixture,
        "from",
        &[("f", "yours\n"), ("d/x", "below\n"), ("new", "new\n"), ("AGENTS.md", "ours\n")],
    );
    let ran = fixture.workfs(&["import", "--json", &from, "plain"]);
    assert_eq!(ran.code, 11, "{ran}");
    let report = ran.json();
    let left = report["left_alone"]["listed"].as_array().unwrap();
    let paths: Vec<&str> = left.iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["plain/d", "plain/f"], "{report}");
    assert_eq!(fs::read(fixture.path("plain/f")).unwrap(), b"mine\n");
    assert_eq!(fs::read(fixture.path("plain/new")).unwrap(), b"new\n");

    let from = source(&fixture, "again", &[("inbox/t-1.yaml", "title: x\n"), ("note", "n\n")]);
    fixture.workfs(&["import", &from, "work"]).success();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let ran = fixture.workfs(&["import", &from, "work"]).success();
    let moved = "work/inbox/t-1.yaml: it is `work/assigned/bob/t-1.yaml` now";
    assert!(ran.stdout.contains(moved), "{ran}");

    // What was copied of a mount would hide what is told of the record.
    let from = source(
        &fixture,
        "why",
        &[("inbox/t-2.yaml", "title: x\n"), ("inbox/t-2.yaml.why", "old\n")],
    );
    let ran = fixture.workfs(&["import", &from, "work"]);
    assert!(
        ran.code == 11 && ran.stdout.contains("workfs itself shows something of this name"),
        "{ran}"
    );
    let why = fs::read_to_string(fixture.path("work/inbox/t-2.yaml.why")).unwrap();
    assert!(!why.contains("old"), "{why}");
    fixture.fsck_clean();
}

// P8.3
#[test]
fn what_a_quota_ends_half_way_leaves_no_part_and_tells_what_was_taken() {
    let layout = "workspaces: []\nquotas: [{ path: 'q*', bytes: 1MiB, inodes: 20 }]\n";
    let fixture = Setup::default().layout(layout).start();
    let from = source(&fixture, "from", &[("a", "a\n")]);
    // It is written in parts.
    fs::write(fixture.outside("from/big"), vec![7; 9 << 20]).unwrap();
    for way in ["with", "without"] {
        let to = format!("q-{way}");
        fs::create_dir(fixture.path(&to)).unwrap();
        if way == "without" {
            fixture.unmount_all();
            fixture.await_no_daemon();
        }
        let ran = fixture.workfs(&["import", &from, &to]);
        assert!(ran.code == 75 && ran.stderr.contains("[W043]"), "{ran}");
        assert!(ran.stdout.contains("1 other file,") && ran.stdout.contains("failed"), "{ran}");
        let again = fixture.workfs(&["import", "--json", &from, &to]);
        let report = again.json();
        assert_eq!((again.code, &report["unchanged"]), (75, &1.into()), "{again}");
        assert_eq!(report["failure"]["rule"], "W043", "{again}");
    }
    fixture.mount_all();
    assert_eq!(
        fixture.sh("ls -A q-with q-without").success().stdout,
        "q-with:\na\n\nq-without:\na\n"
    );
    fixture.fsck_clean();
}

// P8.1
#[test]
fn the_root_is_named_so_that_it_is_understood() {
    let fixture = Fixture::new();
    let from = source(&fixture, "from", &[("a", "a\n")]);
    let to = fixture.workfs(&["--json", "import", &from, "."]).success().json()["to"].clone();
    let again = fixture.workfs(&["--json", "import", &from, to.as_str().unwrap()]).success().json();
    assert_eq!((&again["to"], &again["unchanged"]), (&to, &1.into()), "{again}");
    let export = |name: &str, path: &str| {
        let out = fixture.outside(name);
        let arguments = ["--json", "export", out.to_str().unwrap(), "--path", path];
        fixture.workfs(&arguments).success().json()["from"].as_str().unwrap().to_owned()
    };
    assert_eq!(export("again", &export("first", ".")), ".");
    let shown = fixture.workfs(&["--json", "show", "."]).success().json();
    assert_eq!(shown["path"], ".");
}

// P4.1
#[test]
fn an_import_that_meets_its_own_store_keeps_sqlite_s_locks_on_it() {
    let fixture = Fixture::new();
    let pid = fixture.daemon_pid().to_string();
    let held = || -> BTreeSet<String> {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let own = locks.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, "POSIX", _, _, holder, file, from, to] = words[..] else { return None };
            // By those of the log's index a connection says that it reads or writes now (SQLite's `wal.c`).
            let comes_and_goes = (120..128).contains(&from.parse::<u64>().unwrap());
            (holder == pid && !comes_and_goes).then(|| format!("{file} {from} {to}"))
        });
        own.collect()
    };
    let dir = fixture.store().parent().unwrap();
    fs::write(dir.join("note.txt"), "x").unwrap();
    fs::hard_link(fixture.store(), dir.join("another-name")).unwrap();
    let before = held();
    assert!(before.len() > 1, "the store, and that somebody has the index of its log: {before:?}");
    let ran = fixture.workfs(&["import", dir.to_str().unwrap(), "own"]);
    assert!(ran.stdout.contains("team.db-shm") && ran.stdout.contains("another-name"), "{ran}");
    assert!(ran.stdout.contains("of this store itself"), "{ran}");
    // The file is read by the page, so that one look may miss some.
    until_polled("SQLite's locks are there", || before.is_subset(&held()).then_some(()));
    let there = |name: &str| fixture.path("own").join(name).exists();
    assert!(there("note.txt") && !there("team.db") && !there("another-name"));
}

// P8.2
#[test]
fn without_proc_files_are_imported_as_with_it() {
    if !rustix::process::geteuid().is_root() || !needs(&["unshare"]) {
        return left_out("to be without /proc needs root and unshare");
    }
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let from = source(&fixture, "plain", &[("f", "hello\n")]);
    // Also one of the store's own, by another name.
    fs::hard_link(fixture.store(), fixture.outside("plain/own")).unwrap();
    let script =
        "mount -t tmpfs none /proc && exec \"$WORKFS\" --store \"$STORE\" import \"$FROM\" notes";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).env("STORE", fixture.store());
    let ran = run(command.env("FROM", &from).env("WORKFS", program()));
    assert!(ran.code == 11 && ran.stdout.contains("own: it is a file of this store"), "{ran}");
    fixture.mount_all();
    assert_eq!(fs::read_to_string(fixture.path("notes/f")).unwrap(), "hello\n");
    assert!(!fixture.path("notes/own").exists());
}

// P8.2 P4.4
#[test]
fn an_import_goes_on_where_a_file_that_is_there_has_lost_a_part() {
    let fixture = Fixture::new();
    let (large, larger) = ("x".repeat(3 << 20), "x".repeat(9 << 20));
    let files = [("a", &*large), ("b", &larger), ("c", "hello\n")];
    let from = source(&fixture, "from", &files);
    fixture.workfs(&["import", &from, "notes"]).success();
    fs::remove_file(fixture.path("notes/c")).unwrap();
    fixture.unmount_all();
    lose_big_files(&fixture);
    fixture.mount_all();
    let ran = fixture.workfs(&["import", &from, "notes"]);
    assert!(ran.code == 11 && ran.stdout.contains("1 other file,"), "{ran}");
    for name in ["a", "b"] {
        let told = format!("notes/{name}: the store is damaged: a part of this file was not");
        assert!(ran.stdout.contains(&told), "{ran}");
    }
    assert_eq!(fs::read_to_string(fixture.path("notes/c")).unwrap(), "hello\n");
    for name in ["a", "b"] {
        fs::remove_file(fixture.path("notes").join(name)).unwrap();
    }
    fixture.workfs(&["import", &from, "notes"]).success();
    assert!(fs::read_to_string(fixture.path("notes/b")).unwrap() == larger);
}

// P8.2
#[test]
fn what_is_no_record_since_its_directory_is_no_lane_is_named() {
    let fixture = Fixture::new();
    let task = "title: x\nstatus: assigned\n";
    let files = [
        ("assigned/my agent/t-1.yaml", task),
        ("assigned/my agent/notes.md", "x\n"),
        ("assigned/stray.yaml", task),
        ("assigned/notes.md", "x\n"),
        ("assigned/bob/t-2.yaml", task),
        ("inbox/sub/t-3.yaml", task),
    ];
    let from = source(&fixture, "from", &files);
    // As long as it is so it is named, also by who imports again.
    for records in ["1 record (", "0 records ("] {
        let ran = fixture.workfs(&["import", &from, "work"]).success();
        let told = "no agent's lane: only letters, digits";
        let named = ran.stdout.lines().filter(|line| line.contains(told)).collect::<Vec<_>>();
        assert!(named.len() == 1 && named[0].contains("work/assigned/my agent/t-1.yaml"), "{ran}");
        let told = "work/assigned/stray.yaml: records lie in the directories beside it";
        assert!(ran.stdout.contains(records) && ran.stdout.contains(told), "{ran}");
    }
    let why = fixture.workfs(&["why", "work/assigned/stray.yaml"]).success();
    assert!(why.stdout.contains("move it into one of them"), "{why}");
    let why = fixture.workfs(&["why", "work/assigned/notes.md"]).success();
    assert!(!why.stdout.contains("no record"), "{why}");
}

// P8.2
#[test]
fn what_is_no_record_since_no_id_can_be_called_so_is_named_and_why_says_so() {
    let fixture = Fixture::new();
    let task = "title: x\n";
    let files = [
        ("inbox/fix the parser.yaml", task),
        ("inbox/über.yaml", task),
        ("inbox/t-1.yaml", task),
        ("inbox/read me.md", task),
        ("inbox/.hidden.yaml", task),
        ("notes/fix the lexer.yaml", task),
    ];
    let from = source(&fixture, "from", &files);
    let ran = fixture.workfs(&["import", &from, "work"]).success();
    let told = "its name is no id: only letters, digits";
    let named: Vec<&str> = ran.stdout.lines().filter(|line| line.contains(told)).collect();
    assert_eq!(named.len(), 2, "{ran}");
    assert!(ran.stdout.contains("no records: rename them"), "{ran}");

    let why = fixture.workfs(&["why", "work/inbox/fix the parser.yaml"]).success();
    assert!(why.stdout.contains(told) && why.stdout.contains("rename it"), "{why}");
    let lane = "work/assigned/my agent";
    fixture.sh(&format!("mkdir -p '{lane}' && echo x > '{lane}/t-2.yaml'")).success();
    let why = fixture.workfs(&["why", "work/assigned/my agent/t-2.yaml"]).success();
    assert!(why.stdout.contains("no agent's lane"), "{why}");
    for other in
        ["work/inbox/read me.md", "work/notes/fix the lexer.yaml", "work/inbox/.hidden.yaml"]
    {
        let why = fixture.workfs(&["why", other]).success();
        assert_eq!(why.stdout, "nothing was refused\n", "{other}");
    }
}

// P8.2 P10.5
#[test]
fn what_would_be_the_lane_of_whoever_is_no_agent_is_left_alone() {
    let fixture = Fixture::new();
    let files = [
        ("assigned/uid-5/t-1.yaml", "agent: uid-5\n"),
        ("assigned/workfs/t-2.yaml", "agent: workfs\n"),
        ("assigned/carol/t-3.yaml", "agent: carol\n"),
    ];
    let from = source(&fixture, "from", &files);
    let ran = fixture.workfs(&["import", &from, "work"]);
    assert_eq!(ran.code, 11, "{ran}");
    for name in ["uid-5", "workfs"] {
        assert!(
            ran.stdout.contains(&format!("work/assigned/{name}: `{name}` is the name of")),
            "{ran}"
        );
        assert!(!fixture.path(&format!("work/assigned/{name}")).exists(), "{ran}");
    }
    assert!(fixture.path("work/assigned/carol/t-3.yaml").exists());
    fixture.fsck_clean();
}

// P6.10
#[test]
fn what_a_long_import_writes_is_moved_into_the_store_although_it_leaves_no_moment_of_rest() {
    let fixture = Fixture::new();
    let from = fixture.outside("from");
    fs::create_dir_all(from.join("inbox")).unwrap();
    // As many as make the log worth moving.
    for nth in 0..15_000 {
        fs::write(from.join(format!("inbox/t-{nth}.yaml")), "status: none\n").unwrap();
    }
    let length = || fs::metadata(fixture.store()).unwrap().len();
    let before = length();
    fixture.workfs_within(&["import", from.to_str().unwrap(), "work"], DEADLINE).success();
    // Nobody changes anything any more, so that nobody begins to move it now.
    until_polled("it is moved", || (length() > before + (4 << 20)).then_some(()));
}
