//! The policy `flag`: what is not valid is taken and marked.

use std::fs;

use crate::harness::{Fixture, Setup, Task, save};

fn flagging() -> Fixture {
    let layout = "workspaces:\n  - path: work\n    kind: task\n    policy: flag\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir -p work/inbox work/assigned/bob work/done/bob").success();
    fixture
}

// P3.6
#[test]
fn flag_takes_what_is_not_valid_and_marks_it() {
    let fixture = flagging();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let bad = Task::new("t-1").status("nonsense").text();
    save(&path, bad.as_bytes()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    let why = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
    assert!(why.contains("status"), "{why}");
    fixture.sh("echo 'status: nonsense' > work/inbox/t-1.yaml").success();

    let moved = fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").failure();
    assert!(moved.stderr.contains("Operation not permitted"), "{moved}");
    fixture.sh("echo 'status: new' > work/inbox/t-1.yaml").success();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let names = ["created", "saved", "saved", "saved", "claimed"];
    assert_eq!(fixture.ledger().names("t-1"), names);
    fixture.fsck_clean();
}

// P3.6
#[test]
fn flag_takes_new_files_that_are_not_valid() {
    let fixture = flagging();
    save(&fixture.path("work/inbox/t-1.yaml"), b"status: [").unwrap();
    assert_eq!(fs::read(fixture.path("work/inbox/t-1.yaml")).unwrap(), b"status: [");
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").failure();
    fixture.fsck_clean();
}

// P3.6
#[test]
fn flag_takes_by_rename_what_it_takes_by_writing() {
    let fixture = flagging();
    let path = fixture.path("work/inbox/t-1.yaml");
    let renamed = |text: &str| {
        let script =
            format!("cd work/inbox; printf '{text}' > t-1.yaml.tmp; mv t-1.yaml.tmp t-1.yaml");
        fixture.sh(&script)
    };
    // To a free name, over a draft, a draft over one; then a record over it, and over that.
    for text in ["a: [", "b: [", "id: other\n"] {
        renamed(text).success();
        assert_eq!(fs::read_to_string(&path).unwrap(), text.replace("\\n", "\n"));
        let why = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
        assert!(why.contains("draft") && !why.contains("refused"), "{why}");
    }
    save(&fixture.path("work/inbox/t-2.yaml"), b"c: [").unwrap();
    fixture.sh("mv work/inbox/t-2.yaml work/inbox/t-1.yaml").success();
    assert_eq!(fs::read_to_string(&path).unwrap(), "c: [");
    assert_eq!(fs::read_dir(fixture.path("work/inbox")).unwrap().count(), 1);
    assert!(fixture.rejected().is_empty());
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").failure();
    renamed("status: new\\n").success();
    renamed("status: nonsense\\n").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    // What is not about the text is refused as everywhere: the id lives elsewhere.
    renamed("status: new\\n").success();
    fixture.sh("cd work; cp inbox/t-1.yaml $OUT/t; mv inbox/t-1.yaml assigned/bob/").success();
    fixture.sh("cd work; printf 'a: [' > x.tmp; mv x.tmp done/bob/t-1.yaml").failure();
    assert!(!fixture.path("work/done/bob/t-1.yaml").exists());
    fixture.fsck_clean();
}

// P3.6
#[test]
fn flag_tells_nothing_as_refused_that_it_took() {
    let fixture = flagging();
    save(&fixture.path("work/inbox/t-1.yaml"), b"status: [").unwrap();
    let why = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
    assert!(why.contains("W010") && !why.contains("refused"), "{why}");
    assert!(fixture.why().contains("nothing of yours was refused"), "{}", fixture.why());
    assert!(fixture.rejected().is_empty());
    // What is not taken is refused and told so: a second file of a record that lives elsewhere.
    let task = Task::new("t-2");
    fixture.sh("mkdir work/assigned/ann").success();
    fixture.task("inbox", &task);
    fixture.sh("mv work/inbox/t-2.yaml work/assigned/bob/").success();
    let copy = fixture.path("work/assigned/ann/t-2.yaml");
    save(&copy, task.text().as_bytes()).unwrap_err();
    assert!(!copy.exists());
    assert!(fixture.why().contains("W002"), "{}", fixture.why());
    fixture.fsck_clean();
}

// P3.6 P1.3
#[test]
fn flag_moves_no_record_that_is_not_valid_by_a_copy_of_it() {
    let fixture = flagging();
    let path = fixture.task("inbox", &Task::new("t-1"));
    // Not YAML, not the kind's, and a status that is nowhere.
    for bad in ["garbage: [\n", "status: new\nartefacts: 5\n", "status: done\n"] {
        save(&path, bad.as_bytes()).unwrap();
        for copy in [
            "cp $A $B && rm $A",
            "cat $A > $B && rm $A",
            "echo \"$(cat $A)\" > $B && rm $A",
            "cp $A x.tmp && mv x.tmp $B && rm $A",
        ] {
            let names = "cd work; A=inbox/t-1.yaml B=assigned/bob/t-1.yaml";
            fixture.sh(&format!("{names}; {copy}")).failure();
            assert_eq!(fs::read_to_string(&path).unwrap(), bad, "{copy}");
            fixture.sh("cd work; rm -f assigned/bob/t-1.yaml x.tmp").success();
        }
    }
    let ledger = fixture.ledger();
    let events = ledger.names("t-1");
    assert!(!events.iter().any(|name| ["removed", "claimed"].contains(name)), "{events:?}");
    // Mended, it goes.
    save(&path, Task::new("t-1").text().as_bytes()).unwrap();
    fixture.sh("cd work; cp inbox/t-1.yaml assigned/bob/ && rm inbox/t-1.yaml").success();
    fixture.fsck_clean();
}

// P3.6
#[test]
fn flag_takes_the_bad_save_of_an_editor_that_makes_a_backup() {
    let fixture = flagging();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let bad = Task::new("t-1").status("nonsense").text();
    fixture.sh("mv work/inbox/t-1.yaml work/inbox/t-1.yaml~").success();
    save(&path, bad.as_bytes()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    let why = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
    assert!(why.contains("flagged as not valid") && why.contains("W011"), "{why}");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "renamed", "saved"]);
    fixture.fsck_clean();
}

// P3.7
#[test]
fn other_directories_may_be_bound_to_the_kind() {
    let layout = "workspaces:
  - path: \"**/tasks\"
    kind: task
    dirs: { inbox: inbox, assigned: \"working/{owner}\", done: done }
";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir -p a/tasks/inbox a/tasks/working/bob a/tasks/done b/tasks/inbox").success();
    let text = Task::new("t-1").text();
    save(&fixture.path("a/tasks/inbox/t-1.yaml"), text.as_bytes()).unwrap();
    save(&fixture.path("b/tasks/inbox/t-1.yaml"), text.as_bytes()).unwrap();
    fixture.sh("cd a/tasks; mv inbox/t-1.yaml working/bob/").success();
    let claimed = fs::read_to_string(fixture.path("a/tasks/working/bob/t-1.yaml")).unwrap();
    assert!(claimed.contains("\nstatus: assigned\n") && claimed.contains("\nagent: bob\n"));
    // `work` is none here.
    fixture.sh("mkdir -p work/inbox; echo 'status: nonsense' > work/inbox/x.yaml").success();
    fixture.fsck_clean();
}
