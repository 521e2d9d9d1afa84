//! Somebody who listens at the name of a store's socket, where the directory lets him.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

use workfs::daemon::StorePaths;

use crate::harness::{Fixture, Setup, asked, left_out, needs, program, run};

const BOB: u32 = 64_031;
const ANN: u32 = 64_032;

/// A socket that a user listens at.
fn listening_as(uid: u32, socket: PathBuf) -> UnixListener {
    // Whose it is the kernel notes when it is listened at; of a thread of its own no other is changed.
    let listen = move || {
        rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(uid)).unwrap();
        UnixListener::bind(socket).unwrap()
    };
    std::thread::spawn(listen).join().unwrap()
}

/// A store in a directory in which everybody makes files; `None` if acting as others cannot be had.
fn among_others() -> Option<(Fixture, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        left_out("acting as other users needs root");
        return None;
    }
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o711)).unwrap();
    let dir = fixture.store().parent().unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o1777)).unwrap();
    let socket = StorePaths::of(fixture.store()).unwrap().socket();
    Some((fixture, socket))
}

// P10.2
#[test]
fn who_may_not_write_the_store_is_asked_nothing_and_sent_nothing() {
    let Some((fixture, socket)) = among_others() else { return };
    let listener = listening_as(BOB, socket.clone());
    let root = fixture.root().to_str().unwrap();
    for arguments in [
        &["list"][..],
        &["mount", root],
        &["mount", "-f", root],
        &["exec", "--agent", "ann", "--", "true"],
        &["unmount", "--all"],
    ] {
        let ran = fixture.workfs(arguments);
        assert_eq!(ran.code, 6, "{ran}");
        assert!(ran.stderr.contains(&format!("user {BOB} listens at the socket")), "{ran}");
        assert!(ran.stderr.contains(socket.to_str().unwrap()), "{ran}");
        assert!(ran.stderr.contains("remove that socket"), "{ran}");
        let mut sent = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, b"", "{arguments:?}");
    }
    // Root removes it, and all goes on.
    fs::remove_file(&socket).unwrap();
    fixture.mount_all();
}

// P10.2
#[test]
fn whoever_may_write_the_store_may_have_its_daemon() {
    let Some((fixture, socket)) = among_others() else { return };
    let listener = listening_as(BOB, socket);
    for (owner, mode) in [(BOB, 0o600), (0, 0o666)] {
        chown(fixture.store(), Some(owner), None).unwrap();
        fs::set_permissions(fixture.store(), fs::Permissions::from_mode(mode)).unwrap();
        let mut list = fixture.command(&["list"]).spawn().unwrap();
        let mut asked = [0; 9];
        listener.accept().unwrap().0.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"{\"workfs\"");
        list.kill().unwrap();
        list.wait().unwrap();
    }
}

// P10.2 P4.5
#[test]
fn who_only_reads_a_store_is_kept_from_it_by_nobody_who_listens_beside_it() {
    let Some((fixture, socket)) = among_others().filter(|_| needs(&["setpriv"])) else { return };
    let everybody_s = |path: PathBuf, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    everybody_s(fixture.store().to_owned(), 0o644);
    everybody_s(fixture.store().with_extension("db.lock"), 0o644);
    let _listener = listening_as(BOB, socket.clone());
    everybody_s(socket, 0o666);
    // Where what cannot lie beside the store lies.
    let own = fixture.outside("ann");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(ANN), Some(ANN)).unwrap();
    let as_ann = |script: &str| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={ANN}"), &format!("--regid={ANN}"), "--clear-groups"]);
        command.args(["sh", "-c", script]).env("HOME", &own).env("XDG_RUNTIME_DIR", &own);
        let program = program();
        run(command.env("W", program).env("WORKFS_STORE", fixture.store()).current_dir("/"))
    };
    as_ann("exec \"$W\" status").success();
    let ran = as_ann(
        "\"$W\" daemon --store \"$WORKFS_STORE\" --linger >/dev/null 2>&1 &
         for n in $(seq 100); do \"$W\" ps >/dev/null && break; sleep 0.1; done
         \"$W\" status && \"$W\" unmount --all && wait",
    );
    assert!(ran.success().stdout.contains("served by process"));
}

// P10.2
#[test]
fn who_gives_the_store_s_name_to_a_file_of_its_own_is_no_operator() {
    let Some((fixture, _)) = among_others() else { return };
    fs::set_permissions(fixture.store().parent().unwrap(), fs::Permissions::from_mode(0o777))
        .unwrap();
    fixture.mount_all();
    fs::write(fixture.path("secret"), "root's alone").unwrap();
    // Others come to the socket then.
    fixture.workfs(&["agent", "add", "ann", "--uid", &ANN.to_string()]).success();
    let aside = fixture.outside("aside");
    fs::rename(fixture.store(), &aside).unwrap();
    fs::write(fixture.store(), "").unwrap();
    chown(fixture.store(), Some(BOB), None).unwrap();
    let show = serde_json::json!({"do": {"show": {"what": "secret"}}});
    // He is sent away unheard.
    let mut said = String::new();
    BufReader::new(fixture.connected_as(BOB)).read_line(&mut said).unwrap();
    assert!(said.contains(&format!("this store is not user {BOB}'s")), "{said}");
    fs::rename(&aside, fixture.store()).unwrap();
    // To whom it is given is one.
    chown(fixture.store(), Some(BOB), None).unwrap();
    let said = asked(&fixture.connected_as(BOB), &show);
    assert!(said.contains("root's alone"), "{said}");
}

// P8.2
#[test]
fn what_is_not_the_store_s_own_beside_it_is_named_with_the_way_out() {
    let Some((fixture, _)) = among_others().filter(|_| needs(&["setpriv"])) else { return };
    let dir = fixture.outside("ann");
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(ANN), Some(ANN)).unwrap();
    let store = dir.join("ann.db");
    let workfs = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={ANN}"), &format!("--regid={ANN}"), "--clear-groups"]);
        command.arg(program()).arg("--store").arg(&store).args(arguments);
        run(command.env("HOME", &dir).env("XDG_RUNTIME_DIR", &dir).current_dir("/"))
    };
    let beside = |end: &str| PathBuf::from(format!("{}{end}", store.display()));
    let log = beside("-wal");
    // Root's, and no store is there that it would be of.
    fs::write(&log, "root's").unwrap();
    let ran = workfs(&["init"]).failure();
    assert!(ran.code == 6 && ran.stderr.contains("there is no store that it would be of"), "{ran}");
    assert_eq!(fs::read(&log).unwrap(), b"root's", "it is not removed");
    fs::remove_file(log).unwrap();
    workfs(&["init"]).success();

    let refused = |end: &str, why: &str, way_out: &str| {
        for arguments in [&["list"][..], &["project", "new"], &["doctor"]] {
            let ran = workfs(arguments).failure();
            let code = if arguments == ["doctor"] { 11 } else { 6 };
            let why = format!("{}{why}", beside(end).display());
            assert!(ran.code == code && ran.said().contains(&why), "{ran}");
            assert!(ran.said().contains(way_out), "{ran}");
        }
    };
    let to_ann = format!("`chown {ANN} ");
    for (end, mode) in [("-wal", 0o600), ("-wal", 0o222), ("-shm", 0o222), ("-journal", 0o600)] {
        fs::write(beside(end), "x").unwrap();
        fs::set_permissions(beside(end), fs::Permissions::from_mode(mode)).unwrap();
        refused(end, ": Permission denied", &to_ann);
        fs::remove_file(beside(end)).unwrap();
    }
    let lock = beside(".lock");
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o200)).unwrap();
    refused(".lock", ": Permission denied", &format!("`chmod u+rw {}`", lock.display()));
    fs::remove_file(&lock).unwrap();
    for end in ["-wal", ".lock"] {
        fs::create_dir(beside(end)).unwrap();
        refused(end, "", "move it away");
        fs::remove_dir(beside(end)).unwrap();
    }
    workfs(&["project", "new"]).success();
}

// P10.2
#[test]
fn a_log_that_somebody_else_has_put_beside_a_store_is_not_taken_for_its_own() {
    let Some((fixture, _)) = among_others().filter(|_| needs(&["setpriv"])) else { return };
    // One that fits: as a daemon leaves it that is killed.
    fixture.mount_all();
    fs::write(fixture.path("planted"), "x").unwrap();
    let log = fixture.store().with_extension("db-wal");
    let (log_then, store_then) = (fs::read(&log).unwrap(), fs::read(fixture.store()).unwrap());
    fixture.unmount_all();
    fixture.await_no_daemon();
    fs::write(fixture.store(), store_then).unwrap();
    fs::write(&log, log_then).unwrap();
    chown(&log, Some(BOB), None).unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).unwrap();

    let said = format!("{} is user {BOB}'s, and the store is user 0's", log.display());
    let way_out = format!("`chown 0 {}` as root; else move it away", log.display());
    let root = fixture.root().to_str().unwrap();
    for arguments in [&["list"][..], &["project", "new"], &["mount", root], &["fsck"]] {
        let ran = fixture.workfs(arguments).failure();
        assert!(ran.code == 6 && ran.stderr.contains(&said), "{ran}");
        assert!(ran.stderr.contains(&way_out), "{ran}");
    }
    // Who only reads the store is not deceived either.
    let lock = fixture.store().with_extension("db.lock");
    for path in [fixture.store(), &lock] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={ANN}"), &format!("--regid={ANN}"), "--clear-groups"]);
    command.arg(program()).arg("--store").arg(fixture.store()).arg("fsck").current_dir("/");
    let ran = run(command.env("XDG_RUNTIME_DIR", "/nonexistent")).failure();
    assert!(ran.code == 6 && ran.stderr.contains(&said), "{ran}");
    // The store's own it is after all.
    chown(&log, Some(0), None).unwrap();
    fixture.mount_all();
    assert_eq!(fs::read(fixture.path("planted")).unwrap(), b"x");
}

// P8.2
#[test]
fn what_is_no_file_is_no_store_and_stays_where_it_is() {
    let fixture = Setup::default().prepare();
    let backup = fixture.outside("backup.db");
    let backup = backup.to_str().unwrap();
    fixture.workfs(&["init"]).success();
    fixture.workfs(&["backup", backup]).success();
    fs::remove_file(fixture.store()).unwrap();
    let root = fixture.root().to_str().unwrap();
    let expect_refused = |what: &str| {
        for arguments in [&["list"][..], &["init"], &["mount", root], &["restore", backup]] {
            let ran = fixture.workfs(arguments).failure();
            assert!(ran.code == 2 && ran.stderr.contains(what), "{ran}");
        }
        fs::remove_file(fixture.store()).unwrap();
    };
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.store(), 0o600.into()).unwrap();
    expect_refused("cannot be a store: it is a pipe");
    drop(UnixListener::bind(fixture.store()).unwrap());
    expect_refused("cannot be a store: it is a socket");
}

// P4.1
#[test]
fn nothing_is_written_to_what_a_link_in_place_of_the_log_leads_to() {
    let Some((fixture, _)) = among_others() else { return };
    fixture.mount_all();
    let (log, precious) = (fixture.store().with_extension("db-wal"), fixture.outside("precious"));
    fs::write(&precious, "kept").unwrap();
    fs::rename(&log, fixture.outside("log")).unwrap();
    std::os::unix::fs::symlink(&precious, &log).unwrap();
    for nth in 0..40 {
        fs::write(fixture.path(&format!("f{nth}")), vec![nth; 100_000]).unwrap();
    }
    assert_eq!(fs::read(&precious).unwrap(), b"kept");
    fs::rename(fixture.outside("log"), &log).unwrap();
    fixture.fsck_clean();
}

// P10.2
#[test]
fn big_files_are_not_written_to_what_somebody_else_has_put_beside_a_store() {
    let Some((fixture, _)) = among_others() else { return };
    let beside = fixture.store().with_extension("db-extents");
    let plant = || {
        fs::write(&beside, "").unwrap();
        chown(&beside, Some(BOB), None).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o666)).unwrap();
    };
    let big = vec![b'b'; 6 << 20];
    // Before the daemon begins, and when it is there already.
    for is_first in [true, false] {
        if is_first {
            plant();
        }
        fixture.mount_all();
        if !is_first {
            assert!(!beside.exists());
            plant();
        }
        fs::write(fixture.path("big"), &big).unwrap();
        assert!(fs::read(fixture.path("big")).unwrap() == big, "it is kept elsewhere");
        let has = fs::metadata(&beside).unwrap().len();
        assert_eq!(has, 0, "before the daemon begins: {is_first}");
        fixture.unmount_all();
        fixture.await_no_daemon();
        fs::remove_file(&beside).unwrap();
        fixture.fsck_clean();
    }
}
