//! Names that are computed: `.workfs/`, `AGENTS.md`, `*.why`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::process::{Command, Stdio};

use crate::harness::{Errno, Fixture, Ledger, Setup, Task, save};

// P5.3
#[test]
fn events_are_the_ledger_and_can_be_followed() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let lines = || -> Vec<serde_json::Value> {
        let text = fs::read_to_string(fixture.path(".workfs/events")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(Ledger::of(lines()).names("t-1"), ["created"]);
    let mut tail = Command::new("tail")
        .args(["-n", "0", "-F", "--sleep-interval=0.1"])
        .arg(fixture.path(".workfs/events"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It has opened the file once a descriptor of it leads there.
    crate::harness::until_polled("tail has the file open", || {
        let fds = fs::read_dir(format!("/proc/{}/fd", tail.id())).ok()?;
        let mut to = fds.flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
        to.any(|path| path.ends_with(".workfs/events")).then_some(())
    });
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let mut line = String::new();
    BufReader::new(tail.stdout.take().unwrap()).read_line(&mut line).unwrap();
    tail.kill().unwrap();
    tail.wait().unwrap();
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["event"], "claimed", "{line}");
    assert_eq!(lines().len() as u64, fixture.ledger().last_g());
}

// P11.7
#[test]
fn what_is_to_be_renamed_is_not_told_to_be_checked() {
    let layout = "workspaces: []\nchecks: [{ path: \"scratchpad/*.json\" }]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("echo '{' > scratchpad/tmpab12cd.json; echo '{}' > scratchpad/a.json").success();
    let why = |name: &str| fixture.path(&format!("scratchpad/{name}.why")).exists();
    assert_eq!([why("tmpab12cd.json"), why("a.json")], [false, true]);
    fixture.sh("mv scratchpad/tmpab12cd.json scratchpad/a.json").failure();
}

// P3.2
#[test]
fn why_names_the_rule_the_place_and_the_way_out() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let bad = Task::new("t-1").status("nonsense").text();
    assert_eq!(save(&fixture.path("work/inbox/t-1.yaml"), bad.as_bytes()), Err(Errno::INVAL));
    let line = bad.lines().position(|line| line.starts_with("status")).unwrap() + 1;
    let beside = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
    for text in [fixture.why(), beside] {
        for wanted in ["W0", "EINVAL", "nonsense", &format!("{line}")] {
            assert!(text.contains(wanted), "`why` lacks {wanted}:\n{text}");
        }
    }
    let said = fixture.workfs(&["why", "--json"]).success();
    assert!(said.stdout.contains("nonsense"), "{said}");
}

// P7.5
#[test]
fn computed_files_are_read_only() {
    let fixture = Fixture::new();
    for path in [".workfs/events", ".workfs/why", ".workfs/new", "AGENTS.md"] {
        let error = fs::write(fixture.path(path), b"x").expect_err(path);
        let errno = Errno::from_io_error(&error);
        assert!(
            matches!(errno, Some(Errno::ROFS | Errno::ACCESS | Errno::PERM)),
            "{path}: {error}"
        );
    }
    let error = fs::remove_dir_all(fixture.path(".workfs")).unwrap_err();
    assert!(matches!(Errno::from_io_error(&error), Some(Errno::ROFS | Errno::PERM)), "{error}");
    assert!(fixture.path(".workfs/events").exists());
}

// P7.5
#[test]
fn what_is_computed_beside_stored_names_is_neither_moved_nor_removed() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mkdir d && echo x > f").success();
    for refused in [
        "rm AGENTS.md",
        "rm -f AGENTS.md",
        "mv AGENTS.md x",
        "mv f AGENTS.md",
        "mv -T d .workfs",
        "mv .workfs x",
        "rmdir .workfs",
        "mv work/ready x",
        "rmdir work/ready",
        "mv -T d work/ready",
        "rm work/inbox/t-1.yaml.why",
        "mv work/inbox/t-1.yaml.why x",
    ] {
        let ran = fixture.sh(refused).failure();
        assert!(ran.stderr.contains("Read-only file system"), "{refused}: {ran}");
    }
    let why = fs::read_to_string(fixture.path(".workfs/why")).unwrap();
    for (call, name) in [
        ("unlink", "AGENTS.md"),
        ("rename", "AGENTS.md"),
        ("rmdir", ".workfs"),
        ("rmdir", "work/ready"),
        ("rename", "work/ready"),
        ("unlink", "work/inbox/t-1.yaml.why"),
    ] {
        assert!(why.contains(&format!("{call} {name} EROFS [W009")), "{call} {name}: {why}");
    }
    assert!(fixture.path("AGENTS.md").exists() && fixture.path("work/ready/t-1.yaml").exists());
    // Who removes a workspace has nothing to do about it.
    fixture.sh("rm -rf work/collaboration && test ! -e work/collaboration").success();
    fixture.fsck_clean();
}

// P7.5
#[test]
fn an_agent_is_told_how_to_work_here() {
    let fixture = Fixture::new();
    let text = fs::read_to_string(fixture.path("AGENTS.md")).unwrap();
    assert!(text.lines().count() <= 60, "{} lines", text.lines().count());
    for wanted in ["mv ", "work/inbox", "ENOENT", "EBUSY", ".why"] {
        assert!(text.contains(wanted), "AGENTS.md lacks {wanted}");
    }
    let metadata = fs::metadata(fixture.path("AGENTS.md")).unwrap();
    assert_eq!(metadata.len(), text.len() as u64);
}

// P7.5
#[test]
fn nothing_is_stored_under_the_name_that_tells_why() {
    let fixture = Fixture::new();
    fixture.sh("touch f").success();
    for make in ["touch", "mkdir", "cp f", "mv f", "ln f", "ln -s f"] {
        let refused = fixture.sh(&format!("{make} work/inbox/q.yaml.why")).failure();
        assert!(refused.stderr.contains("Read-only file system"), "{make}: {refused}");
    }
    // Beside what is no record's name, and where nothing is governed, it is a name as any other.
    fixture.sh("touch work/inbox/README.md.why work/q.yaml.why q.yaml.why").success();
    fixture.task("inbox", &Task::new("q"));
    let why = fs::read_to_string(fixture.path("work/inbox/q.yaml.why")).unwrap();
    assert!(why.contains("it can be claimed now"), "{why}");
}

// P11.3
#[test]
fn a_record_and_files_below_its_name_have_their_pasts_in_one_directory() {
    let layout = "workspaces: [{ path: work, kind: task }]\nfiles:\n  - { path: \"work/t-1/**\", versions: 9 }\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("inbox", &Task::new("t-2"));
    let past = fixture.path(".workfs/history/work");
    let names = |dir: &std::path::Path| {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let version = names(&past.join("t-1"));
    assert_eq!(version.len(), 1);
    let alone = fs::metadata(past.join("t-1")).unwrap().ino();
    let open = fs::File::open(past.join("t-1")).unwrap();
    fixture.sh("mkdir work/t-1 && echo 1 > work/t-1/notes").success();
    // Whoever was there sees the record's versions, and who looks now all that has a past there.
    let there = format!("/proc/self/fd/{}", open.as_raw_fd());
    assert_eq!(names(there.as_ref()), version);
    let mut both = version.clone();
    both.push("notes".to_owned());
    assert_eq!(names(&past.join("t-1")), both);
    assert_ne!(fs::metadata(past.join("t-1")).unwrap().ino(), alone);
    fixture.sh("cat .workfs/history/work/t-1/notes/* | grep -x 1").success();
    fixture.sh(&format!("cmp .workfs/history/work/t-1/{} work/inbox/t-1.yaml", both[0])).success();
    // Each is listed once, and is the directory that it is listed as.
    assert_eq!(names(&past), ["t-1", "t-2"]);
    for entry in fs::read_dir(&past).unwrap().map(Result::unwrap) {
        let looked_up = fs::metadata(past.join(entry.file_name())).unwrap().ino();
        assert_eq!(entry.ino(), looked_up, "{:?}", entry.file_name());
    }
}

// P6.7
#[test]
fn what_may_take_long_is_looked_at_by_threads_of_its_own() {
    const LONG: [&str; 9] = [
        "ls .workfs",
        "ls .workfs/history",
        "stat .workfs/history/work",
        "ls .workfs/at/$(wc -l < .workfs/events)",
        "stat .workfs/at/$(wc -l < .workfs/events)/work",
        "cat .workfs/leases",
        "cat .workfs/metrics",
        "cat .workfs/status",
        "ls .workfs/hold",
    ];
    for look in LONG.into_iter().chain(["ls -a . work/inbox work/ready; cat .workfs/why"]) {
        let fixture = Fixture::new();
        fixture.task("inbox", &Task::new("t-1"));
        // Such a thread waits for a second for more.
        let has_thread = || {
            fixture.sh(&format!("{look} > /dev/null")).success();
            let tasks = fs::read_dir(format!("/proc/{}/task", fixture.daemon_pid())).unwrap();
            let mut names =
                tasks.flatten().map(|task| fs::read_to_string(task.path().join("comm")));
            names.any(|name| name.is_ok_and(|name| name == "aside\n"))
        };
        if LONG.contains(&look) {
            crate::harness::until_polled(look, || has_thread().then_some(()));
        } else {
            assert!(!has_thread(), "{look}");
        }
    }
}
