//! Stores in which a table is defined otherwise than workfs does, as by a bit that fell over.

use std::fs;
use std::path::{Path, PathBuf};

use crate::damage::{store, with};
use crate::harness::{Fixture, Ran, run};

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
