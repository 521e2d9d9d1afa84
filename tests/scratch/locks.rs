//! Lock files with a lease.

use std::time::{Duration, Instant};

use workfs::config::Config;
use workfs::engine::{
    Base, Command, ExpireLocks, Link, Rename, RenameMode, RestoreFile, SetAttributes, Sight,
    TimeOrNow, Write, WriteAt,
};
use workfs::names::{Dentry, FileName};
use workfs::numbers::G;
use workfs::refusal::{Refusal, Rule};

use crate::harness::{Desk, Fixture, SECOND, Setup, Space, until_polled};

const LAYOUT: &str = "workspaces: []
locks:
  - { path: \"**/*.lock\", lease: 2s }
checks:
  - { path: \"**/checked.lock\", syntax: yaml }
";

/// Whether the lock is there still, after those that are over were let go.
fn is_locked(desk: &Desk) -> bool {
    desk.act("bob", ExpireLocks).unwrap();
    desk.at_path("a.lock").is_some()
}

/// The operator does this.
fn by(desk: &Desk, command: impl Command) -> Result<(), Refusal> {
    desk.engine().run(Desk::operator(), command).map(drop)
}

// P11.10
#[test]
fn the_wall_clock_ends_no_lock_s_lease_and_makes_none_longer() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  locks: [{ path: \"**/*.lock\", lease: 2m }]";
    let mut desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    desk.make("a.lock");
    for days in [400, -800, 1] {
        desk.set_wall(days * 86_400 * SECOND as i64);
        assert!(is_locked(&desk), "{days}");
    }
    // In another boot, too, whose wall clock begins earlier: no time has passed.
    desk.pass(40 * SECOND);
    desk.restart(false);
    desk.set_wall(-3600 * SECOND as i64);
    desk.restart(true);
    desk.pass(79 * SECOND);
    assert!(is_locked(&desk));
    desk.pass(SECOND);
    assert!(!is_locked(&desk));
    desk.fsck_clean();
}

// P11.10
#[test]
fn a_lock_is_kept_by_a_touch_and_not_by_its_mode_or_owner() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  locks: [{ path: \"**/*.lock\", lease: 60s }]";
    let desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    let name = FileName::new("a.lock").unwrap();
    let keeps = |set: fn(SetAttributes) -> SetAttributes| {
        desk.make("a.lock");
        let found = desk.read(|read| read.lookup(read.workspaces()?[0].dir.unwrap(), &name));
        let ino = found.unwrap().ino;
        desk.pass(40 * SECOND);
        desk.engine().run(Desk::operator(), set(SetAttributes::none(ino))).unwrap();
        desk.pass(40 * SECOND);
        let is = is_locked(&desk);
        desk.pass(40 * SECOND);
        assert!(!is_locked(&desk), "in the end it goes");
        is
    };
    assert!(!keeps(|none| SetAttributes { mode: Some(0o640), ..none }));
    assert!(!keeps(|none| SetAttributes { uid: Some(0), gid: Some(0), ..none }));
    assert!(!keeps(|none| SetAttributes { is_chown: true, ..none }));
    assert!(keeps(|none| SetAttributes { mtime: Some(TimeOrNow::Now), ..none }));
    assert!(keeps(|none| SetAttributes { atime: Some(TimeOrNow::Now), ..none }));
    assert!(keeps(|none| SetAttributes { size: Some(3), ..none }));
    desk.fsck_clean();
}

// P11.10
#[test]
fn a_lock_that_is_over_is_not_kept_by_what_comes_later_also_after_a_full_disk() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  locks: [{ path: \"**/*.lock\", lease: 60s }]";
    let desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    let lookup = |name: &str| {
        let name = FileName::new(name).unwrap();
        desk.read(|read| read.lookup(read.workspaces()?[0].dir.unwrap(), &name))
    };
    let touch = |ino| SetAttributes { mtime: Some(TimeOrNow::Now), ..SetAttributes::none(ino) };
    // What takes no more than a removal is made as that is.
    desk.make("a.lock");
    desk.leave(Space::Tight);
    desk.pass(60 * SECOND);
    assert!(!is_locked(&desk));
    desk.leave(Space::Room);

    desk.make("a.lock");
    let ino = lookup("a.lock").unwrap().ino;
    desk.leave(Space::Full);
    desk.pass(60 * SECOND);
    assert_eq!(desk.act("bob", ExpireLocks).unwrap_err().rule, Rule::NoSpace);
    desk.leave(Space::Room);
    let parent = desk.read(|read| Ok(read.workspaces()?[0].dir)).unwrap();
    let at = |name| Dentry::of(parent, FileName::new(name).unwrap());
    let (from, to) = (at("a.lock"), at("b.lock"));
    let (mode, sight, name) = (RenameMode::Replace, Sight::Known(Base::Unseen), from.name.clone());
    let rename = Rename { from, to, mode, sight };
    let write = Write { ino, at: WriteAt::End, data: b"mine".to_vec() };
    let cut = SetAttributes { size: Some(3), ..SetAttributes::none(ino) };
    let restore = RestoreFile { parent, name, from_g: G(1), content: b"mine".to_vec() };
    let refused = [
        by(&desk, touch(ino)),
        by(&desk, cut),
        by(&desk, write),
        by(&desk, restore),
        by(&desk, rename),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().rule, Rule::LeaseOver);
    }
    assert!(!is_locked(&desk) && lookup("b.lock").is_none());
    desk.fsck_clean();
}

// P11.10
#[test]
fn what_was_a_lock_and_becomes_one_again_has_its_whole_lease() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  locks: [{ path: \"**/*.lock\", lease: 60s }]";
    let desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    desk.make("a.lock");
    let dir = desk.read(|read| Ok(read.workspaces()?[0].dir)).unwrap();
    let rename = |from: &str, to: &str| {
        let [from, to] = [from, to].map(|name| Dentry::of(dir, FileName::new(name).unwrap()));
        let (mode, sight) = (RenameMode::Replace, Sight::Known(Base::Unseen));
        by(&desk, Rename { from, to, mode, sight }).unwrap();
    };
    rename("a.lock", "kept");
    // Longer than its lease was, and nobody has looked for what is over.
    desk.pass(61 * SECOND);
    rename("kept", "a.lock");
    desk.pass(59 * SECOND);
    assert!(is_locked(&desk));
    desk.pass(SECOND);
    assert!(!is_locked(&desk));
    desk.fsck_clean();
}

// P11.10 P6.5
#[test]
fn a_lock_of_many_names_goes_in_pieces_and_keeps_nobody_waiting() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  locks: [{ path: \"**/*.lock\", lease: 60s }]";
    let desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    desk.make("a.lock");
    let parent = desk.read(|read| Ok(read.workspaces()?[0].dir)).unwrap();
    let file = |name: &str| FileName::new(name).unwrap();
    let ino = desk.read(|read| read.lookup(parent, &file("a.lock"))).unwrap().ino;
    // One that is no lock's keeps the file.
    by(&desk, Link { ino, parent, name: file("kept") }).unwrap();
    for nth in 0..700 {
        by(&desk, Link { ino, parent, name: file(&format!("{nth}.lock")) }).unwrap();
    }
    let names = || desk.read(|read| read.node(ino)).unwrap().nlink;
    desk.pass(60 * SECOND);
    for left in [702 - 256, 702 - 2 * 256] {
        let next = desk.act("bob", ExpireLocks).unwrap();
        assert_eq!((names(), next), (left, Some(desk.engine().lease_now())));
    }
    assert_eq!(desk.act("bob", ExpireLocks), Ok(None));
    assert_eq!(names(), 1);
    assert!(desk.at_path("kept").is_some() && desk.at_path("a.lock").is_none());
    desk.fsck_clean();
}

// P11.10
#[test]
fn a_lock_holds_no_longer_for_a_boot_with_an_earlier_wall_clock() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  locks: [{ path: \"**/*.lock\", lease: 60s }, { path: \"**/*.day\", lease: 1d }]";
    let mut desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    // The daemon has run for long, and what it keeps of its clock is old.
    desk.pass(10 * 86_400 * SECOND);
    desk.make("a.lock");
    desk.set_wall(-30 * 86_400 * SECOND as i64);
    desk.restart(true);
    desk.pass(59 * SECOND);
    assert!(is_locked(&desk), "it has its whole lease again at most, and not less");
    desk.pass(SECOND);
    assert!(!is_locked(&desk));
    desk.fsck_clean();
}

// P11.10
#[test]
fn a_lock_is_not_taken_from_who_could_show_no_life_while_there_was_no_daemon() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  locks: [{ path: \"**/b*.lock\", lease: 10s }, { path: \"**/*.lock\", lease: 5m }]";
    let mut desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    desk.pass(86_400 * SECOND);
    let [a, b, c] = ["a.lock", "b.lock", "c.lock"];
    [a, b, c].iter().for_each(|name| desk.make(name));
    let there = |desk: &Desk| {
        desk.act("bob", ExpireLocks).unwrap();
        [a, b, c].map(|name| desk.at_path(name).is_some())
    };
    // It ended 30 s ago, that of b long ago.
    desk.restart_after(330 * SECOND as i64, false);
    assert_eq!(there(&desk), [true, false, true]);
    desk.make(b);
    desk.pass(29 * SECOND);
    let name = FileName::new(a).unwrap();
    let ino = desk.read(|read| read.lookup(read.workspaces()?[0].dir.unwrap(), &name)).unwrap().ino;
    by(&desk, SetAttributes { mtime: Some(TimeOrNow::Now), ..SetAttributes::none(ino) }).unwrap();
    assert_eq!(there(&desk), [true, false, true], "b has none after a start");
    desk.pass(SECOND);
    assert_eq!(there(&desk), [true, false, false], "no more than a minute after its end");
    // However often a daemon begins: nobody shows that he lives.
    for _ in 0..8 {
        desk.restart_after(45 * SECOND as i64, false);
    }
    assert_eq!(there(&desk), [false; 3]);
    desk.make(b);
    desk.restart_after(15 * SECOND as i64, false);
    desk.pass(4 * SECOND);
    assert_eq!(there(&desk), [false, true, false]);
    desk.pass(SECOND);
    assert_eq!(there(&desk), [false; 3], "the whole lease, if that is shorter");
    desk.fsck_clean();
}

// P11.10 P3.1
#[test]
fn the_backup_of_a_record_is_no_lock() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  locks: [{ path: \"**/*.lock\", lease: 60s }]";
    let desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    desk.put_at("bob", "t-1", "status: assigned\nagent: bob");
    desk.rename_to("bob", "t-1", "t-1.yaml.lock").unwrap();
    desk.make("a.lock");
    desk.pass(61 * SECOND);
    assert!(!is_locked(&desk));
    assert!(desk.at_path("assigned/bob/t-1.yaml.lock").is_some());
    desk.fsck_clean();
}

// P11.10
#[test]
fn a_lock_whose_holder_is_silent_vanishes_with_an_event() {
    let fixture = Setup::default().mounts(2).layout(LAYOUT).start();
    fixture
        .sh("mkdir d; set -C; echo 1 > d/a.lock; echo 1 > d/note; ln d/note d/l.lock; \
            echo 1 > d/one.lock; ln d/one.lock d/two.lock; echo 1 > d/room.lock; echo 1 > d/checked.lock; \
            mkdir d/dir.lock; ln -s 1 d/link.lock")
        .success();
    fixture.sh("set -C; echo 2 > d/a.lock").failure();
    let begin = Instant::now();
    let gone = |name: &str| !fixture.mount(1).join(name).exists();
    let held = ["d/a.lock", "d/l.lock", "d/room.lock", "d/checked.lock"];
    // Touched or written, or given room, it holds.
    while begin.elapsed() < Duration::from_secs(4) {
        fixture
            .sh("touch d/a.lock; echo x >> d/l.lock; fallocate -l 9 d/room.lock; \
                 echo 2 > d/checked.lock; \
                 chmod 640 d/one.lock; sleep 0.3")
            .success();
        assert!(!held.iter().any(|name| gone(name)));
    }
    let begin = Instant::now();
    until_polled("they are gone", || held.iter().all(|name| gone(name)).then_some(()));
    assert!(gone("d/one.lock") && gone("d/two.lock"), "one file of two names");
    assert!(begin.elapsed() > Duration::from_millis(1200), "not before its time");
    let stay = fixture.sh("ls d").success().stdout;
    assert_eq!(stay, "dir.lock\nlink.lock\nnote\n", "only files are locks");
    let ledger = fixture.ledger();
    let expired: Vec<_> = ledger.0.iter().filter(|event| event.name() == "expired").collect();
    assert_eq!(expired.len(), 6);
    assert_eq!(expired[0].text("role"), "daemon");
    fixture
        .sh("set -C; echo 3 > d/a.lock; rm d/a.lock; echo 4 > d/a.lock; mv d/a.lock d/kept; \
                sleep 2.5; cat d/kept")
        .success();
    fixture.fsck_clean();
}

// P11.10
#[test]
fn a_lock_that_comes_with_a_directory_vanishes_too() {
    let layout = LAYOUT.replace("**/*.lock", "s/**/*.lock");
    let fixture = Setup::default().mounts(2).layout(&layout).start();
    fixture
        .sh("mkdir -p s out/d/e other/f; echo 1 | tee out/d/e/in.lock out/d/kept out/out.lock \
             other/f/in.lock; ln out/d/e/in.lock out/second; mv out/d s/d; mv other s/")
        .success();
    let gone = |name: &str| !fixture.mount(1).join(name).exists();
    until_polled("both are gone", || {
        (gone("s/d/e/in.lock") && gone("s/other/f/in.lock")).then_some(())
    });
    fixture.sh("cat s/d/kept out/out.lock out/second").success();
    fixture.fsck_clean();
}

/// Sets the store up anew by these rules, as one does whose mounts are gone for that.
fn init_anew(fixture: &Fixture, locks: &[(&str, &str)]) {
    let rules =
        locks.iter().map(|(glob, lease)| format!("  - {{ path: '{glob}', lease: {lease} }}\n"));
    let layout = fixture.outside("anew.yaml");
    std::fs::write(&layout, format!("workspaces: []\nlocks:\n{}", rules.collect::<String>()))
        .unwrap();
    fixture.unmount_all();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    fixture.mount_all();
}

// P11.10
#[test]
fn a_lock_has_the_lease_that_the_present_rules_say() {
    let fixture = Setup::default().layout("workspaces: []").start();
    fixture.sh("mkdir -p d/e other; touch d/e/stale.lock other/stale.lock other/stale").success();
    init_anew(&fixture, &[("d/**/*.lock", "2s")]);
    let is = |name: &str| fixture.path(name).exists();
    until_polled("one from before the rule is gone", || (!is("d/e/stale.lock")).then_some(()));
    assert!(is("other/stale.lock"), "no rule names it");

    init_anew(
        &fixture,
        &[("*.same", "6s"), ("*.longer", "5s"), ("*.no", "5s"), ("*.shorter", "1h")],
    );
    fixture.sh("touch a.same a.longer a.no a.shorter").success();
    init_anew(&fixture, &[("*.same", "6s"), ("*.longer", "1h"), ("*.shorter", "6s")]);
    until_polled("the shorter one is gone", || (!is("a.shorter")).then_some(()));
    assert!(is("a.longer") && is("a.no"), "what they were given before is over by now");
    let ledger = fixture.ledger();
    let expired = ledger.0.iter().filter(|event| event.name() == "expired");
    let expired: Vec<_> = expired.map(|event| event.0["payload"]["path"].clone()).collect();
    let in_order = ["d/e/stale.lock", "a.same", "a.shorter"];
    assert_eq!(expired, in_order, "a rule that stays begins no lease anew");
    fixture.fsck_clean();
}
