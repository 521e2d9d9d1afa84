//! In a mount of a part of the tree, commands see that part and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Fixture, Ran, Task, program, run, save};

/// A tree with a task and a secret beside it, and a mount of `work` alone.
struct Narrow {
    fixture: Fixture,
    part: PathBuf,
}

impl Narrow {
    fn new() -> Narrow {
        Narrow::of("work")
    }

    fn of(root: &str) -> Narrow {
        let fixture = Fixture::new();
        fixture.task("inbox", &Task::new("t-1"));
        fs::create_dir_all(fixture.path("scratchpad/secret/inbox")).unwrap();
        fs::write(fixture.path("scratchpad/secret/notes.md"), "secret\n").unwrap();
        let part = fixture.base().join("part");
        fs::create_dir(&part).unwrap();
        fixture.workfs(&["mount", part.to_str().unwrap(), "--root", root]).success();
        Narrow { fixture, part }
    }

    fn here(&self, dir: &str, arguments: &[&str]) -> Ran {
        run(self.fixture.command(arguments).current_dir(self.part.join(dir)))
    }
}

// P10.8
#[test]
fn commands_see_what_the_mount_shows_and_name_it_so() {
    let narrow = Narrow::new();
    let nothing_else = |ran: &Ran| {
        assert!(!ran.said().contains("secret") && !ran.said().contains("work/"), "{ran}");
    };
    let listed = narrow.here("", &["list", "--json"]).success();
    assert_eq!(listed.json()["rows"][0]["path"], "inbox/t-1.yaml", "{listed}");
    assert_eq!(narrow.here("done", &["ready"]).success().stdout, "inbox/t-1.yaml\n");
    for (dir, what) in [("", "inbox/t-1.yaml"), ("done", "inbox/t-1.yaml"), ("inbox", "t-1")] {
        let shown = narrow.here(dir, &["show", what]).success();
        assert!(shown.stdout.starts_with("# inbox/t-1.yaml\n"), "{shown}");
        nothing_else(&shown);
    }
    for arguments in [&["list"][..], &["list", "."], &["log"], &["why"], &["log", "inbox"]] {
        nothing_else(&narrow.here("", arguments).success());
    }
    let log = narrow.fixture.workfs(&["log"]).success();
    assert!(log.stdout.contains("secret"), "there is something to hide: {log}");

    let secret = narrow.fixture.path("scratchpad/secret/notes.md");
    for what in ["scratchpad/secret/notes.md", "work/inbox/t-1.yaml", secret.to_str().unwrap()] {
        for command in ["show", "log"] {
            let ran = narrow.here("", &[command, what]).failure();
            assert_eq!(ran.code, 4, "{ran}");
        }
    }
    let out = narrow.fixture.outside("out");
    let exported = narrow.here("", &["export", out.to_str().unwrap(), "--versions"]).success();
    nothing_else(&exported);
    assert!(out.join("inbox/t-1.yaml").exists() && out.join(".workfs/history/t-1").is_dir());
    assert!(!out.join("work").exists() && !out.join("scratchpad").exists());
    narrow.here("", &["import", out.join("inbox").to_str().unwrap(), "new"]).success();
    assert!(narrow.fixture.path("work/new/t-1.yaml").exists());
}

// P10.8
#[test]
fn a_record_goes_its_way_where_the_whole_workspace_is_shown() {
    let narrow = Narrow::new();
    let claimed = narrow.here("", &["claim", "--next", "--agent", "bob"]).success();
    assert_eq!(claimed.stdout, "assigned/bob/t-1.yaml\n");
    narrow.here("", &["heartbeat", claimed.stdout.trim(), "--agent", "bob"]).success();
    let ran = narrow.here("", &["done", "t-1", "--summary", "ok", "--agent", "bob"]).success();
    assert_eq!(ran.stdout, "done done/bob/t-1.yaml\n");
    assert_eq!(narrow.here("", &["claim", "--next"]).failure().code, 3);

    let narrow = Narrow::of("work/inbox");
    assert!(narrow.here("", &["list"]).success().stdout.contains("t-1"));
    let ran = narrow.here("", &["claim", "t-1", "--agent", "bob"]).failure();
    assert!(ran.code == 6 && ran.stderr.contains("only some of the workspace"), "{ran}");
    for wait in [&["claim", "--next"][..], &["claim", "--next", "--wait"]] {
        let ran = narrow.here("", wait).failure();
        assert!(ran.code == 6 && ran.stderr.contains("no workspace as a whole"), "{ran}");
    }
    assert!(narrow.fixture.path("work/inbox/t-1.yaml").exists());
}

// P10.8
#[test]
fn a_part_that_is_moved_is_the_same_part() {
    let narrow = Narrow::of("scratchpad/secret");
    let dir = |name: &str| narrow.fixture.path("scratchpad").join(name);
    fs::rename(dir("secret"), dir("moved")).unwrap();
    fs::create_dir(dir("secret")).unwrap();
    fs::write(dir("secret/notes.md"), "another\n").unwrap();
    let shown = narrow.here("", &["show", "notes.md"]).success();
    assert!(shown.stdout.ends_with("secret\n"), "{shown}");
}

// P10.8
#[test]
fn what_is_about_the_whole_store_is_refused_there() {
    let narrow = Narrow::new();
    let file = narrow.fixture.outside("backup.db");
    let file = file.to_str().unwrap();
    for arguments in [
        &["status"][..],
        &["fsck"],
        &["doctor"],
        &["backup", file],
        &["restore", file, "--force"],
        &["gc"],
        &["gc", "--delete"],
        &["project", "new"],
        &["agent", "list"],
        &["agent", "add", "eve"],
        &["agent", "remove", "eve"],
    ] {
        let ran = narrow.here("", arguments).failure();
        assert!(ran.code == 6 && ran.stderr.contains("about the whole store"), "{ran}");
    }
    assert!(!Path::new(file).exists());
}

// P10.8
#[test]
fn events_are_those_of_the_part() {
    let narrow = Narrow::new();
    let since = narrow.fixture.ledger().last_g().to_string();
    fs::write(narrow.fixture.path("scratchpad/secret/more.md"), "more\n").unwrap();
    narrow.fixture.task("inbox", &Task::new("t-2"));
    let watched =
        |glob| narrow.here("", &["watch", glob, "--since", &since, "--timeout", "1", "-n", "1"]);
    let ran = watched("inbox/*.yaml").success();
    assert!(ran.stdout.contains(" inbox/t-2.yaml "), "{ran}");
    let read = "echo \"$WORKFS_PATH\"; cat \"$WORKFS_PATH\"";
    let exec = ["watch", "inbox/*", "--since", &since, "-n", "1", "--exec", read];
    let ran = narrow.here("", &exec).success();
    assert_eq!(ran.stdout, format!("inbox/t-2.yaml\n{}", Task::new("t-2").text()));
    assert_eq!(watched("scratchpad/**").code, 3);
    assert_eq!(watched("work/**").code, 3);
    let lines = narrow.here("", &["log", "--json", "--since", &since]).success().json_lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
}

// P10.8
#[test]
fn the_mount_of_exec_counts_wherever_its_command_goes() {
    let narrow = Narrow::new();
    let script = "cd / && \"$WORKFS\" list && \"$WORKFS\" show inbox/t-1.yaml && \
        ! \"$WORKFS\" log scratchpad && ! \"$WORKFS\" fsck";
    let mut command: Command = narrow.fixture.command(&["exec", "--root", "work", "--"]);
    command.args(["sh", "-c", script]).env("WORKFS", program());
    let ran = run(&mut command).success();
    assert!(ran.stdout.contains("# inbox/t-1.yaml"), "{ran}");
    assert!(!ran.said().contains("secret"), "{ran}");
}

// P10.6
#[test]
fn why_tells_of_what_the_mount_shows() {
    let narrow = Narrow::new();
    save(&narrow.fixture.path("work/inbox/bad.yaml"), b"id: other\n").unwrap_err();
    fs::rename(narrow.fixture.path("work/inbox"), narrow.fixture.path("inbox")).unwrap_err();
    let why = fs::read_to_string(narrow.part.join(".workfs/why")).unwrap();
    assert!(why.contains(" inbox/bad.yaml EINVAL") && !why.contains(" work/"), "{why}");
    let ran = narrow.here("", &["why", "inbox/bad.yaml"]).success();
    assert!(ran.stdout.contains("inbox/bad.yaml") && !ran.stdout.contains("work/"), "{ran}");
    // What is kept lies where this mount shows nothing.
    let kept = |ran: Ran| ran.success().stdout.contains(".workfs/rejected/");
    assert!(!kept(ran) && !kept(narrow.here("", &["why"])));
    assert!(kept(narrow.fixture.workfs(&["why", "work/inbox/bad.yaml"])));
}
