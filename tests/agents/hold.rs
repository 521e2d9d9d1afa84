//! A descriptor of `.workfs/hold/<id>` keeps the record, and its end gives it back.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Errno, Task, prompt, save, send_signal, until_polled};
use crate::leases::{await_event, bob_has};
use crate::team::{Team, errno, mv};

/// A process that holds bob's task and does nothing else.
fn holder(team: &Team) -> Child {
    let mut child = Command::new("bash")
        .arg("-c")
        .arg("exec 9> .workfs/hold/t-1; echo held; exec sleep 100")
        .current_dir(team.fixture.mount(1))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    child
}

// P12.6
#[test]
fn whoever_holds_a_descriptor_keeps_the_record_and_does_nothing_else() {
    let team = bob_has("1s");
    let file = fs::File::open(team.fixture.mount(1).join(".workfs/hold/t-1")).unwrap();
    std::thread::park_timeout(Duration::from_millis(2500));
    assert!(team.work(0).join("assigned/bob/t-1.yaml").exists());
    assert_eq!(team.fixture.ledger().names("t-1"), ["created", "claimed"]);
    drop(file);
    let released = await_event(&team, "t-1", "released");
    assert_eq!((&released["actor"], &released["role"]), (&"bob".into(), &"agent".into()));
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    team.fixture.fsck_clean();
}

/// How many files the daemon has open for somebody.
fn open_files(team: &Team) -> u64 {
    let metrics = fs::read_to_string(team.fixture.path(".workfs/metrics")).unwrap();
    let count = metrics.lines().find_map(|line| line.strip_prefix("workfs_open_files "));
    count.unwrap().parse().unwrap()
}

// P12.6
#[test]
fn of_two_that_hold_a_record_the_last_one_gives_it_back() {
    let team = bob_has("4h");
    let hold = || fs::File::open(team.fixture.mount(1).join(".workfs/hold/t-1")).unwrap();
    let (one, other) = (hold(), hold());
    let all = open_files(&team);
    drop(one);
    until_polled("its end is heard of", || (open_files(&team) < all).then_some(()));
    // A change that the daemon makes after what followed from that.
    fs::write(team.work(1).join("notes.md"), "notes").unwrap();
    assert_eq!(team.fixture.ledger().names("t-1"), ["created", "claimed"]);
    drop(other);
    await_event(&team, "t-1", "released");
    team.fixture.fsck_clean();
}

// P12.6
#[test]
fn a_holder_that_is_killed_frees_its_record_within_a_second() {
    prompt(Duration::from_secs(1), || {
        let team = bob_has("4h");
        let mut child = holder(&team);
        let begin = Instant::now();
        send_signal(child.id(), rustix::process::Signal::KILL);
        until_polled("it is free", || team.work(2).join("inbox/t-1.yaml").exists().then_some(()));
        let took = begin.elapsed();
        child.wait().unwrap();
        assert_eq!(team.fixture.ledger().names("t-1"), ["created", "claimed", "released"]);
        took
    });
}

// P12.6
#[test]
fn only_the_owner_holds_and_what_is_finished_is_not_given_back() {
    let team = bob_has("4h");
    let hold = |nth: usize| fs::File::open(team.fixture.mount(nth).join(".workfs/hold/t-1"));
    assert_eq!(errno(hold(2)), Errno::ACCESS);
    let names = fs::read_dir(team.fixture.mount(1).join(".workfs/hold")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["t-1"]);
    let held = hold(1).unwrap();
    team.sh(1, "printf 'result:\\n  summary: done\\n' >> work/assigned/bob/t-1.yaml").success();
    mv(&team.work(1), "t-1", "assigned/bob", "done/bob").unwrap();
    drop(held);
    assert_eq!(errno(hold(1)), Errno::NOENT);
    assert!(team.work(0).join("done/bob/t-1.yaml").exists());
    assert_eq!(team.fixture.ledger().names("t-1").last(), Some(&"completed"));
}

// P12.3 P12.6
#[test]
fn a_hold_from_before_work_was_finished_does_not_give_it_back_when_it_is_reopened() {
    let team = bob_has("4h");
    let held = fs::File::open(team.fixture.mount(1).join(".workfs/hold/t-1")).unwrap();
    team.fixture.workfs(&["done", "t-1", "--summary", "x", "--agent", "bob"]).success();
    mv(&team.work(0), "t-1", "done/bob", "assigned/bob").unwrap();
    let again = fs::File::open(team.fixture.mount(1).join(".workfs/hold/t-1")).unwrap();
    drop(held);
    let leases = || fs::read_to_string(team.fixture.path(".workfs/leases")).unwrap();
    assert!(leases().contains("bob attempt 2"), "{}", leases());
    // What ended first is seen to first.
    drop(again);
    await_event(&team, "t-1", "released");
    let names = team.fixture.ledger();
    assert_eq!(names.names("t-1"), ["created", "claimed", "completed", "reopened", "released"]);
    team.fixture.fsck_clean();
}

// P12.6
#[test]
fn the_end_of_the_mount_is_the_end_of_its_holds() {
    let team = bob_has("4h");
    let dir = team.fixture.mount(1).to_str().unwrap().to_owned();
    let mut child = holder(&team);
    // Taken from sight, it goes on for whoever has it open.
    team.fixture.workfs(&["unmount", "--lazy", &dir]).success();
    assert!(team.work(0).join("assigned/bob/t-1.yaml").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until_polled("it is free", || team.work(0).join("inbox/t-1.yaml").exists().then_some(()));
}

// P12.6
#[test]
fn a_read_only_mount_holds_nothing_and_gives_nothing_back() {
    let team = bob_has("4h");
    let dir = team.fixture.outside("ro");
    fs::create_dir(&dir).unwrap();
    let at = dir.to_str().unwrap();
    team.fixture.workfs(&["mount", at, "--agent", "bob", "-o", "ro"]).success();
    assert_eq!(errno(fs::read(dir.join(".workfs/hold/t-1"))), Errno::ROFS);
    assert!(fs::read_to_string(dir.join(".workfs/leases")).unwrap().contains("bob attempt 1"));
    team.fixture.workfs(&["unmount", at]).success();
    assert_eq!(team.fixture.ledger().names("t-1"), ["created", "claimed"]);
    team.fixture.fsck_clean();
}

// P12.6
#[test]
fn what_cannot_be_given_back_is_its_holder_s_no_more_and_waits_for_its_way() {
    let team = bob_has("4h");
    let hold = fs::File::open(team.fixture.mount(1).join(".workfs/hold/t-1")).unwrap();
    fs::create_dir(team.work(0).join("inbox/t-1.yaml")).unwrap();
    drop(hold);
    await_event(&team, "t-1", "expired");
    let own = team.work(1).join("assigned/bob/t-1.yaml");
    for told in [team.fixture.path(".workfs/leases"), own.with_extension("yaml.why")] {
        let told = fs::read_to_string(told).unwrap();
        assert!(told.contains("goes back when nothing is in its way (`work/inbox/t-1"), "{told}");
    }
    assert_eq!(errno(fs::OpenOptions::new().append(true).open(&own)), Errno::ACCESS);
    assert_eq!(errno(mv(&team.work(1), "t-1", "assigned/bob", "done/bob")), Errno::NOENT);
    team.fixture.workfs(&["heartbeat", "t-1", "--agent", "bob"]).failure();
    team.fixture.fsck_clean();
}

// P12.6 P1.9
#[test]
fn of_two_records_of_one_id_the_own_one_is_held() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    let (all, bob, ann) = (team.work(0), team.work(1), team.work(2));
    for dir in ["collaboration/inbox", "collaboration/assigned/bob"] {
        fs::create_dir_all(all.join(dir)).unwrap();
    }
    for dir in ["inbox", "collaboration/inbox"] {
        save(&all.join(dir).join("t-1.yaml"), Task::new("t-1").text().as_bytes()).unwrap();
    }
    mv(&ann, "t-1", "inbox", "assigned/ann").unwrap();
    mv(&bob, "t-1", "collaboration/inbox", "collaboration/assigned/bob").unwrap();
    let hold = fs::File::open(team.fixture.mount(1).join(".workfs/hold/t-1")).unwrap();
    drop(hold);
    let back = all.join("collaboration/inbox/t-1.yaml");
    until_polled("it is given back", || back.exists().then_some(()));
    assert!(all.join("assigned/ann/t-1.yaml").exists());
    team.fixture.fsck_clean();
}

// P12.6
#[test]
fn a_holder_that_is_killed_while_its_record_has_a_backup_s_name_gives_it_back_too() {
    let team = bob_has("4h");
    let mut child = holder(&team);
    let lane = team.work(1).join("assigned/bob");
    fs::rename(lane.join("t-1.yaml"), lane.join("t-1.yaml~")).unwrap();
    send_signal(child.id(), rustix::process::Signal::KILL);
    await_event(&team, "t-1", "expired");
    assert!(team.work(2).join("inbox/t-1.yaml").exists());
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    child.wait().unwrap();
    team.fixture.fsck_clean();
}
