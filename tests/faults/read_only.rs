//! The file system that holds the store becomes read-only.

use std::fs;

use crate::harness::{
    Errno, Fixture, Setup, Shell, Task, left_out, lies, needs, pile, processes_of, run,
};

// P4.5
#[test]
fn a_store_gone_read_only_can_be_read_and_refuses_changes() {
    if !rustix::process::geteuid().is_root() {
        return left_out("making a file system needs root");
    }
    if !needs(&["mkfs.ext4", "losetup"]) {
        return;
    }
    let mut fixture = Setup::default().prepare();
    let base = fixture.base().to_owned();
    let disk = base.join("disk");
    fs::create_dir(&disk).unwrap();
    let make = "truncate -s 32M image && mkfs.ext4 -q image && mount -o loop,errors=remount-ro \\
                image disk && losetup -n -O NAME -j image";
    let made = Shell::bash(&base).run(make);
    if !made.ok() {
        return left_out(&format!("no loop device can be mounted here: {}", made.stderr.trim()));
    }
    let device = made.stdout.trim().trim_start_matches("/dev/").to_owned();
    fixture.set_store(disk.join("team.db"));
    fixture.mount_all();
    fixture.make_directories();
    let ids = fixture.tasks(10);

    // As the kernel does when it finds the file system damaged.
    let trigger = format!("/sys/fs/ext4/{device}/trigger_fs_error");
    if let Err(error) = fs::write(&trigger, b"a test\n") {
        return left_out(&format!("{trigger}: {error}"));
    }
    let task = fixture.work().join("inbox/t-0001.yaml");
    let error = fs::rename(&task, fixture.work().join("assigned/bob/t-0001.yaml")).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::ROFS), "{error}");
    assert!(fs::create_dir(fixture.path("dir")).is_err());
    assert!(fs::write(fixture.path("file"), b"x").is_err());
    for id in &ids {
        assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), id), "inbox");
    }
    fixture.workfs(&["list"]).success();

    // Mended and mounted anew, all of it is there.
    fixture.unmount_all();
    fixture.await_no_daemon();
    let mend = "umount disk && fsck.ext4 -fy image > fsck.log; mount -o loop image disk";
    Shell::bash(&base).run(mend).success();
    fixture.mount_all();
    fixture.sh("mv work/inbox/* work/assigned/bob/").success();
    for id in &ids {
        assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), id), "assigned/bob");
    }
    fixture.fsck_clean();
}

// P4.5
#[test]
fn a_store_that_is_made_read_only_under_its_daemon_is_read_and_goes_on_when_it_is_writable() {
    if !needs(&["chattr"]) {
        return;
    }
    let fixture = Fixture::new();
    let ids = fixture.tasks(3);
    let pid = fixture.daemon_pid();
    let log = fixture.store().with_extension("db-wal");
    let chattr = |how: &str| {
        let shell = Shell::bash(fixture.base()).with("LOG", &log);
        shell.run(&format!("chattr {how} \"$LOG\""))
    };
    let made = chattr("+i");
    if !made.ok() {
        return left_out(&format!("no file can be made immutable here: {}", made.stderr.trim()));
    }
    let task = fixture.work().join("inbox/t-0001.yaml");
    let lane = fixture.work().join("assigned/bob/t-0001.yaml");
    let errors = [
        fs::rename(&task, &lane).unwrap_err(),
        fs::create_dir(fixture.path("dir")).unwrap_err(),
        fs::write(fixture.path("file"), b"x").unwrap_err(),
    ];
    let claim = fixture.workfs(&["claim", "t-0001", "--agent", "bob"]);
    let listed = fixture.workfs(&["list"]);
    let (why, asked) = (fixture.why(), fixture.workfs(&["why"]));
    let doctor = fixture.workfs(&["doctor"]);
    let there: Vec<_> =
        ids.iter().map(|id| lies(&fixture.work(), &pile(&fixture.work()), id)).collect();
    chattr("-i").success();
    let why_then = fixture.why();

    for error in errors {
        assert_eq!(Errno::from_io_error(&error), Some(Errno::ROFS), "{error}");
    }
    assert!(claim.code == 6 && claim.stderr.contains("W009"), "{claim}");
    assert!(listed.success().stdout.contains("t-0001"));
    let is_told = "now changes are refused [W009";
    assert!(why.contains(is_told) && why.contains("Operation not permitted"), "{why}");
    assert!(asked.stdout.contains("any change") && asked.stdout.contains("W009"), "{asked}");
    assert!(doctor.code == 11 && doctor.stdout.contains("takes no change"), "{doctor}");
    assert!(!why_then.contains(is_told), "nobody has written since: {why_then}");
    assert_eq!(there, ["inbox"; 3]);
    fs::rename(&task, &lane).unwrap();
    fs::write(fixture.path("file"), b"x").unwrap();
    assert_eq!(fixture.daemon_pid(), pid, "it is the same daemon");
    fixture.fsck_clean();
}

/// A store that is bound to where it lies read-only, until it is dropped.
struct Protected<'f>(&'f Fixture);

impl<'f> Protected<'f> {
    fn of(fixture: &'f Fixture) -> Self {
        let shell = Shell::bash(fixture.base());
        shell.run("mount --bind store store && mount -o remount,bind,ro store").success();
        Protected(fixture)
    }
}

impl Drop for Protected<'_> {
    fn drop(&mut self) {
        let ran = Shell::bash(self.0.base()).run("umount store");
        assert!(ran.ok() || std::thread::panicking(), "{ran}");
    }
}

fn can_bind() -> bool {
    let can = rustix::process::geteuid().is_root();
    if !can {
        left_out("mounting needs root");
    }
    can
}

fn beside(fixture: &Fixture) -> Vec<(std::ffi::OsString, u64)> {
    let entries = fs::read_dir(fixture.store().parent().unwrap()).unwrap();
    let mut all: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name(), entry.metadata().unwrap().len()))
        .collect();
    all.sort();
    all
}

/// What only reads is done, and the rest is refused by what it is told.
fn reads_and_refuses(fixture: &Fixture) {
    let (backup, export) = (fixture.outside("backup.db"), fixture.outside("export"));
    for command in [
        &["list"][..],
        &["show", "t-1"],
        &["log"],
        &["status"],
        &["doctor"],
        &["fsck"],
        &["why"],
        &["backup", backup.to_str().unwrap()],
        &["export", export.to_str().unwrap()],
    ] {
        let ran = fixture.workfs(command).success();
        assert!(command[0] != "list" || ran.stdout.contains("t-1"), "{ran}");
        assert!(command[0] != "doctor" || ran.stdout.contains("cannot be written"), "{ran}");
    }
    assert!(export.join("work/inbox/t-1.yaml").exists());
    let checked = run(&mut fixture.command_on(&backup, &["fsck"]));
    assert!(checked.ok(), "{checked}");
    fs::remove_file(backup).unwrap();
    fs::remove_dir_all(export).unwrap();
    let tasks = fixture.outside("tasks");
    fs::create_dir_all(&tasks).unwrap();
    fs::write(tasks.join("n.yaml"), Task::new("n").text()).unwrap();
    for command in [
        &["claim", "t-1", "--agent", "bob"][..],
        &["agent", "add", "carl"],
        &["import", tasks.to_str().unwrap(), "work"],
        &["project", "new"],
    ] {
        let ran = fixture.workfs(command).failure();
        assert_eq!(ran.code, 6, "{ran}");
        assert!(
            ran.stderr.contains("[W009]") && ran.stderr.contains("Read-only file sys"),
            "{ran}"
        );
    }
}

// P4.5
#[test]
fn a_store_on_a_read_only_file_system_is_read_and_refuses_changes() {
    if !can_bind() {
        return;
    }
    let fixture = Setup::default().mounts(2).start();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.unmount_all();
    let there = beside(&fixture);
    let protected = Protected::of(&fixture);
    reads_and_refuses(&fixture);

    // As mount(8) does it; who asks for `ro` is told nothing.
    let ran = fixture.mount_at(fixture.mount(0)).success();
    assert!(ran.stderr.contains("mounted read-only"), "{ran}");
    let reader = fixture.mount(1).to_str().unwrap();
    let ran = fixture.workfs(&["mount", reader, "-o", "ro"]).success();
    assert_eq!(ran.stderr, "", "{ran}");
    let mounts = fixture.workfs(&["ps", "--json"]).success().json()["mounts"].clone();
    assert_eq!((&mounts[0]["options"], &mounts[1]["options"]), (&"ro".into(), &"ro".into()));
    let pid = fixture.daemon_pid();
    for mount in fixture.mounts() {
        let path = mount.join("work/inbox/t-1.yaml");
        assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
        fs::File::open(&path).unwrap().sync_all().unwrap();
        fs::File::open(mount).unwrap().sync_all().unwrap();
        assert!(fs::read_to_string(mount.join(".workfs/why")).is_ok());
        let lane = mount.join("work/assigned/bob/t-1.yaml");
        let errors = [
            fs::write(mount.join("file"), b"x").unwrap_err(),
            fs::rename(&path, lane).unwrap_err(),
            fs::create_dir(mount.join("dir")).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(Errno::from_io_error(&error), Some(Errno::ROFS), "{error}");
        }
    }
    reads_and_refuses(&fixture);
    assert_eq!(fixture.daemon_pid(), pid, "one daemon");
    fixture.unmount_all();
    assert_eq!(processes_of(fixture.store()), Vec::<u32>::new());
    assert_eq!(beside(&fixture), there, "nothing is left beside it");

    drop(protected);
    fixture.mount_all();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.fsck_clean();
}

// P4.5
#[test]
fn what_is_in_the_log_only_is_read_from_a_read_only_file_system() {
    if !can_bind() {
        return;
    }
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.kill_daemon();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    let index = fixture.store().with_extension("db-shm");
    assert!(fs::metadata(fixture.store().with_extension("db-wal")).unwrap().len() > 0);
    for is_copied in [false, true] {
        if is_copied {
            // The store and its log, as somebody takes them along.
            fs::remove_file(&index).unwrap();
        }
        let _protected = Protected::of(&fixture);
        reads_and_refuses(&fixture);
        fixture.mount_all();
        let path = fixture.work().join("inbox/t-1.yaml");
        assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
        fixture.unmount_all();
    }
    fixture.mount_all();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.fsck_clean();
}

// P4.5 P6.2
#[test]
fn a_store_that_is_only_read_has_one_daemon_however_many_mounts_begin_at_once() {
    if !can_bind() {
        return;
    }
    let fixture = Setup::default().mounts(6).prepare();
    fixture.workfs(&["init"]).success();
    let protected = Protected::of(&fixture);
    for round in 0..3 {
        let mount = |dir: &std::path::PathBuf| {
            let mut command = fixture.command(&["mount", dir.to_str().unwrap()]);
            command.stderr(std::process::Stdio::null()).spawn().unwrap()
        };
        let all: Vec<_> = fixture.mounts().iter().map(mount).collect();
        for mut child in all {
            assert!(child.wait().unwrap().success(), "round {round}");
        }
        assert_eq!(processes_of(fixture.store()).len(), 1, "round {round}");
        let known = fixture.workfs(&["ps", "--json"]).success().json();
        assert_eq!(known["mounts"].as_array().unwrap().len(), fixture.mounts().len());
        fixture.workfs(&["unmount", "--all"]).success();
        assert_eq!(processes_of(fixture.store()), Vec::<u32>::new(), "round {round}");
    }
    drop(protected);
}
