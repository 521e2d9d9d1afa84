//! The daemon is killed at the commit: old or new, never a mix.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::harness::{
    Errno, Setup, Task, await_end, is_ignored, needs, program, send_signal, until_polled,
};

/// What the tree says: the plain files, and where the task lies.
fn seen(fixture: &crate::harness::Fixture) -> [String; 3] {
    let read = |path: &str| fs::read_to_string(fixture.path(path)).unwrap_or_default();
    let claimed = fixture.path("work/assigned/bob/t-0001.yaml").exists();
    assert_ne!(claimed, fixture.path("work/inbox/t-0001.yaml").exists());
    [read("a"), read("dir/b"), claimed.to_string()]
}

// P13.1
#[test]
fn sigkill_at_the_commit_leaves_old_or_new() {
    for (point, made) in [("before-commit", false), ("after-commit", true), ("before-reply", true)]
    {
        let mut fixture = Setup::default().start();
        fixture.task("inbox", &Task::new("t-0001"));
        fixture.sh("echo old > a").success();
        let (old, new) = (
            ["old\n".to_owned(), String::new(), "false".to_owned()],
            ["new\n".to_owned(), "new\n".to_owned(), "true".to_owned()],
        );
        fixture.unmount_all();
        // Work inside a transaction is no change of the store, so that the commit is the first.
        fixture.set_variable("WORKFS_FAULT", Some(&format!("{point}:1")));
        fixture.mount_all();
        fixture.set_variable("WORKFS_FAULT", None);
        let daemon = fixture.daemon_pid();
        fixture
            .sh("mkdir .workfs/txn/t && cd .workfs/txn/t && echo new > a && mkdir dir
                 echo new > dir/b && mv work/inbox/t-0001.yaml work/assigned/bob/")
            .success();
        assert_eq!(seen(&fixture), old, "{point}");
        let control = fixture.path(".workfs");
        let error = fs::rename(control.join("txn/t"), control.join("commit/t")).unwrap_err();
        let errno = Errno::from_io_error(&error);
        assert!(matches!(errno, Some(Errno::NOTCONN | Errno::CONNABORTED)), "{point}: {error}");
        await_end(daemon);
        fixture.mount_all();
        assert_eq!(seen(&fixture), if made { new } else { old }, "{point}");
        assert!(!fixture.path(".workfs/txn/t").exists());
        fixture.fsck_clean();
    }
}

// P13.1
#[test]
fn a_reader_outside_never_sees_half_of_it() {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("echo 0 > a && echo 0 > b").success();
    let stop = Arc::new(AtomicBool::new(false));
    let (ended, dir) = (Arc::clone(&stop), fixture.mount(1).to_owned());
    let reader = std::thread::spawn(move || {
        let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
        let number = |name: &str| read(name).trim().parse::<u64>().unwrap();
        let mut looks = 0;
        while !ended.load(Ordering::Relaxed) {
            // Both change in one step, upwards: what is read later cannot be older.
            let (a, b) = (number("a"), number("b"));
            assert!(b >= a, "a says {a}, b read after it says {b}");
            let (b, a) = (number("b"), number("a"));
            assert!(a >= b, "b says {b}, a read after it says {a}");
            looks += 1;
        }
        looks
    });
    for number in 1..300 {
        let name = format!("t{number}");
        let (txn, commit) = (fixture.path(".workfs/txn"), fixture.path(".workfs/commit"));
        fs::create_dir(txn.join(&name)).unwrap();
        for file in ["a", "b"] {
            fs::write(txn.join(&name).join(file), format!("{number}\n")).unwrap();
        }
        fs::rename(txn.join(&name), commit.join(&name)).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);
}

// P13.6
#[test]
fn what_a_killed_command_has_left_goes_when_the_next_begins() {
    let fixture = Setup::default().start();
    let left = || fs::read_dir(fixture.path(".workfs/txn")).unwrap().count();
    let mut command =
        fixture.command(&["txn", "--", "sh", "-c", "echo x > a; echo $$; exec sleep 60"]);
    command.current_dir(fixture.root()).stdout(Stdio::piped());
    let mut txn = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(txn.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(left(), 1);
    for pid in [txn.id(), line.trim().parse().unwrap()] {
        send_signal(pid, rustix::process::Signal::KILL);
    }
    assert_eq!(left(), 1, "nobody throws it away by itself");
    // Where nobody waits for it, too, as in a container without an init.
    until_polled("what it left goes", || {
        let mut next = fixture.command(&["txn", "--", "true"]);
        crate::harness::run(next.current_dir(fixture.root())).success();
        (left() == 0).then_some(())
    });
    txn.wait().unwrap();
    assert!(!fixture.path("a").exists());
}

// P13.4 P13.6
#[test]
fn whose_daemon_ends_meanwhile_is_told_so_however_it_ends() {
    let fixture = Setup::default().start();
    for signal in [Signal::TERM, Signal::KILL] {
        let daemon = fixture.daemon_pid();
        let mut command = fixture.command(&["txn", "--", "sh", "-c", "echo x > a; echo; read end"]);
        command.current_dir(fixture.root()).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut txn = command.spawn().unwrap();
        BufReader::new(txn.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        send_signal(daemon, signal);
        await_end(daemon);
        txn.stdin.take().unwrap().write_all(b"\n").unwrap();
        let output = txn.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(8), "{signal:?}: {said}");
        assert!(said.contains("the daemon has ended"), "{signal:?}: {said}");
        assert!(!said.contains("still there") && !said.contains("No such file"), "{said}");
        fixture.mount_all();
        assert!(!fixture.path("a").exists());
    }
    fixture.fsck_clean();
}

/// Goes on after a signal to say how it ended: with 0.
const OBLIGING: &str = "trap 'kill $!; echo y > b; exit 0' INT TERM HUP; echo x > a
    sleep 60 > /dev/null 2>&1 & echo begun; wait";

// P13.6
#[test]
fn what_was_told_to_end_is_not_committed_though_it_ends_with_0() {
    let fixture = Setup::default().start();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        if is_ignored(signal) {
            continue;
        }
        let mut command = fixture.command(&["txn", "--", "sh", "-c", OBLIGING]);
        command.current_dir(fixture.root()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut txn = command.spawn().unwrap();
        BufReader::new(txn.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        send_signal(txn.id(), signal);
        let output = txn.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(128 + signal.as_raw()), "{said}");
        assert!(said.contains("nothing is committed"), "{said}");
        assert!(!fixture.path("a").exists() && !fixture.path("b").exists());
        assert_eq!(fs::read_dir(fixture.path(".workfs/txn")).unwrap().count(), 0);
    }
}

// P13.6
#[test]
fn a_key_of_the_terminal_is_the_command_s_own_affair() {
    if !needs(&["script"]) {
        return;
    }
    let fixture = Setup::default().start();
    fs::write(fixture.outside("obliging"), OBLIGING).unwrap();
    let (program, store) = (program(), fixture.store().display());
    let file = fixture.outside("obliging");
    // A shell between would have the key, too, and with some shells the last word.
    let typed = format!("exec '{program}' --store '{store}' txn -- sh '{}'", file.display());
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &typed, "/dev/null"]).current_dir(fixture.root());
    let mut terminal = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(terminal.stdout.take().unwrap());
    shown.read_line(&mut String::new()).unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    drop(keys);
    assert_eq!(terminal.wait().unwrap().code(), Some(0), "{rest}");
    assert!(rest.contains("went on after SIGINT and ended with 0: committing"), "{rest}");
    assert!(fixture.path("a").exists() && fixture.path("b").exists());
}
