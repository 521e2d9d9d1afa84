//! Files with more than one name: when the name by which they were made is gone, another one stands
//! for them, wherever it lies.

use std::fs;

use crate::harness::{Fixture, Setup, until_polled};

const LAYOUT: &str = "workspaces: []
files:
  - { path: 'kept/**' }
checks:
  - { path: 'kept/**/*.yaml', syntax: yaml }
locks:
  - { path: '**/*.lock', lease: 1s }
quotas:
  - { path: 'team-*', bytes: 1MiB }
";

fn fixture() -> Fixture {
    let fixture = Setup::default().layout(LAYOUT).start();
    fixture.sh("mkdir -p kept/a kept/b out team-x team-y").success();
    fixture
}

/// The events' names of a path, in their order.
fn events(fixture: &Fixture, path: &str) -> Vec<String> {
    let ledger = fixture.ledger();
    let of_path = ledger.0.iter().filter(|event| event.0["payload"]["path"] == path);
    of_path.map(|event| event.name().to_owned()).collect()
}

fn charged(fixture: &Fixture, dir: &str) -> u64 {
    let status = fixture.workfs(&["status", "--json"]).success().json();
    let all = status["quotas"].as_array().unwrap();
    all.iter().find(|one| one["path"] == dir).unwrap()["bytes"].as_u64().unwrap()
}

// P11.1
#[test]
fn a_file_whose_first_name_is_gone_is_told_of_by_another() {
    for lose in ["rm FIRST", "mv other FIRST", "mv FIRST out/away; rm out/away"] {
        for first in ["kept/a/first", "out/first"] {
            let fixture = fixture();
            let lose = lose.replace("FIRST", first);
            let made = format!("echo 1 > {first}; echo o > other; ln {first} kept/b/final; {lose}");
            fixture.sh(&made).success();
            let before = events(&fixture, "kept/b/final").len();
            fixture
                .sh("echo 2 > kept/b/final; echo 3 > kept/b/final; truncate -s 1 kept/b/final")
                .success();
            let told = events(&fixture, "kept/b/final").len() - before;
            assert_eq!(told, 3, "{lose}");
            // It is a file like others: its last name may go, and its inode.
            fixture.fsck_clean();
            fixture.sh("rm kept/b/final").success();
            fixture.fsck_clean();
        }
    }
}

// P11.1
#[test]
fn of_a_file_made_elsewhere_the_name_that_counts_is_told_while_it_has_both() {
    let fixture = fixture();
    fixture.sh("echo 1 > out/f; ln out/f kept/a/f; echo 2 > kept/a/f; echo 3 > out/f").success();
    assert_eq!(events(&fixture, "kept/a/f").len(), 3);
    // So it is while another one of them counts, and that has another one's content from then on.
    fixture.sh("ln kept/a/f kept/b/g; rm kept/a/f; echo 4 > out/f").success();
    assert_eq!(events(&fixture, "kept/b/g").len(), 3);
    was(&fixture, "kept/b/g", fixture.ledger().last_g(), Ok("4\n"));
    fixture.fsck_clean();
}

// P11.1
#[test]
fn what_is_written_by_a_descriptor_from_before_the_file_came_there_is_a_save() {
    // Where no rule is for `**`, none counts elsewhere.
    let layout = "workspaces: []\nfiles:\n  - { path: 'kept/**' }\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir -p kept/a out").success();
    for (nth, comes) in ["mv out/f kept/a/f", "ln out/f kept/a/g"].into_iter().enumerate() {
        let path = format!("kept/a/{}", ["f", "g"][nth]);
        // Written by a program of its own, and by the shell that has it open.
        fixture
            .sh(&format!("exec 3> out/f; echo 1 >&3; {comes}; cat <<< 2 >&3; exec 3>&-"))
            .success();
        let sizes: Vec<_> = events(&fixture, &path).into_iter().collect();
        assert_eq!(sizes.len(), 2, "{comes}: {sizes:?}");
        let kept = fs::read_to_string(fixture.path(&path)).unwrap();
        assert_eq!(kept, "1\n2\n");
        let versions = fixture.sh(&format!("cat .workfs/history/{path}/*")).success().stdout;
        assert!(versions.contains("1\n2\n"), "{comes}: {versions}");
    }
    // What lies nowhere where rules count costs nothing, as before.
    fixture.sh("exec 3> out/h; echo 1 >&3; mv out/h out/i; echo 2 >&3; exec 3>&-").success();
    assert_eq!(events(&fixture, "out/i").len(), 0);
    fixture.fsck_clean();
}

// P11.7
#[test]
fn a_check_counts_for_every_name() {
    let fixture = fixture();
    fixture.sh("echo 'a: 1' > kept/a/t; ln kept/a/t kept/b/c.yaml").success();
    let bad = |name: &str| fixture.sh(&format!("echo 'a: [' > $OUT/bad; cp $OUT/bad {name}"));
    for name in ["kept/a/t", "kept/b/c.yaml"] {
        bad(name).failure();
        assert_eq!(fixture.sh("cat kept/b/c.yaml").success().stdout, "a: 1\n", "{name}");
    }
    fixture.sh("rm kept/a/t").success();
    bad("kept/b/c.yaml").failure();
    assert_eq!(fixture.sh("cat kept/b/c.yaml").success().stdout, "a: 1\n");
    fixture.sh("echo 'a: 2' > kept/b/c.yaml").success();
    fixture.fsck_clean();
}

// P11.11
#[test]
fn a_file_is_charged_where_its_first_name_lies() {
    let fixture = fixture();
    fixture.sh("printf 12345 > out/f; ln out/f team-x/f; ln out/f team-y/f").success();
    let both = || (charged(&fixture, "team-x"), charged(&fixture, "team-y"));
    assert_eq!(both(), (0, 0));
    fixture.sh("mv team-x/f team-x/g").success();
    assert_eq!(both(), (0, 0), "the first one is where it was");
    fixture.sh("rm out/f").success();
    assert!(both() == (5, 0) || both() == (0, 5), "{:?}", both());
    fixture.sh("rm team-x/g").success();
    assert_eq!(both(), (0, 5));
    fixture.sh("ln team-y/f out/h; rm team-y/f").success();
    assert_eq!(both(), (0, 0));
    fixture.sh("head -c 1000000 /dev/zero | tr '\\0' x > team-x/big").success();
    fixture
        .sh("head -c 1000000 /dev/zero | tr '\\0' x > out/big; ln out/big team-x/more")
        .success();
    let refused = fixture.sh("rm out/big").failure();
    assert!(refused.stderr.contains("quota"), "{refused}");
    fixture.sh("rm team-x/more out/big").success();
    fixture.sh("mkdir out/d; ln out/h out/d/i; mv out/d team-y/").success();
    assert_eq!(both().1, 0, "a further name is not charged");
    fixture.fsck_clean();
}

// P11.10
#[test]
fn a_lock_made_by_link_vanishes_although_its_first_name_is_gone() {
    let fixture = fixture();
    fixture
        .sh("echo 1 > out/u; ln out/u kept/b/z.lock; rm out/u; \
             echo 2 > kept/a/v; ln kept/a/v out/y.lock; mv kept/a/v kept/a/w")
        .success();
    let gone = |name: &str| !fixture.path(name).exists();
    until_polled("both are gone", || (gone("kept/b/z.lock") && gone("out/y.lock")).then_some(()));
    fixture.sh("cat kept/a/w").success();
    fixture.fsck_clean();
}

/// What `show --g` and `restore --at` say a path was at a moment; that it is refused, where this names another.
#[track_caller]
fn was(fixture: &Fixture, path: &str, at: u64, was: Result<&str, &str>) {
    let at = at.to_string();
    let (shown, there) =
        (fixture.workfs(&["show", "--json", path, "--g", &at]), fs::read(fixture.path(path)).ok());
    match was {
        Ok(text) => assert_eq!(shown.success().json()["text"], text, "{path} at {at}"),
        Err(other) => {
            for ran in [shown, fixture.workfs(&["restore", path, "--at", &at])] {
                let ran = ran.failure();
                let named = ran.stderr.contains("another name") && ran.stderr.contains(other);
                assert!(ran.code == 4 && named, "{path} at {at}: {ran}");
            }
            assert_eq!(fs::read(fixture.path(path)).ok(), there);
        }
    }
}

// P11.3
#[test]
fn of_what_was_saved_by_another_name_no_older_version_is_given() {
    let fixture = fixture();
    let last = || fixture.ledger().last_g();
    fixture.sh("cd kept/a; echo 1 > h1; ln h1 h2; ln h1 h3").success();
    let linked = last();
    fixture.sh("cd kept/a; echo 2 > h1").success();
    let (saved, h1) = (last(), Err("`kept/a/h1`"));
    for at in [linked, saved] {
        was(&fixture, "kept/a/h1", at, Ok(if at == linked { "1\n" } else { "2\n" }));
        for other in ["kept/a/h2", "kept/a/h3"] {
            was(&fixture, other, at, if at == linked { Ok("1\n") } else { h1 });
        }
    }
    // What another name is renamed to is told of by the same one.
    fixture.sh("cd kept/a; mv h3 h4; echo 3 > h4").success();
    was(&fixture, "kept/a/h1", last(), Ok("3\n"));
    was(&fixture, "kept/a/h4", last() - 1, Ok("2\n"));
    was(&fixture, "kept/a/h4", last(), h1);
    // Gone, they were what they were all the same.
    let before = last();
    fixture.sh("cd kept/a; rm h2").success();
    was(&fixture, "kept/a/h2", linked, Ok("1\n"));
    was(&fixture, "kept/a/h2", before, h1);
    // What comes back by one name is told of the other.
    fixture.workfs(&["restore", "kept/a/h4", "--at", &(saved + 1).to_string()]).success();
    for path in ["kept/a/h1", "kept/a/h4"] {
        was(&fixture, path, last(), Ok("2\n"));
    }
    // Who takes the place of the name that goes begins with what it has.
    fixture.sh("cd kept/a; echo 5 > h1; rm h1").success();
    was(&fixture, "kept/a/h4", last(), Ok("5\n"));
    fixture.sh("cd kept/a; echo 6 > h4; ln h4 h5; echo 7 > new; mv new h4").success();
    was(&fixture, "kept/a/h4", last(), Ok("7\n"));
    was(&fixture, "kept/a/h5", last(), Ok("6\n"));
    // Nor is it known of what moved away with its directory.
    fixture.sh("ln kept/a/h5 kept/b/h6; mv kept/a away; echo 8 > away/h5").success();
    was(&fixture, "kept/b/h6", last(), Err("`kept/a/h5`"));
    fixture.fsck_clean();
}

// P11.1
#[test]
fn a_file_whose_first_name_goes_where_no_rule_counts_is_told_of_by_another() {
    let layout = "workspaces: []\nfiles: [{ path: 'kept/**' }]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir -p kept/a kept/b out; echo 1 > kept/a/f; ln kept/a/f kept/b/f").success();
    fixture.sh("mv kept/a/f out/f").success();
    assert_eq!(events(&fixture, "kept/a/f"), ["saved", "removed"]);
    let before = events(&fixture, "kept/b/f").len();
    fixture.sh("echo 2 >> out/f").success();
    assert_eq!(events(&fixture, "kept/b/f")[before..], ["saved"]);
    fixture.sh("echo 3 >> kept/b/f").success();
    assert_eq!(events(&fixture, "kept/b/f")[before..], ["saved", "saved"]);
    fixture.fsck_clean();
}
