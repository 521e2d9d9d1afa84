//! One save, one event.

use std::fs;
use std::os::unix::fs::FileExt as _;

use crate::harness::{Event, Fixture, Ledger, Setup, close, python, until_polled};

fn scratch() -> Fixture {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad/info/001").success();
    fixture
}

/// The events about plain files after `g`: what, where, how large.
fn files(ledger: &Ledger, g: u64) -> Vec<(String, String, Option<u64>)> {
    let plain = |event: &&Event| event.text("kind") == "file";
    let said = |event: &Event| {
        let payload = &event.0["payload"];
        let path = payload["path"].as_str().unwrap().to_owned();
        (event.name().to_owned(), path, payload["size"].as_u64())
    };
    ledger.after(g).into_iter().filter(plain).map(said).collect()
}

/// Each name has 250 bytes, so that some twenty directories in each other are more than a path may be.
// P11.1
#[test]
fn what_no_path_can_name_has_no_events() {
    let fixture = scratch();
    let before = fixture.ledger().last_g();
    let script = "import os\nos.chdir('scratchpad')\nfor _ in range(20):\n\
                  \tos.mkdir('d' * 250)\n\tos.chdir('d' * 250)\n\
                  open('f', 'w').write('deep')\nos.rename('f', 'g')\nos.unlink('g')\n\
                  open('f', 'w').write('deep')\nassert open('f').read() == 'deep'\n\
                  up = '../' * 20\nos.rename('f', up + 'out')\nos.rename(up + 'out', 'back')\n";
    fixture.sh(&format!("{} -c \"{script}\"", python().display())).success();
    let told = files(&fixture.ledger(), before);
    // The last is made where a path may still be.
    let made = told.iter().filter(|(name, ..)| name == "created").count();
    assert_eq!(made, 4095 / 251 + 1);
    let others: Vec<_> = told.iter().skip(made).map(|(name, path, _)| (&**name, &**path)).collect();
    assert_eq!(others, [("saved", "scratchpad/out"), ("removed", "scratchpad/out")]);
    let longest =
        fixture.ledger().after(before).iter().map(|event| event.0.to_string().len()).max();
    assert!(longest < Some(8_192), "{longest:?}");
}

// P11.1
#[test]
fn whichever_way_a_file_is_saved_it_is_one_event() {
    let fixture = scratch();
    let python = python();
    for (snippet, size) in [
        ("echo one > f".to_owned(), 4),
        ("echo two >> f".to_owned(), 8),
        ("printf x | tee f > /dev/null".to_owned(), 1),
        ("echo three > $OUT/f; cp $OUT/f f".to_owned(), 6),
        ("echo four > f.tmp.1; mv f.tmp.1 f".to_owned(), 5),
        ("sed -i s/four/fi/ f".to_owned(), 3),
        ("truncate -s 2 f".to_owned(), 2),
        (format!("{} -c \"open('f', 'w').write('seven')\"", python.display()), 5),
        (
            format!(
                "{} -c \"import os, tempfile\nfd, name = tempfile.mkstemp(dir='.')\n\
                 os.write(fd, b'x' * 4096); os.fsync(fd); os.close(fd); os.replace(name, 'f')\"",
                python.display()
            ),
            4096,
        ),
        (
            format!(
                "{} -c \"import os\nfd = os.open('f', os.O_RDWR)\nfor n in range(9): \
                 os.pwrite(fd, b'y' * 100, n * 100)\nos.close(fd)\"",
                python.display()
            ),
            4096,
        ),
    ] {
        let before = fixture.ledger().last_g();
        fixture.sh(&format!("cd scratchpad/info/001; {snippet}")).success();
        let found = files(&fixture.ledger(), before);
        let path = "scratchpad/info/001/f".to_owned();
        assert_eq!(found, [("saved".to_owned(), path, Some(size))], "{snippet}");
    }
    let ledger = fixture.ledger();
    let event = &ledger.0[ledger.0.len() - 1];
    let sum = fixture.sh("sha256sum < scratchpad/info/001/f").success();
    assert!(sum.stdout.starts_with(event.0["payload"]["content_sha256"].as_str().unwrap()));
    assert_eq!(event.0["actor"], "root");
    fixture.fsck_clean();
}

// P11.1
#[test]
fn names_that_come_and_go_are_events() {
    let fixture = scratch();
    let before = fixture.ledger().last_g();
    fixture.sh("cd scratchpad; mkdir d; ln -s d link; touch d/empty").success();
    // An empty file is saved when its last descriptor is gone, which nobody waits for.
    crate::harness::until_polled("the empty file is saved", || {
        (files(&fixture.ledger(), before).len() == 3).then_some(())
    });
    fixture
        .sh("cd scratchpad; mv d/empty d/e2; mv d d3; echo x > d3/y; rm d3/e2 d3/y link; rmdir d3
             ls info")
        .success();
    fixture
        .sh("cd scratchpad; mkdir ../outside; echo x > z; mv z ../outside/; mv ../outside/z w")
        .success();
    let found = files(&fixture.ledger(), before);
    let names: Vec<String> = found.iter().map(|(what, path, _)| format!("{what} {path}")).collect();
    assert_eq!(
        names,
        [
            "created scratchpad/d",
            "created scratchpad/link",
            "saved scratchpad/d/empty",
            "renamed scratchpad/d/e2",
            "renamed scratchpad/d3",
            "saved scratchpad/d3/y",
            "removed scratchpad/d3/e2",
            "removed scratchpad/d3/y",
            "removed scratchpad/link",
            "removed scratchpad/d3",
            "saved scratchpad/z",
            "removed scratchpad/z",
            "saved scratchpad/w",
        ]
    );
    fixture.fsck_clean();
}

// P11.2
#[test]
fn where_no_rule_counts_nothing_is_noted() {
    let fixture = scratch();
    let before = fixture.ledger().last_g();
    fixture
        .sh("mkdir -p notes scratchpad/p/node_modules/a scratchpad/p/.git; echo x > notes/n.md
             cd scratchpad/p; echo x > node_modules/a/b.js; echo x > .git/HEAD; echo x > t.db
             echo x > .x.md.swp; echo x > x.md~; cat p.md 2> /dev/null; : < .git/HEAD")
        .success();
    let found = files(&fixture.ledger(), before);
    let made: Vec<&str> = found.iter().map(|(what, _, _)| what.as_str()).collect();
    assert!(made.iter().all(|what| *what == "created"), "{found:?}");
    let off = Setup::default().layout("workspaces: []\nfiles: []\n").start();
    off.sh("mkdir scratchpad; echo x > scratchpad/a; rm scratchpad/a").success();
    assert_eq!(off.ledger().last_g(), 0);
    off.fsck_clean();
}

// P11.1
#[test]
fn what_comes_with_a_moved_directory_is_found_when_it_is_saved() {
    let fixture = scratch();
    fixture.sh("mkdir -p tree/a; echo x > tree/a/f; mv tree scratchpad/").success();
    let before = fixture.ledger().last_g();
    fixture.sh("echo y > scratchpad/tree/a/f").success();
    let found = files(&fixture.ledger(), before);
    assert_eq!(found, [("saved".to_owned(), "scratchpad/tree/a/f".to_owned(), Some(2))]);
    fixture.sh("mv scratchpad/tree .; echo z > tree/a/f").success();
    let last = fixture.ledger();
    let names: Vec<&str> = last.after(before + 1).into_iter().map(Event::name).collect();
    assert_eq!(names, ["removed"]);
    fixture.fsck_clean();
}

// P4.1
#[test]
fn a_close_that_returned_has_its_event_after_a_crash() {
    let fixture = scratch();
    fixture.sh("echo kept > scratchpad/f").success();
    fixture.kill_daemon();
    fixture.mount_all();
    let found = files(&fixture.ledger(), 0);
    assert!(found.contains(&("saved".to_owned(), "scratchpad/f".to_owned(), Some(5))));
    fixture.fsck_clean();
}

#[test]
fn a_name_that_a_link_took_is_not_noted_for_the_file_that_had_it() {
    let fixture = scratch();
    let script = "cd scratchpad && echo 1 > a && ln a b && ln -s nowhere l && mv -T l a";
    fixture.sh(script).success();
    fixture.fsck_clean();
    let g = fixture.ledger().last_g();
    fixture.sh("echo 2 > scratchpad/b").success();
    let saved = files(&fixture.ledger(), g);
    assert!(
        saved.iter().any(|(event, path, _)| event == "saved" && path == "scratchpad/b"),
        "{saved:?}"
    );
}

// P11.1
#[test]
fn a_very_large_file_has_its_event_also_where_its_mount_or_the_daemon_ends_just_after() {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("mkdir -p scratchpad/info/001").success();
    let saves = |of: &str| {
        let events = fixture.workfs(&["log", "--json"]).success().json_lines();
        let events = events.iter().filter(|event| event["payload"]["path"] == of);
        let told = |event: &serde_json::Value| {
            assert_eq!(event["event"], "saved", "{event}");
            event["payload"]["size"].as_u64().unwrap()
        };
        events.map(told).collect::<Vec<_>>()
    };
    let other = fixture.mount(1).to_str().unwrap();
    fixture.sh(&format!("truncate -s 70M {other}/scratchpad/info/001/a")).success();
    fixture.workfs(&["unmount", other]).success();
    until_polled("it is told of", || (saves("scratchpad/info/001/a") == [70 << 20]).then_some(()));
    fixture.sh("truncate -s 400M scratchpad/info/001/b").success();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    fixture.await_no_daemon();
    assert_eq!(saves("scratchpad/info/001/b"), [400 << 20]);
    fixture.fsck_clean();
}

// P11.1
#[test]
fn of_a_large_file_that_is_written_while_it_is_hashed_no_hash_tells_what_never_was_in_it() {
    let fixture = scratch();
    let path = fixture.path("scratchpad/big");
    let file = fs::File::create(&path).unwrap();
    let late = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // So much that `close` does not wait for its hash.
    file.set_len(256 << 20).unwrap();
    close(file).unwrap();
    late.write_all_at(b"late", 0).unwrap();
    let sum = fixture.sh("sha256sum < scratchpad/big").success().stdout;
    let saved = until_polled("it is saved", || {
        let lines = fixture.workfs(&["log", "--json", "scratchpad/big"]).success().json_lines();
        lines.into_iter().find(|event| event["event"] == "saved")
    });
    if let Some(told) = saved["payload"]["content_sha256"].as_str() {
        assert!(sum.starts_with(told), "{saved}");
    }
    close(late).unwrap();
}
