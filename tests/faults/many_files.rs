//! Ten thousand open files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::Signal;

use crate::harness::{
    Errno, Fixture, Setup, Task, left_out, lies, mounted_below, needs, pile, program, run, save,
    send_signal, set_soft_open_files, until_polled,
};

const FILES: usize = 10_000;

/// Lets go of what the tests themselves were started with.
const CLOSED: &str = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-";

/// What the daemon has in memory, in MiB.
fn resident_mib(fixture: &Fixture) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", fixture.daemon_pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() >> 10
}

/// A record of almost 1 MiB.
fn large(fixture: &Fixture) -> std::path::PathBuf {
    let notes = format!("notes: |\n{}", format!("  {}\n", "x".repeat(998)).repeat(1000));
    fixture.task("inbox", &Task::new("large").with(&notes))
}

// P6.6
#[test]
fn a_text_that_is_open_many_times_is_in_memory_once() {
    const TIMES: usize = 400;
    if !set_soft_open_files(4_000) {
        return left_out("this process may not open so many files");
    }
    let fixture = Fixture::new();
    let path = large(&fixture);
    let draft = fixture.path("work/inbox/bad.yaml");
    save(&draft, format!("status: {}", "x".repeat(900_000)).as_bytes()).unwrap_err();
    let rejected = fs::read_dir(fixture.path(".workfs/rejected")).unwrap().next().unwrap().unwrap();
    let before = resident_mib(&fixture);
    for path in [path, draft, rejected.path()] {
        let files: Vec<File> = (0..TIMES).map(|_| File::open(&path).unwrap()).collect();
        let grown = resident_mib(&fixture).saturating_sub(before);
        assert!(grown < 150, "{grown} MiB for {TIMES} times {}", path.display());
        drop(files);
    }
}

// P6.6
#[test]
fn a_store_is_not_left_behind_for_want_of_descriptors() {
    // With a few more the daemon serves for a while, and can take no connection.
    for limit in (4..17).chain(20..24) {
        let fixture = Setup::default().prepare();
        let (workfs, store) = (program(), fixture.store().display());
        let dir = fixture.root().display();
        let script =
            format!("{CLOSED}; ulimit -n {limit}; exec {workfs} --store {store} mount {dir}");
        let ran = fixture.sh(&format!("cd /; ({script})"));
        // As a limit that was met, wherever it was.
        assert_eq!(ran.code, 75, "{limit}: {ran}");
        fixture.await_no_daemon();
        let beside = fs::read_dir(fixture.store().parent().unwrap()).unwrap();
        let names: Vec<_> = beside.map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.is_empty(), "{limit}: {names:?}, {ran}");
    }
}

// P6.6
#[test]
fn who_takes_in_or_out_without_descriptors_hears_of_that_limit() {
    let fixture = Setup::default().prepare();
    let beside = fixture.store().parent().unwrap();
    let (from, to) = (beside.join("from"), beside.join("to"));
    fs::create_dir_all(from.join("a/b")).unwrap();
    for name in ["x", "a/y", "a/b/z"] {
        fs::write(from.join(name), name).unwrap();
    }
    let (workfs, store) = (program(), fixture.store().display());
    let made = fixture.sh(&format!("cd /; {workfs} --store {store} init"));
    assert_eq!(made.code, 0, "{made}");
    let commands =
        [format!("import {} taken", from.display()), format!("export {} --force", to.display())];
    let mut done = [false; 2];
    for limit in 4..40 {
        for (nth, command) in commands.iter().enumerate() {
            let script =
                format!("{CLOSED}; ulimit -n {limit}; exec {workfs} --store {store} {command}");
            let ran = fixture.sh(&format!("cd /; ({script})"));
            let is_told = ran.code == 75 && ran.to_string().contains("raise the limit");
            // What an export has written before it lacked one, the next does not overwrite.
            let is_done = ran.code == 0 || (nth == 1 && ran.code == 11);
            assert!(is_told || is_done && limit > 10, "{limit} {command}: {ran}");
            assert!(is_done || !done[nth], "{limit} {command}: {ran}");
            done[nth] |= is_done;
        }
    }
    assert_eq!(done, [true; 2]);
}

// P6.6
#[test]
fn what_is_written_to_open_records_has_a_limit_for_a_user() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let mut files = Vec::new();
    let refused = (0..400).find_map(|_| {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let staged = file.set_len(1 << 20);
        files.push(file);
        staged.err()
    });
    let refused = refused.expect("all was taken");
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::MFILE));
    assert!((200..=256).contains(&files.len()), "{} MiB", files.len());
    drop(files);
    let text = fs::read(&path).unwrap();
    fs::write(&path, [&text[..], b"x: 1\n"].concat()).unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), text.len() + 5);
    fixture.fsck_clean();
}

// P6.6
#[test]
fn ten_thousand_open_files_hinder_nobody() {
    if !set_soft_open_files(FILES as u64 + 2_000) {
        return left_out("this process may not open ten thousand files");
    }
    let fixture = Fixture::new();
    let ids = fixture.tasks(100);
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    for nth in 0..100 {
        fs::write(fixture.path(&format!("scratchpad/f{nth}")), format!("plain {nth}")).unwrap();
    }
    let path = |nth: usize| match nth % 2 {
        0 => fixture.work().join(format!("inbox/{}.yaml", ids[nth / 2 % 100])),
        _ => fixture.path(&format!("scratchpad/f{}", nth / 2 % 100)),
    };
    let files: Vec<File> = (0..FILES).map(|nth| File::open(path(nth)).unwrap()).collect();
    // Others open, save and claim as if nothing were.
    fixture
        .sh("mv work/inbox/t-00*.yaml work/assigned/bob/; echo x > f; ls -l work/inbox")
        .success();
    fixture.task("inbox", &Task::new("new"));
    for (nth, mut file) in files.into_iter().enumerate() {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        match nth % 2 {
            0 => assert_eq!(text, Task::new(&ids[nth / 2 % 100]).text(), "the opened version"),
            _ => assert_eq!(text, format!("plain {}", nth / 2 % 100)),
        }
    }
    let pile = pile(&fixture.work());
    for id in &ids {
        let place = if id.as_str() < "t-0100" { "assigned/bob" } else { "inbox" };
        assert_eq!(lies(&fixture.work(), &pile, id), place);
    }
    fixture.fsck_clean();
}

// P6.6
#[test]
fn who_is_at_the_socket_leaves_descriptors_to_who_reads_in_a_mount() {
    if !needs(&["prlimit"]) {
        return;
    }
    let fixture = Fixture::new();
    let daemon = fixture.daemon_pid();
    for nth in 0..100 {
        fs::write(fixture.path(&format!("f{nth}")), format!("plain {nth}")).unwrap();
    }
    let open = || fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().count() as u64;
    let limit = |soft: &str| {
        let mut command = std::process::Command::new("prlimit");
        run(command.args([&format!("--pid={daemon}"), &format!("--nofile={soft}:")])).success();
    };
    limit(&(open() + 20).to_string());
    // Each stays for as long as it may say nothing.
    let socket = || fixture.connected_as(rustix::process::geteuid().as_raw());
    let mut clients: Vec<_> = (0..20).map(|_| socket()).collect();
    let mut said = String::new();
    clients.pop().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("keeps the last for its mounts"), "{said}");
    let refused = fixture.workfs(&["list"]);
    assert!(refused.code == 75 && refused.stderr.contains("`ulimit -n`"), "{refused}");
    // More at once than there are connections to the store, or descriptors for them.
    let root = fixture.root().to_owned();
    let read = || {
        for nth in 0..10 {
            let text = fs::read_to_string(root.join(format!("f{nth}"))).unwrap();
            assert_eq!(text, format!("plain {nth}"));
            assert!(fs::read_dir(&root).unwrap().count() > 100);
        }
    };
    std::thread::scope(|scope| (0..16).for_each(|_| drop(scope.spawn(read))));
    drop(clients);
    limit("1024");
    fixture.workfs(&["list"]).success();
    fixture.fsck_clean();
}

// P6.3 P6.6
#[test]
fn a_mount_that_cannot_be_held_for_want_of_a_descriptor_does_not_stay() {
    if !needs(&["prlimit"]) {
        return;
    }
    let fixture = Fixture::new();
    let (daemon, dir) = (fixture.daemon_pid(), fixture.outside("held"));
    fs::create_dir(&dir).unwrap();
    let limit = |soft: &str| {
        let mut command = std::process::Command::new("prlimit");
        run(command.args([&format!("--pid={daemon}"), &format!("--nofile={soft}:")])).success();
    };
    let open = || fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().flatten();
    let nobody_is_connected = || {
        let socket = |file: &fs::DirEntry| {
            let to = fs::read_link(file.path()).unwrap_or_default();
            to.to_str().is_some_and(|to| to.starts_with("socket:"))
        };
        // The one that listens it has twice.
        until_polled("the clients have left", || {
            (open().filter(socket).count() <= 2).then_some(())
        });
    };
    nobody_is_connected();
    let number = |file: fs::DirEntry| file.file_name().to_str()?.parse::<u32>().ok();
    let last = open().filter_map(number).max().unwrap();
    let (mut tried, mut known, mut was_refused) = (0, 0, false);
    for more in 2..40 {
        nobody_is_connected();
        limit(&(last + more).to_string());
        let mut command = fixture.command(&["mount", "-f", "--json", dir.to_str().unwrap()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut told = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut told).unwrap();
        let is_held = !told.is_empty();
        if is_held {
            send_signal(child.id(), Signal::TERM);
        }
        limit("1024");
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        until_polled("no mount stays", || (mounted_below(fixture.base()).len() == 1).then_some(()));
        let log = fs::read_to_string(fixture.store().with_extension("db.log")).unwrap();
        tried += 1;
        // By this limit it was the threads of the mount itself that lacked one, after it was told of.
        let broken_off = log.matches("the session ended with an error").count();
        if broken_off > std::mem::replace(&mut known, broken_off) {
            continue;
        }
        let expected = Some(if is_held { 0 } else { 75 });
        assert_eq!(ended.status.code(), expected, "{more}: {said}{log}");
        if is_held {
            break;
        }
        assert!(said.contains("Too many open files"), "{more}: {said}");
        was_refused = true;
    }
    assert!(was_refused && tried < 30, "{tried}");
}
