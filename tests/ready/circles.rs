//! Circles of dependencies are refused when they are written.

use workfs::engine::Placed;
use workfs::refusal::Rule;

use crate::desk::Desk;

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

// P9.4
#[test]
fn where_very_many_wait_that_is_said_and_no_circle() {
    let desk = Desk::new();
    for hub in 0..11 {
        let all: Vec<String> = (0..9_900).map(|nth| format!("d{hub}-{nth}")).collect();
        let text = format!("dependencies: [{}]\n", all.join(", "));
        assert!(matches!(desk.put(&format!("hub{hub}"), &text), Placed::Record(..)));
    }
    desk.put("t", "");
    desk.put("t0", "dependencies: [t]\n");
    for nth in 1..20 {
        desk.put(&format!("t{nth}"), &format!("dependencies: [t{}]\n", nth - 1));
    }
    let hubs: Vec<String> = (0..11).map(|hub| format!("hub{hub}")).collect();
    let refusal = desk.save("t", &format!("dependencies: [{}]\n", hubs.join(", "))).unwrap_err();
    assert_eq!(refusal.reason, "`t` may wait for itself: over 100000 records wait here");
    desk.save("t", "dependencies: [hub0, hub1]\n").unwrap();
    desk.fsck_clean();
}
