//! What the steps of a commit are: all that was written, in the order in which it was done.

use std::fs;

use crate::harness::{Fixture, Ran, run};

/// What lies at a path.
fn text(fixture: &Fixture, path: &str) -> String {
    fs::read_to_string(fixture.path(path)).unwrap()
}

/// `workfs txn -- sh -c SNIPPET`, at the mount's root.
fn txn(fixture: &Fixture, snippet: &str) -> Ran {
    let mut command = fixture.command(&["txn", "--", "sh", "-c", snippet]);
    run(command.current_dir(fixture.root()))
}

// P13.1 P13.5
#[test]
fn what_finds_no_room_any_more_is_refused_before_it_is_written() {
    let fixture = Fixture::new();
    fixture.sh("echo old > important && echo old > second && mkdir .workfs/txn/t").success();
    // One is left.
    let inside = fixture.path(".workfs/txn/t");
    for nth in 0..1_999 {
        fs::create_dir(inside.join(nth.to_string())).unwrap();
    }
    let wrote = |name: &str| fs::write(inside.join(name), "new\n").map_err(|e| e.raw_os_error());
    assert_eq!(wrote("third"), Err(Some(libc::EFBIG)), "a new file is two");
    assert_eq!(wrote("important"), Ok(()));
    assert_eq!(wrote("second"), Err(Some(libc::EFBIG)));
    assert_eq!(fs::read_to_string(inside.join("second")).unwrap(), "old\n");
    fixture.sh("mv .workfs/txn/t .workfs/commit").success();
    assert_eq!((&*text(&fixture, "important"), &*text(&fixture, "second")), ("new\n", "old\n"));
    assert!(!fixture.path("third").exists());

    // So a shell hears of it.
    let script = "rmdir $(seq 0 1998); echo new1 > important; echo new2 > second";
    let ran = txn(&fixture, script).failure();
    assert!(ran.stderr.contains("second"), "{ran}");
    assert_eq!(text(&fixture, "important"), "new\n");
    assert!(fixture.path("1998").exists());
    fixture.fsck_clean();
}
