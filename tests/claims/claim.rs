//! What a claim does to the record, to its text and to the ledger.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::harness::{Errno, Fixture, Setup, Task, lies, pile};

/// A text's lines without those that a claim writes.
fn untouched(text: &str) -> Vec<&str> {
    let patched = ["status:", "agent:", "assigned_at:"];
    text.lines().filter(|line| !patched.iter().any(|key| line.starts_with(key))).collect()
}

// P1.5
#[test]
fn a_claim_sets_status_agent_and_time_and_touches_no_other_byte() {
    let fixture = Fixture::new();
    let task = Task::new("t-1");
    let from = fixture.task("inbox", &task);
    let before = fs::metadata(&from).unwrap();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();

    assert!(!from.exists());
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    let text = fs::read_to_string(&to).unwrap();
    assert_eq!(untouched(&text), untouched(&task.text()));
    assert!(text.contains("\nstatus: assigned\n"), "{text}");
    assert!(text.contains("\nagent: bob\n"), "{text}");
    let stamp = text.lines().find_map(|line| line.strip_prefix("assigned_at: ")).unwrap();
    let stamp = stamp.trim_matches(['"', '\'']);
    assert!(stamp.ends_with('Z') && stamp.starts_with("20"), "not RFC 3339: {text}");
    let after = fs::metadata(&to).unwrap();
    assert_eq!(after.len(), text.len() as u64);
    assert_eq!(after.ino(), before.ino(), "a claim is a rename of one file");
    assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
}

// P5.1
#[test]
fn a_claim_is_one_event_with_the_versions_before_and_after() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let before = fixture.ledger().last_g();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();

    let ledger = fixture.ledger();
    let events = ledger.after(before);
    assert_eq!(events.len(), 1, "{events:?}");
    let event = events[0];
    assert_eq!((event.name(), event.id()), ("claimed", "t-1"));
    assert_eq!(event.text("workspace"), "work");
    assert_eq!(event.versions(), (Some(1), Some(2)));
    assert_eq!(event.0["payload"]["from"], "inbox");
    assert_eq!(event.0["payload"]["state"], "assigned");
    assert_eq!(event.0["payload"]["owner"], "bob");
    fixture.fsck_clean();
}

// P1.1
#[test]
fn who_is_too_late_sees_enoent_and_mv_says_so() {
    let fixture = Setup::default().mounts(2).start();
    let from = fixture.task("inbox", &Task::new("t-1"));
    // The second mount's kernel knows the name before it is gone.
    let seen = fixture.mount(1).join("work/inbox/t-1.yaml");
    assert!(seen.exists());
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();

    let late = fixture.sh("mv work/inbox/t-1.yaml work/assigned/ann/").failure();
    assert_eq!(late.code, 1);
    assert!(late.stderr.contains("cannot stat"), "{late}");
    assert!(late.stderr.contains("No such file or directory"), "{late}");
    for (from, mount) in [(&from, fixture.mount(0)), (&seen, fixture.mount(1))] {
        let to = mount.join("work/assigned/ann/t-1.yaml");
        let error = fs::rename(from, to).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
    }
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
}

// P1.9
#[test]
fn mkdir_makes_a_lane_and_without_it_there_is_none() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let missing = fixture.sh("mv work/inbox/t-1.yaml work/assigned/carol/").failure();
    assert!(missing.stderr.contains("carol"), "{missing}");
    assert!(fixture.path("work/inbox/t-1.yaml").exists());
    fixture.sh("mkdir work/assigned/carol && mv work/inbox/t-1.yaml work/assigned/carol").success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/carol");
}

// P1.9
#[test]
fn a_workspace_may_start_empty_and_two_do_not_share_ids() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p work/collaboration/inbox work/collaboration/assigned/bob").success();
    let (here, there) = ("inbox", "collaboration/inbox");
    fixture.task(here, &Task::new("t-1"));
    fixture.task(there, &Task::new("t-1").revision(7));
    fixture.sh("cd work/collaboration; mv inbox/t-1.yaml assigned/bob/").success();
    let work = fixture.work();
    assert_eq!(fs::read_to_string(work.join("inbox/t-1.yaml")).unwrap(), Task::new("t-1").text());
    let moved = fs::read_to_string(work.join("collaboration/assigned/bob/t-1.yaml")).unwrap();
    assert!(moved.contains("revision: 7\n") && moved.contains("agent: bob\n"), "{moved}");
}

// P3.7
#[test]
fn a_task_goes_all_the_way_and_says_at_each_step_where_it_is() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let early = fixture.sh("mv work/assigned/bob/t-1.yaml work/done/bob/").failure();
    assert!(early.stderr.contains("Operation not permitted"), "{early}");
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    assert!(fixture.why().contains("W015"), "{}", fixture.why());

    fixture.sh("sed -i 's/^status: .*/status: in_progress/' work/assigned/bob/t-1.yaml").success();
    fixture.sh("printf 'result:\\n  summary: it works\\n' > $OUT/result").success();
    fixture.sh("cat $OUT/result >> work/assigned/bob/t-1.yaml").success();
    fixture.sh("mv work/assigned/bob/t-1.yaml work/done/bob/").success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "done/bob");
    let names = ["created", "claimed", "saved", "saved", "completed"];
    assert_eq!(fixture.ledger().names("t-1"), names);
    fixture.fsck_clean();
}
