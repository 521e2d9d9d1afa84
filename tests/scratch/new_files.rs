//! New checked files: what becomes of what they were saved with, and who sees them before.

use std::fs;
use std::io::{Seek, SeekFrom, Write};

use crate::harness::{Errno, Fixture, Setup, close, until_polled};

const LAYOUT: &str = "workspaces: []\nchecks: [{ path: \"notes/*.yaml\", syntax: yaml }]\n";

fn checked() -> Fixture {
    let fixture = Setup::default().mounts(2).layout(LAYOUT).start();
    fixture.sh("mkdir notes").success();
    fixture
}

// P11.7
#[test]
fn what_a_new_file_was_saved_with_stays_whatever_its_maker_writes_next() {
    let fixture = checked();
    // What `write` refuses, and what only `close` does; after a text, and after none.
    for (nth, bad) in ["b: ]\n", "b: [\n"].into_iter().enumerate() {
        for good in ["a: 1\n", ""] {
            let name = format!("notes/{nth}-{}.yaml", good.len());
            let mut file = fs::File::create(fixture.path(&name)).unwrap();
            file.write_all(b"a: 1\n").unwrap();
            file.sync_all().unwrap();
            file.set_len(good.len() as u64).unwrap();
            file.sync_all().unwrap();
            file.seek(SeekFrom::End(0)).unwrap();
            assert_eq!(file.write_all(bad.as_bytes()).is_err(), nth == 0, "{name}");
            assert_eq!(close(file), Err(Errno::INVAL), "{name}");
            for mount in fixture.mounts() {
                assert_eq!(fs::read_to_string(mount.join(&name)).unwrap(), good, "{name}");
            }
        }
    }
    fixture.fsck_clean();
}

// P11.7
#[test]
fn a_new_file_into_which_nothing_was_written_yet_is_its_maker_s_though_it_looked() {
    let fixture = checked();
    let path = fixture.path("notes/new.yaml");
    let file = fs::File::create(&path).unwrap();
    for _ in 0..2 {
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        let looks = "! test -e notes/new.yaml && ! test -e ../m1/notes/new.yaml";
        fixture.sh(looks).success();
    }
    drop(file);
    until_polled("it is born", || fixture.sh("test -e notes/new.yaml").ok().then_some(()));
}

// P11.7
#[test]
fn a_copy_that_keeps_the_time_has_it_after_it_was_judged() {
    let fixture = checked();
    fixture.sh("echo 'a: 1' > $OUT/a.yaml; touch -d @5 $OUT/a.yaml").success();
    // A new one, and over one that is there.
    for _ in 0..2 {
        let copied = "cp -p $OUT/a.yaml notes/ && stat -c %Y notes/a.yaml ../m1/notes/a.yaml";
        assert_eq!(fixture.sh(copied).success().stdout, "5\n5\n");
        fixture.sh("echo 'a: 2' > notes/a.yaml").success();
        let now = fixture.sh("stat -c %Y notes/a.yaml").success().stdout;
        assert!(now.trim().parse::<u64>().unwrap() > 5, "a save that sets no time has its own");
    }
}
