//! Files that were renamed away: the paths that they left know it.

use std::fs;
use std::path::Path;

use crate::harness::{Fixture, rename_with};

/// What `workfs log` tells of a path below the scratchpad: what, where, and from where.
fn log(fixture: &Fixture, path: &str) -> Vec<(u64, String)> {
    let lines = fixture.workfs(&["log", "--json", &format!("scratchpad/{path}")]);
    let told = lines.success().json_lines().into_iter().map(|event| {
        let text = |at: &str| event.pointer(at).and_then(|text| text.as_str()).unwrap_or_default();
        let from = text("/payload/from_path");
        let from = if from.is_empty() { String::new() } else { format!(" from {from}") };
        let told = format!("{} {}{from}", text("/event"), text("/payload/path"));
        (event["g"].as_u64().unwrap(), told.replace("scratchpad/", ""))
    });
    told.collect()
}

fn told(fixture: &Fixture, path: &str) -> Vec<String> {
    log(fixture, path).into_iter().map(|(_, told)| told).collect()
}

/// A moment at which a path was not there: `restore` and `show` name the event since which.
#[track_caller]
fn was_gone(fixture: &Fixture, path: &str, at: u64, since: u64) {
    let (path, at) = (format!("scratchpad/{path}"), at.to_string());
    for ran in [
        fixture.workfs(&["restore", &path, "--at", &at]),
        fixture.workfs(&["show", &path, "--g", &at]),
    ] {
        let ran = ran.failure();
        assert_eq!(ran.code, 4, "{ran}");
        let named = [format!("there was no `{path}` then"), format!("event {since} moved")];
        assert!(named.iter().all(|named| ran.stderr.contains(named)), "{named:?}: {ran}");
    }
}

// P11.3
#[test]
fn a_path_tells_that_its_file_was_renamed_away() {
    let fixture = Fixture::new();
    fixture.sh("mkdir scratchpad && cd scratchpad && echo 1 > a && mv a b && echo 2 > c").success();
    assert_eq!(told(&fixture, "a"), ["saved a", "renamed b from a"]);
    assert_eq!(told(&fixture, "b"), ["renamed b from a"]);
    let away = log(&fixture, "a")[1].0;
    was_gone(&fixture, "a", away, away);
    was_gone(&fixture, "a", fixture.ledger().last_g(), away);
    // Another one there, and away again over another; what is there twice, and what came back.
    fixture.sh("cd scratchpad; echo 3 > a; mv a c; mv b a; mv a b; mv b a").success();
    let all = [
        "saved a",
        "renamed b from a",
        "saved a",
        "renamed c from a",
        "renamed a from b",
        "renamed b from a",
        "renamed a from b",
    ];
    assert_eq!(told(&fixture, "a"), all);
    assert_eq!(told(&fixture, "c"), ["saved c", "renamed c from a"]);
    let gs: Vec<u64> = log(&fixture, "a").into_iter().map(|(g, _)| g).collect();
    was_gone(&fixture, "a", gs[3], gs[3]);
    was_gone(&fixture, "a", gs[5], gs[5]);
    let restored = |at: u64| {
        fixture.workfs(&["restore", "scratchpad/a", "--at", &at.to_string()]).success();
        fs::read_to_string(fixture.path("scratchpad/a")).unwrap()
    };
    assert_eq!([restored(gs[0]), restored(gs[2]), restored(gs[4])], ["1\n", "3\n", "1\n"]);
    assert_eq!(log(&fixture, "a").len(), 10);
    // The newest, and what comes after one.
    let limited = fixture.workfs(&["log", "--json", "-n", "1", "scratchpad/b"]).success();
    assert_eq!(limited.json_lines()[0]["g"], gs[6]);
    let shown = fixture.workfs(&["show", "scratchpad/a"]).success();
    assert!(shown.stdout.contains("renamed"), "{shown}");
    fixture.fsck_clean();
}

// P11.3
#[test]
fn a_file_was_not_there_while_its_directory_was_elsewhere() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad/d/e && cd scratchpad && echo 1 > d/e/f && mv d g").success();
    let last = || fixture.ledger().last_g();
    let away = last();
    fixture.sh("cd scratchpad; echo x > x").success();
    was_gone(&fixture, "d/e/f", last(), away);
    // Made anew it is another one; what comes back is the same.
    fixture.sh("cd scratchpad; mkdir -p d; echo y > y").success();
    was_gone(&fixture, "d/e/f", last(), away);
    fixture.sh("cd scratchpad; rmdir d; mv g d; echo z > z").success();
    let at = last().to_string();
    fixture.workfs(&["restore", "scratchpad/d/e/f", "--at", &at]).success();
    assert!(told(&fixture, "d").contains(&"renamed g from d".to_owned()));
    fixture.fsck_clean();
}

// P11.3
#[test]
fn two_names_that_are_exchanged_are_each_other_s_ends() {
    let fixture = Fixture::new();
    fixture.sh("mkdir scratchpad && cd scratchpad && echo 1 > a && echo 2 > b").success();
    let path = |name: &str| fixture.path(&format!("scratchpad/{name}"));
    let exchange = |a: &Path, b: &Path| {
        rename_with(a, b, rustix::fs::RenameFlags::EXCHANGE).unwrap();
    };
    exchange(&path("a"), &path("b"));
    exchange(&path("a"), &path("b"));
    for (name, saved) in [("a", "saved a"), ("b", "saved b")] {
        let told = told(&fixture, name);
        assert_eq!((told.len(), told[0].as_str()), (5, saved), "{told:?}");
    }
    fs::write(path("a"), "3\n").unwrap();
    assert_eq!(told(&fixture, "a").len(), 6);
    fixture.fsck_clean();
}

// P5.2 P11.1
#[test]
fn what_is_renamed_where_no_saves_count_is_no_damage_and_is_told_of_when_it_is_back() {
    let fixture = Fixture::new();
    fixture
        .sh("mkdir -p scratchpad/D other; echo 1 > scratchpad/D/a; mv scratchpad/D other/D; \
             mv other/D/a other/D/b; echo 2 > other/D/a")
        .success();
    fixture.fsck_clean();
    // Both count again, each by the name that it has now.
    fixture.sh("mv other/D scratchpad/D; cd scratchpad/D; echo 3 > b; echo 4 > a").success();
    fixture.fsck_clean();
    assert_eq!((told(&fixture, "D/b"), told(&fixture, "D/a").len()), (vec!["saved D/b".into()], 2));
    // Of one that stayed outside another name counts.
    fixture
        .sh("mv scratchpad/D other/D; mv other/D/b other/b; mv other/D scratchpad/D; \
             ln other/b scratchpad/n; echo 5 > scratchpad/n; rm other/b; echo 6 > scratchpad/n")
        .success();
    assert_eq!(told(&fixture, "n").len(), 3, "linked, and saved twice");
    fixture.fsck_clean();
}

/// What was at a path then, as `show` has it; and that `restore` makes it just that.
#[track_caller]
fn was(fixture: &Fixture, path: &str, at: u64, text: &str) {
    let (path, at) = (format!("scratchpad/{path}"), at.to_string());
    let shown = fixture.workfs(&["show", "--json", &path, "--g", &at]).success().json();
    assert_eq!(shown["text"], text, "{path}");
    fixture.workfs(&["restore", &path, "--at", &at]).success();
    assert_eq!(fs::read_to_string(fixture.path(&path)).unwrap(), text);
}

// P11.3
#[test]
fn what_another_directory_brought_is_not_what_had_been_saved_there() {
    let fixture = Fixture::new();
    let last = || fixture.ledger().last_g();
    fixture
        .sh("mkdir -p scratchpad/d/e new/e scratchpad/new/e && cd scratchpad && echo 1 > d/e/f && \
             echo 1 > d/e/g && rm d/e/g && echo 2 > new/e/f && echo 2 > new/e/g && mv d old && mv new d")
        .success();
    was(&fixture, "d/e/f", last(), "2\n");
    was(&fixture, "d/e/g", last(), "2\n");
    // Back, by a detour, and another again.
    fixture.sh("cd scratchpad; mv d new; mv old x; mv x/e y; mv y x/e; mv x d").success();
    let back = last();
    fixture.sh("cd scratchpad; mv d old; mv new d; mkdir -p z/d; mv d z/d; mv z z2").success();
    fixture.sh("cd scratchpad; mv old d; echo 3 > d/e/f").success();
    was(&fixture, "d/e/f", back, "1\n");
    // One came from where nothing is told of.
    fixture
        .sh("mv scratchpad/d scratchpad/old; mv new scratchpad/d; echo 4 > scratchpad/x")
        .success();
    let at = last().to_string();
    let none = fixture.workfs(&["show", "scratchpad/d/e/f", "--g", &at]).failure();
    assert!(none.stderr.contains("had come with its directory"), "{none}");
    fixture.fsck_clean();
}

// P11.3
#[test]
fn a_path_tells_with_which_directory_its_file_came() {
    let fixture = Fixture::new();
    fixture
        .sh("mkdir -p scratchpad/old/e && cd scratchpad && echo 1 > old/e/f && mv old new")
        .success();
    for path in ["new/e/f", "new/e", "new"] {
        assert_eq!(told(&fixture, path), ["renamed new from old"], "{path}");
    }
    fixture.sh("cd scratchpad; echo 2 > new/e/f; mv new newer; mkdir plain").success();
    let came = "renamed newer from new";
    assert_eq!(told(&fixture, "newer/e/f"), [came]);
    assert_eq!(told(&fixture, "new/e/f"), ["renamed new from old", "saved new/e/f"]);
    fixture.sh("cd scratchpad; echo 3 > newer/e/f; echo 4 > newer/e/f").success();
    let all = [came, "saved newer/e/f", "saved newer/e/f"];
    assert_eq!(told(&fixture, "newer/e/f"), all);
    let last = fixture.workfs(&["log", "scratchpad/newer/e/f", "-n", "2"]).success();
    assert!(last.stdout.lines().count() == 2 && !last.stdout.contains("renamed"), "{last}");
}

// P11.3
#[test]
fn what_two_names_are_after_an_exchange_is_told_and_comes_back() {
    let fixture = Fixture::new();
    let last = || fixture.ledger().last_g();
    fixture
        .sh("mkdir -p scratchpad/c scratchpad/d && cd scratchpad && echo 1 > a && echo 2 > b && \
             echo 1 > c/f && echo 2 > d/f && echo 1 > x.tmp && echo 2 > x")
        .success();
    let exchange = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|name| fixture.path(&format!("scratchpad/{name}")));
        rename_with(&a, &b, rustix::fs::RenameFlags::EXCHANGE).unwrap();
        last()
    };
    let before = last();
    let (one, two) = (exchange("a", "b"), exchange("b", "a"));
    fixture.sh("cd scratchpad; echo 3 > a; echo 3 > b").success();
    for (at, [a, b]) in [(before, ["1\n", "2\n"]), (one, ["2\n", "1\n"]), (two, ["1\n", "2\n"])] {
        was(&fixture, "a", at, a);
        was(&fixture, "b", at, b);
    }
    let (one, two, three) = (exchange("c", "d"), exchange("c", "d"), exchange("d", "c"));
    for at in [one, three] {
        was(&fixture, "c/f", at, "2\n");
        was(&fixture, "d/f", at, "1\n");
    }
    exchange("c", "d");
    was(&fixture, "c/f", two, "1\n");
    was(&fixture, "d/f", two, "2\n");
    // Of a name that does not count the other tells last what it stands for, whichever comes first.
    for (a, b, text) in [("x.tmp", "x", "1\n"), ("x", "x.tmp", "2\n")] {
        let at = exchange(a, b);
        let told = told(&fixture, "x");
        assert_eq!(told[told.len() - 2..], ["removed x", "saved x"], "{told:?}");
        was(&fixture, "x", at, text);
    }
    fixture.fsck_clean();
}

// P11.1 P11.3
#[test]
fn a_directory_of_which_only_the_files_count_tells_that_it_came_and_went() {
    let fixture = Fixture::new();
    let last = || fixture.ledger().last_g();
    fixture
        .sh("mkdir scratchpad new other && echo 1 > scratchpad/f && echo 2 > new/f && echo 3 > other/f")
        .success();
    let saved = last();
    fixture.sh("mv scratchpad old").success();
    was_gone(&fixture, "f", last(), last());
    fixture.sh("mv new scratchpad").success();
    let brought = |at: u64| {
        let at = at.to_string();
        for ran in [
            fixture.workfs(&["show", "scratchpad/f", "--g", &at]),
            fixture.workfs(&["restore", "scratchpad/f", "--at", &at]),
        ] {
            let ran = ran.failure();
            assert!(ran.code == 4 && ran.stderr.contains("had come with its directory"), "{ran}");
        }
    };
    brought(last());
    let [a, b] = ["scratchpad", "other"].map(|name| fixture.path(name));
    for (a, b, text) in [(&a, &b, "3\n"), (&b, &a, "2\n")] {
        rename_with(a, b, rustix::fs::RenameFlags::EXCHANGE).unwrap();
        brought(last());
        assert_eq!(fs::read_to_string(fixture.path("scratchpad/f")).unwrap(), text);
    }
    // What it was before is known all the same, and what is saved there from now on.
    was(&fixture, "f", saved, "1\n");
    let before = last();
    fixture.sh("mkdir scratchpad/node_modules; mv scratchpad/node_modules/ x; mv x y").success();
    assert_eq!(last(), before + 2, "made, and moved away; nothing counts in the others");
    fixture.fsck_clean();
}
