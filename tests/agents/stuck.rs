//! The end of a lease is its end also where the record cannot go back, whatever is in its way.

use workfs::config::Config;
use workfs::engine::{Fence, told_of_return};
use workfs::kind::{Kind, Kinds, builtin};
use workfs::numbers::{Attempt, UnixNanos};
use workfs::refusal::{Refusal, Rule};

use crate::expiry::write_for_bob;
use crate::harness::{Desk, SECOND, agent};

const TTL: u64 = 4 * 3600 * SECOND;

/// There is room for one file more than lies in the workspace of [`bob_has`].
const QUOTAS: &str = "[{ path: work, inodes: 9 }]";

/// Bob has `t-1`, of a kind that is the task but for this, in a workspace of this policy.
fn bob_has((from, to): (&str, &str), policy: &str) -> Desk {
    let task = builtin::task();
    let definition = task.source().definition.replace("kind: task", "kind: errand");
    let definition = definition.replace("task.v1.json", "errand.v1.json").replace(from, to);
    let mut kinds = Kinds::default();
    let file = "errand.kind.yaml";
    kinds.add(file, Kind::load(file, &definition, &task.source().schema).unwrap()).unwrap();
    let text =
        format!("workspaces: [{{ path: work, kind: errand, policy: {policy} }}]\nquotas: {QUOTAS}");
    let desk = Desk::with(&["bob", "ann"], Config::parse_with("c", &text, &kinds).unwrap());
    desk.put("t-1", "title: a task");
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    desk
}

fn plain() -> Desk {
    bob_has(("", ""), "refuse")
}

fn bobs() -> Fence {
    Fence { owner: agent("bob"), attempt: Attempt(1) }
}

/// What is told of `t-1`, which cannot go back.
#[track_caller]
fn told(desk: &Desk) -> String {
    let record = desk.record("t-1");
    desk.read(|read| told_of_return(read, &record)).expect("it waits for its way back")
}

/// The lease of `t-1` is over: it stays, bob's no more, and this is told.
#[track_caller]
fn is_stuck(desk: &Desk, why: &str) {
    let refused = |desk: &Desk| {
        let mut refused = 0;
        desk.read(|read| {
            refused = 0;
            read.refusals(&mut |_| {
                refused += 1;
                true
            })
        });
        refused
    };
    let before = refused(desk);
    desk.pass(TTL + SECOND);
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), &record.lapsed), ("assigned", &Some(agent("bob"))));
    assert!(desk.lease("t-1").is_none());
    assert!(told(desk).contains(why), "{}", told(desk));
    let late = desk.save("bob", "t-1", (&bobs(), "title: late"));
    assert_eq!(late.unwrap_err().rule, Rule::LeaseOver);
    // Trying again and again is no refusal of anybody's.
    desk.pass(600 * SECOND);
    assert_eq!(refused(desk), before + 1, "bob's alone");
    desk.fsck_clean();
}

/// Somebody mended what was in the way: it goes back.
#[track_caller]
fn goes_back(desk: &Desk) {
    desk.pass(60 * SECOND);
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), record.owner), ("inbox", None));
    assert!(desk.read(|read| read.returns()).is_empty());
    desk.fsck_clean();
}

// P12.1 P12.7
#[test]
fn a_text_whose_status_cannot_be_written_keeps_nobody_s_lease_alive() {
    let desk = plain();
    let text = "id: t-1\nagent: bob\nstatus: &s assigned\nnotes: *s\n";
    desk.save_text("bob", "t-1", (&bobs(), text)).unwrap();
    is_stuck(&desk, "`status` cannot be changed in place; whoever acts for others can mend");
}

// P12.1 P12.7
#[test]
fn a_text_that_lacks_what_the_inbox_requires_keeps_nobody_s_lease_alive() {
    let changes = ("status: [new, inbox]", "status: [new, inbox]\n    requires: [title]");
    let desk = bob_has(changes, "refuse");
    desk.save("bob", "t-1", (&bobs(), "")).unwrap();
    is_stuck(&desk, "title");
}

// P12.1
#[test]
fn a_flagged_text_is_in_its_own_way_and_that_is_told() {
    let desk = bob_has(("", ""), "flag");
    desk.save("bob", "t-1", (&bobs(), "priority: 7\ndependencies: 8")).unwrap();
    assert!(!desk.record("t-1").is_valid());
    is_stuck(&desk, "can mend its text");
}

// P12.1 P3.6
#[test]
fn a_text_that_the_daemon_mends_when_a_lease_ends_is_flagged_no_more() {
    let lease = "on_expiry: inbox }\n    retries: { attempts: 5, first: 1m, longest: 1h, \
                 jitter_percent: 25, exhausted: dead }";
    let desk = bob_has((lease, "on_expiry: error }"), "flag");
    desk.save("bob", "t-1", (&bobs(), "")).unwrap();
    let text = "id: t-1\nagent: bob\nstatus: assigned\n";
    desk.save_text("bob", "t-1", (&bobs(), text)).unwrap();
    assert!(!desk.record("t-1").is_valid());
    desk.pass(TTL + SECOND);
    let record = desk.record("t-1");
    assert_eq!((record.is_valid(), record.status.as_deref()), (true, Some("error")));
    desk.fsck_clean();
}

// P12.1 P12.7
#[test]
fn who_mends_a_text_for_others_sends_the_record_back_and_gives_nobody_a_lease() {
    let desk = bob_has(("", ""), "flag");
    desk.save("bob", "t-1", (&bobs(), "priority: 7")).unwrap();
    is_stuck(&desk, "can mend its text");
    // What is still not valid is in its own way, for another reason.
    desk.rewrite("t-1", "agent: bob\nstatus: in_progress\ndependencies: 8");
    assert_eq!(desk.record("t-1").lapsed, Some(agent("bob")));
    assert!(desk.lease("t-1").is_none());
    assert!(told(&desk).contains("`dependencies`"), "{}", told(&desk));
    desk.rewrite("t-1", "agent: bob\nstatus: in_progress\nnote: mended");
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), record.owner), ("inbox", None));
    let text = desk.content("t-1");
    assert!(text.contains("bob ran out (attempt 1)") && text.contains("note: mended"), "{text}");
    assert!(desk.read(|read| read.returns()).is_empty() && desk.lease("t-1").is_none());
    desk.fsck_clean();
}

// P12.1
#[test]
fn a_flagged_text_under_a_backup_s_name_does_not_come_back_as_a_valid_one() {
    let desk = bob_has(("", ""), "flag");
    desk.save("bob", "t-1", (&bobs(), "priority: 7\ndependencies: 8")).unwrap();
    desk.park("bob", "t-1");
    desk.pass(TTL + SECOND);
    assert_eq!(desk.record("t-1").state.as_str(), "assigned");
    assert!(told(&desk).contains("can mend its text"), "{}", told(&desk));
    desk.fsck_clean();
}

// P12.1
#[test]
fn what_is_in_the_way_is_told_as_it_is_now() {
    let desk = plain();
    desk.block("inbox", "t-1");
    desk.pass(TTL + SECOND);
    assert!(told(&desk).ends_with("(`work/inbox/t-1.yaml` is there already)"), "{}", told(&desk));
    desk.unblock("inbox", "t-1");
    goes_back(&desk);
}

// P12.1 P12.7 P11.11
#[test]
fn a_quota_in_the_way_keeps_nobody_s_lease_alive() {
    let desk = plain();
    desk.park("bob", "t-1");
    desk.block("done", "t-2");
    desk.pass(TTL + SECOND);
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), record.lapsed), ("assigned", Some(agent("bob"))));
    assert!(told(&desk).contains("`work` may hold 9 files and directories"), "{}", told(&desk));
    assert!(desk.write("bob", "t-1", "status: assigned").is_err());
    desk.unblock("done", "t-2");
    goes_back(&desk);
}

// P12.1
#[test]
fn where_the_reason_cannot_be_written_it_is_left_alone_all_the_same() {
    let desk = plain();
    let text = "id: t-1\nagent: bob\nstatus: assigned\nlast_error: &e before\nnotes: *e\n";
    desk.save_text("bob", "t-1", (&bobs(), text)).unwrap();
    desk.pass(TTL + SECOND);
    assert_eq!(desk.record("t-1").state.as_str(), "inbox");
    assert!(desk.content("t-1").contains("not_before: "), "{}", desk.content("t-1"));
    assert!(desk.content("t-1").contains("before"), "{}", desk.content("t-1"));
    desk.fsck_clean();
}

// P12.1
#[test]
fn where_the_time_cannot_be_written_it_stays_and_that_is_told() {
    let desk = plain();
    let text = "id: t-1\nagent: bob\nstatus: assigned\nnot_before: &n \"2020-01-01\"\nfirst: *n\n";
    desk.save_text("bob", "t-1", (&bobs(), text)).unwrap();
    is_stuck(&desk, "`not_before` cannot be changed in place; whoever acts for others can mend");
    desk.rewrite("t-1", "agent: bob\nstatus: in_progress");
    assert_eq!(desk.record("t-1").state.as_str(), "inbox");
    assert!(desk.content("t-1").contains("not_before: "), "{}", desk.content("t-1"));
}

// P12.1
#[test]
fn it_is_left_alone_for_no_less_than_the_kind_says() {
    let usual = "first: 1m, longest: 1h, jitter_percent: 25";
    let desk = bob_has((usual, "first: 1s, longest: 1h, jitter_percent: 0"), "refuse");
    desk.set_wall(900_000_000);
    desk.pass(TTL + SECOND);
    let text = desk.content("t-1");
    let until = text.lines().find_map(|line| line.strip_prefix("not_before: ")).unwrap();
    let until = UnixNanos::parse_rfc3339(until.trim_matches(['"', '\''])).unwrap();
    let waits = until.0 - desk.engine().now().0;
    assert!(waits >= SECOND as i64, "{waits} ns: {text}");
}

// P12.3
#[test]
fn the_old_owner_neither_removes_nor_renames_what_cannot_go_back() {
    let desk = plain();
    desk.block("inbox", "t-1");
    desk.pass(TTL + SECOND);
    let over = |asked: Result<(), Refusal>| assert_eq!(asked.unwrap_err().rule, Rule::LeaseOver);
    over(desk.remove("bob", "t-1"));
    over(desk.rename_to("bob", "t-1", "t-1.yaml~"));
    over(desk.rename_to("bob", "t-1", "t-1.yml"));
    assert_eq!(desk.record("t-1").lapsed, Some(agent("bob")));
    desk.unblock("inbox", "t-1");
    goes_back(&desk);
}

// P12.1
#[test]
fn what_was_removed_need_not_go_back() {
    let desk = plain();
    desk.block("inbox", "t-1");
    desk.pass(TTL + SECOND);
    desk.discard("bob", "t-1");
    assert!(desk.read(|read| read.returns()).is_empty());
    desk.fsck_clean();
}

// P12.1 P12.3
#[test]
fn what_is_made_anew_under_a_removed_id_begins_with_its_first_lease() {
    let desk = plain();
    desk.block("inbox", "t-1");
    desk.pass(TTL + SECOND);
    let old = Fence::of(&desk.record("t-1")).unwrap();
    desk.discard("bob", "t-1");
    desk.write("bob", "t-1", "status: assigned").unwrap();
    let record = desk.record("t-1");
    assert_eq!((&record.lapsed, record.lapses.0), (&None, 0));
    assert!(desk.lease("t-1").is_some());
    // What was opened, or held, under the claim before is fenced off.
    assert_eq!(record.attempt, old.attempt.next());
    assert_eq!(desk.save("bob", "t-1", (&old, "")).unwrap_err().rule, Rule::LeaseOver);
    desk.save("bob", "t-1", (&Fence::of(&record).unwrap(), "")).unwrap();
    desk.fsck_clean();
}

// P12.4
#[test]
fn what_is_imported_under_a_removed_id_has_all_its_attempts() {
    let desk = plain();
    for _ in 1..5 {
        desk.pass(TTL + SECOND);
        desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    }
    desk.discard("bob", "t-1");
    desk.put("t-1", "title: another task");
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    desk.pass(TTL + SECOND);
    assert_eq!(desk.record("t-1").state.as_str(), "inbox");
    desk.fsck_clean();
}

// P3.6 P12.1
#[test]
fn a_flagged_text_whose_name_comes_back_with_a_late_one_is_flagged_still() {
    let desk = bob_has(("", ""), "flag");
    desk.save("bob", "t-1", (&bobs(), "priority: 7")).unwrap();
    desk.park("bob", "t-1");
    desk.pass(TTL + SECOND);
    assert_eq!(desk.write("bob", "t-1", "status: assigned").unwrap_err().rule, Rule::LeaseOver);
    let record = desk.record("t-1");
    assert!(record.ino().is_some() && !record.is_valid(), "{record:?}");
    desk.pass(600 * SECOND);
    assert_eq!(desk.record("t-1").state.as_str(), "assigned");
    desk.fsck_clean();
}

// P12.1
#[test]
fn with_each_lease_that_runs_out_it_is_left_alone_for_twice_as_long() {
    let usual = "first: 1m, longest: 1h, jitter_percent: 25";
    let desk = bob_has((usual, "first: 1m, longest: 3m, jitter_percent: 0"), "refuse");
    for minutes in [1, 2, 3, 3] {
        desk.pass(TTL);
        let text = desk.content("t-1");
        let until = text.lines().find_map(|line| line.strip_prefix("not_before: ")).unwrap();
        let until = UnixNanos::parse_rfc3339(until.trim_matches(['"', '\''])).unwrap();
        let waits = (until.0 - desk.engine().now().0).cast_unsigned();
        // Texts say whole seconds.
        assert_eq!(waits.div_ceil(SECOND), minutes * 60, "{text}");
        desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    }
    desk.fsck_clean();
}

// P12.1 P12.7
#[test]
fn who_writes_one_anew_for_others_whose_name_is_a_backup_s_sends_it_back() {
    let desk = plain();
    let text = "id: t-1\nagent: bob\nstatus: &s assigned\nnotes: *s\n";
    desk.save_text("bob", "t-1", (&bobs(), text)).unwrap();
    desk.park("bob", "t-1");
    desk.pass(TTL + SECOND);
    assert!(told(&desk).contains("can mend its text"), "{}", told(&desk));
    write_for_bob(&desk, "id: t-1\nagent: bob\nstatus: in_progress\n");
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), record.owner), ("inbox", None));
    assert!(desk.read(|read| read.returns()).is_empty() && desk.lease("t-1").is_none());
    desk.fsck_clean();
}
