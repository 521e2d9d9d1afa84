//! Projects in the scratchpad.

use std::thread;

use crate::harness::{Fixture, Setup};

// P11.6
#[test]
fn a_new_project_has_the_next_number_and_its_directories() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    fixture.mount_all();
    let listed = fixture.sh("ls scratchpad").success();
    assert_eq!(listed.stdout, "documents\ninfo\nissues\nprogress\n");
    let first = fixture.workfs(&["project", "new", "--json"]).success().json();
    assert_eq!(first["project"], "001");
    fixture
        .sh("cd scratchpad; ls -d info/001 documents/001 issues/001 \
                progress/001/work_orders progress/001/results progress/001/reviews; \
                mkdir issues/041")
        .success();
    let second = fixture.workfs(&["project", "new"]).success();
    assert_eq!((&*second.stdout, &*second.stderr), ("042\n", ""));
    fixture.workfs(&["project", "new", "alpha"]).success();
    assert_eq!(fixture.workfs(&["project", "new", "alpha"]).code, 5);
    // There is no end at three digits.
    fixture.sh("mkdir scratchpad/progress/999").success();
    for next in ["1000\n", "1001\n"] {
        assert_eq!(fixture.workfs(&["project", "new"]).success().stdout, next);
    }
    // A date with its time is a number; what has over 18 digits is none, and neither is a sign's.
    for (name, next) in [
        ("20261125103000", "20261125103001\n"),
        ("18446744073709551616", "20261125103002\n"),
        ("18446744073709551615", "20261125103003\n"),
        ("+20261125103999", "20261125103004\n"),
        ("999999999999999999", "1000000000000000000\n"),
        ("none", "1000000000000000001\n"),
    ] {
        fixture.workfs(&["project", "new", name]).success();
        assert_eq!(fixture.workfs(&["project", "new"]).success().stdout, next, "{name}");
    }
    fixture.workfs(&["project", "new", "a/b"]).failure();
    fixture.fsck_clean();
}

// P11.6
#[test]
fn those_who_ask_at_once_get_different_projects() {
    let fixture = Fixture::new();
    let ids: Vec<String> = thread::scope(|scope| {
        let ask = || fixture.workfs(&["project", "new", "--json"]).success().json();
        let asking: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        asking
            .into_iter()
            .map(|one| one.join().unwrap()["project"].as_str().unwrap().to_owned())
            .collect()
    });
    let mut sorted = ids.clone();
    sorted.sort();
    assert_eq!(sorted, ["001", "002", "003", "004", "005", "006"], "{ids:?}");
}

// P11.6
#[test]
fn other_layouts_are_just_directories() {
    let fixture = Setup::default().layout("workspaces: []\nfiles: []\n").start();
    assert!(!fixture.path("scratchpad").exists());
    fixture.workfs(&["project", "new", "x"]).success();
    assert!(fixture.path("scratchpad/progress/x/reviews").is_dir());
}

// P11.6, P11.11
#[test]
fn where_a_quota_has_no_room_for_all_of_a_project_there_is_none_of_it() {
    let layout = "workspaces: []\nfiles: []\nquotas:\n  - { path: scratchpad, inodes: 20 }\n";
    let fixture = Setup::default().layout(layout).start();
    // Five directories, then seven for each project.
    fixture.workfs(&["project", "new"]).success();
    fixture.workfs(&["project", "new"]).success();
    let tree = || fixture.sh("find scratchpad | sort").success().stdout;
    let before = tree();
    assert_eq!(before.lines().count(), 19);
    for arguments in [&["project", "new"][..], &["project", "new", "x"]] {
        let full = fixture.workfs(arguments).failure();
        assert_eq!(tree(), before);
        assert_eq!(full.code, 75, "{full}");
        assert!(full.stderr.contains("W043"), "{full}");
    }
    let mut txn = fixture.command(&["txn", "--", "sh", "-c", "cd scratchpad; touch 1 2 3"]);
    let full = crate::harness::run(txn.current_dir(fixture.root())).failure();
    assert_eq!(full.code, 75, "{full}");
    assert_eq!(tree(), before);
    fixture.fsck_clean();
}
