//! Plain files whose content is not what was saved, and those of which nobody can know that.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use crate::damage::with;
use crate::harness::{Fixture, Setup, run};

const SCRATCH: &str = "mkdir -p scratchpad/p && cd scratchpad/p && ";

/// What `fsck` says of a copy of the store in which `x` became `y` in what lies at paths, and in no version.
fn told(fixture: &Fixture) -> Vec<String> {
    let sql = "UPDATE chunks SET data = \
               CAST(replace(CAST(data AS TEXT), 'x', 'y') AS BLOB) WHERE instr(data, 'x')";
    let ran = run(&mut fixture.command_on(&with(fixture, sql), &["fsck"]));
    let found = ran.stdout.lines().filter(|line| line.contains(" says was saved"));
    let found: Vec<String> = found.map(str::to_owned).collect();
    assert_eq!(ran.code, if found.is_empty() { 0 } else { 11 }, "{ran}");
    found
}

// P5.2
#[test]
fn fsck_compares_what_lies_at_a_path_with_what_was_saved_there() {
    let fixture = Fixture::new();
    let saves = "echo x1 > twice; echo x2 > twice; echo x > tmp; mv tmp renamed; echo x > old; \
                 ln old linked; rm old; seq -f 'x %.0f' 100000 > large; mkdir d; echo x > d/moved; \
                 mv d e; echo new > d; echo x > mode; chmod 600 mode; echo 1 > x; echo z > other";
    fixture.sh(&format!("{SCRATCH}{saves}; cd ../..; echo x > elsewhere")).success();
    fixture.fsck_clean();
    fixture.unmount_all();
    fixture.fsck_clean();
    let found = told(&fixture);
    let is_of = |name: &&str| {
        found.iter().any(|one| one.starts_with(&format!("file scratchpad/p/{name}: ")))
    };
    let of: Vec<&str> = ["twice", "renamed", "linked", "large"].into_iter().filter(is_of).collect();
    // The mode of one was changed since, and no event is of the path to which a directory brought another.
    assert!(of.len() == 4 && found.len() == 4, "{found:#?}");
}

// P5.2 P4.6
#[test]
fn a_big_file_that_is_another_beside_the_tables_keeps_no_backup_from_being_restored() {
    let layout = "workspaces: []\nfiles: [ { path: \"scratchpad/**\", file_bytes: 4MiB } ]\n";
    let fixture = Setup::default().layout(layout).start();
    fs::write(fixture.path("scratchpad/big"), vec![b'x'; 3 << 20]).unwrap();
    // Of a larger one no version is kept, and nothing is read.
    fs::write(fixture.path("scratchpad/larger"), vec![b'x'; 5 << 20]).unwrap();
    fixture.unmount_all();
    fixture.fsck_clean();
    let beside = format!("{}-extents", fixture.store().display());
    let bytes = fs::read(&beside).unwrap();
    let beside = File::options().write(true).open(beside).unwrap();
    for (at, _) in bytes.iter().enumerate().filter(|(at, byte)| at % 65_536 == 9 && **byte == b'x')
    {
        beside.write_all_at(b"y", at as u64).unwrap();
    }
    let ran = fixture.workfs(&["fsck"]).failure();
    let lost = " says was saved, as after power loss: write it anew, or remove it\n";
    assert!(ran.code == 11 && ran.stdout.contains(lost), "{ran}");
    assert!(
        ran.stdout.contains("\n1 problem: ") && !ran.stdout.contains("restore a backup"),
        "{ran}"
    );
    let backup = fixture.outside("b.db").display().to_string();
    fixture.workfs(&["backup", &backup]).success();
    let ran = fixture.workfs(&["restore", "--force", &backup]).failure();
    assert!(ran.code == 11 && ran.stdout.contains(lost), "{ran}");
    fixture.mount_all();
    fs::write(fixture.path("scratchpad/big"), "anew").unwrap();
    fixture.fsck_clean();
}

// P5.2
#[test]
fn what_was_written_and_not_told_yet_is_no_problem() {
    let fixture = Fixture::new();
    fixture
        .sh(&format!("{SCRATCH}echo text > open; echo text > killed; echo text > grown"))
        .success();
    let open = |name: &str| {
        File::options().write(true).open(fixture.path(&format!("scratchpad/p/{name}"))).unwrap()
    };
    let mut files = ["open", "killed", "grown"].map(open);
    for file in &files[..2] {
        file.write_all_at(b"tixt", 0).unwrap();
    }
    files[2].write_all(b"and more of it").unwrap();
    fixture.fsck_clean();
    // Told, and written once more.
    files[0].sync_all().unwrap();
    files[0].write_all_at(b"toxt", 0).unwrap();
    fixture.fsck_clean();
    fixture.kill_daemon();
    drop(files);
    fixture.workfs(&["fsck"]).success();
    fixture.mount_all();
    assert_eq!(fs::read(fixture.path("scratchpad/p/killed")).unwrap(), b"tixt\n");
    fixture.fsck_clean();
}

// P5.2
#[test]
fn what_a_directory_has_brought_is_not_compared_with_what_lay_there_before() {
    let fixture = Fixture::new();
    let moves = "mkdir a b; echo first > a/f; echo other > b/f; echo last > a/f; mv a c; mv b a; \
                 mkdir -p up/d; echo 1 > up/d/f; mkdir in; echo 2 > in/f; echo 3 > up/d/f; \
                 mv up gone; mkdir up; mv in up/d; echo x > c/g; mkdir -p ../../away/c; \
                 echo g > ../../away/c/g; mv c ../../d; mv ../../away/c c";
    fixture.sh(&format!("{SCRATCH}{moves}")).success();
    fixture.fsck_clean();
    fixture.sh("cd scratchpad/p && mv -T --exchange a c 2>/dev/null; true").success();
    fixture.fsck_clean();
}

// P5.2
#[test]
fn what_other_rules_counted_is_not_compared() {
    let counts = "workspaces: []\nfiles: [ { path: \"scratchpad/**\" } ]\n";
    let fixture = Setup::default().layout(counts).start();
    let layout = |text: &str| {
        let file = fixture.outside("other.yaml");
        fs::write(&file, text).unwrap();
        fixture.unmount_all();
        fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
        fixture.mount_all();
    };
    fixture.sh("mkdir -p scratchpad/a scratchpad/b").success();
    fixture.sh("cd scratchpad; echo two > b/f; echo one > a/f").success();
    layout("workspaces: []\nfiles: [ { path: \"others/**\" } ]\n");
    // Nothing is told of this; and what comes has an older time than what lay there.
    fixture.sh("cd scratchpad; mv a c; mv b a").success();
    layout(counts);
    fixture.fsck_clean();
    fixture.sh("cd scratchpad; echo x > a/f").success();
    fixture.unmount_all();
    assert_eq!(told(&fixture).len(), 1);
}
