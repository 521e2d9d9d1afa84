//! Leases over steps of the wall clock, restarts and boots.

use workfs::engine::Heartbeat;
use workfs::numbers::UnixNanos;
use workfs::store::When;

use crate::harness::{Desk, SECOND, Space};

// P12.7
#[test]
fn the_wall_clock_may_be_set_to_anything() {
    let desk = Desk::new(&["bob"]);
    desk.put("t-0", "lease: 10s");
    desk.mv("bob", "t-0", "inbox", "bob").unwrap();
    for days in [400, -800, 1] {
        desk.set_wall(days * 86_400 * SECOND as i64);
        assert_eq!(desk.record("t-0").state.as_str(), "assigned");
    }
    desk.pass(9 * SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "assigned");
    desk.pass(SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "inbox");
}

// P9.1 P12.7
#[test]
fn what_a_clock_that_was_ahead_made_ready_is_not_when_it_is_right_again() {
    let desk = Desk::new(&["bob"]);
    let hour = 3600 * SECOND as i64;
    let in_an_hour = UnixNanos(desk.engine().now().0 + hour).rfc3339();
    desk.put("t-0", &format!("not_before: '{in_an_hour}'"));
    desk.put("t-1", "");
    let ready = |desk: &Desk| ["t-0", "t-1"].map(|task| desk.record(task).readiness.when);
    assert_eq!(ready(&desk)[1], When::Now);
    desk.set_wall(2 * hour);
    assert_eq!(ready(&desk), [When::Now, When::Now]);
    desk.set_wall(-2 * hour);
    assert!(matches!(ready(&desk), [When::At(_), When::Now]), "{:?}", ready(&desk));
    desk.pass(3601 * SECOND);
    assert_eq!(ready(&desk), [When::Now, When::Now]);
}

// P9.3
#[test]
fn what_a_clock_that_was_ahead_made_ready_is_not_when_the_next_daemon_sees_it_right() {
    let mut desk = Desk::new(&["bob"]);
    let hour = 3600 * SECOND as i64;
    let in_an_hour = UnixNanos(desk.engine().now().0 + hour).rfc3339();
    desk.put("t-0", &format!("not_before: '{in_an_hour}'"));
    desk.set_wall(2 * hour);
    assert_eq!(desk.record("t-0").readiness.when, When::Now);
    desk.restart_after(-2 * hour, false);
    desk.settle();
    assert!(matches!(desk.record("t-0").readiness.when, When::At(_)));
    desk.pass(3601 * SECOND);
    assert_eq!(desk.record("t-0").readiness.when, When::Now);
}

// P12.5
#[test]
fn time_goes_on_over_restarts_and_boots_and_owners_get_time_to_come_back() {
    let mut desk = Desk::new(&["bob"]);
    desk.put("t-0", "lease: 4h");
    desk.mv("bob", "t-0", "inbox", "bob").unwrap();
    desk.pass(3 * 3600 * SECOND);
    let left = |desk: &Desk| {
        let until = desk.lease("t-0").unwrap().until.0;
        (until - desk.engine().lease_now().0) / SECOND
    };
    assert_eq!(left(&desk), 3600);
    desk.restart(false);
    assert_eq!(left(&desk), 3600);
    // Another boot: the wall clock says how long it took.
    desk.restart_after(1800 * SECOND as i64, true);
    assert_eq!(left(&desk), 1800);
    // Set back meanwhile: no time has passed.
    desk.restart_after(-86_400 * SECOND as i64, true);
    assert_eq!(left(&desk), 1800);
    // It is over, but bob has some time to show that he is back: a minute from its end.
    desk.restart_after(1800 * SECOND as i64, true);
    desk.pass(50 * SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "assigned");
    desk.pass(20 * SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "inbox");
}

// P12.5
#[test]
fn no_number_of_starts_keeps_a_record_with_who_is_gone() {
    let mut desk = Desk::new(&["bob", "ann"]);
    for (task, who) in [("t-0", "bob"), ("t-1", "ann")] {
        desk.put(task, "lease: 4h");
        desk.mv(who, task, "inbox", who).unwrap();
    }
    desk.pass(4 * 3600 * SECOND - SECOND);
    for _ in 0..3 {
        desk.restart_after(19 * SECOND as i64, false);
        desk.settle();
        assert_eq!(desk.record("t-0").state.as_str(), "assigned");
    }
    desk.act("ann", Heartbeat { record: desk.record("t-1").key }).unwrap();
    desk.restart_after(19 * SECOND as i64, false);
    desk.settle();
    assert_eq!(desk.record("t-0").state.as_str(), "inbox");
    // Who was heard of has all its time, however the daemon ended.
    assert_eq!(desk.record("t-1").state.as_str(), "assigned");
    // What ran out longer ago, while there was no daemon, ends at its start.
    desk.restart_after(5 * 3600 * SECOND as i64, true);
    desk.settle();
    assert_eq!(desk.record("t-1").state.as_str(), "inbox");
    desk.fsck_clean();
}

// P9.3
#[test]
fn what_a_clock_that_was_ahead_made_ready_is_not_any_more_also_after_a_full_disk() {
    const HOURS: i64 = 10 * 3600 * SECOND as i64;
    for space in [Space::Room, Space::Tight, Space::Full] {
        let desk = Desk::new(&["bob"]);
        // Five hours after the desk's clock begins.
        desk.put("later", "not_before: 2025-11-24T21:00:00Z");
        let is_ready = || desk.record("later").readiness.when == When::Now;
        assert!(!is_ready());
        desk.set_wall(HOURS);
        desk.settle();
        assert!(is_ready());
        desk.leave(space);
        desk.set_wall(-HOURS);
        desk.leave(Space::Room);
        desk.pass(10 * SECOND);
        assert!(!is_ready(), "{space:?}");
        desk.fsck_clean();
    }
}

// P12.5
#[test]
fn a_clock_that_was_set_back_while_no_daemon_ran_makes_no_lease_longer() {
    let mut desk = Desk::new(&["bob"]);
    desk.put("t-0", "lease: 4h");
    // Long after the clock was kept last, which a claim does not do.
    desk.pass(3 * 3600 * SECOND);
    desk.mv("bob", "t-0", "inbox", "bob").unwrap();
    desk.pass(3600 * SECOND);
    // On a full disk a daemon keeps it at its end as little as one that is killed.
    desk.leave(Space::Tight);
    desk.restart_after(-86_400 * SECOND as i64, true);
    let left = desk.lease("t-0").unwrap().until.0 - desk.engine().lease_now().0;
    assert!(left <= 4 * 3600 * SECOND, "{} s", left / SECOND);
    desk.leave(Space::Room);
    desk.pass(4 * 3600 * SECOND + SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "inbox");
    desk.fsck_clean();
}
