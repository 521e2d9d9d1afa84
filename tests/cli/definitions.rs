//! Stores in which a table is defined otherwise than workfs does, as by a bit that fell over.

use std::fs;
use std::path::{Path, PathBuf};

use workfs::store::sqlite::Sqlite;

use crate::damage::{store, with};
use crate::harness::{Fixture, Ran, Task, run};

/// Makes this part of a definition another one in the file, wherever it has been, too.
fn redefine(copy: &Path, part: &str, other: &str) {
    let mut bytes = fs::read(copy).unwrap();
    let places = bytes.windows(part.len()).enumerate();
    let places: Vec<usize> =
        places.filter(|(_, bytes)| *bytes == part.as_bytes()).map(|(at, _)| at).collect();
    assert!(!places.is_empty() && part.len() == other.len(), "{part}");
    for at in places {
        bytes[at..][..other.len()].copy_from_slice(other.as_bytes());
    }
    fs::write(copy, bytes).unwrap();
}

/// A copy of a store in which this is wrong besides, and that part of a definition is another one.
fn redefined(fixture: &Fixture, part: &str, other: &str) -> PathBuf {
    let copy = with(fixture, "UPDATE records SET priority = -5 WHERE id = 'waits'");
    redefine(&copy, part, other);
    copy
}

fn check(fixture: &Fixture, copy: &Path) -> Ran {
    run(&mut fixture.command_on(copy, &["fsck"]))
}

// P5.2
#[test]
fn a_store_that_is_damaged_to_others_is_not_clean_to_fsck() {
    let fixture = store();
    // Nothing but a condition, which is left out of what is only read.
    let copy = redefined(&fixture, "length(sha256) = 32", "length(sia256) = 32");
    let list = run(&mut fixture.command_on(&copy, &["list"])).failure();
    assert!(list.code == 10 && list.stderr.contains("no such column: sia256"), "{list}");
    let ran = check(&fixture, &copy);
    assert!(ran.code == 11, "{ran}");
    assert!(ran.stdout.contains("table file_versions: is not as workfs makes it\n"), "{ran}");
    assert!(ran.stdout.contains("record work:waits: ") && ran.stdout.contains("priority"), "{ran}");
    let doctor = run(&mut fixture.command_on(&copy, &["doctor"]));
    assert!(doctor.code == 11 && doctor.stdout.contains("BAD"), "{doctor}");
}

// P5.2 P8.2
#[test]
fn a_definition_that_cannot_be_followed_is_a_problem_and_the_rest_is_looked_at() {
    let fixture = store();
    let cases = [
        ("length(trace) = 16", "lengtl(trace) = 16", "unknown function: lengtl()", "records"),
        (
            "record INTEGER PRIMARY KEY REFERENCES records(key),\n  ino ",
            "record INTEGER PRIMARY KEY REFERENCES records(kex),\n  ino ",
            "foreign key mismatch - \"backups\" referencing \"records\"",
            "backups",
        ),
    ];
    for (part, other, why, table) in cases {
        let copy = redefined(&fixture, part, other);
        let ran = check(&fixture, &copy);
        assert!(
            ran.code == 11 && ran.stdout.contains(&format!(" cannot be read: {why}\n")),
            "{ran}"
        );
        assert!(ran.stdout.contains(&format!("table {table}: is not as workfs makes it")), "{ran}");
        assert!(ran.stdout.contains("record work:waits: "), "the rest: {ran}");
        let problems = ran.stdout.lines().filter(|line| line.contains(": ")).count();
        assert!(problems <= 6, "not all that follows from it: {ran}");
        let doctor = run(&mut fixture.command_on(&copy, &["doctor"]));
        assert!(doctor.code == 11 && doctor.stdout.contains("BAD   store: damaged: "), "{doctor}");
        let restore = ["restore", "--force", copy.to_str().unwrap()];
        let restored = fixture.workfs(&restore).failure();
        assert!(
            restored.code == 10 && restored.stderr.contains("nothing was changed"),
            "{restored}"
        );
    }
    fixture.workfs(&["fsck"]).success();
}

// P5.2
#[test]
fn what_lies_beside_the_tables_is_looked_at_where_a_condition_cannot_be_asked() {
    let fixture = store();
    let sql = "INSERT INTO freed VALUES (65536, 65536); \
               UPDATE chunks SET at = 65536, data = x'' WHERE key = (SELECT max(key) FROM chunks)";
    let sound = with(&fixture, sql);
    assert!(check(&fixture, &sound).stdout.contains("1 chunks of big files lie in what was freed"));
    redefine(&sound, "length(trace)", "lengtl(trace)");
    let ran = check(&fixture, &sound);
    assert!(ran.stdout.contains("cannot be read: unknown function: lengtl()"), "{ran}");
    assert!(ran.stdout.contains("1 chunks of big files lie in what was freed"), "{ran}");
}

// P8.2
#[test]
fn a_change_that_meets_such_a_definition_is_told_of_damage() {
    let fixture = store();
    let part = "parent INTEGER NOT NULL REFERENCES nodes(ino)";
    let copy = redefined(&fixture, part, &part.replace("ino", "inx"));
    let new = fixture.outside("new");
    fs::create_dir_all(new.join("inbox")).unwrap();
    fs::write(new.join("inbox/new.yaml"), Task::new("new").text()).unwrap();
    let import = ["import", new.to_str().unwrap(), "work"];
    let ran = run(&mut fixture.command_on(&copy, &import)).failure();
    assert!(ran.said().contains("the store is damaged: foreign key mismatch"), "{ran}");
    // Reading follows no reference.
    drop(Sqlite::open(&copy).unwrap());
    run(&mut fixture.command_on(&copy, &["show", "free"])).success();
}
