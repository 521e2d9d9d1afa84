//! Mounts that do not come about: the cause is said at once, and nothing is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::harness::{Fixture, Ran, Setup, await_end, mounted_below, needs, program, run};
use crate::{may_have_a_name_space, without_fuse};

/// Fails, says these words, and leaves no mount and no daemon.
#[track_caller]
fn refused(fixture: &Fixture, ran: Ran, words: &[&str]) {
    let ran = ran.failure();
    for word in words {
        assert!(ran.stderr.contains(word), "it does not say {word:?}: {ran}");
    }
    assert!(mounted_below(fixture.base()).is_empty());
    fixture.await_no_daemon();
}

// P6.1
#[test]
fn what_is_no_directory_is_named() {
    let fixture = Setup::default().prepare();
    let absent = fixture.base().join("absent");
    refused(&fixture, fixture.mount_at(&absent), &["absent"]);
    let file = fixture.outside("file");
    fs::write(&file, b"x").unwrap();
    refused(&fixture, fixture.mount_at(&file), &["not a directory"]);
    assert_eq!(fs::read(&file).unwrap(), b"x");
    let circle = fixture.outside("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    refused(&fixture, fixture.mount_at(&circle), &["circle", "name a directory that is there"]);
    let occupied = fixture.outside("occupied");
    fs::create_dir(&occupied).unwrap();
    fs::write(occupied.join("note"), b"x").unwrap();
    refused(&fixture, fixture.mount_at(&occupied), &["occupied", "note"]);
    // No store is made for what cannot be mounted.
    for end in ["db", "db.lock", "db.log"] {
        assert!(!fixture.store().with_extension(end).exists(), "{end}");
    }
}

// P6.1
#[test]
fn a_store_that_was_made_for_a_mount_that_failed_goes_with_it() {
    let fixture = Setup::default().prepare();
    let dir = fixture.root().to_str().unwrap();
    let beside = || fs::read_dir(fixture.store().parent().unwrap()).unwrap().count();
    for foreground in [&["mount", dir][..], &["mount", "-f", dir]] {
        let arguments = [foreground, &["--root", "none"]].concat();
        let ran = fixture.workfs(&arguments);
        assert_eq!(beside(), 0, "when the command returns: {ran}");
        refused(&fixture, ran, &["no directory `none`"]);
    }
    // One that was there is its owner's, and stays.
    fixture.workfs(&["init"]).success();
    refused(&fixture, fixture.workfs(&["mount", dir, "--root", "none"]), &["no directory"]);
    assert!(fixture.store().exists());
    fixture.mount_all();
}

// P6.1
#[test]
fn for_a_mount_that_does_not_come_about_no_agent_is_registered() {
    if !may_have_a_name_space() || !needs(&["unshare"]) {
        return;
    }
    let mut fixture = Setup::default().prepare();
    let mount = fixture.command(&["mount", fixture.root().to_str().unwrap(), "--agent", "bob"]);
    let ran = run(&mut without_fuse(&fixture, &mount));
    let beside = fs::read_dir(fixture.store().parent().unwrap()).unwrap().count();
    assert_eq!(beside, 0, "the store was made for it: {ran}");
    assert!(!ran.stderr.contains("the store"), "none was made: {ran}");
    refused(&fixture, ran, &["/dev/fuse"]);
    fixture.workfs(&["init"]).success();
    refused(&fixture, run(&mut without_fuse(&fixture, &mount)), &["/dev/fuse"]);
    let listed = fixture.workfs(&["agent", "list"]).success();
    assert!(!listed.stdout.contains("bob"), "{listed}");
    fixture.mount_all();
    fixture.unmount_all();
    fixture.set_store(fixture.outside("other.db"));
    let made = fixture.workfs(&["exec", "--", "true"]).success();
    assert!(made.stderr.contains("made the store") && made.stderr.contains("other.db"), "{made}");
}

// P6.1
#[test]
fn nothing_is_made_of_an_empty_file_or_beside_it() {
    let fixture = Setup::default().prepare();
    fs::write(fixture.store(), b"").unwrap();
    let absent = fixture.base().join("absent");
    refused(&fixture, fixture.mount_at(&absent), &["absent"]);
    assert_eq!(fs::metadata(fixture.store()).unwrap().len(), 0);
    // Where the daemon finds only later that it cannot serve, the store is one file.
    let socket = fixture.store().with_extension("db.sock");
    fs::create_dir(&socket).unwrap();
    refused(&fixture, fixture.mount_at(fixture.root()), &["not a socket"]);
    for end in ["db-wal", "db-shm"] {
        assert!(!fixture.store().with_extension(end).exists(), "{end}");
    }
    fs::remove_dir(&socket).unwrap();
    // A store that is made of an empty file is one as any other.
    fs::write(fixture.store(), b"").unwrap();
    fixture.mount_at(fixture.root()).success();
    assert!(fixture.path("work/inbox").is_dir());
}

// P6.1
#[test]
fn an_unknown_option_is_named_with_its_nearest() {
    let fixture = Setup::default().arguments(&["-o", "alow_other"]).prepare();
    let ran = fixture.mount_at(fixture.root());
    refused(&fixture, ran, &["alow_other", "allow_other"]);
}

// P6.1
#[test]
fn a_store_that_is_none_is_left_alone() {
    let fixture = Setup::default().prepare();
    for content in [&b"this is no database, but somebody's letter\n"[..], &[0; 8192]] {
        fs::write(fixture.store(), content).unwrap();
        let ran = fixture.mount_at(fixture.root());
        refused(&fixture, ran, &["team.db"]);
        assert_eq!(fs::read(fixture.store()).unwrap(), content);
    }
}

// P6.1
#[test]
fn a_newer_store_is_left_alone() {
    if !crate::harness::needs(&["sqlite3"]) {
        return;
    }
    let fixture = Fixture::new();
    let daemon = fixture.daemon_pid();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    // It still closes the store, and has it locked for that.
    await_end(daemon);
    let base = fixture.base().to_owned();
    let shell = crate::harness::Shell::bash(&base).with("STORE", fixture.store());
    shell.run("sqlite3 \"$STORE\" 'pragma user_version = 9999'").success();
    let ran = fixture.mount_at(fixture.root());
    refused(&fixture, ran, &["newer"]);
}

// P6.1
#[test]
fn a_store_that_is_held_names_who_holds_it() {
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.mount(0)).success();
    let pid = fixture.daemon_pid();
    // Its socket is lost, so that it cannot be asked to add a mount.
    let mut socket = fixture.store().as_os_str().to_owned();
    socket.push(".sock");
    let socket = PathBuf::from(socket);
    fs::rename(&socket, fixture.outside("socket")).unwrap();
    let ran = fixture.mount_at(fixture.mount(1)).failure();
    assert!(ran.stderr.contains(&pid.to_string()), "it does not say who: {ran}");
    fs::rename(fixture.outside("socket"), &socket).unwrap();
    fixture.mount_at(fixture.mount(1)).success();
}

// P6.2
#[test]
fn a_store_by_another_name_is_not_served_twice() {
    let fixture = Setup::default().mounts(2).start();
    let elsewhere = fixture.outside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let other = elsewhere.join("other.db");
    fs::hard_link(fixture.store(), &other).unwrap();
    let pid = fixture.daemon_pid().to_string();
    for words in [&["list"][..], &["fsck"], &["mount", elsewhere.to_str().unwrap()]] {
        let ran = crate::harness::run(&mut fixture.command_on(&other, words)).failure();
        assert_eq!(ran.code, 9, "{ran}");
        assert!(ran.stderr.contains("the same file") && ran.stderr.contains(&pid), "{ran}");
        let left = fs::read_dir(&elsewhere).unwrap().map(|one| one.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["other.db"], "{words:?}");
    }
    fs::write(fixture.path("work/inbox/a.yaml"), "status: new\n").unwrap();
    fixture.fsck_clean();
}

// P6.1
#[test]
fn a_store_inside_its_own_mount_is_refused() {
    let fixture = Setup::default().mounts(2).start();
    let inside = fixture.path("other.db");
    let mut command = fixture.command_on(&inside, &["mount"]);
    let ran = crate::harness::run(command.arg(fixture.outside(""))).failure();
    assert!(ran.stderr.contains("inside"), "{ran}");
    assert!(!inside.exists());
}

/// A path of so many bytes below a directory, which is made but for its last name.
fn path_of(base: &Path, bytes: usize) -> PathBuf {
    let mut dir = base.to_owned();
    let left = |dir: &Path| bytes - dir.as_os_str().len() - "/s.db".len();
    while left(&dir) > 0 {
        let more = (left(&dir) - 1).min(99);
        // A name has a byte at least.
        let more = if left(&dir) - 1 - more == 1 { more - 1 } else { more };
        dir.push("d".repeat(more));
    }
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("s.db");
    assert_eq!(path.as_os_str().len(), bytes);
    path
}

// P6.1
#[test]
fn a_path_that_cannot_be_a_store_s_is_refused_beforehand() {
    let fixture = Setup::default().prepare();
    let base = fixture.outside("");
    let base = base.components().collect::<PathBuf>();
    let named = |bytes: usize| base.join("n".repeat(bytes));
    let dir = fixture.root().to_str().unwrap();
    for fits in [path_of(&base, 504), named(70)] {
        for arguments in [&["init"][..], &["mount", dir], &["claim", "--next"], &["unmount", dir]] {
            let ran = run(&mut fixture.command_on(&fits, arguments));
            let code = if arguments[0] == "claim" { 3 } else { 0 };
            assert_eq!(ran.code, code, "{ran}");
        }
    }
    let dangling = base.join("dangling");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    fs::write(base.join("file"), "").unwrap();
    for (wrong, why) in [
        (path_of(&base, 505), "its path has 505 bytes"),
        (named(200), "its name is too long: its socket's would have 205 bytes"),
        (dangling.join("s.db"), "dangling is a symbolic link to what is not there"),
        (dangling, "it is a symbolic link to what is not there"),
        (base.join("file/s.db"), "file is no directory"),
        (base.join("file/new/s.db"), "file is no directory"),
        (named(256).join("s.db"), "a name in its path has 256 bytes"),
        (base.join("new/../file/s.db"), "leads up (`..`) from a directory that is not there"),
        (base.join("new/../s.db"), "leads up (`..`) from a directory that is not there"),
    ] {
        let there = wrong.ancestors().skip(1).find(|at| at.is_dir()).unwrap();
        let left = || fs::read_dir(there).unwrap().count();
        let before = left();
        for arguments in
            [&["init"][..], &["mount", dir], &["exec", "--", "true"], &["list"], &["ps"]]
        {
            let ran = run(&mut fixture.command_on(&wrong, arguments));
            assert!(ran.code == 2 && ran.stderr.contains(why), "{ran}");
        }
        assert_eq!(left(), before, "{why}");
    }
}

// P6.1
#[test]
fn a_daemon_that_breaks_off_for_want_of_memory_is_told_of_and_leaves_no_mount() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    // Which of them are too small differs from build to build, and from run to run.
    for kib in (50_000..420_000).step_by(40_000) {
        let mount = format!(
            "cd /; ulimit -v {kib}; \"$WORKFS\" --version >/dev/null 2>&1 || exit 99
             exec timeout 50 \"$WORKFS\" mount \"$M\""
        );
        let shell = fixture.bash().with("WORKFS", program());
        let shell = shell.with("WORKFS_STORE", fixture.store()).with("M", fixture.root());
        let ran = shell.run(&mount);
        match ran.code {
            // It may still break off, also while it is asked; the next one takes away what that leaves.
            0 => ["first", "second"].into_iter().for_each(|_| {
                drop(fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]));
            }),
            124 => panic!("with {kib} KiB it does not return: {ran}"),
            // Not even the program itself has room.
            99 => continue,
            _ => assert!(ran.stderr.contains("workfs: ") || ran.stderr.contains("memory"), "{ran}"),
        }
        assert!(mounted_below(fixture.base()).is_empty(), "{kib} KiB: {ran}");
        fixture.await_no_daemon();
    }
    fixture.mount_all();
}

// P6.1
#[test]
fn of_two_stores_that_are_mounted_on_one_directory_at_once_one_is_refused() {
    let fixture = Setup::default().mounts(2).start();
    let (other, dir) = (fixture.outside("other.db"), fixture.outside("both"));
    let others = fixture.outside("others");
    for dir in [&dir, &others] {
        fs::create_dir(dir).unwrap();
    }
    // Both daemons are there, and begin at once.
    run(&mut fixture.command_on(&other, &["mount", others.to_str().unwrap()])).success();
    let stores = [fixture.store().to_owned(), other];
    for round in 0..12 {
        let mount = |store: &PathBuf| {
            let mut command = fixture.command_on(store, &["mount", dir.to_str().unwrap()]);
            command.stderr(Stdio::null()).spawn().unwrap()
        };
        let both: Vec<Child> = stores.iter().map(mount).collect();
        let code = |mut child: Child| child.wait().unwrap().code().unwrap();
        let codes: Vec<i32> = both.into_iter().map(code).collect();
        assert!(codes == [0, 5] || codes == [5, 0], "round {round}: {codes:?}");
        let mounted = mounted_below(fixture.base()).into_iter().filter(|one| *one == dir);
        assert_eq!(mounted.count(), 1, "round {round}");
        fixture.workfs(&["unmount", dir.to_str().unwrap()]).success();
    }
    fs::write(dir.join("file"), b"it is given back").unwrap();
    run(&mut fixture.command_on(&stores[1], &["unmount", "--all"])).success();
}
