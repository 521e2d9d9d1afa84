//! By whichever way a content comes under a name that is checked, it is judged; and nothing that was taken goes by a
//! refusal.

use std::fs;
use std::io::Write as _;

use rustix::fs::{CWD, RenameFlags};

use crate::harness::{Errno, Fixture, Setup, close, save, until_polled};

fn checked() -> Fixture {
    let layout =
        "workspaces: []\nchecks: [{ path: 'd/*.json' }, { path: 'd/*.yaml', syntax: yaml }]\n";
    let fixture = Setup::default().mounts(2).layout(layout).start();
    fixture.sh("mkdir d other; echo '{' > other/bad; echo '{}' > other/good").success();
    fixture
}

// P11.7
#[test]
fn no_link_exchange_or_import_brings_what_a_check_refuses() {
    let fixture = checked();
    let (bad, good) = (fixture.path("other/bad"), fixture.path("other/good"));
    let (named, there) = (fixture.path("d/new.json"), fixture.path("d/there.json"));
    let errno = |error| Errno::from_io_error(&error);
    let refused = fs::hard_link(&bad, &named).unwrap_err();
    assert_eq!(errno(refused), Some(Errno::INVAL));
    assert!(!named.exists());
    fs::hard_link(&good, &named).unwrap();
    save(&there, b"[1]").unwrap();
    for (one, other) in [(&bad, &there), (&there, &bad)] {
        let swapped = rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
        assert_eq!(swapped, Err(Errno::PERM));
        assert_eq!(fs::read(&there).unwrap(), b"[1]");
    }
    assert!(fixture.why().contains("d/there.json"), "{}", fixture.why());
    rustix::fs::renameat_with(CWD, &good, CWD, &there, RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read(&there).unwrap(), b"{}\n");

    let from = fixture.outside("from");
    fs::create_dir(&from).unwrap();
    for (name, text) in [("in.json", "{"), ("in.yaml", "a: 1\n"), ("in.txt", "{")] {
        fs::write(from.join(name), text).unwrap();
    }
    let ran = fixture.workfs(&["import", from.to_str().unwrap(), "d"]);
    assert!((ran.stdout.clone() + &ran.stderr).contains("what a check wants there"), "{ran}");
    let listed = fixture.sh("cd d; ls in.*").success().stdout;
    assert_eq!(listed, "in.txt\nin.yaml\n", "the rest is taken");
    fixture.fsck_clean();
}

// P11.7
#[test]
fn who_made_a_file_that_another_has_saved_since_takes_that_away_by_no_refusal() {
    let fixture = checked();
    for (name, bad) in [("a.yaml", "a: [1,\n"), ("b.yaml", "a: ]\n")] {
        let path = fixture.path(&format!("d/{name}"));
        let mut maker = fs::File::create(&path).unwrap();
        fixture.sh(&format!("echo 'of: another' > d/{name}")).success();
        let written = maker.write_all(bad.as_bytes());
        assert!(written.is_err() | (close(maker) == Err(Errno::INVAL)), "{name}");
        for mount in 0..2 {
            let now = fs::read_to_string(fixture.mount(mount).join("d").join(name));
            assert_eq!(now.unwrap(), "of: another\n", "{name}");
        }
    }
    fixture.fsck_clean();
}

// P11.7
#[test]
fn who_emptied_a_file_and_wrote_nothing_empties_nothing_that_was_saved_since() {
    let fixture = checked();
    let path = |name: &str| fixture.path(&format!("d/{name}.yaml"));
    for name in ["saved", "left"] {
        save(&path(name), b"a: 1\n").unwrap();
    }
    let emptied = ["saved", "left"].map(|name| fs::File::create(path(name)).unwrap());
    let other = fixture.mount(1).join("d/saved.yaml");
    save(&other, b"b: 2\n").unwrap();
    drop(emptied);
    until_polled("what nobody saved is empty", || {
        (fs::metadata(path("left")).unwrap().len() == 0).then_some(())
    });
    assert_eq!(fs::read(&other).unwrap(), b"b: 2\n");
    fixture.fsck_clean();
}

// P11.7
#[test]
fn a_file_of_several_names_is_checked_by_each_whichever_it_is_saved_by() {
    let layout = "workspaces: []
checks: [{ path: 'd/*.json', schema: aim }, { path: 'e/*.json', schema: goal }]
schemas:
  - { name: aim, text: '{\"required\": [\"aim\"]}' }
  - { name: goal, text: '{\"required\": [\"goal\"]}' }
";
    let fixture = Setup::default().layout(layout).start();
    let good = "{\"aim\": 1, \"goal\": 2}";
    for (first, further) in [("d/f.json", "e/f.json"), ("e/g.json", "d/g.json")] {
        fixture.sh("mkdir -p d e").success();
        save(&fixture.path(first), good.as_bytes()).unwrap();
        fs::hard_link(fixture.path(first), fixture.path(further)).unwrap();
        for name in [first, further] {
            for bad in ["{\"aim\": 1}", "{\"goal\": 2}"] {
                let saved = save(&fixture.path(name), bad.as_bytes());
                assert_eq!(saved, Err(Errno::INVAL), "{name}: {bad}");
                assert_eq!(fs::read_to_string(fixture.path(first)).unwrap(), good);
            }
        }
    }
    fixture.fsck_clean();
}
