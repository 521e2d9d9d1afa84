//! The store's disk is full.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::harness::{
    Errno, Fixture, Setup, Shell, Task, Worker, Workers, close, left_out, lies, pile, python, save,
    until_polled, whole,
};

/// A small file system of its own; the fixture that has its store there unmounts it.
pub fn small_disk(base: &Path, size: &str) -> Option<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        left_out("mounting a small file system needs root");
        return None;
    }
    let dir = base.join("disk");
    fs::create_dir(&dir).unwrap();
    let shell = Shell::bash(base).with("DIR", &dir).with("SIZE", size);
    shell.run("mount -t tmpfs -o size=$SIZE,mode=700 workfs-test \"$DIR\"").success();
    Some(dir)
}

/// A fixture whose store lies on a small disk, with a ballast that can be thrown off.
pub fn on_small_disk() -> Option<(Fixture, PathBuf)> {
    let mut fixture = Setup::default().prepare();
    let disk = small_disk(fixture.base(), "24m")?;
    fixture.set_store(disk.join("team.db"));
    let ballast = disk.join("ballast");
    fs::write(&ballast, vec![1; 8 << 20]).unwrap();
    fixture.mount_all();
    fixture.make_directories();
    Some((fixture, ballast))
}

fn big_task(nth: usize) -> Task {
    Task::new(&format!("t-{nth:04}")).with(&"# this fills the disk\n".repeat(5000))
}

/// Saves tasks until the disk is full; gives those that were acknowledged.
pub fn fill(fixture: &Fixture) -> Vec<String> {
    fill_from(fixture, 0)
}

/// The same with tasks of other numbers.
fn fill_from(fixture: &Fixture, first: usize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for nth in first..first + 2000 {
        let task = big_task(nth);
        let path = fixture.work().join("inbox").join(task.file());
        match save(&path, task.text().as_bytes()) {
            Ok(()) => acknowledged.push(format!("t-{nth:04}")),
            Err(errno) => {
                assert_eq!(errno, Errno::NOSPC, "a full disk is ENOSPC");
                return acknowledged;
            }
        }
    }
    panic!("the disk does not get full");
}

/// Fills the disk to the last: where the log is moved, which may be a moment later, its room is free once more. With
/// tasks from this number on; gives the next.
fn fill_up(fixture: &Fixture, ballast: &Path, first: usize) -> usize {
    let disk = ballast.parent().unwrap();
    let mut next = first;
    loop {
        let rest = ballast.with_file_name(format!("rest-{next}"));
        Shell::bash(disk).run(&format!("cat /dev/zero > rest-{next}")).failure();
        let saved = fill_from(fixture, next).len();
        // The one that was refused may be a draft.
        next += saved + 1;
        if saved == 0 && fs::metadata(rest).unwrap().len() == 0 {
            return next;
        }
    }
}

#[track_caller]
fn all_are_there(fixture: &Fixture, ids: &[String]) {
    for id in ids {
        let path = fixture.work().join(format!("inbox/{id}.yaml"));
        let text = fs::read(&path).unwrap_or_else(|error| panic!("{id}: {error}"));
        whole(id, &text).unwrap();
    }
}

// P4.3
#[test]
fn a_full_disk_is_enospc_and_loses_nothing() {
    let Some((fixture, ballast)) = on_small_disk() else { return };
    let small = fixture.task("inbox", &Task::new("small"));
    let ids = fill(&fixture);
    assert!(ids.len() > 10, "only {} fit", ids.len());
    all_are_there(&fixture, &ids);
    // It stays so: every change is refused truly or done truly, and reading goes on.
    let mut claimed = 0;
    for id in &ids {
        let from = fixture.work().join(format!("inbox/{id}.yaml"));
        let to = fixture.work().join(format!("assigned/bob/{id}.yaml"));
        match fs::rename(&from, &to) {
            Ok(()) => claimed += 1,
            Err(error) => {
                assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC), "{error}");
                assert!(from.exists() && !to.exists(), "{id}");
            }
        }
    }
    println!("{} saved, {claimed} claimed on the full disk", ids.len());
    let plain = fs::write(fixture.path("plain"), vec![1; 4 << 20]).unwrap_err();
    assert_eq!(Errno::from_io_error(&plain), Some(Errno::NOSPC));
    assert_eq!(fs::read_to_string(&small).unwrap(), Task::new("small").text());
    assert_eq!(fixture.workfs(&["project", "new"]).code, 12);
    let pid = fixture.daemon_pid();

    // Space again: it goes on by itself.
    fs::remove_file(ballast).unwrap();
    fixture.task("inbox", &Task::new("after"));
    fixture.sh("mv work/inbox/after.yaml work/inbox/small.yaml work/assigned/bob/").success();
    assert_eq!(fixture.daemon_pid(), pid, "it is the same daemon");
    let pile = pile(&fixture.work());
    for id in ids.iter().chain(&["after".to_owned(), "small".to_owned()]) {
        lies(&fixture.work(), &pile, id);
    }
    fixture.fsck_clean();
}

// P12.3 P12.7
#[test]
fn a_lease_ends_on_a_full_disk_too_and_nothing_late_is_taken() {
    let Some((fixture, ballast)) = on_small_disk() else { return };
    let bob = fixture.outside("bob");
    fs::create_dir(&bob).unwrap();
    let at = bob.to_str().unwrap();
    fixture.workfs(&["mount", at, "--agent", "bob"]).success();
    let task = Task::new("t-1").with("lease: 10s\n");
    fixture.task("inbox", &task);
    let (own, inbox) = (bob.join("work/assigned/bob/t-1.yaml"), bob.join("work/inbox/t-1.yaml"));
    // On a slow machine it may take longer than the lease does: so it is full before, and has little room for the claim.
    let spare = ballast.with_file_name("spare");
    fs::write(&spare, vec![1; 2 << 20]).unwrap();
    let before = fill(&fixture).len();
    fs::remove_file(spare).unwrap();
    fs::rename(inbox, &own).unwrap();
    // By a process of its own: each that other tests start from this one closes its copies of what is open here, which
    // is a sign of life of bob's.
    let program = r#"
fd = os.open(sys.argv[2] + "/work/assigned/bob/t-1.yaml", os.O_WRONLY | os.O_APPEND)
ready()
try:
    os.write(fd, b"late: true\n")
    os.close(fd)
    say("taken")
except OSError:
    say("refused")
"#;
    let late = Workers::start(&Worker::Python(program), std::slice::from_ref(&bob), &[]);
    fill_up(&fixture, &ballast, before + 1);
    until_polled("its end is told", || {
        let told = fs::read_to_string(fixture.path(".workfs/leases")).unwrap();
        told.contains("over bob's lease").then_some(())
    });
    // Bob is back, and there is room again.
    fs::metadata(&bob).unwrap();
    fixture.workfs(&["heartbeat", "t-1", "--agent", "bob"]).failure();
    fs::remove_file(&own).unwrap_err();
    fs::remove_file(ballast).unwrap();
    assert_eq!(late.go_and_finish()[0].line, "refused");
    fs::OpenOptions::new().append(true).open(&own).unwrap_err();
    fixture.workfs(&["heartbeat", "t-1", "--agent", "bob"]).failure();
    fs::remove_file(&own).unwrap_err();
    let pile = pile(&fixture.work());
    lies(&fixture.work(), &pile, "t-1");
    fixture.workfs(&["unmount", at]).success();
    fixture.fsck_clean();
}

// P12.3 P12.6 P12.7
#[test]
fn a_hold_that_ends_where_not_even_that_can_be_written_is_over_for_all() {
    let mut fixture = Setup::default().prepare();
    let Some(disk) = small_disk(fixture.base(), "12m") else { return };
    fixture.set_store(disk.join("team.db"));
    fixture.mount_all();
    fixture.make_directories();
    let bob = fixture.outside("bob");
    fs::create_dir(&bob).unwrap();
    let at = bob.to_str().unwrap();
    fixture.workfs(&["mount", at, "--agent", "bob"]).success();
    fixture.task("inbox", &Task::new("t-1"));
    let own = bob.join("work/assigned/bob/t-1.yaml");
    fs::rename(bob.join("work/inbox/t-1.yaml"), &own).unwrap();
    let hold = bob.join(".workfs/hold/t-1");
    let held = fs::File::open(&hold).unwrap();
    Shell::bash(&disk).run("cat /dev/zero > ballast").failure();
    fill(&fixture);
    Shell::bash(&disk).run("cat /dev/zero > rest").failure();
    drop(held);

    until_polled("its end is told", || {
        let told = fs::read_to_string(fixture.path(".workfs/leases")).unwrap();
        told.contains("over bob's lease of work/assigned/bob/t-1.yaml: ").then_some(told)
    });
    let why = fs::read_to_string(fixture.work().join("assigned/bob/t-1.yaml.why")).unwrap();
    assert!(
        why.contains("its lease ran out, and it goes back as soon as that is written"),
        "{why}"
    );
    let asked = fixture.workfs(&["why", "t-1"]).stdout;
    assert!(why.lines().zip(asked.lines()).take(2).all(|(read, asked)| read == asked), "{asked}");
    let list = fixture.workfs(&["list", "--json"]).success().stdout;
    assert!(!list.contains(r#""lease_until":""#), "{list}");
    let refused = fs::File::open(&hold).unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::NOENT));
    assert_eq!(fs::read_dir(bob.join(".workfs/hold")).unwrap().count(), 0);
    let touched = || fs::set_permissions(&own, fs::Permissions::from_mode(0o640));
    assert_eq!(Errno::from_io_error(&touched().unwrap_err()), Some(Errno::NOSPC));

    // Space again: what bob asks for ends it before.
    fs::remove_file(disk.join("ballast")).unwrap();
    fs::remove_file(disk.join("rest")).unwrap();
    let _ = touched();
    assert!(fixture.work().join("inbox/t-1.yaml").exists() && !own.exists());
    fixture.workfs(&["unmount", at]).success();
    fixture.fsck_clean();
}

// P4.3
#[test]
fn a_daemon_that_dies_on_a_full_disk_has_kept_what_it_acknowledged() {
    let Some((fixture, ballast)) = on_small_disk() else { return };
    let ids = fill(&fixture);
    fixture.kill_daemon();
    // Still full: what is there can be read.
    fixture.mount_all();
    all_are_there(&fixture, &ids);
    fixture.kill_daemon();
    fs::remove_file(ballast).unwrap();
    fixture.mount_all();
    all_are_there(&fixture, &ids);
    fixture.task("inbox", &Task::new("after"));
    fixture.fsck_clean();
}

// P4.3
#[test]
fn on_a_full_disk_space_can_be_made_by_removing() {
    let Some((fixture, _)) = on_small_disk() else { return };
    let ids = fill(&fixture);
    // Again full for the next daemon, and the one after a kill.
    for round in ["the same daemon", "after an end", "after a kill"] {
        match round {
            "the same daemon" => {}
            "after an end" => {
                fixture.unmount_all();
                fixture.mount_all();
            }
            _ => {
                fixture.kill_daemon();
                fixture.mount_all();
            }
        }
        let inbox = fixture.work().join("inbox");
        let there = ids.iter().map(|id| inbox.join(format!("{id}.yaml"))).filter(|at| at.exists());
        let gone: Vec<_> = there.take(ids.len() / 4).collect();
        assert!(gone.len() > 5, "{round}: only {}", gone.len());
        for path in &gone {
            fs::remove_file(path).unwrap_or_else(|error| panic!("{round}: {path:?}: {error}"));
        }
    }
    fixture.fsck_clean();
}

// P4.3
#[test]
fn a_small_store_whose_disk_somebody_else_fills_can_make_space_by_removing() {
    let mut fixture = Setup::default().prepare();
    let Some(disk) = small_disk(fixture.base(), "8m") else { return };
    fixture.set_store(disk.join("team.db"));
    fixture.mount_all();
    fixture.make_directories();
    let ids = fixture.tasks(10);
    fixture.sh("for i in 1 2 3 4; do head -c 20000 /dev/zero > plain$i; done").success();
    // Less than a page is left after this.
    let filled = Shell::bash(&disk).run("cat /dev/zero > ballast").failure();
    assert!(filled.stderr.contains("No space left"), "{filled}");
    for id in &ids {
        let path = fixture.work().join(format!("inbox/{id}.yaml"));
        fs::remove_file(&path).unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    fixture.sh("rm plain*").success();
    fixture.fsck_clean();
}

// P4.3
#[test]
fn a_store_that_was_closed_before_somebody_else_filled_its_disk_is_read() {
    let mut fixture = Setup::default().prepare();
    let Some(disk) = small_disk(fixture.base(), "8m") else { return };
    fixture.set_store(disk.join("team.db"));
    fixture.mount_all();
    fixture.make_directories();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.unmount_all();
    // As of a store that was copied: there is no room for a lock either.
    fs::remove_file(disk.join("team.db.lock")).unwrap();
    Shell::bash(&disk).run("cat /dev/zero > ballast").failure();

    assert!(fixture.workfs(&["show", "t-1"]).success().stdout.contains("status: new"));
    let refused = fixture.workfs(&["claim", "t-1", "--agent", "bob"]);
    assert_eq!(refused.code, 12, "{refused}");
    let mounted = fixture.mount_at(fixture.mount(0)).success();
    assert!(mounted.stderr.contains("no room for a log): mounted read-only"), "{mounted}");
    // When there is room again, whoever is refused finds what is to be done.
    let ballast = disk.join("ballast");
    fs::rename(&ballast, disk.join("rest")).unwrap();
    fs::File::options().write(true).open(disk.join("rest")).unwrap().set_len(0).unwrap();
    let why = fixture.workfs(&["why"]).success().stdout;
    for told in [mounted.stderr, fixture.why(), why] {
        assert!(told.contains("mount it again"), "{told}");
    }
    let path = fixture.work().join("inbox/t-1.yaml");
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    fixture.unmount_all();

    fixture.mount_all();
    fs::remove_file(path).unwrap();
    fixture.fsck_clean();
}

// P4.3 P4.5
#[test]
fn a_killed_daemon_s_store_is_read_where_the_disk_takes_nothing_at_all() {
    let mut fixture = Setup::default().prepare();
    let Some(disk) = small_disk(fixture.base(), "12m") else { return };
    fixture.set_store(disk.join("team.db"));
    fixture.mount_all();
    fixture.make_directories();
    // What is left is the room that the store has taken ahead.
    Shell::bash(&disk).run("cat /dev/zero > ballast").failure();
    let ids = fill(&fixture);
    assert!(ids.len() > 1, "only {} fit", ids.len());
    Shell::bash(&disk).run("cat /dev/zero > rest").failure();
    fixture.kill_daemon();

    assert!(fixture.workfs(&["list"]).success().stdout.contains(&ids[0]));
    let mounted = fixture.mount_at(fixture.mount(0)).success();
    assert!(mounted.stderr.contains("mounted read-only"), "{mounted}");
    all_are_there(&fixture, &ids);
    assert_eq!(fixture.workfs(&["claim", &ids[0], "--agent", "bob"]).code, 12);
    fixture.unmount_all();

    fs::remove_file(disk.join("ballast")).unwrap();
    fs::remove_file(disk.join("rest")).unwrap();
    fixture.mount_all();
    all_are_there(&fixture, &ids);
    fixture.task("inbox", &Task::new("after"));
    fixture.fsck_clean();
}

// P4.3
#[test]
fn plain_files_that_are_removed_make_space_on_a_full_disk() {
    let Some((fixture, _)) = on_small_disk() else { return };
    let dir = fixture.path("notes");
    fs::create_dir(&dir).unwrap();
    let write = |nth: usize| fs::write(dir.join(nth.to_string()), vec![nth as u8; 256 << 10]);
    let (mut whole, mut failed) = (Vec::new(), 0);
    // After a first failure the store looks for room, and there may be some.
    for nth in 0.. {
        match write(nth) {
            Ok(()) => (whole, failed) = ([whole, vec![nth]].concat(), 0),
            Err(error) => {
                assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC));
                failed += 1;
            }
        }
        if failed == 3 {
            break;
        }
    }
    assert!(whole.len() > 8, "only {} fit", whole.len());
    let kept = whole.split_off(whole.len() / 2);
    // What needs no space is done.
    fs::File::open(dir.join(kept[0].to_string())).unwrap().sync_all().unwrap();
    let cut = fs::OpenOptions::new().write(true).open(dir.join(kept[0].to_string())).unwrap();
    cut.set_len(100 << 10).unwrap();
    drop(cut);
    for nth in whole {
        fs::remove_file(dir.join(nth.to_string())).unwrap();
    }
    fs::File::open(&dir).unwrap().sync_all().unwrap();
    // What they had is free at once, since nobody has them open.
    write(1_000).unwrap();
    for nth in &kept[1..] {
        assert_eq!(fs::read(dir.join(nth.to_string())).unwrap(), vec![*nth as u8; 256 << 10]);
    }
    fs::write(dir.join(kept[0].to_string()), b"").unwrap();
    fixture.fsck_clean();
}

// P4.3
#[test]
fn what_small_files_have_left_in_the_tables_takes_a_big_one() {
    let Some((fixture, _ballast)) = on_small_disk() else { return };
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    for nth in 0.. {
        if fs::write(dir.join(nth.to_string()), vec![nth as u8; 200_000]).is_err() {
            break;
        }
    }
    fs::remove_dir_all(&dir).unwrap();
    // What the tables have is counted as free.
    let free = until_polled("the space", || {
        let there = rustix::fs::statvfs(fixture.root()).unwrap();
        let free = there.f_bavail * there.f_frsize;
        (free > 5 << 20).then_some(free)
    });
    let bytes = vec![7; free as usize / 4 * 3];
    fs::write(fixture.path("big"), &bytes).unwrap();
    assert!(fs::read(fixture.path("big")).unwrap() == bytes);
    fixture.fsck_clean();
}

// P4.3
#[test]
fn a_disk_that_was_full_before_says_so_at_the_mount() {
    let mut fixture = Setup::default().prepare();
    let Some(disk) = small_disk(fixture.base(), "64k") else { return };
    fixture.set_store(disk.join("team.db"));
    fs::write(disk.join("ballast"), vec![1; 60 << 10]).unwrap();
    let ran = fixture.mount_at(fixture.root()).failure();
    println!("{ran}");
    fixture.await_no_daemon();
    fs::remove_file(disk.join("ballast")).unwrap();
}

// P4.3 P7.4
#[test]
fn what_a_mapping_wrote_and_a_full_disk_refused_is_not_shown() {
    let Some((fixture, _)) = on_small_disk() else { return };
    let size = 8 << 20;
    fs::File::create(fixture.path("mapped")).unwrap().set_len(size).unwrap();
    assert!(fill(&fixture).len() > 10);
    let script = format!(
        "import errno, mmap, os
fd = os.open('mapped', os.O_RDWR)
m = mmap.mmap(fd, {size})
m[:] = b'y' * {size}
try:
    m.flush()
except OSError as error:
    assert error.errno == errno.ENOSPC, error
else:
    raise SystemExit('it was not refused')
"
    );
    fs::write(fixture.outside("map.py"), script).unwrap();
    fixture.sh(&format!("{} $OUT/map.py", python().display())).success();
    let shown = fs::read(fixture.path("mapped")).unwrap();
    fixture.unmount_all();
    fixture.mount_all();
    let kept = fs::read(fixture.path("mapped")).unwrap();
    assert!(kept.contains(&0), "not all of it fits");
    assert!(shown == kept, "the mount showed what was refused");
    fixture.fsck_clean();
}

// P4.3 P3.3
#[test]
fn what_a_full_disk_refused_an_open_file_takes_when_there_is_space_again() {
    let Some((fixture, ballast)) = on_small_disk() else { return };
    let path = fixture.task("inbox", &Task::new("a-1"));
    let mut options = fs::OpenOptions::new();
    let mut appends = options.read(true).append(true).open(&path).unwrap();
    std::io::read_to_string(&appends).unwrap();
    let saved = fill(&fixture).len();
    assert!(saved > 10);
    fill_up(&fixture, &ballast, saved + 1);
    for _ in 0..2 {
        let refused = appends.write_all(b"# more\n").unwrap_err();
        assert_eq!(Errno::from_io_error(&refused), Some(Errno::NOSPC));
    }
    assert_eq!(close(appends.try_clone().unwrap()), Err(Errno::NOSPC));
    fs::remove_file(ballast).unwrap();
    until_polled("room", || appends.write_all(b"# more\n").ok());
    close(appends).unwrap();
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text, format!("{}# more\n", Task::new("a-1").text()), "once, and nothing refused");
    fixture.fsck_clean();
}
