//! A finished task that names the next agent makes that agent's task, once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::harness::{Fixture, Setup, Task, await_end, until_polled};
use crate::{names, with_chores};

fn finished(id: &str, result: &str) -> Task {
    Task::new(id).with(&format!("context: {{ plan: 7 }}\nresult:\n  summary: built\n{result}"))
}

const TO_ANN: &str = "  next_agent: ann\n  next_task_title: 'Test it: all'\n  \
                      next_artefacts: [c.txt]\n  next_task_notes: |\n    mind\n    the gap\n";

/// Claims for bob and finishes.
#[track_caller]
fn finish(fixture: &Fixture, id: &str) {
    fixture.sh(&format!("cd work && mv inbox/{id}.yaml assigned/bob/")).success();
    fixture.sh(&format!("cd work && mv assigned/bob/{id}.yaml done/bob/")).success();
}

// P14.2
#[test]
fn a_finished_task_that_names_an_agent_makes_its_task() {
    let fixture = Fixture::new();
    fixture.task("inbox", &finished("t-1", TO_ANN));
    finish(&fixture, "t-1");
    let made = names(&fixture, "inbox");
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(made[0].ends_with("-ann-followup-t-1.yaml"), "{made:?}");
    let text = fs::read_to_string(fixture.work().join("inbox").join(&made[0])).unwrap();
    for line in [
        "agent: ann",
        "status: new",
        "title: \"Test it: all\"",
        "description: \"mind\\nthe gap\\n\"",
        "  - c.txt",
        "  plan: 7",
        "  previous_task: t-1",
        "created_by: bob",
        "priority: normal",
    ] {
        assert!(text.lines().any(|said| said == line), "no `{line}` in:\n{text}");
    }
    let ledger = fixture.ledger();
    let events = ledger.of_record(made[0].strip_suffix(".yaml").unwrap());
    assert_eq!((events[0].name(), events[0].text("role")), ("created", "daemon"));
    // It is a task like any other.
    fixture.sh("mv work/ready/.next work/assigned/ann/").success();
    assert_eq!(names(&fixture, "inbox").len(), 0);
    fixture.fsck_clean();
}

// P14.2
#[test]
fn what_goes_on_may_be_read_by_whom_the_finished_task_may() {
    let fixture = Fixture::new();
    fixture.task("inbox", &finished("t-1", TO_ANN));
    fixture.sh("chmod 640 work/inbox/t-1.yaml").success();
    finish(&fixture, "t-1");
    let made = fixture.work().join("inbox").join(&names(&fixture, "inbox")[0]);
    assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o640);
}

// P14.2
#[test]
fn a_copied_context_may_have_keys_of_any_length() {
    let fixture = Fixture::new();
    let key = "k".repeat(1500);
    let context = format!("context:\n  ? {key}\n  : a: [7]\n");
    let result = format!("result:\n  summary: built\n{TO_ANN}");
    fixture.task("inbox", &Task::new("t-1").with(&format!("{context}{result}")));
    finish(&fixture, "t-1");
    let made = names(&fixture, "inbox");
    assert_eq!(made.len(), 1, "{made:?}");
    let text = fs::read_to_string(fixture.work().join("inbox").join(&made[0])).unwrap();
    assert!(text.contains(&format!("  ? {key}\n  :\n    a:\n")), "{text}");
    fixture.fsck_clean();
}

// P13.1 P14.2
#[test]
fn what_follows_from_a_committed_transaction_has_its_trace() {
    let fixture = Fixture::new();
    fixture.task("inbox", &finished("t-1", TO_ANN));
    let before = fixture.ledger().0.len();
    let snippet =
        "mkdir .workfs/txn/t && cd .workfs/txn/t/work && mv inbox/t-1.yaml assigned/bob/ &&
        mv assigned/bob/t-1.yaml done/bob/ && cd ../../../.. && mv .workfs/txn/t .workfs/commit";
    fixture.sh(snippet).success();
    let ledger = fixture.ledger();
    let events = &ledger.0[before..];
    let names: Vec<&str> = events.iter().map(|event| event.name()).collect();
    assert_eq!(names, ["claimed", "completed", "created"]);
    let trace = events[0].text("trace_id");
    assert!(events.iter().all(|event| event.text("trace_id") == trace), "{events:?}");
    fixture.fsck_clean();
}

// P14.2
#[test]
fn it_is_made_once() {
    let fixture = Setup::default().mounts(4).start();
    for id in ["t-1", "t-2"] {
        fixture.task("inbox", &finished(id, TO_ANN));
    }
    finish(&fixture, "t-1");
    fixture.sh("cd work && mv done/bob/t-1.yaml inbox/").success();
    finish(&fixture, "t-1");
    let ends = |id: &str| {
        let end = format!("-followup-{id}.yaml");
        names(&fixture, "inbox").iter().filter(|name| name.ends_with(&end)).count()
    };
    assert_eq!(ends("t-1"), 1);
    // Several finish one task at once.
    fixture.sh("mv work/inbox/t-2.yaml work/assigned/bob/").success();
    let one = |mount: &Path| {
        let work = mount.join("work");
        let (from, to) = (work.join("assigned/bob/t-2.yaml"), work.join("done/bob/t-2.yaml"));
        std::thread::spawn(move || fs::rename(from, to).is_ok())
    };
    let racers: Vec<_> = fixture.mounts().iter().map(|mount| one(mount)).collect();
    // A kernel that looked the old name up before and the new one after another mount's rename has
    // one file under both, and rename(2) of that does nothing and succeeds.
    let won = racers.into_iter().map(|racer| racer.join().unwrap()).filter(|won| *won).count();
    assert!(won >= 1, "nobody finished it");
    let ledger = fixture.ledger();
    let finished = ledger.of_record("t-2").iter().filter(|e| e.name() == "completed").count();
    assert_eq!((finished, ends("t-2")), (1, 1));
    fixture.fsck_clean();
}

// P14.2
#[test]
fn where_somebody_made_it_already_none_is_made() {
    let fixture = Fixture::new();
    fixture.task("inbox", &finished("t-1", TO_ANN));
    fixture.task("inbox", &Task::new("own").owner("ann").with("context: {previous_task: t-1}\n"));
    finish(&fixture, "t-1");
    assert_eq!(names(&fixture, "inbox"), ["own.yaml"]);
}

// P14.2
#[test]
fn a_task_that_names_nobody_or_no_agent_is_finished_all_the_same() {
    let fixture = Fixture::new();
    fixture.task("inbox", &finished("t-1", ""));
    fixture.task("inbox", &finished("t-2", "  next_agent: null\n"));
    fixture.task("inbox", &finished("t-3", "  next_agent: '../ann'\n"));
    for id in ["t-1", "t-2", "t-3"] {
        finish(&fixture, id);
    }
    assert_eq!(names(&fixture, "inbox").len(), 0);
    assert_eq!(names(&fixture, "done/bob").len(), 3);
    let why = fixture.workfs(&["why"]).success();
    assert!(why.stdout.contains("`../ann` is no agent's name"), "{why}");
}

// P14.1
#[test]
fn it_can_be_switched_off() {
    let fixture = with_chores("handoff: false", Setup::default());
    fixture.task("inbox", &finished("t-1", TO_ANN));
    finish(&fixture, "t-1");
    assert_eq!(names(&fixture, "inbox").len(), 0);
}

// P14.2 P14.8
#[test]
fn a_daemon_makes_what_waits_where_handoff_is_all_it_does() {
    let layout = "workspaces: [{ path: work, kind: task }]\nquotas: [{ path: work, inodes: 12 }]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir -p work/inbox work/{assigned,done}/bob").success();
    fixture.task("inbox", &finished("t-1", TO_ANN));
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.sh("n=0; while mkdir work/filler-$n; do n=$((n+1)); done 2>/dev/null; true").success();
    fixture.sh("mv work/assigned/bob/t-1.yaml work/done/bob/").success();
    assert_eq!(names(&fixture, "inbox").len(), 0);
    let status = fixture.workfs(&["status"]).success().stdout;
    assert!(status.contains("a chore waits: work/done/bob/t-1.yaml: "), "{status}");
    fixture.sh("rmdir work/filler-*").success();
    // The next daemon begins with a round.
    fixture.unmount_all();
    fixture.mount_all();
    let inbox = fixture.path("work/inbox");
    let made = until_polled("it is made", || fs::read_dir(&inbox).unwrap().flatten().next());
    assert!(made.file_name().to_str().unwrap().ends_with("-ann-followup-t-1.yaml"));
    let status = fixture.workfs(&["status"]).success().stdout;
    assert!(!status.contains("a chore waits"), "{status}");
    fixture.fsck_clean();
}

const SCHEMA: &str = r#"{"type": "object", "properties": {"key": {"type": "string"},
    "state": {"enum": ["new", "done"]}, "who": {"type": "string"}, "after": {"type": "string"},
    "title": {"type": "string", "minLength": 3}, "fix": {"type": "object", "properties": {
        "next": {"type": "string"}, "next_title": {"type": "string"}}}}}"#;

const KIND: &str = "kind: fix
schema: fix.v1.json
extensions: [yaml]
fields: { id: key, status: state, owner: who }
states:
  new: { dirs: [new], status: [new], initial: true }
  done: { dirs: [done], status: [done], requires: [title] }
transitions:
  - { from: new, to: done, event: finished, by: [agent, operator] }
chores:
  handoff:
    state: done
    agent: fix.next
    previous: after
    copy: { title: fix.next_title|title }
";

// P14.2
#[test]
fn where_records_begin_in_lanes_a_follow_up_does_too() {
    let fixture = Setup::default().prepare();
    let kind = KIND.replace("dirs: [new]", "dirs: ['new/{owner}']");
    fixture.init_with_kind((&kind, SCHEMA), "{ path: fixes, kind: fix }");
    fixture.mount_at(fixture.root()).success();
    fixture.sh("mkdir fixes/new/bob").success();
    let text = "title: its own\nfix: { next: ann }\n";
    fs::write(fixture.path("fixes/new/bob/f-1.yaml"), text).unwrap();
    fixture.sh("mv fixes/new/bob/f-1.yaml fixes/done/").success();
    let made = fixture.sh("cat fixes/new/ann/*-ann-followup-f-1.yaml").success().stdout;
    assert!(made.contains("who: ann\n") && made.contains("after: f-1\n"), "{made}");
    fixture.fsck_clean();
}

// P14.2 P14.8
#[test]
fn of_a_follow_up_that_is_not_valid_no_place_in_the_finished_record_is_told() {
    let fixture = Setup::default().prepare();
    fixture.init_with_kind((KIND, SCHEMA), "{ path: fixes, kind: fix }");
    fixture.mount_at(fixture.root()).success();
    let text = "title: its own\nfix: { next: ann, next_title: x }\n";
    fs::write(fixture.path("fixes/new/f-1.yaml"), text).unwrap();
    fixture.sh("mv fixes/new/f-1.yaml fixes/done/").success();
    let why = fixture.workfs(&["why", "f-1"]).success().stdout;
    assert!(why.contains("the record that would go on from here is not valid: `title`"), "{why}");
    assert!(!why.contains("line ") && !why.contains("save again"), "{why}");
    for command in ["status", "doctor"] {
        let told = fixture.workfs(&[command]).stdout;
        assert!(told.contains("fixes/done/f-1.yaml: the record that would"), "{told}");
    }
}

// P14.2 P14.8
#[test]
fn a_bare_number_that_is_to_name_who_goes_on_is_told_of() {
    let fixture = Setup::default().prepare();
    let any = SCHEMA.replace("\"next\": {\"type\": \"string\"}", "\"next\": {}");
    fixture.init_with_kind((KIND, &any), "{ path: fixes, kind: fix }");
    fixture.mount_at(fixture.root()).success();
    let text = "title: its own\nfix: { next: 7, next_title: its next }\n";
    fs::write(fixture.path("fixes/new/f-1.yaml"), text).unwrap();
    fixture.sh("mv fixes/new/f-1.yaml fixes/done/").success();
    let why = fixture.workfs(&["why", "f-1"]).success().stdout;
    assert!(why.contains("`7` is no agent's name") && why.contains("needs quotes"), "{why}");
    assert_eq!(fs::read_dir(fixture.path("fixes/new")).unwrap().count(), 0);
}

// P14.2
#[test]
fn sigkill_leaves_both_or_none() {
    for point in ["before-commit", "after-commit", "before-reply"] {
        let mut fixture = Fixture::new();
        fixture.task("inbox", &finished("t-1", TO_ANN));
        fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
        fixture.unmount_all();
        fixture.set_variable("WORKFS_FAULT", Some(&format!("{point}:1")));
        fixture.mount_all();
        let daemon = fixture.daemon_pid();
        fixture.sh("mv work/assigned/bob/t-1.yaml work/done/bob/").failure();
        await_end(daemon);
        fixture.set_variable("WORKFS_FAULT", None);
        fixture.mount_all();
        let done = names(&fixture, "done/bob").len();
        assert_eq!(done, usize::from(point != "before-commit"), "{point}");
        assert_eq!(names(&fixture, "inbox").len(), done, "{point}");
        if done == 0 {
            fixture.sh("mv work/assigned/bob/t-1.yaml work/done/bob/").success();
            assert_eq!(names(&fixture, "inbox").len(), 1, "{point}");
        }
        fixture.fsck_clean();
    }
}
