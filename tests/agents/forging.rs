//! Ways in which somebody inside a mount could act as somebody else. Each ends with an errno, and
//! with a line in `why` and an event.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::harness::{Errno, Task, left_out, needs, save};
use crate::team::{Team, errno, mv};

/// Bob and ann, each with a task of their own.
fn two() -> Team {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    for (nth, (id, name)) in [("t-bob", "bob"), ("t-ann", "ann")].into_iter().enumerate() {
        team.fixture.task("inbox", &Task::new(id));
        mv(&team.work(nth + 1), id, "inbox", &format!("assigned/{name}")).unwrap();
    }
    team
}

/// The ledger says that somebody tried.
#[track_caller]
fn is_told(team: &Team, who: &str) {
    let ledger = team.fixture.ledger();
    let mut told = ledger.0.iter().filter(|event| event.name() == "forbidden");
    assert!(told.any(|event| event.0.to_string().contains(&format!("\"{who}\""))), "{ledger:?}");
}

// P10.5
#[test]
fn another_s_name_in_the_text_is_refused() {
    let team = two();
    let own = team.work(1).join("assigned/bob/t-bob.yaml");
    let text = fs::read_to_string(&own).unwrap();
    let forged = text.replace("agent: bob", "agent: ann");
    assert_ne!(text, forged);
    assert_eq!(save(&own, forged.as_bytes()), Err(Errno::ACCESS));
    assert_eq!(fs::read_to_string(&own).unwrap(), text);
    assert!(team.why(1).contains("W022"), "{}", team.why(1));
    is_told(&team, "bob");
    // A new task in his lane in her name, and a claim by copy in hers.
    let new = Task::new("t-new").text().replace("agent: ", "agent: ann # not ");
    let new = new.replace("status: new", "status: assigned");
    assert_eq!(
        save(&team.work(1).join("assigned/bob/t-new.yaml"), new.as_bytes()),
        Err(Errno::ACCESS)
    );
    team.fixture.task("inbox", &Task::new("t-3"));
    let copy = Task::new("t-3").text().replace("status: new", "status: assigned");
    let copied = save(&team.work(1).join("assigned/ann/t-3.yaml"), copy.as_bytes());
    assert_eq!(copied, Err(Errno::ACCESS));
    assert!(team.work(0).join("inbox/t-3.yaml").exists());
}

// P10.5
#[test]
fn symlinks_and_dots_lead_to_the_same_rules() {
    let team = two();
    let bob = team.work(1);
    let lane = bob.join("assigned/bob");
    symlink("../ann/t-ann.yaml", lane.join("mine")).unwrap();
    symlink("../ann", lane.join("lane")).unwrap();
    let writing = fs::OpenOptions::new().write(true).open(lane.join("mine"));
    assert_eq!(errno(writing), Errno::ACCESS);
    let moved = fs::rename(lane.join("t-bob.yaml"), lane.join("lane/t-bob.yaml"));
    assert_eq!(errno(moved), Errno::ACCESS);
    let dotted = fs::rename(lane.join("t-bob.yaml"), lane.join("../ann/t-bob.yaml"));
    assert_eq!(errno(dotted), Errno::ACCESS);
    // A link in place of a lane is no lane.
    team.fixture.sh("mkdir work/assigned/carol && rmdir work/assigned/carol").success();
    let _ = symlink("bob", bob.join("assigned/carol"));
    let through = fs::rename(lane.join("t-bob.yaml"), bob.join("assigned/carol/t-bob.yaml"));
    // It leads to bob's own lane, and the file is there already.
    assert!(through.is_ok());
    assert!(team.why(1).contains("W022"), "{}", team.why(1));
    is_told(&team, "bob");
}

// P10.5
#[test]
fn hard_links_give_no_second_way() {
    let team = two();
    let bob = team.work(1);
    let hers = bob.join("assigned/ann/t-ann.yaml");
    assert_eq!(errno(fs::hard_link(&hers, bob.join("assigned/bob/x.yaml"))), Errno::PERM);
    assert_eq!(errno(fs::hard_link(&hers, team.fixture.mount(1).join("x"))), Errno::PERM);
    fs::write(team.fixture.mount(1).join("plain"), "x").unwrap();
    let into = fs::hard_link(team.fixture.mount(1).join("plain"), bob.join("assigned/ann/x"));
    assert_eq!(errno(into), Errno::ACCESS);
    assert!(team.why(1).contains("W026"), "{}", team.why(1));
}

// P10.5
#[test]
fn a_descriptor_for_reading_does_not_become_one_for_writing() {
    let team = two();
    let script = "exec 7< work/assigned/ann/t-ann.yaml; echo 'title: mine' >> /proc/self/fd/7";
    let ran = team.sh(1, script).failure();
    assert!(ran.stderr.contains("Permission denied"), "{ran}");
    let root = "echo 'title: mine' >> /proc/self/cwd/work/assigned/ann/t-ann.yaml";
    team.sh(1, root).failure();
    // A directory that is open already is no way either.
    let at = "cd work/assigned/ann; mv /proc/self/cwd/t-ann.yaml ../bob/";
    team.sh(1, at).failure();
    assert!(team.work(0).join("assigned/ann/t-ann.yaml").exists());
}

// P10.5
#[test]
fn lane_directories_are_not_to_be_moved() {
    let team = two();
    let bob = team.work(1);
    let moved = |from: &str, to: &str| errno(fs::rename(bob.join(from), bob.join(to)));
    assert_eq!(moved("assigned/ann", "assigned/eve"), Errno::ACCESS);
    assert_eq!(moved("assigned/bob", "assigned/eve"), Errno::ACCESS);
    assert_eq!(moved("done/ann", "done/eve"), Errno::ACCESS);
    assert_eq!(moved("done/ann", "../mine"), Errno::ACCESS);
    assert_eq!(moved("assigned", "given"), Errno::ACCESS);
    assert_eq!(errno(fs::rename(&bob, team.fixture.mount(1).join("mine"))), Errno::ACCESS);
    assert_eq!(errno(fs::remove_dir(bob.join("done/ann"))), Errno::ACCESS);
    // A directory of his own over her empty lane, and an exchange with it.
    fs::create_dir(team.fixture.mount(1).join("dir")).unwrap();
    let over = fs::rename(team.fixture.mount(1).join("dir"), bob.join("done/ann"));
    assert_eq!(errno(over), Errno::ACCESS);
    let from = team.fixture.mount(1).join("dir");
    let exchange = rustix::fs::RenameFlags::EXCHANGE;
    let (cwd, to) = (rustix::fs::CWD, bob.join("done/ann"));
    let swapped = rustix::fs::renameat_with(cwd, &from, cwd, &to, exchange);
    assert_eq!(swapped.unwrap_err(), rustix::io::Errno::ACCESS);
    assert!(team.work(0).join("done/ann").is_dir());
    assert!(team.why(1).contains("W022"), "{}", team.why(1));
    is_told(&team, "bob");
    team.fixture.fsck_clean();
}

// P10.5
#[test]
fn giving_away_files_changes_no_owner_of_a_record() {
    let team = two();
    // The file's user is one thing, whose task it is another: the lane says that.
    team.sh(1, "chown 64003 work/assigned/bob/t-bob.yaml").success();
    team.sh(1, "chown 64003 work/assigned/ann/t-ann.yaml").failure();
    let ledger = team.fixture.ledger();
    assert_eq!(ledger.of_record("t-bob").len(), 2);
    assert_eq!(errno(mv(&team.work(2), "t-bob", "assigned/bob", "assigned/ann")), Errno::ACCESS);
}

// P10.5
#[test]
fn another_s_task_is_not_changed_by_its_attributes_or_by_an_exchange() {
    let team = two();
    let bob = team.work(1);
    let (own, hers) = (bob.join("assigned/bob/t-bob.yaml"), bob.join("assigned/ann/t-ann.yaml"));
    let text = fs::read_to_string(&hers).unwrap();
    let exchange = rustix::fs::RenameFlags::EXCHANGE;
    let cwd = rustix::fs::CWD;
    let swapped = rustix::fs::renameat_with(cwd, &own, cwd, &hers, exchange).unwrap_err();
    assert!([Errno::ACCESS, Errno::PERM].contains(&swapped), "{swapped}");
    for command in [
        "chmod 777 work/assigned/ann/t-ann.yaml",
        "touch -d yesterday work/assigned/ann/t-ann.yaml",
        "truncate -s 0 work/assigned/ann/t-ann.yaml",
        "rm -f work/assigned/ann/t-ann.yaml",
        "ln -sf x work/assigned/ann/t-ann.yaml",
        "cp work/assigned/bob/t-bob.yaml work/assigned/ann/",
        "cd /proc/self/cwd/work/assigned/ann && mv t-ann.yaml ../../done/bob/",
    ] {
        let ran = team.sh(1, command).failure();
        assert!(ran.stderr.contains("ermission denied"), "{ran}");
    }
    assert_eq!(fs::read_to_string(&hers).unwrap(), text);
    assert!(team.why(1).contains("W022"), "{}", team.why(1));
    is_told(&team, "bob");
    assert_eq!(team.fixture.ledger().of_record("t-ann").len(), 2);
    team.fixture.fsck_clean();
}

// P10.2 P10.5
#[test]
fn root_of_a_name_space_of_users_is_who_it_was() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv", "unshare"]) {
        return left_out("acting as another user needs root, setpriv and unshare");
    }
    let team = Team::with(&[("ann", "")], &[]);
    let fixture = &team.fixture;
    // A plain mount that everybody may use: its maker is the operator.
    let plain = fixture.outside("plain");
    fs::create_dir(&plain).unwrap();
    fixture.workfs(&["mount", plain.to_str().unwrap(), "-o", "allow_other"]).success();
    for dir in [fixture.base(), &fixture.outside("")] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fixture.sh("mkdir work/assigned/bob; chmod -R a+rwX work").success();
    fixture.workfs(&["agent", "add", "bob", "--uid", "64001"]).success();
    for id in ["t-1", "t-2"] {
        fixture.task("inbox", &Task::new(id));
    }
    mv(&team.work(1), "t-2", "inbox", "assigned/ann").unwrap();
    let user = "setpriv --reuid 64001 --regid 64001 --clear-groups";
    let as_root = |command: &str| {
        let inside = format!("unshare --user --map-root-user bash -c '{command}'");
        fixture.sh(&format!("cd {} && {user} {inside}", plain.display()))
    };
    if as_root("test $(id -u) = 0").code != 0 {
        return left_out("this machine gives users no name spaces");
    }
    as_root("mv work/assigned/ann/t-2.yaml work/inbox/").failure();
    as_root("mv work/inbox/t-1.yaml work/assigned/ann/").failure();
    as_root("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let ledger = fixture.ledger();
    let claimed = &ledger.of_record("t-1")[1];
    assert_eq!((claimed.text("actor"), claimed.text("role")), ("bob", "agent"));
    assert_eq!(ledger.of_record("t-2").len(), 2);
    fixture.workfs(&["unmount", plain.to_str().unwrap()]).success();
}

// P10.5
#[test]
fn who_tries_in_a_loop_does_not_fill_the_ledger() {
    let team = two();
    let (from, to) = ("assigned/ann", "assigned/bob");
    for _ in 0..20 {
        assert_eq!(errno(mv(&team.work(1), "t-ann", from, to)), Errno::ACCESS);
    }
    let ledger = team.fixture.ledger();
    let told = ledger.0.iter().filter(|event| event.name() == "forbidden");
    let told: Vec<_> = told.map(|event| &event.0["payload"]).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["operation"], &told[0]["rule"]), (&"rename".into(), &"W022".into()));
    team.fixture.fsck_clean();
}
