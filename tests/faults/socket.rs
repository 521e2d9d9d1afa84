//! Clients of the socket that take all that they can get, and do not take what they are given.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use serde_json::json;
use workfs::limits::{CONNECTIONS_MAX, SOCKET_PATIENCE};
use workfs_mount::Shares;

use crate::harness::{DEADLINE, Fixture, Task, ask_line, asked, left_out, until_polled};

const BOB: u32 = 64_021;
const ANN: u32 = 64_022;

/// A store whose socket bob and ann may come to, by their users; `None` if that cannot be had.
fn shared() -> Option<Fixture> {
    if !rustix::process::geteuid().is_root() {
        left_out("acting as other users needs root");
        return None;
    }
    let fixture = Fixture::new();
    for dir in [fixture.base(), fixture.store().parent().unwrap()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o711)).unwrap();
    }
    for (name, uid) in [("bob", BOB), ("ann", ANN)] {
        fixture.workfs(&["agent", "add", name, "--uid", &uid.to_string()]).success();
    }
    Some(fixture)
}

/// Whether there is something to read, or the daemon has hung up, within so long.
fn is_answered(stream: &UnixStream, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).unwrap();
    poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&patience)).unwrap() == 1
}

// P6.5 P10.2
#[test]
fn one_user_s_connections_are_in_nobody_else_s_way_and_end() {
    let Some(fixture) = shared() else { return };
    let begin = Instant::now();
    let all: Vec<UnixStream> = (0..CONNECTIONS_MAX).map(|_| fixture.connected_as(BOB)).collect();
    let share = CONNECTIONS_MAX / Shares::PARTS;
    // They are accepted in their order.
    let mut said = String::new();
    BufReader::new(all.last().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("busy") && said.contains("of user 64021 already, its share"), "{said}");
    assert!(is_answered(all.last().unwrap(), DEADLINE), "the daemon hangs up, too");
    let (served, refused): (Vec<&UnixStream>, Vec<&UnixStream>) =
        all.iter().partition(|stream| !is_answered(stream, Duration::ZERO));
    assert_eq!((served.len(), refused.len()), (share, CONNECTIONS_MAX - share));
    fixture.workfs(&["ps"]).success();
    assert_eq!(fixture.workfs(&["claim", "--next", "--agent", "ann"]).code, 3);
    assert!(asked(&fixture.connected_as(ANN), &json!("ps")).contains("mounts"));
    // A byte now and then makes no ask of it: each has its time, and that is over.
    while !is_answered(served[0], Duration::from_millis(500)) {
        assert!(begin.elapsed() < DEADLINE, "they keep their places");
        served.iter().for_each(|stream| drop((&**stream).write(b" ")));
    }
    until_polled("bob to have places again", || {
        let again = fixture.connected_as(BOB);
        (!is_answered(&again, Duration::from_millis(50))).then_some(())
    });
}

// P6.5
#[test]
fn who_holds_a_mount_or_waits_has_no_place_of_those_that_ask() {
    let fixture = Fixture::new();
    let uid = rustix::process::getuid().as_raw();
    let connect = || fixture.connected_as(uid);
    let dir = fixture.base().join("held");
    fs::create_dir(&dir).unwrap();
    let (holds, follows, waits) = (connect(), connect(), connect());
    assert!(asked(&holds, &json!({"mount": {"dir": dir, "hold": true}})).contains("mounted"));
    assert!(asked(&follows, &json!({"do": {"watch": {"glob": "**"}}})).contains("idle"));
    (&waits).write_all(&ask_line(&json!({"do": {"claim": {"wait_ms": 600_000}}}))).unwrap();
    // Of those before some may not have been seen to be gone yet.
    until_polled("all places to be free", || {
        let all: Vec<UnixStream> = (0..CONNECTIONS_MAX).map(|_| connect()).collect();
        asked(all.last().unwrap(), &json!("ps")).contains("mounts").then_some(())
    });
    drop(holds);
    until_polled("the mount to end with its holder", || {
        let list = fixture.workfs(&["ps", "--json"]);
        (list.code == 0 && list.json().to_string().matches("\"dir\"").count() == 1).then_some(())
    });
}

/// How many answers to `ps` the daemon can send before it must wait for who asked, and their length.
fn answers_that_fit(stream: &UnixStream) -> (u64, u64) {
    let ask = ask_line(&json!("ps"));
    (&mut &*stream).write_all(&ask.repeat(2000)).unwrap();
    // It waits for so long, and hangs up.
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    let patience = Timespec::try_from(DEADLINE).unwrap();
    assert_eq!(poll(&mut fds, Some(&patience)).unwrap(), 1);
    let all = ioctl_fionread(stream).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    (all / line.len() as u64, line.len() as u64)
}

/// The lines of events that come before the report.
fn events_of(stream: &UnixStream) -> usize {
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let is_event = |line: &String| line.starts_with("{\"reply\":{\"line\"");
    lines.by_ref().take_while(|line| !line.contains("\"report\"")).filter(is_event).count()
}

// P6.5 P8.1
#[test]
fn who_reads_events_at_leisure_misses_none_and_holds_up_no_end() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir_all(&dir).unwrap();
    // More than lie between the daemon and who reads nothing.
    (0..800).for_each(|nth| fs::write(dir.join("x"), format!("{nth}")).unwrap());
    let uid = rustix::process::getuid().as_raw();
    let log = json!({"do": {"log": {"json": true}}});
    let watch = json!({"do": {"watch": {"glob": "**", "since": 0, "timeout_s": 0, "json": true}}});
    let asking = |ask| {
        let stream = fixture.connected_as(uid);
        (&stream).write_all(&ask_line(ask)).unwrap();
        stream
    };
    let (logs, watches, deaf) = (asking(&log), asking(&watch), asking(&log));
    let at_once = [&log, &watch].map(|ask| events_of(&asking(ask)));
    assert!(at_once.iter().all(|count| *count >= 800), "{at_once:?}");
    std::thread::sleep(SOCKET_PATIENCE + Duration::from_secs(3));
    assert_eq!([&logs, &watches].map(events_of), at_once);
    let begin = Instant::now();
    fixture.unmount_all();
    fixture.await_no_daemon();
    assert!(begin.elapsed() < SOCKET_PATIENCE / 2, "{:?}", begin.elapsed());
    drop(deaf);
}

// P10.7
#[test]
fn the_directory_of_who_is_gone_before_it_could_mount_goes() {
    let fixture = Fixture::new();
    let (uid, dir) = (rustix::process::getuid().as_raw(), fixture.outside("own"));
    fs::create_dir(&dir).unwrap();
    let stream = fixture.connected_as(uid);
    let ask = json!({"dir": dir, "hold": true, "temporary": true, "private": true});
    assert_eq!(asked(&stream, &json!({ "mount": ask })), "\"send_connection\"\n");
    drop(stream);
    until_polled("its directory goes", || (!dir.exists()).then_some(()));
}

// P6.5 P9.9
#[test]
fn who_waits_and_takes_no_answer_holds_up_nobody_who_waits() {
    let fixture = Fixture::new();
    let uid = rustix::process::getuid().as_raw();
    let (count, length) = answers_that_fit(&fixture.connected_as(uid));
    let claim = |agent| json!({"do": {"claim": {"agent": agent, "wait_ms": 600_000}}});
    let deaf = |_| {
        let stream = fixture.connected_as(uid);
        (&stream).write_all(&ask_line(&json!("ps")).repeat(count as usize)).unwrap();
        until_polled("the answers", || {
            (ioctl_fionread(&stream).unwrap() == count * length).then_some(())
        });
        (&stream).write_all(&ask_line(&claim("bob"))).unwrap();
        stream
    };
    let first: Vec<UnixStream> = (0..2).map(deaf).collect();
    let serving = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", fixture.daemon_pid())).unwrap().flatten();
        let names = tasks.flat_map(|task| fs::read_to_string(task.path().join("comm")));
        names.filter(|name| name.starts_with("client-")).count()
    };
    until_polled("them to wait", || (serving() == 0).then_some(()));
    let waits = fixture.connected_as(uid);
    (&waits).write_all(&ask_line(&claim("ann"))).unwrap();
    until_polled("one more to wait", || (serving() == 0).then_some(()));
    fixture.task("inbox", &Task::new("t-1"));
    let begin = Instant::now();
    let mut said = String::new();
    BufReader::new(&waits).read_line(&mut said).unwrap();
    assert!(said.contains("work/assigned/ann/t-1.yaml"), "{said}");
    assert!(begin.elapsed() < SOCKET_PATIENCE / 2, "{:?}", begin.elapsed());
    // Each that did not hear of it has given it back.
    let names = ["created", "claimed", "released", "claimed", "released", "claimed"];
    assert_eq!(fixture.ledger().names("t-1"), names);
    drop(first);
    fixture.fsck_clean();
}
