//! git, whose checkout unlinks a file and makes a new one.

use std::fs;

use crate::harness::{Fixture, Task, needs};

/// A repository outside whose worktree is the inbox, with three branches.
fn repository(fixture: &Fixture) {
    let new = Task::new("t-1").revision(1).text();
    let bad = Task::new("t-1").status("nonsense").text();
    fs::write(fixture.outside("new.yaml"), new).unwrap();
    fs::write(fixture.outside("bad.yaml"), bad).unwrap();
    let script = "set -e
        export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
        export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
        mkdir $OUT/tree; cd $OUT/tree; git init -q -b old .
        cp $W/inbox/t-1.yaml .; git add .; git commit -qm old
        git checkout -qb good; cp ../new.yaml t-1.yaml; git commit -qam good
        git checkout -qb bad; cp ../bad.yaml t-1.yaml; git commit -qam bad
        git checkout -q old";
    fixture.sh(script).success();
}

fn checkout(fixture: &Fixture, branch: &str) -> crate::harness::Ran {
    let script = format!("git --git-dir=$OUT/tree/.git --work-tree=$W/inbox checkout {branch}");
    fixture.sh(&script)
}

// P3.1
#[test]
fn git_checkout_replaces_a_record_by_a_good_one() {
    if !needs(&["git"]) {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    repository(&fixture);
    checkout(&fixture, "good").success();
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").revision(1).text());
    // It removed the record and made it again: the history goes on.
    assert_eq!(fixture.ledger().names("t-1"), ["created", "removed", "created"]);
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.fsck_clean();
}

// P9.5
#[test]
fn git_in_a_workspace_leaves_what_is_ready_alone() {
    if !needs(&["git"]) {
        return;
    }
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("inbox", &Task::new("t-2"));
    let script = "set -e
        export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
        export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
        cd work; git init -q .; git add -A; git commit -qm all; git ls-files
        mv inbox/t-1.yaml assigned/bob/; git add -A; git commit -qm claimed; git status --short
        git checkout -q HEAD~; git status --short; ls ready";
    let ran = fixture.sh(script).success();
    assert_eq!(ran.stdout, "inbox/t-1.yaml\ninbox/t-2.yaml\nt-1.yaml\nt-2.yaml\n", "{ran}");
    let names = fixture.sh("ls -A work/ready; find work/ready -type f").success();
    assert!(!names.stdout.contains("gitignore"), "{names}");
    fixture.sh("echo x > work/ready/.gitignore").failure();
    fixture.fsck_clean();
}

// P3.4
#[test]
fn git_checkout_of_a_bad_one_leaves_a_draft_and_the_history() {
    if !needs(&["git"]) {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    repository(&fixture);
    let said = checkout(&fixture, "bad");
    println!("exit {}: {}", said.code, said.stderr.trim());
    assert!(said.stderr.contains("unable to write file t-1.yaml"), "{said}");
    // git itself unlinked the record first. What it wrote is a draft, if it did not take it away
    // again, and cannot be claimed.
    if path.exists() {
        fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").failure();
        let why = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
        assert!(why.contains("W011") || why.contains("W013"), "{why}");
    }
    assert!(!fixture.rejected().is_empty());
    let history = fixture.workfs(&["show", "t-1", "--at", "1"]).success();
    assert!(history.stdout.contains("end_of: t-1"), "the old version is gone: {history}");
    fixture.fsck_clean();
}
