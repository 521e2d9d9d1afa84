//! A lease that is over stays over, also while its end cannot be written or its record cannot go back.

use std::sync::Arc;

use workfs::engine::{
    Base, Command, Heartbeat, Save, SetAttributes, Sight, Text, TimeOrNow, told_of_return,
};
use workfs::refusal::{Refusal, Rule};

use crate::expiry::{bob_has, bobs, ends_of, events_of};
use crate::harness::{Desk, SECOND, Space, agent};

const TTL: u64 = 4 * 3600 * SECOND;

fn beat(desk: &Desk) -> Result<(), Refusal> {
    desk.act("bob", Heartbeat { record: desk.record("t-1").key }).map(drop)
}

#[track_caller]
fn is_refused<T: std::fmt::Debug>(asked: Result<T, Refusal>, rule: Rule) {
    assert_eq!(asked.unwrap_err().rule, rule);
}

/// It stays in bob's lane, bob's no more, and this is told.
#[track_caller]
fn waits(desk: &Desk, why: &str) {
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), &record.lapsed), ("assigned", &Some(agent("bob"))));
    assert!(desk.lease("t-1").is_none());
    let told = desk.read(|read| told_of_return(read, &record)).unwrap();
    assert!(told.contains(why), "{told}");
    desk.fsck_clean();
}

#[track_caller]
fn is_back(desk: &Desk) {
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), record.owner), ("inbox", None));
    assert!(desk.read(|read| read.returns()).is_empty());
    is_refused(desk.save("bob", "t-1", (&bobs(), "")), Rule::LeaseOver);
    is_refused(beat(desk), Rule::LeaseOver);
    desk.fsck_clean();
}

/// Whether bob's lease runs when the answer to this is given, before anything else is done.
fn runs_when_answered(desk: &Desk, command: impl Command) -> bool {
    let (told, heard) = std::sync::mpsc::channel();
    let (readers, key) = (Arc::clone(desk.engine().readers()), desk.record("t-1").key);
    desk.engine().submit(Desk::operator(), command, move |ran| {
        assert!(ran.is_ok());
        let lease = workfs::store::read(&*readers, |read| read.lease(key)).unwrap();
        told.send(lease.unwrap().runs()).unwrap();
    });
    heard.recv().unwrap()
}

// P7.4 P12.2
#[test]
fn who_hears_that_a_sign_of_life_was_taken_finds_no_lease_over_any_more() {
    let ended = || {
        let desk = bob_has("event");
        desk.pass(TTL + SECOND);
        assert!(!desk.lease("t-1").unwrap().runs());
        let ino = desk.record("t-1").ino().unwrap();
        (desk, ino)
    };
    let (desk, ino) = ended();
    let mtime = Some(TimeOrNow::Now);
    assert!(runs_when_answered(&desk, SetAttributes { mtime, ..SetAttributes::none(ino) }));
    for more in ["# and more\n", ""] {
        let (desk, ino) = ended();
        let text = Text::new((desk.content("t-1") + more).into_bytes());
        assert!(runs_when_answered(&desk, Save::of(ino, Sight::Known(Base::Unseen), text)));
    }
}

// P12.2 P12.7
#[test]
fn a_sign_of_life_in_the_very_batch_of_the_end_is_taken_where_that_is_only_told() {
    for on_expiry in ["event", "inbox"] {
        let desk = bob_has(on_expiry);
        desk.pass_unseen(TTL + SECOND);
        match on_expiry {
            "event" => beat(&desk).unwrap(),
            _ => is_refused(beat(&desk), Rule::LeaseOver),
        }
        assert_eq!(ends_of(&desk, "t-1"), 1, "{on_expiry}");
        assert_eq!(desk.lease("t-1").is_some_and(|row| row.runs()), on_expiry == "event");
        desk.settle();
        assert_eq!(ends_of(&desk, "t-1"), 1, "{on_expiry}");
        desk.fsck_clean();
    }
}

// P12.3 P12.7
#[test]
fn what_an_owner_does_after_the_end_begins_nothing_anew_where_the_daemon_stood_still_over_it() {
    for was_there in [false, true] {
        let desk = bob_has("inbox");
        desk.pass(TTL - SECOND);
        if was_there {
            desk.see("bob");
        }
        desk.pass_unseen(2 * SECOND);
        desk.see("bob");
        desk.pass_unseen(2 * SECOND);
        desk.see("bob");
        desk.settle();
        assert_eq!(ends_of(&desk, "t-1"), usize::from(!was_there));
        match was_there {
            true => desk.save("bob", "t-1", (&bobs(), "")).unwrap(),
            false => is_back(&desk),
        }
    }
}

// P12.6 P12.7
#[test]
fn what_was_let_go_of_and_cannot_go_back_does_so_as_soon_as_it_can_whatever_the_kind_says() {
    for on_expiry in ["inbox", "event", "error"] {
        let mut desk = bob_has(on_expiry);
        desk.block("inbox", "t-1");
        desk.let_go("t-1", &bobs());
        waits(&desk, "`work/inbox/t-1.yaml` is there already");
        // Bob lives, and has it no more.
        desk.see("bob");
        is_refused(desk.save("bob", "t-1", (&bobs(), "")), Rule::LeaseOver);
        is_refused(beat(&desk), Rule::LeaseOver);
        desk.pass(60 * SECOND);
        desk.restart(false);
        desk.settle();
        waits(&desk, "is there already");
        desk.unblock("inbox", "t-1");
        desk.pass(31 * SECOND);
        is_back(&desk);
    }
}

// P12.6
#[test]
fn a_text_that_cannot_go_back_is_let_go_of_all_the_same() {
    let desk = bob_has("inbox");
    let text = "id: t-1\nagent: bob\nstatus: &s assigned\nnotes: *s\n";
    desk.save_text("bob", "t-1", (&bobs(), text)).unwrap();
    desk.let_go("t-1", &bobs());
    waits(&desk, "`status` cannot be changed in place; whoever acts for others can mend");
}

// P12.6
#[test]
fn what_was_let_go_of_while_its_name_is_a_backup_s_goes_back_whatever_the_kind_says() {
    for on_expiry in ["inbox", "event", "error"] {
        let desk = bob_has(on_expiry);
        desk.park("bob", "t-1");
        desk.let_go("t-1", &bobs());
        is_back(&desk);
    }
}

// P12.6
#[test]
fn who_lets_go_of_an_earlier_claim_ends_no_later_one() {
    let desk = bob_has("inbox");
    desk.mv("bob", "t-1", "bob", "inbox").unwrap();
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    desk.leave(Space::Full);
    desk.let_go("t-1", &bobs());
    desk.leave(Space::Room);
    assert_eq!(desk.record("t-1").owner, Some(agent("bob")));
    assert!(desk.lease("t-1").is_some());
    desk.fsck_clean();
}

// P12.7
#[test]
fn nor_does_anybody_else_begin_anew_what_ended_while_a_full_disk_took_no_end() {
    for by_a_save in [false, true] {
        let desk = bob_has("inbox");
        desk.leave(Space::Full);
        desk.pass(TTL + SECOND);
        assert!(desk.lease("t-1").is_some(), "nothing could be written");
        // The operator is the first who finds that there is room again.
        desk.make_room();
        if by_a_save {
            desk.rewrite("t-1", "status: assigned\nagent: bob\nlease: 8h");
        } else {
            let beat = Heartbeat { record: desk.record("t-1").key };
            is_refused(desk.engine().run(Desk::operator(), beat), Rule::LeaseOver);
        }
        desk.pass(31 * SECOND);
        is_back(&desk);
    }
}

// P12.3 P12.7
#[test]
fn an_end_that_a_full_disk_does_not_take_is_no_less_an_end() {
    let desk = bob_has("inbox");
    desk.leave(Space::Full);
    desk.pass(TTL + SECOND);
    assert!(desk.lease("t-1").is_some(), "nothing could be written");
    for _ in 0..3 {
        desk.see("bob");
        is_refused(beat(&desk), Rule::NoSpace);
        is_refused(desk.save("bob", "t-1", (&bobs(), "")), Rule::NoSpace);
        is_refused(desk.remove("bob", "t-1"), Rule::NoSpace);
        desk.pass(31 * SECOND);
    }
    // There is room again, and nobody has looked yet: bob is the first to come.
    desk.see("bob");
    desk.make_room();
    is_refused(desk.save("bob", "t-1", (&bobs(), "late: true")), Rule::LeaseOver);
    is_back(&desk);
    assert!(!desk.content("t-1").contains("late"), "{}", desk.content("t-1"));
    assert_eq!(ends_of(&desk, "t-1"), 1);
}

// P12.3 P12.7
#[test]
fn where_there_is_room_for_removals_only_the_end_is_written_and_the_way_back_waits() {
    let desk = bob_has("inbox");
    desk.leave(Space::Tight);
    desk.pass(TTL + SECOND);
    waits(&desk, "the disk is full");
    desk.see("bob");
    is_refused(desk.save("bob", "t-1", (&bobs(), "")), Rule::NoSpace);
    is_refused(desk.remove("bob", "t-1"), Rule::LeaseOver);
    desk.pass(60 * SECOND);
    waits(&desk, "the disk is full");
    desk.leave(Space::Room);
    desk.pass(31 * SECOND);
    is_back(&desk);
    // Once for the end, once for the way back.
    assert_eq!(ends_of(&desk, "t-1"), 2, "{:?}", events_of(&desk, "t-1"));
}

// P12.6 P12.7
#[test]
fn what_was_let_go_of_on_a_full_disk_is_given_back_when_there_is_room() {
    for space in [Space::Full, Space::Tight] {
        for on_expiry in ["inbox", "event", "error"] {
            let desk = bob_has(on_expiry);
            desk.leave(space);
            desk.let_go("t-1", &bobs());
            desk.see("bob");
            is_refused(beat(&desk), Rule::NoSpace);
            desk.leave(Space::Room);
            desk.pass(31 * SECOND);
            is_back(&desk);
        }
    }
}

// P12.6
#[test]
fn an_end_that_could_not_be_written_is_written_when_the_daemon_ends() {
    let mut desk = bob_has("inbox");
    desk.leave(Space::Full);
    desk.let_go("t-1", &bobs());
    desk.make_room();
    desk.restart(false);
    is_back(&desk);
}

// P12.1
#[test]
fn a_status_that_a_full_disk_does_not_take_is_set_when_there_is_room() {
    for space in [Space::Full, Space::Tight] {
        let desk = bob_has("error");
        desk.leave(space);
        desk.pass(TTL + SECOND);
        desk.see("bob");
        is_refused(desk.remove("bob", "t-1"), Rule::NoSpace);
        desk.leave(Space::Room);
        // It is looked at twice a minute, and before bob does anything.
        desk.pass(30 * SECOND);
        let record = desk.record("t-1");
        assert_eq!((record.status.as_deref(), record.lapsed), (Some("error"), Some(agent("bob"))));
        is_refused(desk.save("bob", "t-1", (&bobs(), "")), Rule::LeaseOver);
        desk.fsck_clean();
    }
}

// P12.1
#[test]
fn an_owner_who_is_only_told_of_goes_on_after_a_full_disk() {
    let desk = bob_has("event");
    desk.leave(Space::Full);
    desk.pass(TTL + SECOND);
    desk.see("bob");
    desk.leave(Space::Room);
    desk.save("bob", "t-1", (&bobs(), "note: on")).unwrap();
    assert_eq!(ends_of(&desk, "t-1"), 1);
    desk.settle();
    assert!(desk.lease("t-1").unwrap().runs());
    desk.pass(TTL / 2);
    assert_eq!(ends_of(&desk, "t-1"), 1);
    desk.fsck_clean();
}
