//! Circles of dependencies are refused when they are written.

use std::fs;

use workfs::engine::{Command, Placed, Save, Saved, Stop, Turn};
use workfs::refusal::{Refusal, Rule};

use crate::desk::Desk;
use crate::harness::{Fixture, Task};

// P9.4
#[test]
fn a_save_that_closes_a_circle_is_refused_and_names_it() {
    let desk = Desk::new();
    desk.put("a", "");
    desk.put("b", "dependencies: [a]\n");
    desk.put("c", "blocked_by: [b]\nblocks: [d]\n");
    desk.put("d", "");
    let refusal = desk.save("a", "dependencies: [x, d]\n").unwrap_err();
    assert_eq!(refusal.rule, Rule::Cycle);
    assert_eq!(
        refusal.reason,
        "`a` would wait for itself: `a` after `d` after `c` after `b` after `a`"
    );
    assert_eq!(refusal.place.map(|place| place.line), Some(3));
    assert_eq!(desk.record("a").unwrap().version.0, 1);
    let refusal = desk.save("d", "blocks: [a]\n").unwrap_err();
    assert_eq!(refusal.rule, Rule::Cycle);
    let refusal = desk.save("d", "dependencies: [d]\n").unwrap_err();
    assert_eq!(refusal.rule, Rule::Cycle);
    // Whichever direction is turned round, in one save, is no circle.
    desk.put("e", "dependencies: [f]\n");
    desk.put("f", "");
    desk.save("e", "blocks: [f]\n").unwrap();
    assert_eq!(desk.ready(), ["a", "e"]);
    desk.fsck_clean();
}

// P9.4
#[test]
fn a_new_record_that_closes_a_circle_is_a_draft() {
    let desk = Desk::new();
    desk.put("a", "dependencies: [c]\n");
    desk.put("b", "dependencies: [a]\n");
    let Placed::Draft(_, refusal) = desk.put("c", "dependencies: [b]\n") else { panic!() };
    assert_eq!(refusal.rule, Rule::Cycle);
    assert!(desk.record("c").is_none());
    desk.fsck_clean();
}

// P9.4
#[test]
fn a_long_chain_is_no_circle_until_its_ends_meet() {
    let desk = Desk::new();
    for nth in 1..300 {
        desk.put(&format!("t{nth}"), &format!("dependencies: [t{}]\n", nth - 1));
    }
    let Placed::Draft(_, refusal) = desk.put("t0", "dependencies: [t299]\n") else { panic!() };
    assert_eq!(refusal.rule, Rule::Cycle);
    assert!(refusal.reason.contains("…"), "{}", refusal.reason);
    assert!(matches!(desk.put("t299-else", "dependencies: [t299]\n"), Placed::Record(..)));
    desk.fsck_clean();
}

/// Puts `hubs` records that wait for `each` others, and as many for which `each` others wait; gives their ids.
fn hubs(desk: &Desk, hubs: usize, each: usize) -> [String; 2] {
    ["dependencies", "blocks"].map(|field| {
        let ids: Vec<String> = (0..hubs).map(|hub| format!("{field}{hub}")).collect();
        for id in &ids {
            let all: Vec<String> = (0..each).map(|nth| format!("{id}-{nth}")).collect();
            let placed = desk.put(id, &format!("{field}: [{}]\n", all.join(", ")));
            assert!(matches!(placed, Placed::Record(..)));
        }
        ids.join(", ")
    })
}

// P9.4
#[test]
fn who_stands_between_very_many_that_wait_is_taken() {
    let desk = Desk::new();
    let [earlier, later] = hubs(&desk, 11, 5_400);
    desk.put("t", "");
    desk.save("t", &format!("dependencies: [{earlier}]\nblocks: [{later}]\n")).unwrap();
    let refusal = desk.save("dependencies3", "dependencies: [blocks7]\n").unwrap_err();
    assert_eq!(
        refusal.reason,
        "`dependencies3` would wait for itself: \
         `dependencies3` after `blocks7` after `t` after `dependencies3`"
    );
    desk.fsck_clean();
}

// P9.4
#[test]
fn where_very_many_wait_that_is_said_and_no_circle() {
    let desk = Desk::new();
    let [earlier, later] = hubs(&desk, 11, 9_900);
    desk.put("t", "");
    let fields = format!("dependencies: [{earlier}]\nblocks: [{later}]\n");
    let refusal = desk.save("t", &fields).unwrap_err();
    assert_eq!(refusal.reason, "`t` may wait for itself: over 100000 records wait here");
    // Where one direction ends soon the other may be as long as it likes.
    desk.save("t", &format!("dependencies: [{earlier}]\nblocks: [t0]\n")).unwrap();
    desk.fsck_clean();
}

/// Two changes in one turn, which is then refused.
struct Undone(Save, Save);

impl Command for Undone {
    type Out = ();

    fn operation(&self) -> &'static str {
        "undone"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        for save in [self.0, self.1] {
            assert!(matches!(save.run(turn)?, Saved::Kept(_)));
        }
        Err(Refusal::new(Rule::Transition, "undone", "none").into())
    }
}

// P9.4
#[test]
fn what_was_taken_out_in_a_change_that_was_undone_counts() {
    let desk = Desk::new();
    desk.know_the_order();
    desk.put("a", "");
    desk.put("m", "dependencies: [a]\n");
    desk.put("b", "dependencies: [m]\n");
    let saves = Undone(desk.save_of("b", ""), desk.save_of("a", "dependencies: [b]\n"));
    let refusal = desk.engine().run(Desk::context(), saves).unwrap_err();
    assert_eq!(refusal.reason, "undone");
    let refusal = desk.save("a", "dependencies: [b]\n").unwrap_err();
    assert_eq!(refusal.reason, "`a` would wait for itself: `a` after `b` after `m` after `a`");
    desk.fsck_clean();
}

// P9.4
#[test]
fn an_edge_that_cannot_be_read_is_in_nobody_s_way_who_does_not_come_upon_it() {
    let fixture = Fixture::new();
    let chains = fixture.outside("chains");
    fs::create_dir(&chains).unwrap();
    let write = |task: &str, after: &str| {
        let text = format!("id: {task}\ndependencies: [{after}]\n");
        fs::write(chains.join(format!("{task}.yaml")), text).unwrap();
    };
    for chain in ["p", "q"] {
        write(&format!("{chain}0"), "never");
        (1..150).for_each(|nth| write(&format!("{chain}{nth}"), &format!("{chain}{}", nth - 1)));
    }
    write("far", "away");
    fixture.workfs(&["import", "outside/chains", "work/inbox"]).success();
    fixture.unmount_all();
    let open = rusqlite::Connection::open(fixture.store()).unwrap();
    let damaged = open.execute("UPDATE edges SET dependency = 'a/b' WHERE dependant = 'far'", []);
    assert_eq!(damaged, Ok(1));
    drop(open);
    fixture.mount_all();
    // So many are looked at that the order of all is wanted.
    fixture.task("inbox", &Task::new("tie").with("dependencies: [p149]\nblocks: [q0]\n"));
    let circle = "sed -i 's/never/q149/' work/inbox/p0.yaml && cat .workfs/why";
    fixture.sh(circle).failure();
    assert_eq!(
        fixture.workfs(&["why", "work/inbox/p0.yaml"]).stdout.matches("wait for itself").count(),
        1
    );
}
