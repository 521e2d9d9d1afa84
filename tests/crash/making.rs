//! The making of a store is killed.

use std::fs;

use crate::harness::{Setup, until_polled};

/// What lies in each new store, whoever makes it.
const FIRST: &[&str] =
    &["inbox", "assigned", "done", "dead", "fridge", "archive", "collaboration/inbox"];

/// How many changes are made of a new store at the most.
const CHANGES: u64 = 24;

// P4.7
#[test]
fn a_store_whose_making_was_killed_is_made_whole_when_it_is_opened_next() {
    for command in [&["init"][..], &["mount"], &["agent", "add", "bob"]] {
        let points = ["before-commit", "after-commit"].into_iter();
        let kills = points.flat_map(|point| [1, 7].map(|nth| format!("{point}:{nth}")));
        for kill in kills {
            let mut fixture = Setup::default().prepare();
            fixture.set_variable("WORKFS_FAULT", Some(&kill));
            let ran = match command {
                ["mount"] => fixture.mount_at(fixture.root()),
                command => fixture.workfs(command),
            };
            assert!(!ran.ok(), "{command:?} at {kill}: {ran}");
            fixture.set_variable("WORKFS_FAULT", None);
            fixture.mount_all();
            for dir in FIRST {
                assert!(fixture.work().join(dir).is_dir(), "{command:?} at {kill}: no {dir}");
            }
            fixture.fsck_clean();
        }
    }
}

// P4.7
#[test]
fn a_store_that_its_daemon_made_and_broke_off_with_is_taken_away_unless_it_was_used() {
    for point in ["before-commit", "after-commit"] {
        let (mut taken, mut kept) = (0, 0);
        for nth in 1..CHANGES {
            let mut fixture = Setup::default().prepare();
            fixture.set_variable("WORKFS_FAULT", Some(&format!("{point}:{nth}")));
            let dir = fixture.root().to_str().unwrap();
            let ran = fixture.workfs(&["mount", dir, "--agent", "bob"]);
            if ran.ok() {
                break;
            }
            fixture.set_variable("WORKFS_FAULT", None);
            if fixture.store().exists() {
                kept += 1;
                let listed = fixture.workfs(&["agent", "list"]).success();
                assert!(listed.stdout.contains("bob"), "{point}:{nth}: {listed}");
                continue;
            }
            taken += 1;
            // What tells why is all that stays.
            let beside = fs::read_dir(fixture.store().parent().unwrap()).unwrap();
            let names: Vec<_> = beside.map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, ["team.db.log"], "{point}:{nth}: {ran}");
            assert!(ran.stderr.contains("team.db.log"), "{ran}");
        }
        assert!(taken > 5, "{point}: {taken}");
        assert_eq!(kept, u32::from(point == "after-commit"), "{point}");
    }
}

// P4.7
#[test]
fn whatever_is_asked_first_finds_the_store_whole() {
    let mut fixture = Setup::default().prepare();
    fixture.set_variable("WORKFS_FAULT", Some("after-commit:1"));
    assert!(!fixture.workfs(&["init"]).ok());
    fixture.set_variable("WORKFS_FAULT", None);
    // It serves nobody, and brings nothing of its own.
    fixture.workfs(&["list"]).success();
    fixture.mount_all();
    assert!(fixture.work().join("inbox").is_dir());
    // A directory that is removed later stays away.
    fs::remove_dir(fixture.work().join("fridge")).unwrap();
    fixture.unmount_all();
    fixture.await_no_daemon();
    fixture.mount_all();
    assert!(!fixture.work().join("fridge").exists());
}

// P4.7
#[test]
fn an_init_that_was_killed_can_be_run_again_with_its_layout() {
    let layout = "workspaces: [{path: team, kind: task}]\n";
    for nth in 1..CHANGES {
        let mut fixture = Setup::default().prepare();
        let file = fixture.outside("layout.yaml");
        fs::write(&file, layout).unwrap();
        let init = ["init", "--layout", file.to_str().unwrap()];
        fixture.set_variable("WORKFS_FAULT", Some(&format!("before-commit:{nth}")));
        let was_whole = fixture.workfs(&init).ok();
        fixture.set_variable("WORKFS_FAULT", None);
        fixture.workfs(&init).success();
        fixture.mount_all();
        let inbox = fixture.path("team/inbox");
        until_polled("the layout's directories", || inbox.is_dir().then_some(()));
        assert!(!fixture.work().exists() && fixture.path("scratchpad").is_dir(), "{nth}");
        if was_whole {
            return;
        }
    }
    panic!("a store takes over {CHANGES} changes to make");
}
