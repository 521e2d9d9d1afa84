//! A claim holds for as long as its owner shows life, and no longer.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use workfs::numbers::UnixNanos;

use crate::harness::{
    DEADLINE, Errno, Event, Setup, Task, close, left_out, needs, run, save, until_polled,
};
use crate::team::{Team, errno, mv};

/// Waits until something has happened to a record.
#[track_caller]
pub fn await_event(team: &Team, id: &str, name: &str) -> serde_json::Value {
    until_polled(&format!("{name} of {id}"), || {
        let events = fs::read_to_string(team.fixture.path(".workfs/events")).unwrap();
        let mut lines =
            events.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
        lines.find(|event| event["id"] == id && event["event"] == name)
    })
}

/// Bob has `t-1`, with a lease of its own length.
#[track_caller]
pub fn bob_has(lease: &str) -> Team {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    let task = Task::new("t-1").with(&format!("lease: {lease}\n"));
    team.fixture.task("inbox", &task);
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    team
}

/// What an event says of its record, at some path.
fn said(event: &Event) -> String {
    let payload = &event.0["payload"];
    assert!(payload["path"].is_string(), "{payload}");
    let owner = payload["owner"].as_str().unwrap_or("-");
    format!(
        "{} {} {owner} {}",
        event.name(),
        payload["state"].as_str().unwrap(),
        payload["attempt"]
    )
}

// P12.1 P5.1
#[test]
fn a_claim_without_a_sign_of_life_ends_and_another_can_have_it() {
    let team = bob_has("1s");
    let begin = Instant::now();
    let warned = await_event(&team, "t-1", "lease_ending");
    assert_eq!((&warned["payload"]["owner"], &warned["role"]), (&"bob".into(), &"daemon".into()));
    let expired = await_event(&team, "t-1", "expired");
    assert!(begin.elapsed() > Duration::from_millis(700), "{:?}", begin.elapsed());
    assert_eq!(expired["payload"]["state"], "inbox");
    assert_eq!(expired["payload"]["from"], "assigned");
    let text = fs::read_to_string(team.work(2).join("inbox/t-1.yaml")).unwrap();
    assert!(text.contains("last_error:") && text.contains("lease of bob ran out"), "{text}");
    assert!(text.contains("not_before:") && text.contains("status: new"), "{text}");
    assert!(fs::read_to_string(team.fixture.path(".workfs/leases")).unwrap().contains("nobody"));
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    let leases = fs::read_to_string(team.fixture.path(".workfs/leases")).unwrap();
    assert!(leases.contains("ann attempt 2 work/assigned/ann/t-1.yaml"), "{leases}");
    // Away to a backup's name, back, and gone: each event says where it is, or was last, and whose.
    let lane = team.work(2).join("assigned/ann");
    fs::rename(lane.join("t-1.yaml"), lane.join("t-1.yaml~")).unwrap();
    fs::rename(lane.join("t-1.yaml~"), lane.join("t-1.yaml")).unwrap();
    fs::remove_file(lane.join("t-1.yaml")).unwrap();
    let ledger = team.fixture.ledger();
    let told: Vec<String> = ledger.of_record("t-1").into_iter().map(said).collect();
    let wanted = [
        "created inbox - 0",
        "claimed assigned bob 1",
        "lease_ending assigned bob 1",
        "expired inbox - 1",
        "claimed assigned ann 2",
        "renamed assigned ann 2",
        "renamed assigned ann 2",
        "removed assigned ann 2",
    ];
    assert_eq!(told, wanted);
    team.fixture.fsck_clean();
}

// P12.1 P12.5
#[test]
fn without_a_daemon_a_lease_that_is_over_is_in_nobody_s_way() {
    let team = bob_has("1s");
    team.fixture.unmount_all();
    // A second of its own, and one more for its owner, who could not show life.
    let end = Instant::now() + Duration::from_millis(2500);
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
    assert!(!team.fixture.workfs(&["list"]).success().stdout.contains("bob"));
    // It comes back with a time before which nobody has it.
    let claimed = team.fixture.workfs(&["claim", "t-1", "--agent", "ann"]);
    assert!(!claimed.stderr.contains("bob has"), "{claimed}");
    assert!(team.fixture.ledger().names("t-1").contains(&"expired"));
}

// P12.5
#[test]
fn a_command_in_another_time_name_space_ends_no_lease() {
    let other = ["--time", "--monotonic", "20000", "--fork", "--"];
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(other);
        unshare
    };
    if !needs(&["unshare"]) || !run(unshare().arg("true")).ok() {
        return left_out("there can be no other time name space");
    }
    let team = bob_has("4h");
    team.fixture.unmount_all();
    team.fixture.await_no_daemon();
    let has = || team.fixture.workfs(&["list"]).success().stdout.contains("bob");
    assert!(has());
    let status = team.fixture.command(&["status"]);
    let mut elsewhere = unshare();
    elsewhere.arg(status.get_program()).args(status.get_args());
    elsewhere.envs(status.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(&mut elsewhere).success();
    assert!(has());
    assert_eq!(team.fixture.ledger().names("t-1").last(), Some(&"claimed"));
}

// P12.2
#[test]
fn whatever_the_owner_does_through_its_mount_keeps_its_lease() {
    // Only reading, and something else than the record.
    keeps_its_lease(|team| drop(fs::metadata(team.work(1).join("nothing"))));
}

// P12.2
#[test]
fn asking_for_free_space_keeps_the_lease() {
    keeps_its_lease(|team| assert!(rustix::fs::statvfs(team.fixture.mount(1)).is_ok()));
}

fn keeps_its_lease(does: impl Fn(&Team)) {
    let team = kept_through(3, 1, |_| (), does);
    await_event(&team, "t-1", "expired");
}

/// What bob has with a lease of so many seconds, and keeps through more by what he `does` each tenth of a second. Where a
/// busy machine keeps this process from it for half of the quarter of the lease in which it must be heard it begins anew:
/// it may have kept the daemon from listening as long.
#[track_caller]
fn kept_through(seconds: u64, lease: u64, prepare: impl Fn(&Team), does: impl Fn(&Team)) -> Team {
    let (end, most) = (Instant::now() + DEADLINE, Duration::from_secs(lease) / 8);
    while Instant::now() < end {
        let team = bob_has(&format!("{lease}s"));
        let (begin, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
        prepare(&team);
        while begin.elapsed() < Duration::from_secs(seconds) {
            does(&team);
            longest = longest.max(last.elapsed());
            last = Instant::now();
            std::thread::park_timeout(Duration::from_millis(100));
        }
        let is_there = team.work(0).join("assigned/bob/t-1.yaml").exists();
        let ledger = team.fixture.ledger();
        if longest.max(last.elapsed()) < most {
            assert!(is_there);
            assert_eq!(ledger.names("t-1"), ["created", "claimed"], "no event tells of a renewal");
            return team;
        }
    }
    panic!("the machine was too busy to show life in time");
}

// P12.2
#[test]
fn what_the_kernel_answers_from_its_cache_keeps_the_owner_s_lease_too() {
    let plain = |team: &Team| team.fixture.mount(1).join("notes");
    // Of most of these no daemon hears.
    let looks = |team: &Team| assert!(fs::metadata(plain(team)).unwrap().is_dir());
    kept_through(9, 4, |team| fs::create_dir(plain(team)).unwrap(), looks);
}

// P12.2
#[test]
fn a_user_who_is_an_agent_keeps_its_lease_through_a_plain_mount_by_reading() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other"]).start();
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(fixture.base(), everybody).unwrap();
    fixture.sh("chmod -R a+rwX work").success();
    fixture.workfs(&["agent", "add", "bob", "--uid", "64001"]).success();
    fixture.task("inbox", &Task::new("t-1").with("lease: 1s\n"));
    let as_bob = |command: &str| {
        let user = "setpriv --reuid 64001 --regid 64001 --clear-groups";
        fixture.sh(&format!("{user} bash -c '{command}'")).success();
    };
    as_bob("mv work/inbox/t-1.yaml work/assigned/bob/");
    as_bob(
        "end=$((SECONDS + 3)); while ((SECONDS < end)); do [ -e work/nothing ]; sleep 0.1; done",
    );
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
    let team = Team { fixture, arguments: Vec::new() };
    await_event(&team, "t-1", "expired");
}

// P12.3
#[test]
fn after_the_end_the_old_owner_s_saves_and_moves_are_refused() {
    let team = bob_has("1s");
    let bob = team.work(1);
    let own = bob.join("assigned/bob/t-1.yaml");
    let text = fs::read_to_string(&own).unwrap();
    let mut open = fs::OpenOptions::new().write(true).truncate(true).open(&own).unwrap();
    await_event(&team, "t-1", "expired");
    // What was open.
    assert_eq!(errno(open.write_all(text.replace("normal", "high").as_bytes())), Errno::STALE);
    assert_eq!(close(open), Err(Errno::STALE));
    // What is moved, saved by name, saved by a rename over, claimed by writing it again.
    assert_eq!(errno(mv(&bob, "t-1", "assigned/bob", "done/bob")), Errno::NOENT);
    assert_eq!(errno(fs::OpenOptions::new().append(true).open(&own)), Errno::NOENT);
    fs::write(bob.join("assigned/bob/x.tmp"), &text).unwrap();
    let late = fs::rename(bob.join("assigned/bob/x.tmp"), &own);
    assert!(late.is_err(), "a late save was taken as a claim");
    assert!(save(&own, text.as_bytes()).is_err());
    let now = fs::read_to_string(team.work(0).join("inbox/t-1.yaml")).unwrap();
    assert!(!now.contains("priority: high"), "{now}");
    assert!(team.why(1).contains("W035"), "{}", team.why(1));
    // He may have it again, as anybody.
    mv(&bob, "t-1", "inbox", "assigned/bob").unwrap();
    let ledger = team.fixture.ledger();
    let last = ledger.of_record("t-1").pop().unwrap().clone();
    assert_eq!((last.name(), &last.0["payload"]["attempt"]), ("claimed", &2.into()));
    team.fixture.fsck_clean();
}

// P12.2 P12.3
#[test]
fn after_the_end_the_old_owner_s_changes_of_attributes_are_refused_and_renew_nothing() {
    let team = bob_has("1s");
    let (operator, bob) = (team.work(0), team.work(1));
    let own = bob.join("assigned/bob/t-1.yaml");
    let mut read = fs::File::open(&own).unwrap();
    // Who does not read at once may have mapped it, and whoever writes gets another inode then.
    let _ = read.read(&mut [0]).unwrap();
    let open = fs::OpenOptions::new().write(true).open(&own).unwrap();
    // There it would go back to, so that it stays where it is.
    fs::create_dir(operator.join("inbox/t-1.yaml")).unwrap();
    await_event(&team, "t-1", "expired");
    let mode = || fs::metadata(operator.join("assigned/bob/t-1.yaml")).unwrap().mode() & 0o777;
    let before = mode();
    let all = fs::Permissions::from_mode(0o777);
    assert_eq!(errno(fs::set_permissions(&own, all.clone())), Errno::ACCESS);
    assert_eq!(errno(read.set_permissions(all.clone())), Errno::ACCESS);
    assert_eq!(errno(read.set_modified(SystemTime::now())), Errno::ACCESS);
    let key = c"user.note";
    let set = rustix::fs::setxattr(&own, key, b"x", rustix::fs::XattrFlags::empty());
    assert_eq!(set, Err(Errno::ACCESS));
    assert_eq!(errno(open.set_len(0)), Errno::STALE);
    assert_eq!(mode(), before);
    assert!(team.why(1).contains("W035"), "{}", team.why(1));
    // It went to somebody else, whose lease bob's touch does not renew.
    fs::remove_dir(operator.join("inbox/t-1.yaml")).unwrap();
    mv(&operator, "t-1", "assigned/bob", "assigned/ann").unwrap();
    assert_eq!(errno(read.set_modified(SystemTime::now())), Errno::ACCESS);
    assert_eq!(errno(read.set_permissions(all)), Errno::ACCESS);
    team.fixture.fsck_clean();
}

// P12.4
#[test]
fn after_so_many_attempts_a_record_is_given_up_and_says_why() {
    let team = bob_has("1s");
    for attempt in 1..5 {
        until_polled("it falls back", || {
            team.work(0).join("inbox/t-1.yaml").exists().then_some(())
        });
        let events = team.fixture.ledger();
        let expired = events.of_record("t-1").iter().filter(|e| e.name() == "expired").count();
        assert_eq!(expired, attempt);
        mv(&team.work(0), "t-1", "inbox", "assigned/bob").unwrap();
    }
    until_polled("it is given up", || team.work(0).join("dead/t-1.yaml").exists().then_some(()));
    let text = fs::read_to_string(team.work(0).join("dead/t-1.yaml")).unwrap();
    assert!(text.contains("(attempt 5)"), "{text}");
    mv(&team.work(0), "t-1", "dead", "inbox").unwrap();
    team.fixture.fsck_clean();
}

// P12.5
#[test]
fn what_is_told_of_leases_after_a_start_is_the_end_that_counts() {
    let team = bob_has("5s");
    let told = || {
        let leases = fs::read_to_string(team.fixture.path(".workfs/leases")).unwrap();
        let shown = team.fixture.workfs(&["show", "t-1", "--json"]).success().json();
        let until = leases.split(' ').next().unwrap().to_owned();
        assert_eq!(shown["lease_until"], until, "{leases}");
        until
    };
    let before = told();
    std::thread::sleep(Duration::from_secs(3));
    team.fixture.kill_daemon();
    team.fixture.mount_at(team.fixture.root()).success();
    let after = told();
    assert!(after > before, "it has some time more: {before}, {after}");
    let expired = await_event(&team, "t-1", "expired");
    assert!(expired["at"].as_str().unwrap()[..19] >= after[..19], "{expired}");
    team.fixture.fsck_clean();
}

// P12.2 P12.5
#[test]
fn signs_of_life_count_also_where_their_mount_or_the_daemon_has_ended_since() {
    let team = bob_has("1h");
    let until = || {
        let leases = fs::read_to_string(team.fixture.path(".workfs/leases")).unwrap();
        UnixNanos::parse_rfc3339(leases.split(' ').next().unwrap()).unwrap()
    };
    let claimed = until();
    std::thread::sleep(Duration::from_secs(3));
    fs::read(team.work(1).join("assigned/bob/t-1.yaml")).unwrap();
    // Ann's goes last.
    team.fixture.unmount_all();
    team.fixture.await_no_daemon();
    team.fixture.mount_at(team.fixture.root()).success();
    let now = until();
    assert!(now.0 - claimed.0 >= 2_000_000_000, "{claimed:?} {now:?}");
    team.fixture.fsck_clean();
}

// P12.5
#[test]
fn leases_go_on_after_a_crash_and_a_new_start() {
    let team = bob_has("3s");
    team.fixture.kill_daemon();
    team.fixture.mount_at(team.fixture.root()).success();
    let leases = fs::read_to_string(team.fixture.path(".workfs/leases")).unwrap();
    assert!(leases.contains("bob attempt 1"), "{leases}");
    await_event(&team, "t-1", "expired");
    team.fixture.fsck_clean();
}

// P12.1 P12.7 P11.11
#[test]
fn a_quota_of_where_a_record_would_go_back_to_keeps_nobody_s_lease_alive() {
    let layout =
        "workspaces:\n  - { path: ., kind: task }\nquotas:\n  - { path: inbox, inodes: 2 }\n";
    let fixture = Setup::default().mounts(2).prepare();
    let file = fixture.outside("layout.yaml");
    fs::write(&file, layout).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    fixture.mount_at(fixture.root()).success();
    fixture.workfs(&["agent", "add", "bob"]).success();
    fixture.workfs(&["mount", fixture.mount(1).to_str().unwrap(), "--agent", "bob"]).success();
    let claim = "mkdir -p inbox assigned/bob; printf 'lease: 6s\\n' > inbox/a.yaml
                 mv inbox/a.yaml assigned/bob/ && : > b && mv b inbox/notes";
    fixture.sh(claim).success();
    until_polled("the end", || {
        let told = fixture.sh("cat .workfs/leases").success().stdout;
        told.contains("`inbox` may hold 2 files and directories").then_some(())
    });
    let late = fixture.mount(1).join("assigned/bob/a.yaml");
    assert_eq!(errno(fs::OpenOptions::new().append(true).open(late)), Errno::ACCESS);
    // Whoever acts for others sends it back when there is room.
    fixture
        .sh("rm inbox/notes; echo '# mended' >> assigned/bob/a.yaml; cat inbox/a.yaml")
        .success();
    fixture.fsck_clean();
}
