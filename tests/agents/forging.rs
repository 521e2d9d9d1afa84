//! Ways in which somebody inside a mount could act as somebody else. Each ends with an errno, and
//! with a line in `why` and an event.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::harness::{Errno, Event, Task, left_out, needs, save};
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

/// The ledger says that bob tried this, at this path from the workspace.
#[track_caller]
fn is_told(team: &Team, path: &str) {
    let path = match path.strip_prefix("../") {
        Some(outside) => outside.to_owned(),
        None => format!("work/{path}").trim_end_matches('/').to_owned(),
    };
    let told = team.forbidden_to("bob");
    assert!(told.contains(&path), "{path}: {told:?}");
}

// P10.5
#[test]
fn nothing_is_made_under_the_name_of_another_s_lane() {
    let team = two();
    let work = team.work(1);
    let own = work.join("assigned/bob");
    fs::write(work.join("../plain"), "x").unwrap();
    let link = |to: &str| std::os::unix::fs::symlink("bob", work.join(to));
    assert_eq!(errno(link("assigned/dave")), Errno::ACCESS);
    assert_eq!(errno(fs::write(work.join("assigned/dave"), "x")), Errno::ACCESS);
    let moved = |to: &str| fs::rename(work.join("../plain"), work.join(to));
    assert_eq!(errno(moved("assigned/erin")), Errno::ACCESS);
    let linked = fs::hard_link(work.join("../plain"), work.join("assigned/fay"));
    assert_eq!(errno(linked), Errno::ACCESS);
    assert_eq!(errno(link("done/dave")), Errno::ACCESS);
    assert!(own.exists() && !work.join("assigned/dave").exists());
    is_told(&team, "assigned/dave");
    is_told(&team, "done/dave");
}

// P10.5
#[test]
fn nothing_comes_under_the_name_of_another_s_lane_by_an_exchange() {
    let team = two();
    let work = team.work(1);
    // Of nobody's it is an ordinary name beside records, as `notes` is.
    fs::create_dir(work.join("dir")).unwrap();
    symlink("../assigned/bob", work.join("link")).unwrap();
    fs::write(work.join("done/dave"), "x").unwrap();
    let exchange = |a: &str, b: &str| {
        let (a, b, flags) = (work.join(a), work.join(b), rustix::fs::RenameFlags::EXCHANGE);
        rustix::fs::renameat_with(rustix::fs::CWD, a, rustix::fs::CWD, b, flags)
    };
    for other in ["dir", "link"] {
        assert_eq!(exchange("done/dave", other), Err(Errno::ACCESS), "{other}");
        assert_eq!(exchange(other, "done/dave"), Err(Errno::ACCESS), "{other}");
    }
    is_told(&team, "done/dave");
    assert_eq!(fs::read_to_string(work.join("done/dave")).unwrap(), "x");
    team.fixture.fsck_clean();
}

// P10.5
#[test]
fn no_file_takes_the_name_of_a_lane_that_an_agent_has_not_made_yet() {
    let team = two();
    team.fixture.workfs(&["agent", "add", "dave"]).success();
    let work = team.work(1);
    fs::write(work.join("../plain"), "x").unwrap();
    assert_eq!(errno(fs::write(work.join("done/dave"), "x")), Errno::ACCESS);
    assert_eq!(errno(fs::rename(work.join("../plain"), work.join("done/dave"))), Errno::ACCESS);
    assert_eq!(errno(fs::hard_link(work.join("../plain"), work.join("done/dave"))), Errno::ACCESS);
    is_told(&team, "done/dave");
    // Names that are no agent's are ordinary ones there, and records have theirs.
    fs::write(work.join("done/notes"), "x").unwrap();
    fs::rename(work.join("done/notes"), work.join("done/log")).unwrap();
    let done = |id: &str, agent: &str| {
        team.fixture.workfs(&["done", id, "--agent", agent, "--summary", "it works"]).success();
    };
    done("t-bob", "bob");
    team.fixture.task("inbox", &Task::new("t-dave"));
    team.fixture.workfs(&["claim", "t-dave", "--agent", "dave"]).success();
    done("t-dave", "dave");
    assert!(work.join("done/dave/t-dave.yaml").exists());
    team.fixture.fsck_clean();
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
    is_told(&team, "assigned/bob/t-bob.yaml");
    // A new task in his lane in her name, and a claim by copy in hers.
    let new = Task::new("t-new").text().replace("agent: ", "agent: ann # not ");
    let new = new.replace("status: new", "status: assigned");
    assert_eq!(
        save(&team.work(1).join("assigned/bob/t-new.yaml"), new.as_bytes()),
        Err(Errno::ACCESS)
    );
    is_told(&team, "assigned/bob/t-new.yaml");
    team.fixture.task("inbox", &Task::new("t-3"));
    let copy = Task::new("t-3").text().replace("status: new", "status: assigned");
    let copied = save(&team.work(1).join("assigned/ann/t-3.yaml"), copy.as_bytes());
    assert_eq!(copied, Err(Errno::ACCESS));
    is_told(&team, "assigned/ann/t-3.yaml");
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
    is_told(&team, "assigned/ann/t-ann.yaml");
    let moved = fs::rename(lane.join("t-bob.yaml"), lane.join("lane/t-bob.yaml"));
    assert_eq!(errno(moved), Errno::ACCESS);
    is_told(&team, "assigned/ann/t-bob.yaml");
    // The same path is told of once a minute, so by dots it is another.
    team.fixture.task("inbox", &Task::new("t-4"));
    let dotted = fs::rename(bob.join("inbox/t-4.yaml"), lane.join("../ann/t-4.yaml"));
    assert_eq!(errno(dotted), Errno::ACCESS);
    is_told(&team, "assigned/ann/t-4.yaml");
    // Nor is there a link in place of a lane.
    assert_eq!(errno(symlink("bob", bob.join("assigned/carol"))), Errno::ACCESS);
    is_told(&team, "assigned/carol");
    assert!(team.why(1).contains("W022"), "{}", team.why(1));
}

// P10.5
#[test]
fn hard_links_give_no_second_way() {
    let team = two();
    let bob = team.work(1);
    let (own, hers) = (bob.join("assigned/bob/t-bob.yaml"), bob.join("assigned/ann/t-ann.yaml"));
    let link = |from: &Path, to: PathBuf| errno(fs::hard_link(from, to));
    for (from, to) in [
        (&hers, "assigned/bob/x.yaml"),
        (&hers, "assigned/bob/x.txt"),
        (&hers, "../x"),
        (&own, "assigned/bob/y.yaml"),
        (&own, "../y"),
    ] {
        assert_eq!(link(from, bob.join(to)), Errno::PERM);
        is_told(&team, to);
    }
    assert!(team.why(1).contains("W026"), "{}", team.why(1));
    // Nor is a file with a second name to become a record.
    let plain = team.fixture.mount(1).join("plain");
    fs::write(&plain, Task::new("t-7").text()).unwrap();
    assert_eq!(link(&plain, bob.join("assigned/ann/x")), Errno::ACCESS);
    is_told(&team, "assigned/ann/x");
    fs::hard_link(&plain, team.fixture.mount(1).join("second")).unwrap();
    assert_eq!(errno(fs::rename(&plain, bob.join("inbox/t-7.yaml"))), Errno::PERM);
    is_told(&team, "inbox/t-7.yaml");
    team.fixture.fsck_clean();
}

// P10.5
#[test]
fn a_descriptor_for_reading_does_not_become_one_for_writing() {
    let team = two();
    let script = "exec 7< work/assigned/ann/t-ann.yaml; echo 'title: mine' >> /proc/self/fd/7";
    let ran = team.sh(1, script).failure();
    assert!(ran.stderr.contains("ermission denied"), "{ran}");
    is_told(&team, "assigned/ann/t-ann.yaml");
}

// P10.5
#[test]
fn the_ways_of_proc_lead_to_the_same_rules() {
    let team = two();
    for (id, _) in [("t-5", ""), ("t-6", "")] {
        team.fixture.task("inbox", &Task::new(id));
        mv(&team.work(2), id, "inbox", "assigned/ann").unwrap();
    }
    for (script, path) in [
        ("echo 'title: mine' >> /proc/self/cwd/work/assigned/ann/t-ann.yaml", "t-ann.yaml"),
        // A directory that is open already is no way either.
        ("cd work/assigned/ann; mv /proc/self/cwd/t-5.yaml ../bob/", "t-5.yaml"),
        ("exec 7< work/assigned/ann; rm -f /proc/self/fd/7/t-6.yaml", "t-6.yaml"),
        ("cd work/assigned/ann; mv ../bob/t-bob.yaml /proc/self/cwd/", "t-bob.yaml"),
    ] {
        let ran = team.sh(1, script).failure();
        assert!(ran.stderr.contains("ermission denied"), "{ran}");
        is_told(&team, &format!("assigned/ann/{path}"));
    }
    for id in ["t-ann", "t-5", "t-6"] {
        assert!(team.work(0).join(format!("assigned/ann/{id}.yaml")).exists());
    }
    team.fixture.fsck_clean();
}

// P10.5
#[test]
fn lane_directories_are_not_to_be_moved() {
    let team = two();
    let bob = team.work(1);
    // Each ends with the event of a path that nothing was told of before.
    for lane in ["done/carol", "done/dora", "done/ed", "done/fay"] {
        fs::create_dir(team.work(0).join(lane)).unwrap();
    }
    let moved = |from: &str, to: &str, told: &str| {
        assert_eq!(errno(fs::rename(bob.join(from), bob.join(to))), Errno::ACCESS, "{from} {to}");
        is_told(&team, told);
    };
    moved("assigned/ann", "assigned/eve", "assigned/ann");
    moved("assigned/bob", "assigned/eve", "assigned/eve");
    moved("done/ann", "done/eve", "done/ann");
    moved("done/carol", "../mine", "done/carol");
    moved("assigned", "given", "assigned");
    assert_eq!(errno(fs::rename(&bob, team.fixture.mount(1).join("mine"))), Errno::ACCESS);
    is_told(&team, "");
    assert_eq!(errno(fs::remove_dir(bob.join("done/dora"))), Errno::ACCESS);
    is_told(&team, "done/dora");
    // A directory of his own over an empty lane of another, and an exchange with one.
    let own = team.fixture.mount(1).join("dir");
    fs::create_dir(&own).unwrap();
    assert_eq!(errno(fs::rename(&own, bob.join("done/ed"))), Errno::ACCESS);
    is_told(&team, "done/ed");
    let exchange = rustix::fs::RenameFlags::EXCHANGE;
    let (cwd, to) = (rustix::fs::CWD, bob.join("done/fay"));
    let swapped = rustix::fs::renameat_with(cwd, &own, cwd, &to, exchange);
    assert_eq!(swapped.unwrap_err(), rustix::io::Errno::ACCESS);
    is_told(&team, "done/fay");
    assert!(team.work(0).join("done/ann").is_dir());
    assert!(team.why(1).contains("W022"), "{}", team.why(1));
    team.fixture.fsck_clean();
}

// P10.5
#[test]
fn giving_away_files_changes_no_owner_of_a_record() {
    let team = two();
    // The file's user is one thing, whose task it is another: the lane says that.
    team.sh(1, "chown 64003 work/assigned/bob/t-bob.yaml").success();
    team.sh(1, "chown 64003 work/assigned/ann/t-ann.yaml").failure();
    is_told(&team, "assigned/ann/t-ann.yaml");
    let ledger = team.fixture.ledger();
    assert_eq!(ledger.of_record("t-bob").len(), 2);
    assert_eq!(errno(mv(&team.work(2), "t-bob", "assigned/bob", "assigned/ann")), Errno::ACCESS);
    let by = |event: &&Event| event.name() == "forbidden" && event.text("actor") == "ann";
    assert_eq!(team.fixture.ledger().0.iter().filter(by).count(), 1);
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
    assert_eq!(swapped, Errno::ACCESS);
    is_told(&team, "assigned/ann/t-ann.yaml");
    // Each at a task of its own, since of one path it is told once a minute.
    let ways = [
        "chmod 777 HERS",
        "touch -d yesterday HERS",
        "truncate -s 0 HERS",
        "rm -f HERS",
        "mv HERS work/done/bob/",
        "chown 64003 HERS",
        "setfattr -n user.x -v y HERS",
    ];
    for (nth, way) in ways.into_iter().enumerate() {
        let id = format!("t-way-{nth}");
        team.fixture.task("inbox", &Task::new(&id));
        mv(&team.work(2), &id, "inbox", "assigned/ann").unwrap();
        let path = format!("assigned/ann/{id}.yaml");
        let ran = team.sh(1, &way.replace("HERS", &format!("work/{path}"))).failure();
        assert!(ran.stderr.contains("ermission denied"), "{ran}");
        is_told(&team, &path);
    }
    team.sh(1, "cp work/assigned/bob/t-bob.yaml work/assigned/ann/").failure();
    is_told(&team, "assigned/ann/t-bob.yaml");
    assert_eq!(fs::read_to_string(&hers).unwrap(), text);
    assert!(team.why(1).contains("W022"), "{}", team.why(1));
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
    is_told(&team, "assigned/ann/t-2.yaml");
    as_root("mv work/inbox/t-1.yaml work/assigned/ann/").failure();
    is_told(&team, "assigned/ann/t-1.yaml");
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

// P10.5
#[test]
fn no_directory_takes_the_place_of_one_of_a_workspace() {
    let team = two();
    let work = team.work(1);
    fs::create_dir(work.join("../own")).unwrap();
    // Both are empty, as what is replaced must be.
    for dir in ["inbox", "fridge"] {
        assert_eq!(errno(fs::rename(work.join("../own"), work.join(dir))), Errno::ACCESS);
        is_told(&team, dir);
    }
    assert!(work.join("../own").exists());
    team.fixture.fsck_clean();
}
