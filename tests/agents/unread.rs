//! What a user may not read stays unread, also where it would be judged.

use std::fs;

use crate::harness::{Fixture, Task, program};
use crate::users::{BOB, NOBODY, by, shared};

const ANN: u32 = 64002;
const LEAD: u32 = 64003;

/// All that is kept and told of bob's refusals, as bob sees it.
fn told_to_bob(fixture: &Fixture) -> String {
    by(fixture, BOB, "cat .workfs/why; cat .workfs/rejected/* 2>/dev/null || true").success().stdout
}

// P3.10
#[test]
fn what_somebody_may_not_read_is_not_judged_for_him() {
    let Some(fixture) = shared() else { return };
    fixture.sh("mkdir open && chmod 777 open").success();
    let ann = |command: &str| by(&fixture, ANN, &format!("umask 077; cd open; {command}"));
    // Drafts, what would be a draft, and what would be a record that he may claim, and so read.
    by(&fixture, ANN, "umask 077; echo 'status: hunter2' > work/inbox/d-1.yaml").failure();
    ann("echo 'status: hunter2' > bad.yaml; echo '- hunter2' > list.yaml").success();
    ann("echo 'notes: hunter2' > good.yaml").success();
    for refused in [
        "mv work/inbox/d-1.yaml work/assigned/bob/",
        "mv work/inbox/d-1.yaml work/inbox/d-2.yaml",
        "mv open/bad.yaml work/inbox/t-7.yaml",
        "mv open/list.yaml work/inbox/t-7.yaml",
        "mv open/good.yaml work/inbox/t-7.yaml",
        "mv -f open/good.yaml work/inbox/t-1.yaml",
    ] {
        let ran = by(&fixture, BOB, refused).failure();
        assert!(ran.stderr.contains("Permission denied"), "{ran}");
    }
    let told = told_to_bob(&fixture);
    assert!(!told.contains("hunter2") && told.contains("may not read `good.yaml`"), "{told}");
    // Who may read it, by whichever group, may bring it there.
    ann("chgrp 64002 good.yaml; chmod 640 good.yaml").success();
    let of_group = format!("setpriv --reuid {BOB} --regid {BOB} --groups 64002");
    ann("echo 'notes: hunter2' > shut.yaml; chgrp 64002 shut.yaml; chmod 604 shut.yaml").success();
    fixture.sh(&format!("{of_group} mv open/shut.yaml work/inbox/t-8.yaml")).failure();
    fixture.sh(&format!("{of_group} mv open/good.yaml work/inbox/t-7.yaml")).success();
    by(&fixture, ANN, "mv open/list.yaml work/inbox/t-8.yaml").failure();
    fixture.fsck_clean();
}

// P3.10 P11.7
#[test]
fn nor_is_it_for_who_gives_it_a_name_that_is_checked() {
    let Some(fixture) = shared() else { return };
    fixture.sh("mkdir open && chmod 777 open").success();
    fixture.task("inbox", &Task::new("t-9"));
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  checks: [{ path: 'open/*.json', syntax: json }]\n";
    let file = fixture.outside("layout.yaml");
    fs::write(&file, layout).unwrap();
    fixture.unmount_all();
    fixture.await_no_daemon();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    let root = fixture.root().to_str().unwrap();
    fixture.workfs(&["mount", root, "-o", "allow_other"]).success();
    by(&fixture, ANN, "umask 077; cd open; echo hunter2 > a; echo '\"hunter2\"' > b").success();
    by(&fixture, BOB, "mv open/a open/a.json").failure();
    by(&fixture, BOB, "mv open/b open/b.json").failure();
    let told = told_to_bob(&fixture);
    assert!(!told.contains("hunter2") && told.contains("may not read `a`"), "{told}");
    by(&fixture, ANN, "mv open/b open/b.json").success();
    fixture.fsck_clean();
}

// P3.10
#[test]
fn what_waits_in_a_text_that_somebody_may_not_read_is_not_told() {
    let Some(fixture) = shared() else { return };
    by(&fixture, ANN, "umask 077; echo 'status: hunter2' > work/inbox/d-1.yaml").failure();
    by(&fixture, ANN, "umask 077; echo 'dependencies: [hunter2]' > work/inbox/t-7.yaml").success();
    let asks = |uid: u32, words: &str| {
        let program = program();
        let store = fixture.store().display();
        by(&fixture, uid, &format!("'{program}' --store '{store}' {words} 2>&1")).stdout
    };
    fixture.sh(&format!("chmod 755 '{}'", fixture.store().parent().unwrap().display())).success();
    for words in ["claim d-1", "done d-1", "heartbeat d-1", "ready --explain"] {
        let told = asks(BOB, words);
        assert!(!told.contains("hunter2") && !told.is_empty(), "{words}: {told}");
        let told = asks(ANN, words);
        assert!(told.contains("hunter2"), "{words}: {told}");
    }
}

// P3.2
#[test]
fn nobody_pushes_out_what_others_are_told_of_their_refusals() {
    let Some(fixture) = shared() else { return };
    by(&fixture, BOB, "mkdir -p work/assigned/bob; echo 'status: hunter2' > work/inbox/t-2.yaml")
        .failure();
    let flood = "import os\nfor n in range(1300):\n  try: os.open('work/assigned/ann/n%d.yaml' % (n % 3), os.O_CREAT | os.O_WRONLY)\n  except OSError: pass";
    by(&fixture, LEAD, &format!("python3 -c \"{flood}\"")).success();
    by(&fixture, NOBODY, &format!("python3 -c \"{flood}\"")).success();
    let told = told_to_bob(&fixture);
    assert!(told.contains("t-2.yaml") && told.contains("hunter2"), "{told}");
}
