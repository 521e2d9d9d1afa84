//! The claim as public scripts do it: write the file into the lane, then unlink the old one.

use std::fs;

use crate::harness::{Errno, Fixture, Task, lies, pile, python, save, until_polled};

// P1.3
#[test]
fn cp_and_rm_is_the_same_claim_as_mv() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let script = "set -e; cp work/inbox/t-1.yaml work/assigned/bob/t-1.yaml
                  rm work/inbox/t-1.yaml";
    // `rm` is another process than `cp`, with the same parent.
    fixture.sh(script).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    let ledger = fixture.ledger();
    assert_eq!(ledger.names("t-1"), ["created", "claimed"]);
    assert_eq!(ledger.of_record("t-1")[1].0["payload"]["via"], "copy");
    fixture.fsck_clean();
}

/// What the public script does, in its own words.
const SCRIPT: &str = "
import sys, os
src, dst, agent = sys.argv[1:]
text = open(src).read()
text = text.replace('status: new', 'status: assigned').replace('agent: nobody', 'agent: ' + agent)
with open(dst, 'w') as f:
    f.write(text)
os.unlink(src)
";

// P1.3
#[test]
fn a_python_script_that_writes_and_unlinks_claims() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let call = "\"$PYTHON\" -c \"$SCRIPT\" work/inbox/t-1.yaml work/assigned/bob/t-1.yaml bob";
    fixture.bash().with("PYTHON", python()).with("SCRIPT", SCRIPT).run(call).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
}

// P1.3
#[test]
fn who_copies_too_late_gets_eexist_and_overwrites_nothing() {
    let fixture = Fixture::new();
    let task = Task::new("t-1");
    fixture.task("inbox", &task);
    fixture.sh("cp work/inbox/t-1.yaml $OUT/copy").success();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/ann/").success();
    let winner = fs::read(fixture.path("work/assigned/ann/t-1.yaml")).unwrap();

    let late = fixture.sh("cp $OUT/copy work/assigned/bob/t-1.yaml").failure();
    assert!(late.stderr.contains("File exists"), "{late}");
    let text = task.clone().status("assigned").owner("bob").text();
    let path = fixture.path("work/assigned/bob/t-1.yaml");
    assert_eq!(save(&path, text.as_bytes()), Err(Errno::EXIST));
    assert_eq!(fs::read(fixture.path("work/assigned/ann/t-1.yaml")).unwrap(), winner);
    assert_eq!(fixture.ledger().counts("claimed")["t-1"], 1);
    assert!(fixture.why().contains("W002"), "{}", fixture.why());
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_rename_into_the_lane_is_a_copy_too() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let text = Task::new("t-1").status("assigned").owner("bob").revision(1).text();
    fs::write(fixture.outside("new"), text).unwrap();
    let script = "cd work; cp $OUT/new assigned/bob/t-1.yaml.tmp.77.c0ffee
                  mv assigned/bob/t-1.yaml.tmp.77.c0ffee assigned/bob/t-1.yaml";
    fixture.sh(script).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
    fixture.fsck_clean();
}

// P1.4
#[test]
fn a_copy_of_an_old_version_claims_nothing() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let old = fs::read_to_string(&path).unwrap();
    fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
    // It read the version before, and would undo the save in between unseen.
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    let mine = old.replace("status: new", "status: assigned");
    assert_eq!(save(&to, mine.as_bytes()), Err(Errno::BUSY));
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 1\n"));
    let mine = fs::read_to_string(&path).unwrap().replace("status: new", "status: assigned");
    save(&to, mine.as_bytes()).unwrap();
    assert!(fs::read_to_string(&to).unwrap().contains("revision: 1\n"));
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "claimed"]);
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_temp_file_that_comes_after_a_claim_takes_nothing_back() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let temp = fixture.path("work/inbox/.t-1.new");
    fs::write(&temp, Task::new("t-1").revision(1).text()).unwrap();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let error = fs::rename(&temp, &path).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::EXIST));
    assert!(!path.exists());
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
}

// P1.3
#[test]
fn an_id_lives_once_whatever_the_extension() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let text = Task::new("t-1").text();
    let other = fixture.path("work/inbox/t-1.yml");
    assert_eq!(save(&other, text.as_bytes()), Err(Errno::EXIST));
    assert!(!other.exists());
    fixture.sh("mv work/inbox/t-1.yaml work/inbox/t-1.yml").success();
    fixture.sh("mv work/inbox/t-1.yml work/assigned/bob/").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "renamed", "claimed"]);
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_copy_that_is_not_valid_claims_nothing() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let bad = Task::new("t-1").status("nonsense").text();
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    assert_eq!(save(&to, bad.as_bytes()), Err(Errno::INVAL));
    assert_eq!(fs::read_to_string(path).unwrap(), Task::new("t-1").text());
    assert_eq!(fixture.ledger().counts("claimed").len(), 0);
}

// P1.3
#[test]
fn the_old_name_is_gone_for_all_others_at_once() {
    let fixture = crate::harness::Setup::default().mounts(2).start();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let elsewhere = fixture.mount(1).join("work/inbox/t-1.yaml");
    assert!(elsewhere.exists());
    fixture.sh("cp work/inbox/t-1.yaml work/assigned/bob/t-1.yaml").success();
    let error = fs::rename(&elsewhere, fixture.mount(1).join("x")).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
    for name in [&from, &elsewhere] {
        until_polled("the old name goes", || (!name.exists()).then_some(()));
        let error = fs::remove_file(name).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
    }
    assert!(fixture.path("work/assigned/bob/t-1.yaml").exists());
}
