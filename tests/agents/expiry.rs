//! What becomes of a record whose lease ran out is said by its kind.

use workfs::config::Config;
use workfs::engine::{
    Base, Create, Fence, Heartbeat, NewContent, Save, Saved, SetAttributes, Sight, Text, TimeOrNow,
};
use workfs::kind::{Kind, Kinds, builtin};
use workfs::names::FileName;
use workfs::numbers::Attempt;
use workfs::refusal::{Door, Rule};

use crate::harness::{Desk, SECOND, agent};

const TTL: u64 = 4 * 3600 * SECOND;

/// A kind `errand` that is the task but for what happens when a lease ends.
pub fn errands(on_expiry: &str) -> Kinds {
    let task = builtin::task();
    let definition = task.source().definition.replace("kind: task", "kind: errand");
    let definition = definition.replace("task.v1.json", "errand.v1.json");
    let definition = definition.replace("on_expiry: inbox", &format!("on_expiry: {on_expiry}"));
    let mut kinds = Kinds::default();
    let file = "errand.kind.yaml";
    kinds.add(file, Kind::load(file, &definition, &task.source().schema).unwrap()).unwrap();
    kinds
}

/// Bob has `t-1` of that kind.
pub fn bob_has(on_expiry: &str) -> Desk {
    bob_has_among(on_expiry, "{}")
}

/// The same where directories of states have other names.
fn bob_has_among(on_expiry: &str, dirs: &str) -> Desk {
    let text = format!("workspaces: [{{ path: work, kind: errand, dirs: {dirs} }}]");
    let config = Config::parse_with("c", &text, &errands(on_expiry)).unwrap();
    let desk = Desk::with(&["bob", "ann"], config);
    desk.put("t-1", "");
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    desk
}

/// The operator writes `t-1` into bob's lane, as a new file.
#[track_caller]
pub fn write_for_bob(desk: &Desk, text: &str) {
    let (parent, name) = (desk.dir("bob"), FileName::new("t-1.yaml").unwrap());
    let create = Create::new(parent, name, 0o644, NewContent::File);
    let ino = desk.engine().run(Desk::operator(), create).unwrap().ino;
    let save = Save::of(ino, Sight::Known(Base::Unseen), Text::new(text.as_bytes()));
    let saved = desk.engine().run(Desk::operator().at(Door::Handle), save).unwrap();
    assert!(matches!(saved, Saved::Kept(_)), "{saved:?}");
}

pub fn bobs() -> Fence {
    Fence { owner: agent("bob"), attempt: Attempt(1) }
}

// P12.1
#[test]
fn where_directories_name_an_owner_a_record_goes_to_that_of_who_had_it() {
    for (end, let_go) in [("dead", false), ("inbox", false), ("inbox", true)] {
        let dirs = format!("{{ {end}: ['{end}/{{owner}}', {end}] }}");
        // A record is made in the directory without one.
        let desk = bob_has_among(end, &dirs);
        if let_go {
            desk.let_go("t-1", &bobs());
        } else {
            desk.pass(TTL + SECOND);
        }
        let record = desk.record("t-1");
        assert_eq!((record.state.as_str(), &record.owner), (end, &Some(agent("bob"))), "{let_go}");
        assert!(!record.is_lapsed() && desk.lease("t-1").is_none());
        assert!(desk.read(|read| read.returns()).is_empty());
        if !let_go {
            // His claim is over all the same: what he had open from before is late.
            let late = desk.save("bob", "t-1", (&bobs(), "title: late")).unwrap_err();
            assert_eq!((late.rule, record.attempt), (Rule::LeaseOver, Attempt(2)));
        }
        desk.fsck_clean();
    }
}

// P12.1
#[test]
fn a_status_is_set_with_the_reason_that_the_kind_wants_and_the_old_owner_is_out() {
    let desk = bob_has("error");
    desk.pass(TTL + SECOND);
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), record.status.as_deref()), ("assigned", Some("error")));
    assert_eq!(record.lapsed, Some(agent("bob")));
    assert!(desk.lease("t-1").is_none());
    let text = desk.content("t-1");
    let told = "the lease of bob ran out (attempt 1)";
    assert!(text.contains("status: error"), "{text}");
    assert!(text.contains(&format!("error:\n  message: \"{told}\"")), "{text}");
    assert!(text.contains("result: {summary: made}"), "what he wrote stays: {text}");
    assert_eq!(desk.save("bob", "t-1", (&bobs(), "")).unwrap_err().rule, Rule::LeaseOver);
    assert_eq!(desk.mv("bob", "t-1", "bob", "done").unwrap_err().rule, Rule::LeaseOver);
    desk.fsck_clean();
}

// P12.1
#[test]
fn what_the_owner_said_of_the_error_stays_beside_the_reason() {
    let desk = bob_has("error");
    desk.save("bob", "t-1", (&bobs(), "error: { code: 7 }")).unwrap();
    desk.pass(TTL + SECOND);
    let text = desk.content("t-1");
    assert!(text.contains("message: \"the lease of bob") && text.contains("code: 7"), "{text}");
    desk.fsck_clean();
}

// P12.1
#[test]
fn only_an_event_tells_and_the_owner_keeps_the_record() {
    let desk = bob_has("event");
    desk.pass(TTL + SECOND);
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), &record.lapsed), ("assigned", &None));
    assert!(!desk.lease("t-1").unwrap().runs());
    let event = desk.read(|read| read.event(record.last_g)).unwrap();
    assert!(event.line.contains("\"event\":\"expired\""), "{}", event.line);
    desk.save("bob", "t-1", (&bobs(), "")).unwrap();
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    desk.fsck_clean();
}

/// How often the end of a task's lease was told of.
pub fn ends_of(desk: &Desk, task: &str) -> usize {
    let ended = |line: &&String| line.contains("\"event\":\"expired\"");
    events_of(desk, task).iter().filter(ended).count()
}

// P12.1
#[test]
fn who_was_only_told_of_and_is_heard_of_again_has_a_lease_again() {
    let mut desk = bob_has("event");
    desk.pass(TTL);
    let ends = |desk: &Desk| ends_of(desk, "t-1");
    assert_eq!(ends(&desk), 1);
    // Nothing more is told of who says nothing more, by the next daemon neither.
    desk.pass(2 * TTL);
    desk.restart(false);
    desk.pass(TTL);
    assert_eq!(ends(&desk), 1);
    let ino = desk.record("t-1").ino().unwrap();
    let touch = SetAttributes { mtime: Some(TimeOrNow::Now), ..SetAttributes::none(ino) };
    type Sign<'a> = (&'static str, &'a dyn Fn(&Desk));
    let signs: [Sign<'_>; 4] = [
        ("a save", &|desk| desk.save("bob", "t-1", (&bobs(), "note: new")).unwrap()),
        ("a heartbeat", &|desk| {
            desk.act("bob", Heartbeat { record: desk.record("t-1").key }).map(drop).unwrap();
        }),
        ("a touch", &|desk| desk.act("bob", touch).map(drop).unwrap()),
        ("a look through the mount", &|desk| desk.see("bob")),
    ];
    for (nth, (sign, show)) in signs.into_iter().enumerate() {
        show(&desk);
        // It is looked for who is heard of twice a minute.
        desk.pass(30 * SECOND);
        assert!(desk.lease("t-1").unwrap().runs(), "{sign}");
        desk.pass(TTL - 31 * SECOND);
        assert_eq!(ends(&desk), nth + 1, "{sign}");
        desk.pass(SECOND);
        assert_eq!(ends(&desk), nth + 2, "{sign}");
        assert!(!desk.lease("t-1").unwrap().runs(), "{sign}");
    }
    assert!(desk.record("t-1").lapsed.is_none());
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    assert!(desk.lease("t-1").is_none());
    desk.fsck_clean();
}

/// Claims `t-1` for bob and lets the lease run out; gives the state it lies in then.
fn lapse(desk: &Desk) -> String {
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    desk.pass(TTL + SECOND);
    desk.record("t-1").state.to_string()
}

// P12.4
#[test]
fn what_was_given_back_uses_up_no_retries_and_who_is_revived_has_all_again() {
    let desk = Desk::new(&["bob"]);
    desk.put("t-1", "");
    for _ in 0..6 {
        desk.mv("bob", "t-1", "inbox", "bob").unwrap();
        desk.mv("bob", "t-1", "bob", "inbox").unwrap();
    }
    assert_eq!(lapse(&desk), "inbox");
    let text = desk.content("t-1");
    assert!(text.contains("(attempt 7)"), "{text}");
    for nth in 2..5 {
        assert_eq!(lapse(&desk), "inbox", "{nth}");
    }
    assert_eq!(lapse(&desk), "dead");
    desk.take("t-1", "dead", "inbox");
    assert_eq!(lapse(&desk), "inbox");
    desk.fsck_clean();
}

fn events(desk: &Desk) -> Vec<String> {
    events_of(desk, "t-1")
}

/// The events of a task, the newest first.
pub fn events_of(desk: &Desk, task: &str) -> Vec<String> {
    let mut at = desk.record(task).last_g;
    let mut lines = Vec::new();
    while at.0 > 0 {
        let row = desk.read(|read| read.event(at)).unwrap();
        lines.push(row.line);
        at = row.before_g;
    }
    lines
}

// P12.1
#[test]
fn the_warning_comes_before_the_end_however_short_the_lease() {
    // Each lease, and how long before its end the warning comes, in milliseconds.
    let leases = [("1s", 250), ("4s", 1_000), ("5s", 1_000), ("60s", 6_000), ("4h", 600_000)];
    for (lease, ahead) in leases {
        let desk = Desk::new(&["bob"]);
        desk.put("t-1", &format!("lease: {lease}"));
        desk.mv("bob", "t-1", "inbox", "bob").unwrap();
        let told = |what: &str| events(&desk)[0].contains(&format!("\"event\":\"{what}\""));
        let (ttl, ahead) = (desk.lease("t-1").unwrap().ttl_ns, ahead * SECOND / 1_000);
        // As the daemon looks: at the half, too.
        desk.pass(ttl / 2 - 1);
        desk.pass(ttl / 2 - ahead);
        assert!(told("claimed"), "{lease}: {:?}", events(&desk));
        desk.pass(1);
        assert!(told("lease_ending"), "{lease}: {:?}", events(&desk));
        desk.pass(ahead - 1);
        assert!(told("lease_ending"), "{lease}: {:?}", events(&desk));
        desk.pass(1);
        assert!(told("expired"), "{lease}: {:?}", events(&desk));
    }
}

// P12.1 P12.7
#[test]
fn what_cannot_go_back_does_so_when_nothing_is_in_its_way() {
    let mut desk = Desk::new(&["bob"]);
    desk.put("t-1", "");
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    desk.block("inbox", "t-1");
    desk.pass(TTL + SECOND);
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), record.lapsed), ("assigned", Some(agent("bob"))));
    assert!(desk.read(|read| read.in_the_way(record.key)).is_some());
    let told = events(&desk).len();
    // Tried again, it makes no more events, in this daemon and the next.
    desk.pass(600 * SECOND);
    desk.restart(true);
    desk.pass(600 * SECOND);
    assert_eq!(events(&desk).len(), told);
    assert_eq!(desk.save("bob", "t-1", (&bobs(), "")).unwrap_err().rule, Rule::LeaseOver);
    desk.fsck_clean();
    desk.unblock("inbox", "t-1");
    desk.pass(60 * SECOND);
    let record = desk.record("t-1");
    assert_eq!((record.state.as_str(), record.owner), ("inbox", None));
    assert!(desk.content("t-1").contains("bob ran out (attempt 1)"), "{}", desk.content("t-1"));
    assert!(desk.read(|read| read.returns()).is_empty());
    desk.fsck_clean();
}

// P12.1
#[test]
fn who_was_given_a_record_that_could_not_go_back_keeps_it() {
    let desk = Desk::new(&["bob", "ann"]);
    desk.put("t-1", "");
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    desk.block("inbox", "t-1");
    desk.pass(TTL + SECOND);
    desk.take("t-1", "bob", "ann");
    desk.unblock("inbox", "t-1");
    desk.pass(60 * SECOND);
    assert_eq!(desk.record("t-1").owner, Some(agent("ann")));
    assert!(desk.read(|read| read.returns()).is_empty());
    desk.fsck_clean();
}

// P12.1 P12.3
#[test]
fn a_parked_record_that_cannot_go_back_is_its_old_owner_s_no_more() {
    let desk = Desk::new(&["bob"]);
    desk.put("t-1", "");
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    desk.park("bob", "t-1");
    desk.block("inbox", "t-1");
    desk.pass(TTL + SECOND);
    assert!(events(&desk)[0].contains("\"event\":\"expired\""), "{:?}", events(&desk));
    assert!(desk.write("bob", "t-1", "status: assigned").is_err());
    desk.unblock("inbox", "t-1");
    desk.pass(60 * SECOND);
    assert_eq!(desk.record("t-1").state.as_str(), "inbox");
    desk.fsck_clean();
}

// P12.1
#[test]
fn who_moves_its_record_to_another_state_has_it_for_as_long_as_that_one_gives() {
    let task = builtin::task();
    let definition = task.source().definition.replace("kind: task", "kind: errand");
    let definition = definition.replace("task.v1.json", "errand.v1.json");
    let held = "  held:\n    dirs: [\"dead/{owner}\"]\n    status: any\n    \
                lease: { ttl: 8h, on_expiry: inbox }\n  fridge:\n";
    let moves = "transitions:\n  \
                 - { from: assigned, to: held, event: held, by: *workers }\n  \
                 - { from: held, to: [inbox, assigned], event: resumed, by: *workers }\n";
    let definition = definition.replace("  fridge:\n", held);
    let definition = definition.replace("transitions:\n", moves);
    let mut kinds = Kinds::default();
    let file = "errand.kind.yaml";
    kinds.add(file, Kind::load(file, &definition, &task.source().schema).unwrap()).unwrap();
    let text = "workspaces: [{ path: work, kind: errand }]";
    let mut desk = Desk::with(&["bob"], Config::parse_with("c", text, &kinds).unwrap());
    let held = desk.make_below("dead", "bob");
    for (task, way) in [("longer", vec![&*held]), ("shorter", vec![&*held, "bob"])] {
        desk.put(task, "");
        desk.mv("bob", task, "inbox", "bob").unwrap();
        let ends = way.iter().fold("bob", |from, to| {
            desk.pass(SECOND);
            desk.mv("bob", task, from, to).unwrap();
            to
        });
        let ttl = if ends == "bob" { TTL } else { 2 * TTL };
        desk.pass(ttl - SECOND);
        assert_eq!(desk.record(task).owner, Some(agent("bob")), "{task}");
        desk.pass(SECOND);
        assert_eq!(desk.record(task).owner, None, "{task}");
        assert_eq!(desk.record(task).state.as_str(), "inbox", "{task}");
    }
    desk.fsck_clean();
}

// P12.1
#[test]
fn an_owner_whose_text_asks_for_another_lease_has_that_from_then_on() {
    let desk = bob_has("inbox");
    for (asked, seconds) in [("lease: 30m", 1800), ("lease: 8h", 8 * 3600), ("", 4 * 3600)] {
        desk.pass(60 * SECOND);
        desk.save("bob", "t-1", (&bobs(), asked)).unwrap();
        let lease = desk.lease("t-1").unwrap();
        let left = lease.until.0 - desk.engine().lease_now().0;
        assert_eq!((lease.ttl_ns, left), (seconds * SECOND, seconds * SECOND), "{asked}");
    }
    desk.save("bob", "t-1", (&bobs(), "lease: 30m")).unwrap();
    desk.pass(1801 * SECOND);
    assert_eq!(desk.record("t-1").state.as_str(), "inbox");
    desk.fsck_clean();
}

// P12.1 P12.3
#[test]
fn where_a_record_stays_who_mends_it_for_others_gives_its_owner_another_claim() {
    for (is_parked, is_same) in [(false, false), (true, false), (true, true)] {
        let desk = bob_has("error");
        let before = desk.content("t-1");
        if is_parked {
            desk.park("bob", "t-1");
        }
        desk.pass(TTL + SECOND);
        let ended = desk.record("t-1");
        assert_eq!((ended.is_lapsed(), desk.lease("t-1")), (true, None), "{is_parked}");
        let text = "id: t-1\nagent: bob\nstatus: assigned\nnotes: go on\n";
        if is_parked {
            write_for_bob(&desk, if is_same { &before } else { text });
        } else {
            desk.rewrite_all("t-1", Text::new(text.as_bytes()));
        }
        let record = desk.record("t-1");
        assert_eq!((record.is_lapsed(), &record.owner), (false, &Some(agent("bob"))));
        assert!(desk.lease("t-1").is_some_and(|row| row.runs()), "{is_parked}");
        // What bob had open from before is late all the same.
        let late = desk.save("bob", "t-1", (&bobs(), "title: late")).unwrap_err();
        assert_eq!(late.rule, Rule::LeaseOver, "{is_parked}");
        let ended = Fence { attempt: ended.attempt, ..bobs() };
        let late = desk.save("bob", "t-1", (&ended, "title: late")).unwrap_err();
        assert_eq!(late.rule, Rule::LeaseOver, "{is_parked}");
        desk.save("bob", "t-1", (&Fence::of(&record).unwrap(), "title: in time")).unwrap();
        desk.fsck_clean();
    }
}
