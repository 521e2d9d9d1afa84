//! What is done through one mount is seen through all.

use std::fs;
use std::path::Path;

use crate::harness::{Fixture, Setup, Task, until_polled};

fn two() -> Fixture {
    let fixture = Setup::default().mounts(2).start();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    fixture
}

/// A name that a kernel has cached may be there for a moment longer, until the notice has come.
fn soon_gone(path: &Path) {
    until_polled("the name goes", || (!path.exists()).then_some(()));
}

// P7.4
#[test]
fn a_change_is_seen_through_the_other_mount() {
    let fixture = two();
    let here = fixture.mount(0).join("scratchpad");
    let there = fixture.mount(1).join("scratchpad");
    for round in 0..100 {
        let (name, text) = (format!("f{}", round % 3), "x".repeat(round * 100));
        fs::write(here.join(&name), &text).unwrap();
        assert_eq!(fs::metadata(there.join(&name)).unwrap().len(), text.len() as u64, "{round}");
        assert_eq!(fs::read_to_string(there.join(&name)).unwrap(), text, "{round}");
        let moved = format!("g{}", round % 3);
        fs::rename(there.join(&name), there.join(&moved)).unwrap();
        soon_gone(&here.join(&name));
        assert_eq!(fs::read_to_string(here.join(&moved)).unwrap(), text, "{round}");
        fs::remove_file(here.join(&moved)).unwrap();
        soon_gone(&there.join(&moved));
        assert_eq!(fs::read_dir(&there).unwrap().count(), 0, "{round}");
    }
}

// P7.4
#[test]
fn what_is_gone_elsewhere_cannot_be_used_however_fresh_the_cache() {
    let fixture = two();
    for round in 0..50 {
        let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
        fs::write(here.join("f"), b"x").unwrap();
        assert!(there.join("f").exists());
        fs::rename(here.join("f"), here.join(format!("g{round}"))).unwrap();
        // At once: the kernel of the other mount may still know the name.
        let error = fs::rename(there.join("f"), there.join("h")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{round}");
        let error = fs::remove_file(there.join("f")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{round}");
    }
}

// P7.4
#[test]
fn an_absent_name_that_was_asked_for_appears() {
    let fixture = two();
    for round in 0..50 {
        let name = format!("scratchpad/n{round}");
        let there = fixture.mount(1).join(&name);
        assert!(!there.exists());
        fs::write(fixture.mount(0).join(&name), b"x").unwrap();
        assert!(there.exists(), "{round}");
    }
}

// P7.4
#[test]
fn appends_through_two_mounts_do_not_lose_each_other() {
    let fixture = two();
    let script = "for m in 0 1; do ( cd $BASE/m$m/scratchpad
        for i in $(seq 1 50); do echo \"$m $i\" >> log; done ) & done; wait";
    fixture.bash().with("BASE", fixture.base()).run(script).success();
    let text = fs::read_to_string(fixture.path("scratchpad/log")).unwrap();
    assert_eq!(text.lines().count(), 100, "{text}");
}

// P7.4
#[test]
fn modes_times_and_attributes_are_seen_too() {
    let fixture = two();
    let script = "cd $BASE/m0/scratchpad; echo x > f; stat $BASE/m1/scratchpad/f > /dev/null
        chmod 640 f; touch -d @5 f; stat -c '%a %Y' $BASE/m1/scratchpad/f";
    let said = fixture.bash().with("BASE", fixture.base()).run(script).success();
    assert_eq!(said.stdout, "640 5\n");
}

// P7.4
#[test]
fn saves_and_claims_are_seen_through_the_other_mount() {
    let fixture = two();
    fixture.task("inbox", &Task::new("t-1"));
    let there = fixture.mount(1).join("work");
    for round in 1..20 {
        assert!(fs::read_to_string(there.join("inbox/t-1.yaml")).is_ok());
        let save = format!("sed -i 's/^revision: .*/revision: {round}/' work/inbox/t-1.yaml");
        fixture.sh(&save).success();
        let text = fs::read_to_string(there.join("inbox/t-1.yaml")).unwrap();
        assert!(text.contains(&format!("revision: {round}\n")), "{round}: {text}");
    }
    assert!(!there.join("assigned/bob/t-1.yaml").exists());
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    soon_gone(&there.join("inbox/t-1.yaml"));
    assert!(fs::read_to_string(there.join("assigned/bob/t-1.yaml")).unwrap().contains("bob"));
}
