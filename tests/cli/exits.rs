//! How commands end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStringExt;

use rustix::process::Signal;

use crate::harness::{
    DEADLINE, Fixture, Setup, Task, await_exit, program, run, save, send_signal, until_polled,
};

/// The codes of the table in docs/cli.md.
fn documented() -> BTreeSet<i32> {
    let document = include_str!("../../docs/cli.md");
    let table = document.split("| code | means |").nth(1).unwrap().split("\n\n").next().unwrap();
    let code = |line: &str| line.split('|').nth(1)?.trim().parse().ok();
    table.lines().filter_map(code).collect()
}

/// Files that are wrong in one way each: their paths, by what they are.
fn wrong_files(fixture: &Fixture) -> BTreeMap<&'static str, String> {
    let path = |name: &str| fixture.outside(name).to_str().unwrap().to_owned();
    fs::write(fixture.outside("text.db"), "not a store".repeat(99)).unwrap();
    fs::write(fixture.outside("empty.db"), "").unwrap();
    fs::create_dir(fixture.outside("dir")).unwrap();
    fs::create_dir(fixture.outside("odd")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.outside("odd/pipe"), 0o644.into()).unwrap();
    let names = ["text.db", "empty.db", "dir", "odd", "missing"];
    let mut files: BTreeMap<_, _> = names.into_iter().map(|name| (name, path(name))).collect();
    files.insert("below", path("missing/file"));
    files
}

// P8.2
#[test]
fn each_cause_has_its_exit_code() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("assigned/ann", &Task::new("t-2").status("assigned").owner("ann"));
    fixture.task("assigned/bob", &Task::new("t-3").status("assigned").owner("bob"));
    save(&fixture.path("work/inbox/draft.yaml"), b"status: [").unwrap_err();
    let root = fixture.root().to_str().unwrap().to_owned();
    let files = wrong_files(&fixture);
    let of = |name: &str| files[name].as_str();
    let served: [(&[&str], i32); 31] = [
        (&["no-such-command"], 2),
        (&["show", "no-such-task"], 4),
        (&["claim", "no-such-task", "--agent", "bob"], 4),
        (&["claim", "t-2", "--agent", "bob"], 5),
        (&["claim", "work/inbox/draft.yaml", "--agent", "bob"], 6),
        (&["done", "t-2", "--agent", "bob", "--summary", "x"], 6),
        (&["done", "t-3", "--agent", "bob"], 7),
        (&["unmount", of("dir")], 4),
        (&["init", "--layout", of("missing")], 4),
        (&["init", "--layout", of("dir")], 2),
        (&["mount", of("missing")], 4),
        (&["mount", of("text.db")], 2),
        (&["mount", &root, "--agent", "bob"], 5),
        (&["import", of("missing"), "work"], 4),
        (&["import", of("text.db"), "work"], 2),
        (&["import", of("odd"), "scratchpad"], 11),
        (&["export", of("below")], 4),
        (&["export", of("odd")], 5),
        (&["export", of("text.db")], 2),
        (&["backup", of("below")], 4),
        (&["backup", of("text.db")], 5),
        (&["backup", "/proc/none"], 4),
        (&["restore", of("missing")], 9),
        (&["restore", "work/inbox/none.yaml", "--at", "1"], 4),
        (&["claim", "--workspace", "nowhere"], 4),
        (&["claim", "--workspace", "work/collaboration"], 3),
        (&["claim", "--wait", "--timeout", "soon"], 2),
        (&["heartbeat", "--agent", "eve"], 3),
        (&["exec", "--", of("dir")], 126),
        (&["exec", "--", of("missing")], 127),
        (&["exec", "--", "sh", "-c", "exit 42"], 42),
    ];
    let mut seen = BTreeSet::from([0]);
    for (arguments, code) in served {
        let ran = fixture.workfs(arguments);
        assert_eq!(ran.code, code, "{ran}");
        assert!(!ran.stderr.contains("panicked"), "{ran}");
        if code != 11 && code != 42 {
            assert!(ran.stdout.is_empty(), "failures go to standard error: {ran}");
            assert!(ran.stderr.starts_with("workfs: ") || code == 2, "{ran}");
        }
        seen.insert(ran.code);
    }
    seen.extend([refused(&fixture), full(&fixture), interrupted(&fixture), crowded(&fixture)]);
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    let late = fixture.workfs(&["claim", "--wait", "--timeout", "0s"]).failure();
    seen.insert(late.code);

    fixture.unmount_all();
    let alone: [(&[&str], i32); 8] = [
        (&["init", "--store", "/proc/none.db"], 6),
        (&["ps"], 3),
        (&["unmount", "--all"], 3),
        (&["watch", "**"], 8),
        (&["restore", of("missing"), "--force"], 4),
        (&["restore", of("text.db"), "--force"], 10),
        (&["restore", of("empty.db"), "--force"], 10),
        (&["restore", of("dir"), "--force"], 10),
    ];
    for (arguments, code) in alone {
        let ran = fixture.workfs(arguments).failure();
        assert_eq!(ran.code, code, "{ran}");
        seen.insert(ran.code);
    }
    seen.remove(&42);
    assert_eq!(seen, documented(), "each code of the table is to be seen here");
}

/// 1: what it prints is taken by nobody; such a file takes one number.
fn refused(fixture: &Fixture) -> i32 {
    printed_to("/proc/self/oom_score_adj", fixture, 1)
}

/// 12: what it prints does not fit.
fn full(fixture: &Fixture) -> i32 {
    printed_to("/dev/full", fixture, 12)
}

fn printed_to(file: &str, fixture: &Fixture, code: i32) -> i32 {
    let mut command = fixture.command(&["log"]);
    command.stdout(fs::File::options().write(true).open(file).unwrap());
    let ended = command.stderr(std::process::Stdio::piped()).output().unwrap();
    assert!(String::from_utf8_lossy(&ended.stderr).contains("standard output"), "{ended:?}");
    assert_eq!(ended.status.code(), Some(code));
    code
}

/// 130: it waits until it is interrupted.
fn interrupted(fixture: &Fixture) -> i32 {
    use std::io::BufRead as _;
    use std::os::unix::process::ExitStatusExt as _;
    let mut command = fixture.command(&["log", "--follow"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    send_signal(child.id(), rustix::process::Signal::INT);
    let ended = child.wait().unwrap();
    // The shell's word for a program that SIGINT ended.
    ended.code().or(ended.signal().map(|signal| 128 + signal)).unwrap()
}

/// 75: the daemon has all the clients that it serves.
fn crowded(fixture: &Fixture) -> i32 {
    let socket = fixture.store().with_extension("db.sock");
    let connect = |_| std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let clients: Vec<_> = (0..workfs::limits::CONNECTIONS_MAX).map(connect).collect();
    let ran = fixture.workfs(&["list"]).failure();
    assert!(ran.stderr.contains("try again"), "{ran}");
    drop(clients);
    // It sees the end of each by and by.
    while fixture.workfs(&["list"]).code == ran.code {}
    ran.code
}

// P8.2
#[test]
fn a_claim_by_path_that_came_too_late_is_no_typo() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let claim = |what: &str| fixture.workfs(&["claim", what, "--agent", "ann"]);
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    let late = claim("work/inbox/t-1.yaml").failure();
    assert_eq!(late.code, 5, "{late}");
    assert!(late.stderr.contains("it is `work/assigned/bob/t-1.yaml` now"), "{late}");
    let typo = claim("work/inbox/t-2.yaml").failure();
    assert_eq!(typo.code, 4, "{typo}");
    // What was removed is nobody's who was faster.
    fixture.sh("mv work/assigned/bob/t-1.yaml work/inbox/").success();
    fs::remove_file(path).unwrap();
    let removed = claim("work/inbox/t-1.yaml").failure();
    assert_eq!(removed.code, 4, "{removed}");
}

// P8.2
#[test]
fn what_is_ready_can_be_claimed_by_its_path_outside_of_mounts_and_without_a_daemon() {
    let fixture = Fixture::new();
    for n in 1..=4 {
        fixture.task("inbox", &Task::new(&format!("t-{n}")));
    }
    let claim = |what: &str| fixture.workfs(&["claim", what, "--agent", "ann"]);
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    for n in [2, 3] {
        let late = claim("work/ready/t-1.yaml").failure();
        assert_eq!(late.code, 5, "{late}");
        assert!(late.stderr.contains("it is `work/assigned/bob/t-1.yaml` now"), "{late}");
        let typo = claim("work/ready/t-9.yaml").failure();
        assert_eq!(typo.code, 4, "{typo}");
        let best = claim("work/ready/.next").success();
        assert_eq!(best.stdout, format!("work/assigned/ann/t-{n}.yaml\n"));
        for what in ["ready/t-4.yaml", "ready/.next"] {
            let short = claim(what).failure();
            let told = format!("a path begins at the root of the tree: `work/{what}`");
            assert!(short.code == 4 && short.stderr.contains(&told), "{short}");
        }
        if n == 2 {
            fixture.unmount_all();
            fixture.await_no_daemon();
        }
    }
    claim("work/ready/.next").success();
    let none = claim("work/ready/.next").failure();
    assert_eq!(none.code, 3, "{none}");
}

// P8.2
#[test]
fn an_empty_name_means_nothing_and_not_the_whole_tree() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.outside("src")).unwrap();
    fs::write(fixture.outside("src/f"), "x").unwrap();
    let src = fixture.outside("src");
    let src = src.to_str().unwrap();
    let ran = fixture.workfs(&["import", src, ""]).failure();
    assert!(ran.code == 2 && ran.stderr.contains("cannot be empty"), "{ran}");
    assert!(!fixture.path("f").exists());
    for asked in ["show", "log", "why", "list", "done", "heartbeat"] {
        let ran = fixture.workfs(&[asked, ""]).failure();
        assert!(ran.code == 2 && ran.stderr.contains("cannot be empty"), "{asked}: {ran}");
    }
    fixture.workfs(&["import", src, "."]).success();
    assert!(fixture.path("f").exists());
}

// P8.2
#[test]
fn an_export_of_what_is_not_there_makes_nothing() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "x").unwrap();
    let out = fixture.outside("out");
    let to = out.to_str().unwrap();
    let ran = fixture.workfs(&["export", to, "--path", "nope"]).failure();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(!out.exists(), "nothing is there to be exported");
    fixture.workfs(&["export", to, "--path", "f"]).success();
}

// P8.2
#[test]
fn where_there_is_no_store_none_is_made() {
    let elsewhere = Setup::default().prepare();
    let commands: [&[&str]; 10] = [
        &["list"],
        &["status"],
        &["log"],
        &["fsck"],
        &["agent", "list"],
        &["agent", "remove", "bob"],
        &["project", "new"],
        &["gc"],
        &["claim", "--next"],
        &["watch", "**", "--timeout", "1"],
    ];
    for arguments in commands {
        let ran = elsewhere.workfs(arguments).failure();
        assert_eq!(ran.code, 4, "there is no store: {ran}");
        assert!(!elsewhere.store().exists(), "{arguments:?} makes no store");
    }
    // These are about the daemon, and about the machine.
    let about_no_store: [(&[&str], i32, &str); 3] = [
        (&["ps"], 3, "no daemon serves"),
        (&["unmount", "--all"], 3, "no daemon serves"),
        (&["doctor"], 0, "is not there"),
    ];
    for (arguments, code, said) in about_no_store {
        let ran = elsewhere.workfs(arguments);
        assert!(ran.code == code && ran.said().contains(said), "{ran}");
        assert!(!elsewhere.store().exists(), "{arguments:?} makes no store");
    }
    elsewhere.workfs(&["agent", "add", "bob"]).success();
    assert!(elsewhere.store().exists());
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
fn a_layout_that_cannot_be_read_says_the_way_out() {
    let fixture = Setup::default().prepare();
    let ran = fixture.workfs(&["init", "--layout", "nofile", "--json"]).failure();
    let told: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(told["error"]["code"], 4, "{ran}");
    assert!(told["error"]["remedy"].as_str().unwrap().contains("--layout FILE"), "{ran}");
}

// P8.2
#[test]
fn a_bad_layout_is_refused_with_its_line() {
    let fixture = Setup::default().prepare();
    let layout = fixture.outside("layout.yaml");
    std::fs::write(&layout, "workspaces:\n  - path: work\n    kindd: task\n").unwrap();
    let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).failure();
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("(line 3)") && ran.stderr.contains("kind"), "{ran}");
    let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap(), "--json"]).failure();
    let told: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(told["error"]["place"], serde_json::json!({"line": 3}), "{ran}");
    for text in ["files: []\n", "", "\n"] {
        std::fs::write(&layout, text).unwrap();
        let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).failure();
        assert!(ran.code == 2 && ran.stderr.contains("`workspaces: []`"), "{ran}");
    }
    std::fs::write(&layout, "workspaces: []\n").unwrap();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
}

// P8.2
#[test]
fn who_needs_the_store_alone_says_who_has_it() {
    let fixture = Fixture::new();
    let layout = fixture.outside("layout.yaml");
    fs::write(&layout, "workspaces: []\n").unwrap();
    let backup = fixture.outside("backup.db");
    let [layout, backup] = [&layout, &backup].map(|path| path.to_str().unwrap());
    fixture.workfs(&["backup", backup]).success();
    for arguments in [&["init", "--layout", layout][..], &["restore", backup, "--force"]] {
        let ran = fixture.workfs(arguments).failure();
        assert_eq!(ran.code, 9, "{ran}");
        assert!(ran.stderr.contains(&format!("process {}", fixture.daemon_pid())), "{ran}");
    }
}

// P8.2
#[test]
fn a_variable_that_is_set_to_nothing_is_not_set() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let mut command = fixture.command(&["claim", "t-1", "--json"]);
    let ran = run(command.env("WORKFS_AGENT", "")).success();
    assert_ne!(ran.json()["owner"], "", "{ran}");
    let mut command = std::process::Command::new(program());
    command.arg("status").env("WORKFS_STORE", "").env("WORKFS_AGENT", "");
    run(command.current_dir(fixture.root())).success();
    // What names no agent is no reason to act as the user.
    let mut command = fixture.command(&["project", "new"]);
    let name: std::ffi::OsString = OsStringExt::from_vec(b"\xff".to_vec());
    let ran = run(command.env("WORKFS_AGENT", name)).failure();
    assert!(ran.code == 2 && ran.stderr.contains("WORKFS_AGENT names no agent"), "{ran}");
}

// P6.1
#[test]
fn what_is_no_store_keeps_its_mode_and_gets_nothing_beside_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Setup::default().prepare();
    let root = fixture.root().to_str().unwrap();
    let dir = fixture.outside("others");
    fs::create_dir(&dir).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let text = "no store at all, but longer than a header of a database would be".repeat(9);
    fs::write(dir.join("text"), text).unwrap();
    fs::write(dir.join("short"), "x").unwrap();
    // A database of another program: a page of one, as far as anybody looks.
    let mut page = vec![0; 4096];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    fs::write(dir.join("other.db"), page).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("pipe"), 0o644.into()).unwrap();
    for name in ["text", "short", "other.db", "pipe"] {
        let other = dir.join(name);
        fs::set_permissions(&other, fs::Permissions::from_mode(0o666)).unwrap();
        for arguments in [&["status"][..], &["init"], &["mount", root], &["mount", "-f", root]] {
            let ran = fixture.command_on(&other, arguments).output().unwrap();
            // What no store can ever be is a mistake of who names it.
            let code = if name == "pipe" { 2 } else { 10 };
            assert_eq!((ran.status.code(), mode(&other)), (Some(code), 0o666), "{ran:?}");
        }
    }
    let mut left: Vec<_> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["other.db", "pipe", "short", "text"]);
}

// P6.1
#[test]
fn a_store_that_is_damaged_or_newer_gets_nothing_beside_it() {
    let fixture = Fixture::new();
    fixture.unmount_all();
    let root = fixture.root().to_str().unwrap();
    let store = fs::read(fixture.store()).unwrap();
    let dir = fixture.outside("stores");
    fs::create_dir(&dir).unwrap();
    // The version of the tables, at its place in the header of an SQLite file.
    let mut newer = store.clone();
    newer[60..64].copy_from_slice(&9999_u32.to_be_bytes());
    let mut damaged = store;
    let half = damaged.len() / 2;
    damaged[200..half].fill(0xa5);
    fs::write(dir.join("newer.db"), newer).unwrap();
    fs::write(dir.join("damaged.db"), damaged).unwrap();
    for name in ["newer.db", "damaged.db"] {
        for arguments in [&["mount", root][..], &["mount", "-f", root], &["status"], &["fsck"]] {
            let ran = fixture.command_on(&dir.join(name), arguments).output().unwrap();
            assert_eq!(ran.status.code(), Some(10), "{ran:?}");
            let mut left: Vec<_> =
                fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            left.sort();
            assert_eq!(left, ["damaged.db", "newer.db"], "{arguments:?}");
        }
    }
}

// P6.1
#[test]
fn restore_leaves_files_of_its_owner_alone_and_nothing_where_it_failed() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let backup = fixture.outside("backup.db");
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    let other = Setup::default().prepare();
    let files = wrong_files(&other);
    let beside = |other: &Fixture| fs::read_dir(other.store().parent().unwrap()).unwrap().count();
    for file in files.values() {
        other.workfs(&["restore", file]).failure();
        assert_eq!(beside(&other), 0, "{file}");
    }
    // A backup whose pages are no store's: found out only when all of it was looked at.
    let mut bytes = fs::read(&backup).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    let damaged = fixture.outside("damaged.db");
    fs::write(&damaged, bytes).unwrap();
    let ran = other.workfs(&["restore", damaged.to_str().unwrap()]).failure();
    assert!(ran.code == 10 || ran.code == 11, "{ran}");
    assert_eq!(beside(&other), 0, "{ran}");

    let umask = "umask 022; exec \"$WORKFS\" --store \"$STORE\" restore \"$BACKUP\"";
    let shell = other.bash().with("WORKFS", program());
    shell.with("STORE", other.store()).with("BACKUP", &backup).run(umask).success();
    for entry in fs::read_dir(other.store().parent().unwrap()).unwrap() {
        let mode = entry.as_ref().unwrap().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{entry:?}");
    }
}

// P8.4
#[test]
fn who_waits_without_a_daemon_ends_at_the_first_signal() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let waiting = fixture.command(&["claim", "--wait", "--agent", "bob"]).spawn();
    let mut waiting = waiting.unwrap();
    let lock = fixture.store().with_extension("db.lock");
    // Each look at the store takes its lock.
    let mut looks = BTreeSet::new();
    until_polled("it has looked more than once", || {
        looks.extend(fs::metadata(&lock).and_then(|lock| lock.modified()));
        (looks.len() > 3).then_some(())
    });
    send_signal(waiting.id(), Signal::TERM);
    let ended = await_exit(waiting.id(), DEADLINE);
    if !ended {
        waiting.kill().unwrap();
    }
    let status = waiting.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{status}");
}

// P8.1
#[test]
fn a_home_that_tells_no_place_is_said_to_be_that() {
    for home in [None, Some("rel")] {
        let mut command = std::process::Command::new(program());
        command.arg("status").current_dir("/").env_clear().envs(home.map(|home| ("HOME", home)));
        let ran = run(&mut command);
        assert!(ran.code == 2 && ran.stderr.contains("HOME is no absolute path"), "{ran}");
    }
}
