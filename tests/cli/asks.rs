//! What a command says to the daemon.

use std::fs;
use std::io::{BufRead, BufReader, Write, copy};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::process::Signal;
use workfs::store::sqlite::Lock;

use crate::harness::{
    DEADLINE, Fixture, Setup, Task, ask_line, asked as answered, await_exit, run, send_signal,
    until_polled,
};

/// What `workfs ARGUMENTS` in a directory asks, line by line, seen by somebody in between.
fn asked(fixture: &Fixture, dir: &Path, arguments: &[&str]) -> Vec<String> {
    let socket = PathBuf::from(format!("{}.sock", fixture.store().display()));
    let daemon = socket.with_extension("daemon");
    fs::rename(&socket, &daemon).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let heard = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        let between = threads.spawn(|| {
            for client in listener.incoming() {
                let client = client.unwrap();
                let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
                // Only who ends the test says nothing.
                let Some(Ok(first)) = lines.next() else { return };
                let mut there = UnixStream::connect(&daemon).unwrap();
                writeln!(there, "{first}").unwrap();
                heard.lock().unwrap().push(first);
                there.shutdown(Shutdown::Write).unwrap();
                // A client that has its answer may be gone.
                let _ = copy(&mut there, &mut &client);
            }
        });
        run(fixture.command(arguments).current_dir(dir)).success();
        drop(UnixStream::connect(&socket).unwrap());
        between.join().unwrap();
    });
    fs::remove_file(&socket).unwrap();
    fs::rename(&daemon, &socket).unwrap();
    heard.into_inner().unwrap()
}

// P8.1
#[test]
fn a_command_asks_for_the_mounts_once_where_they_matter_and_else_not() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let work = fixture.work();
    for arguments in
        [&["show", "inbox/t-1.yaml"][..], &["list", "."], &["claim", "t-1"], &["status"]]
    {
        let asked = asked(&fixture, &work, arguments);
        assert_eq!(asked.len(), 2, "{arguments:?} asks {asked:?}");
        assert!(asked[0].contains("\"ps\"") && asked[1].contains("\"do\""), "{asked:?}");
    }
    let asked = asked(&fixture, fixture.base(), &["show", "t-1"]);
    assert!(asked.len() == 1 && asked[0].contains("\"do\""), "{asked:?}");
}

// P8.1
#[test]
fn who_interrupts_before_asking_hears_that_there_is_nothing_to_interrupt() {
    let fixture = Fixture::new();
    let socket = UnixStream::connect(format!("{}.sock", fixture.store().display())).unwrap();
    let interrupt = serde_json::json!("interrupt");
    let said = answered(&socket, &interrupt);
    assert!(said.contains("failed") && said.contains("nothing was asked"), "{said}");
    // Behind an ask it has no answer of its own: the next line is the next ask's.
    assert!(answered(&socket, &serde_json::json!("ps")).contains("mounts"));
    (&socket).write_all(&ask_line(&interrupt)).unwrap();
    assert!(answered(&socket, &serde_json::json!("ps")).contains("mounts"));
}

// P8.1
#[test]
fn who_follows_never_has_the_store_to_itself_when_the_daemon_ends() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let socket = format!("{}.sock", fixture.store().display());
    for arguments in [&["log", "--follow"][..], &["watch", "**"]] {
        let listener = UnixListener::bind(&socket).unwrap();
        let mut command = fixture.command(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // It looks whether there is a daemon, and asks it. That one is just ending, and says nothing.
        let accept = || {
            let patience = Timespec::try_from(DEADLINE).unwrap();
            let mut fds = [PollFd::new(&listener, PollFlags::IN)];
            assert_eq!(poll(&mut fds, Some(&patience)).unwrap(), 1, "{arguments:?} asks nobody");
            listener.accept().unwrap()
        };
        drop(accept());
        let asks = accept();
        fs::remove_file(&socket).unwrap();
        drop((asks, listener));
        let ended = await_exit(child.id(), DEADLINE / 4);
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(ended, "{arguments:?} goes on, with the store");
        assert_eq!(output.status.code(), Some(8), "{said}");
        assert!(said.contains("the daemon ended"), "{said}");
    }
}

// P8.1
#[test]
fn who_reads_what_is_told_at_leisure_keeps_the_store_from_nobody() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir_all(&dir).unwrap();
    // More than a pipe takes.
    (0..400).for_each(|nth| fs::write(dir.join("x"), format!("{nth}")).unwrap());
    let count = fixture.workfs(&["log"]).success().stdout.lines().count();
    fixture.unmount_all();
    fixture.await_no_daemon();
    let mut command = fixture.command(&["log", "--json"]);
    let mut log = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let out = log.stdout.take().unwrap();
    until_polled("the first lines", || (ioctl_fionread(&out).unwrap() > 0).then_some(()));
    fixture.workfs(&["list"]).success();
    fixture.mount_all();
    assert_eq!(BufReader::new(out).lines().count(), count);
    assert!(log.wait().unwrap().success());
}

// P8.1
#[test]
fn who_waits_without_a_daemon_waits_also_while_another_command_has_the_store_for_long() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let waits = |arguments: &[&str]| {
        let mut command = fixture.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let log = waits(&["log", "--follow", "--since", "9999"]);
    let claim = waits(&["claim", "--wait", "--agent", "bob"]);
    let held = until_polled("the store is free", || Lock::take(fixture.store()).ok());
    for _ in 0..30 {
        // Something is going on.
        let store = fs::File::options().write(true).open(fixture.store()).unwrap();
        store.set_modified(SystemTime::now()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(held);
    let tasks = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tasks");
    fixture.workfs(&["import", tasks, "work"]).success();
    let claimed = claim.wait_with_output().unwrap();
    assert!(claimed.status.success(), "{}", String::from_utf8_lossy(&claimed.stderr));
    send_signal(log.id(), Signal::TERM);
    let log = log.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&log.stderr);
    assert!(log.status.code() != Some(9) && said.contains("waiting until it is free"), "{said}");
}
