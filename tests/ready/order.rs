//! Which record is ready, and in which order.

use std::time::Duration;

use crossbeam_channel::bounded;
use workfs::engine::Placed;
use workfs::numbers::UnixNanos;

use crate::desk::{Desk, SOON};

// P9.1
#[test]
fn a_record_is_ready_when_all_that_it_depends_on_is_done() {
    let desk = Desk::new();
    desk.put("c", "dependencies: [a, b]\n");
    desk.put("a", "");
    desk.put("b", "");
    assert_eq!(desk.ready(), ["a", "b"]);
    desk.mv(desk.inbox, desk.lane, "a");
    assert_eq!(desk.ready(), ["b"], "what is claimed is not ready");
    desk.mv(desk.lane, desk.done, "a");
    assert!(desk.why("c").contains("waits for `b` (in inbox)"), "{}", desk.why("c"));
    desk.mv(desk.inbox, desk.done, "b");
    assert_eq!(desk.ready(), ["c"]);
    assert_eq!(desk.why("c"), "");
    // Taken back, it is waited for again.
    desk.mv(desk.done, desk.inbox, "b");
    assert_eq!(desk.ready(), ["b"]);
    desk.fsck_clean();
}

// P9.1
#[test]
fn every_form_of_a_dependency_counts_and_counts_once() {
    let desk = Desk::new();
    desk.put("a", "blocks: [z]\n");
    desk.put(
        "z",
        "dependencies: [{task_id: b}, a]\nblocked_by: [{id: c}]\ncontext: {dependencies: [d]}\n",
    );
    assert_eq!(desk.record("z").unwrap().readiness.open, 4);
    for task in ["b", "c", "d"] {
        assert!(!desk.ready().contains(&"z".to_owned()));
        desk.put(task, "");
        desk.mv(desk.inbox, desk.done, task);
    }
    assert!(desk.why("z").contains("`a` (in inbox)"), "{}", desk.why("z"));
    // Both ends said so; only when neither does it is no dependency.
    desk.save("a", "").unwrap();
    assert_eq!(desk.record("z").unwrap().readiness.open, 1);
    desk.save("z", "dependencies: [b]\n").unwrap();
    assert_eq!(desk.ready(), ["a", "z"]);
    desk.save("a", "blocks: [z]\n").unwrap();
    assert_eq!(desk.ready(), ["a"]);
    desk.fsck_clean();
}

// P9.7
#[test]
fn what_is_parked_is_told_to_be() {
    let desk = Desk::new();
    desk.put("a", "");
    desk.put("b", "dependencies: [a]\n");
    desk.mv(desk.inbox, desk.lane, "a");
    desk.park("bob", "a");
    let told = "`a` (in assigned, parked: its file has the name of a backup)";
    assert!(desk.why("b").contains(told), "{}", desk.why("b"));
    desk.fsck_clean();
}

// P9.1
#[test]
fn what_is_not_there_or_removed_is_waited_for() {
    let desk = Desk::new();
    desk.put("a", "");
    desk.put("b", "dependencies: [a, nowhere]\n");
    assert!(desk.why("b").contains("`nowhere` (there is no such record)"), "{}", desk.why("b"));
    let remove = workfs::engine::Remove {
        parent: desk.inbox,
        name: crate::desk::name("a.yaml"),
        what: workfs::engine::RemoveWhat::File,
    };
    desk.engine().run(Desk::context(), remove).unwrap();
    assert!(desk.why("b").contains("`a` (removed before it was done)"), "{}", desk.why("b"));
    desk.put("nowhere", "");
    desk.mv(desk.inbox, desk.done, "nowhere");
    desk.put("a", "priority: low\n");
    desk.mv(desk.inbox, desk.done, "a");
    assert_eq!(desk.ready(), ["b"]);
    // What was done and is removed then stays done.
    let remove = workfs::engine::Remove {
        parent: desk.done,
        name: crate::desk::name("a.yaml"),
        what: workfs::engine::RemoveWhat::File,
    };
    desk.engine().run(Desk::context(), remove).unwrap();
    assert_eq!(desk.ready(), ["b"]);
    desk.fsck_clean();
}

// P9.2
#[test]
fn priority_orders_and_then_age() {
    let desk = Desk::new();
    desk.put("young", "created_at: '2026-02-01T00:00:00Z'\n");
    desk.put("old", "created_at: '2025-02-01T00:00:00Z'\npriority: medium\n");
    desk.put("low", "priority: low\ncreated_at: '2020-01-01T00:00:00Z'\n");
    desk.put("critical", "priority: CRITICAL\n");
    desk.put("high", "priority: High\n");
    desk.put("first", "");
    desk.put("second", "");
    assert_eq!(desk.ready(), ["critical", "high", "old", "young", "first", "second", "low"]);
    // A save does not make it younger.
    desk.save("first", "title: again\n").unwrap();
    assert_eq!(desk.ready()[4..6], ["first", "second"]);
    desk.save("low", "priority: high\n").unwrap();
    assert_eq!(desk.ready()[..2], ["critical", "low"]);
    desk.fsck_clean();
}

// P9.2
#[test]
fn what_does_not_say_how_old_it_is_is_as_old_as_its_making() {
    const LONG_AGO: &str = "created_at: '2020-02-01T00:00:00Z'\n";
    let desk = Desk::new();
    desk.put("first", "");
    desk.put("second", LONG_AGO);
    desk.put("third", "");
    let since = |task: &str| desk.record(task).unwrap().readiness.since;
    assert_eq!(desk.ready(), ["second", "first", "third"]);
    // What it said once counts no more, whatever was saved since.
    desk.save("second", "title: x\n").unwrap();
    assert_eq!(desk.ready(), ["first", "second", "third"]);
    assert!(since("first") < since("second") && since("second") < since("third"));
    desk.save("second", "title: y\n").unwrap();
    desk.save("third", LONG_AGO).unwrap();
    desk.mv(desk.inbox, desk.lane, "third");
    desk.mv(desk.lane, desk.inbox, "third");
    assert_eq!(desk.ready(), ["third", "first", "second"]);
    desk.save("third", "title: z\n").unwrap();
    assert_eq!(desk.ready(), ["first", "second", "third"]);
    // What is made under the id of one that was removed is another one.
    for says in ["", LONG_AGO] {
        desk.save("first", says).unwrap();
        let remove = workfs::engine::Remove {
            parent: desk.inbox,
            name: crate::desk::name("first.yaml"),
            what: workfs::engine::RemoveWhat::File,
        };
        desk.engine().run(Desk::context(), remove).unwrap();
        desk.put("first", "");
        assert_eq!(desk.ready(), ["second", "third", "first"]);
        let made = since("first");
        desk.save("first", LONG_AGO).unwrap();
        desk.save("first", "").unwrap();
        assert_eq!(since("first"), made);
    }
    desk.fsck_clean();
}

// P9.1
#[test]
fn two_that_finish_at_once_make_their_dependant_ready() {
    let desk = Desk::new();
    for round in 0..50 {
        let [a, b, c] = ["a", "b", "c"].map(|task| format!("{task}{round}"));
        desk.put(&a, "");
        desk.put(&b, "");
        desk.put(&c, &format!("dependencies: [{a}, {b}]\n"));
        let (send, done) = bounded(2);
        for task in [&a, &b] {
            let (send, rename) = (send.clone(), Desk::rename_of(desk.inbox, desk.done, task));
            desk.engine().submit(Desk::context(), rename, move |end| send.send(end).unwrap());
        }
        done.recv().unwrap().unwrap();
        done.recv().unwrap().unwrap();
        assert_eq!(desk.ready(), [c.as_str()]);
        desk.mv(desk.inbox, desk.done, &c);
    }
    desk.fsck_clean();
}

// P9.3
#[test]
fn what_is_not_to_begin_yet_becomes_ready_by_the_clock() {
    let desk = Desk::new();
    let news = desk.watch();
    let at = |ahead: Duration| {
        let at = UnixNanos(desk.engine().now().0 + ahead.as_nanos() as i64);
        format!("not_before: '{}'\n", at.rfc3339())
    };
    desk.put("hours", &at(Duration::from_secs(7200)));
    desk.put("past", "not_before: 2020-01-01\n");
    assert!(news.recv_timeout(SOON).is_ok());
    desk.put("late", &at(Duration::from_millis(400)));
    desk.put("soon", &at(Duration::from_millis(200)));
    desk.put("never", "not_before: when it rains\n");
    assert_eq!(desk.ready(), ["past"]);
    assert!(desk.why("hours").starts_with("its time is 20"), "{}", desk.why("hours"));
    assert!(desk.why("never").contains("is no time"), "{}", desk.why("never"));
    assert!(news.recv_timeout(SOON).is_ok() && desk.ready().contains(&"soon".to_owned()));
    assert!(news.recv_timeout(SOON).is_ok() && desk.ready().contains(&"late".to_owned()));
    // Waiting for another record goes on after its time.
    desk.put("both", &format!("{}dependencies: [hours]\n", at(Duration::from_millis(50))));
    desk.save("hours", "").unwrap();
    assert!(news.recv_timeout(SOON).is_ok());
    desk.put("mark", &at(Duration::from_millis(100)));
    assert!(news.recv_timeout(SOON).is_ok() && desk.ready().contains(&"mark".to_owned()));
    assert!(!desk.ready().contains(&"both".to_owned()));
    desk.mv(desk.inbox, desk.done, "hours");
    assert!(desk.ready().contains(&"both".to_owned()));
    desk.fsck_clean();
}

// P9.1
#[test]
fn a_done_record_that_is_imported_counts() {
    let desk = Desk::new();
    desk.put("b", "dependencies: [a]\n");
    let put = Desk::put_of(desk.done, "a", "status: done\n");
    assert!(matches!(desk.engine().run(Desk::context(), put).unwrap(), Placed::Record(..)));
    assert_eq!(desk.ready(), ["b"]);
    desk.fsck_clean();
}

// P9.1 P9.2
#[test]
fn times_further_away_than_can_be_counted_are_always_and_never() {
    let desk = Desk::new();
    for (nth, never) in ["9999-12-31T23:59:59Z", "9999-12-31", "2262-04-12"].iter().enumerate() {
        desk.put(&format!("never{nth}"), &format!("not_before: {never}\n"));
        let why = desk.why(&format!("never{nth}"));
        assert_eq!(why, "its time is in the year 2262 or later", "{never}");
    }
    desk.put("now", "created_at: 2026-01-01\n");
    desk.put("ages", "not_before: 0001-01-01T00:00:00Z\ncreated_at: 0001-01-01T00:00:00Z\n");
    desk.put("old", "not_before: 1600-01-01\ncreated_at: 1700-01-01\n");
    desk.put("last", "created_at: 9999-12-31\n");
    assert_eq!(desk.ready(), ["ages", "old", "now", "last"]);
    desk.save("never0", "not_before: 2020-01-01\n").unwrap();
    assert!(desk.ready().contains(&"never0".to_owned()));
    desk.fsck_clean();
}
