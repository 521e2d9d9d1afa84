//! Who waits for a record, and does not take the one that it was woken for, keeps it from nobody else.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::claim::Waiter;
use crate::harness::{DEADLINE, Fixture, Setup, ticks_of, until_polled};

/// Somebody who waits by now, most likely; what must come out is the same if not yet.
fn waits(fixture: &Fixture, agent: &str, workspace: Option<&str>) -> Waiter {
    let waiter = Waiter::among(fixture, agent, workspace, DEADLINE);
    fixture.workfs(&["ps"]).success();
    waiter
}

/// Makes all of these at once.
fn put_together(fixture: &Fixture, tasks: &[&str]) {
    let put = tasks.iter().map(|path| {
        let id = Path::new(path).file_stem().unwrap().to_str().unwrap();
        format!("echo 'id: {id}' > {path}.yaml")
    });
    let script = put.collect::<Vec<_>>().join(" && ");
    let mut command = fixture.command(&["txn", "--", "sh", "-c", &script]);
    assert!(command.current_dir(fixture.root()).status().unwrap().success());
}

// P9.9
#[test]
fn who_takes_another_workspace_s_record_leaves_the_one_it_was_woken_for_to_the_next() {
    let layout = "workspaces: [{ path: a, kind: task }, { path: b, kind: task }]\n";
    let fixture = Setup::default().layout(layout).prepare();
    let file = fixture.outside("layout.yaml");
    fs::write(&file, layout).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    fixture.mount_at(fixture.root()).success();
    // Ann is passed over that of `b`, until nothing is in its way any more, of which nobody hears.
    let in_the_way = fixture.path("b/assigned/ann/urgent.yaml");
    fs::create_dir_all(&in_the_way).unwrap();
    let ann = waits(&fixture, "ann", None);
    let bob = waits(&fixture, "bob", Some("a"));
    fs::write(fixture.path("b/inbox/urgent.yaml"), "id: urgent\npriority: critical\n").unwrap();
    until_polled("she is passed over it, and waits again", || {
        let metrics = fs::read_to_string(fixture.path(".workfs/metrics")).unwrap();
        let refused = |line: &str| line.contains("outcome=\"refused\"") && !line.ends_with(" 0");
        let both_wait = metrics.lines().any(|line| line == "workfs_waiters 2");
        (both_wait && metrics.lines().any(refused)).then_some(())
    });
    fs::remove_dir(&in_the_way).unwrap();
    fs::write(fixture.path("a/inbox/plain.yaml"), "id: plain\n").unwrap();
    assert_eq!(ann.answer(), Ok("urgent".to_owned()));
    assert_eq!(bob.answer(), Ok("plain".to_owned()));
    fixture.fsck_clean();
}

// P9.9
#[test]
fn who_is_woken_twice_and_may_take_nothing_leaves_both_to_the_next() {
    let fixture = Fixture::new();
    fixture.workfs(&["agent", "add", "eve", "--role", "observer"]).success();
    // Which of the wake-ups comes first is chance.
    for round in 0..6 {
        let eve = waits(&fixture, "eve", None);
        // Behind the others she would not be woken at all.
        let waits_first = || {
            let metrics = fs::read_to_string(fixture.path(".workfs/metrics")).unwrap();
            metrics.lines().any(|line| line == "workfs_waiters 1").then_some(())
        };
        until_polled("she waits", waits_first);
        let (ann, bob) = (waits(&fixture, "ann", None), waits(&fixture, "bob", None));
        let tasks = ["p", "q"].map(|one| format!("work/inbox/{one}{round}"));
        put_together(&fixture, &[&tasks[0], &tasks[1]]);
        assert_eq!(eve.answer(), Err("denied".to_owned()));
        let mut got = [ann.answer(), bob.answer()];
        got.sort();
        assert_eq!(got, ["p", "q"].map(|one| Ok(format!("{one}{round}"))));
    }
    fixture.fsck_clean();
}

// P9.9
#[test]
fn who_only_sends_no_more_waits_on_and_has_what_it_is_told() {
    let fixture = Fixture::new();
    // As `echo ASK | nc -U -N team.db.sock` does, before it is tried and while it waits.
    fs::write(fixture.path("work/inbox/t-1.yaml"), "id: t-1\n").unwrap();
    let at_once = Waiter::among(&fixture, "bob", None, DEADLINE);
    at_once.sends_no_more();
    assert_eq!(at_once.answer(), Ok("t-1".to_owned()));
    let (later, gone) = (waits(&fixture, "bob", None), waits(&fixture, "bob", None));
    later.sends_no_more();
    gone.sends_no_more();
    fixture.workfs(&["ps"]).success();
    drop(gone);
    for (task, told) in [("t-2", Some(&later)), ("t-3", None)] {
        fs::write(fixture.path(&format!("work/inbox/{task}.yaml")), format!("id: {task}\n"))
            .unwrap();
        assert_eq!(told.map(Waiter::answer), told.map(|_| Ok(task.to_owned())));
    }
    // Nobody waits any more.
    assert_eq!(fixture.workfs(&["ready"]).success().stdout, "work/inbox/t-3.yaml\n");
    // What is there to be read is kept for who has not gone, and costs nothing meanwhile.
    let claim = serde_json::json!({"do": {"claim": {"agent": "bob"}}});
    for waits in [true, false] {
        let slow = match waits {
            true => Waiter::among(&fixture, "bob", None, DEADLINE),
            false => Waiter::asking(&fixture, &claim),
        };
        slow.sends_no_more();
        until_polled("an answer", || slow.is_answered().then_some(()));
        let before = ticks_of(fixture.daemon_pid());
        std::thread::sleep(Duration::from_millis(300));
        assert!(ticks_of(fixture.daemon_pid()) - before < 10, "in hundredths of a second");
        assert_eq!(fixture.workfs(&["ready"]).stdout, "nothing is ready\n");
        drop(slow);
        until_polled("what nobody read to be given back", || {
            (fixture.workfs(&["ready"]).stdout == "work/inbox/t-3.yaml\n").then_some(())
        });
    }
    fixture.fsck_clean();
}

// P3.5 P9.6
#[test]
fn texts_that_take_long_to_look_at_are_passed_over_until_so_much_was_read() {
    let fixture = Fixture::new();
    let long = format!("notes: {}\n", "x".repeat(1_000_000));
    let put = |nth: usize, more: &str| {
        let text = format!("id: u-{nth}\nstatus: new\nagent: &a x\nother: *a\n{more}");
        fs::write(fixture.path(&format!("work/inbox/u-{nth}.yaml")), text).unwrap();
    };
    (0..10).for_each(|nth| put(nth, &long));
    fs::write(fixture.path("work/inbox/t-1.yaml"), "id: t-1\npriority: low\n").unwrap();
    fs::write(fixture.path("work/inbox/t-2.yaml"), "id: t-2\npriority: low\n").unwrap();
    fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    assert!(fixture.path("work/assigned/bob/t-1.yaml").exists());
    (10..20).for_each(|nth| put(nth, &long));
    let refused = fixture.sh("mv work/ready/.next work/assigned/bob/").failure();
    assert!(refused.stderr.contains("not permitted"), "{refused}");
    // By its name it is to be had as before.
    fixture.sh("mv work/ready/t-2.yaml work/assigned/bob/").success();
    fixture.fsck_clean();
}

const SCHEMA: &str = r#"{"type": "object", "properties": {"id": {"type": "string"},
    "who": {"type": ["string", "null"]}}}"#;

const ERRAND: &str = "kind: errand
schema: errand.v1.json
extensions: [yaml]
fields: { id: id, owner: who }
states:
  open: { dirs: [open], initial: true }
  taken: { dirs: ['by/{owner}'] }
transitions:
  - { from: open, to: taken, event: claimed, by: [manager, operator] }
  - { from: taken, to: open, event: left, by: [manager, operator] }
";

// P9.9
#[test]
fn work_that_is_for_other_roles_keeps_nobody_from_its_own() {
    let fixture = Setup::default().prepare();
    let bound = "{ path: errands, kind: errand }\n  - { path: work, kind: task }";
    fixture.init_with_kind((ERRAND, SCHEMA), bound);
    fixture.mount_at(fixture.root()).success();
    let bob = waits(&fixture, "bob", None);
    // It is older, and of the same urgency.
    fs::write(fixture.path("errands/open/theirs.yaml"), "id: theirs\n").unwrap();
    fs::write(fixture.path("work/inbox/t-1.yaml"), "id: t-1\n").unwrap();
    assert_eq!(bob.answer(), Ok("t-1".to_owned()));
    fs::write(fixture.path("work/inbox/t-2.yaml"), "id: t-2\n").unwrap();
    let claim = |arguments: &[&str]| {
        fixture.workfs(&[&["claim", "--next", "--agent", "bob"], arguments].concat())
    };
    assert_eq!(claim(&[]).success().stdout, "work/assigned/bob/t-2.yaml\n");
    // Where it is all there is to be had, that is said.
    assert_eq!(claim(&[]).code, 3);
    assert_eq!(claim(&["--workspace", "errands"]).code, 6);
    fixture.fsck_clean();
}
