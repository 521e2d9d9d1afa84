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
