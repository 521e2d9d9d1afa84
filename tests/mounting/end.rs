//! The end of a mount, wanted and unwanted.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use workfs::limits::DAEMON_ANSWER_WAIT;

use crate::harness::{
    Errno, Fixture, Setup, Task, await_end, cut_off, left_out, lies, mounted_below, pid_alive,
    pile, processes_of, program, run, send_signal, until_polled,
};
use crate::{CONTROL, ends_connections};

#[track_caller]
fn nothing_is_left(fixture: &Fixture, pid: u32) {
    await_end(pid);
    assert!(mounted_below(fixture.base()).is_empty());
    assert!(processes_of(fixture.store()).is_empty());
    for mount in fixture.mounts() {
        assert_eq!(fs::read_dir(mount).unwrap().count(), 0);
        fs::write(mount.join("probe"), b"").expect("the directory is as it was");
        fs::remove_file(mount.join("probe")).unwrap();
    }
}

/// The log has been moved into the store.
#[track_caller]
fn the_store_is_one_file(fixture: &Fixture) {
    for ending in ["db-wal", "db-shm"] {
        let path = fixture.store().with_extension(ending);
        assert!(!path.exists(), "{}", path.display());
    }
}

// P6.3
#[test]
fn unmount_of_the_last_mount_ends_the_daemon() {
    let fixture = Setup::default().mounts(2).start();
    let pid = fixture.daemon_pid();
    fixture.workfs(&["unmount", fixture.mount(1).to_str().unwrap()]).success();
    assert_eq!(mounted_below(fixture.base()), [fixture.mount(0)]);
    fs::read_dir(fixture.root()).unwrap();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.workfs(&["unmount", fixture.mount(0).to_str().unwrap()]).success();
    nothing_is_left(&fixture, pid);
    the_store_is_one_file(&fixture);
}

// P6.3
#[test]
fn sigterm_unmounts_all_and_keeps_what_was_done() {
    let fixture = Setup::default().mounts(2).start();
    fixture.task("inbox", &Task::new("t-1"));
    let pid = fixture.daemon_pid();
    send_signal(pid, Signal::TERM);
    await_end(pid);
    nothing_is_left(&fixture, pid);
    the_store_is_one_file(&fixture);
    fixture.mount_all();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    fixture.fsck_clean();
}

// P6.3
#[test]
fn a_mount_that_somebody_stands_in_ends_too() {
    let fixture = Fixture::new();
    let pid = fixture.daemon_pid();
    let file = fs::File::create(fixture.path("open")).unwrap();
    let mut child = std::process::Command::new("sleep");
    let mut child = child.arg("600").current_dir(fixture.work()).spawn().unwrap();
    let ran = fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]);
    println!("{ran}");
    if ran.ok() {
        assert!(mounted_below(fixture.base()).is_empty());
    } else {
        // Then it says so, and nothing has changed.
        assert!(ran.stderr.to_lowercase().contains("use"), "{ran}");
        fs::read_dir(fixture.root()).unwrap();
        send_signal(pid, Signal::TERM);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(file);
    await_end(pid);
    nothing_is_left(&fixture, pid);
    the_store_is_one_file(&fixture);
}

// P6.3
#[test]
fn whoever_stays_in_a_mount_does_not_keep_the_store_open() {
    for is_detached in [false, true] {
        let fixture = Setup::default().mounts(2).start();
        if is_detached && !ends_connections() {
            // A mount without a place can be ended by the control file system only, and whether that is
            // mounted is the machine's business: P6.3 says so.
            eprintln!("left out: a detached mount, since {CONTROL} is not mounted");
            return;
        }
        let pid = fixture.daemon_pid();
        fixture.task("inbox", &Task::new("t-1"));
        let file = fs::File::open(fixture.path("work/inbox/t-1.yaml")).unwrap();
        let child = std::process::Command::new("sleep")
            .arg("600")
            .current_dir(fixture.mount(1).join("work"))
            .spawn();
        let mut child = child.unwrap();
        if is_detached {
            let dir = fixture.mount(1).to_str().unwrap();
            fixture.workfs(&["unmount", "--lazy", dir]).success();
        }
        send_signal(pid, Signal::TERM);
        await_end(pid);
        let stayed = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(stayed && std::io::read_to_string(file).is_err());
        nothing_is_left(&fixture, pid);
        the_store_is_one_file(&fixture);
        fixture.mount_all();
        fixture.fsck_clean();
    }
}

// P6.3
#[test]
fn a_daemon_whose_socket_is_gone_can_be_ended() {
    let fixture = Setup::default().mounts(1).start();
    let pid = fixture.daemon_pid();
    fs::remove_file(fixture.store().with_extension("db.sock")).unwrap();
    for arguments in [&["unmount", "--all"][..], &["ps"], &["list"]] {
        let ran = fixture.workfs(arguments);
        assert_eq!(ran.code, 9, "{ran}");
        assert!(ran.stderr.contains(&format!("`kill {pid}`")), "{ran}");
        assert!(ran.stderr.contains("`workfs unmount DIR`"), "{ran}");
    }
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    nothing_is_left(&fixture, pid);
    the_store_is_one_file(&fixture);
}

// P6.4
#[test]
fn a_dead_mount_is_healed_by_the_next_mount() {
    let fixture = Setup::default().mounts(2).start();
    fixture.task("inbox", &Task::new("t-1"));
    let seen = fs::File::open(fixture.path("work/inbox/t-1.yaml")).unwrap();
    fixture.kill_daemon();
    // A dead mount answers at once, with an error.
    let error = fs::read_dir(fixture.root()).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOTCONN));
    assert!(std::io::read_to_string(seen).is_err());
    fixture.mount_all();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    assert_eq!(mounted_below(fixture.base()).len(), 2, "nothing lies on a dead mount");
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.fsck_clean();
}

// P6.4
#[test]
fn a_dead_mount_can_be_unmounted() {
    let fixture = Fixture::new();
    let pid = fixture.daemon_pid();
    fixture.kill_daemon();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    nothing_is_left(&fixture, pid);
}

// P6.4
#[test]
fn unmount_all_takes_away_what_a_killed_daemon_has_left() {
    let fixture = Setup::default().mounts(2).start();
    let pid = fixture.daemon_pid();
    fixture.kill_daemon();
    let ran = fixture.workfs(&["unmount", "--all", "--json"]).success();
    assert_eq!(ran.json()["unmounted"].as_array().unwrap().len(), 2, "{ran}");
    nothing_is_left(&fixture, pid);
    assert_eq!(fixture.workfs(&["unmount", "--all"]).code, 3, "there is nothing any more");
    // Also where a newer daemon serves another mount.
    fixture.mount_all();
    fixture.kill_daemon();
    fixture.mount_at(fixture.root()).success();
    let pid = fixture.daemon_pid();
    fixture.workfs(&["unmount", "--all"]).success();
    nothing_is_left(&fixture, pid);
}

// P6.4
#[test]
fn a_dead_mount_with_others_in_it_is_not_taken_from_below_them() {
    if !rustix::process::geteuid().is_root() {
        return left_out("another mount needs root");
    }
    let fixture = Fixture::new();
    let (dir, inner) = (fixture.root().to_str().unwrap(), fixture.path("notes"));
    let volume =
        |words: &[&str]| run(Command::new(words[0]).args(&words[1..]).arg(&inner)).success();
    for is_lazy in [false, true] {
        fs::create_dir_all(&inner).unwrap();
        volume(&["mount", "-t", "tmpfs", "none"]);
        fs::write(inner.join("kept"), b"x").unwrap();
        fixture.kill_daemon();
        for command in [&["mount", dir][..], &["unmount", dir], &["unmount", "--all"]] {
            let ran = fixture.workfs(command).failure();
            let named = format!("others lie in it: {} (tmpfs)", inner.display());
            assert!(ran.code == 5 && ran.stderr.matches(&named).count() == 1, "{ran}");
            assert!(fs::read(inner.join("kept")).is_ok());
        }
        if is_lazy {
            fixture.workfs(&["unmount", "--lazy", dir]).success();
            assert!(mounted_below(fixture.base()).is_empty());
        } else {
            volume(&["umount"]);
            fixture.mount_all();
        }
    }
}

// P6.4
#[test]
fn who_waits_in_front_hears_that_the_mount_broke_off() {
    let fixture = Setup::default().mounts(2).start();
    let dir = fixture.mount(1).to_str().unwrap();
    let start = || {
        let mut front = fixture.command(&["mount", "-f", dir]);
        let front = front.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        until_polled("its mount", || {
            let mounts = fixture.workfs(&["ps"]).stdout;
            mounts.contains(dir).then_some(())
        });
        front
    };
    fixture.workfs(&["unmount", dir]).success();
    // What ends it in order is no failure.
    let front = start();
    fixture.workfs(&["unmount", dir]).success();
    let told = start();
    send_signal(told.id(), Signal::TERM);
    for ended in [front, told].map(|front| front.wait_with_output().unwrap()) {
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
    let front = start();
    fixture.kill_daemon();
    let ended = front.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(8), "{said}");
    assert!(said.contains(&format!("{dir} broke off")), "{said}");
}

// P6.4
#[test]
fn commands_work_after_the_daemon_has_died() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.kill_daemon();
    let listed = fixture.workfs(&["list", "--json"]).success();
    assert!(listed.stdout.contains("t-1"), "{listed}");
    fixture.fsck_clean();
}

// P6.7
#[test]
fn a_stopped_daemon_hangs_no_command() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let pid = fixture.daemon_pid();
    let copy = fixture.outside("copy.db");
    let commands: [&[&str]; 8] = [
        &["status"],
        &["ps"],
        &["list"],
        &["log", "--follow"],
        &["claim", "t-1", "--agent", "bob"],
        &["claim", "--wait", "--timeout", "1s", "--agent", "bob"],
        &["watch", "**", "--timeout", "1s"],
        &["backup", copy.to_str().unwrap()],
    ];
    send_signal(pid, Signal::STOP);
    let deadline = Duration::from_secs(60);
    let ran: Vec<_> = std::thread::scope(|scope| {
        let fixture = &fixture;
        let run = commands.map(|command| {
            scope.spawn(move || {
                let start = Instant::now();
                let ran = fixture.workfs_within(command, deadline);
                // Its own time counts from its start, whatever the daemon does.
                let is_late = start.elapsed() > Duration::from_secs(8);
                assert!(!command.contains(&"--timeout") || !is_late, "{ran}");
                // Who asked is told before he would think that it hangs.
                assert!(start.elapsed() < DAEMON_ANSWER_WAIT, "{ran}");
                ran
            })
        });
        run.into_iter().map(|one| one.join().unwrap()).collect()
    });
    send_signal(pid, Signal::CONT);
    for ran in ran {
        assert_eq!(ran.code, 75, "{ran}");
        let [store, process] = [fixture.store().to_str().unwrap(), &format!("process {pid}")];
        let (what, way) = ("stopped, does not answer", format!("`kill -CONT {pid}`"));
        let says = |text: &str| ran.stderr.contains(text);
        assert!([store, process, what, &way].into_iter().all(says), "{ran}");
    }
    // What was asked for is not done behind the back of whoever was told that it was not.
    fixture.workfs(&["status"]).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    assert!(!copy.exists());
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
}

// P6.7
#[test]
fn the_mount_of_a_stopped_daemon_is_taken_from_sight() {
    let fixture = Fixture::new();
    let pid = fixture.daemon_pid();
    send_signal(pid, Signal::STOP);
    let dir = fixture.root().to_str().unwrap();
    let [kept, gone] = [&["unmount", dir][..], &["unmount", "--lazy", dir]].map(|arguments| {
        // Nor does it go by which programs its caller finds.
        let ran = run(fixture.command(arguments).env("PATH", "/nowhere"));
        (ran.code, mounted_below(fixture.base()).is_empty(), ran)
    });
    send_signal(pid, Signal::CONT);
    assert!(kept.0 == 75 && !kept.1 && kept.2.stderr.contains("--lazy"), "{}", kept.2);
    assert!(gone.0 == 0 && gone.1, "{}", gone.2);
    // It was its last one.
    nothing_is_left(&fixture, pid);
}

// P6.3
#[test]
fn a_fixture_leaves_nothing_also_when_its_test_fails() {
    let (mut base, mut store, mut pid) = (None, None, 0);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let fixture = Setup::default().mounts(2).start();
        base = Some(fixture.base().to_owned());
        store = Some(fixture.store().to_owned());
        pid = fixture.daemon_pid();
        fixture.kill_daemon();
        fixture.mount_at(fixture.root()).success();
        pid = fixture.daemon_pid();
        panic!("on purpose");
    }));
    assert!(failed.is_err());
    assert!(!base.as_ref().unwrap().exists());
    assert!(mounted_below(base.as_ref().unwrap()).is_empty());
    assert!(processes_of(store.as_ref().unwrap()).is_empty() && !pid_alive(pid));
}

// P6.4
#[test]
fn what_a_mount_had_open_when_it_was_cut_off_hinders_nobody() {
    let fixture = Setup::default().mounts(2).start();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let cut = fixture.mount(1);
    let opened = fs::OpenOptions::new().write(true).open(cut.join("work/inbox/t-1.yaml"));
    let mut writer = opened.unwrap();
    writer.write_all(b"id").unwrap();
    if let Err(error) = cut_off(cut, rustix::mount::UnmountFlags::DETACH) {
        return left_out(&format!("cutting a mount off needs root ({error})"));
    }
    assert_eq!(crate::harness::close(writer), Err(Errno::NOTCONN));
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    until_polled("the record is free", || fs::rename(&from, &to).ok());
    fixture.fsck_clean();
}

// P6.4 P10.3
#[test]
fn in_the_dead_mount_of_an_agent_nobody_acts_without_a_name() {
    let fixture = Fixture::new();
    let dir = fixture.base().join("eve");
    fs::create_dir(&dir).unwrap();
    fixture.workfs(&["mount", dir.to_str().unwrap(), "--agent", "eve"]).success();
    let other = fixture.base().join("other");
    fs::create_dir(&other).unwrap();
    // One cannot change to it any more; the last is where a newer daemon serves the store elsewhere.
    let script = format!(
        "cd \"$DIR\"; kill -9 {}; fs() {{ \"$WORKFS\" --store \"$STORE\" \"$@\"; echo $?; }}
         while stat -f . >/dev/null 2>&1; do :; done
         fs agent add intruder; fs claim; fs done t-1; fs txn -- true
         fs mount \"$OTHER\" >&2; fs claim",
        fixture.daemon_pid()
    );
    let shell = fixture.bash().with("WORKFS", program()).with("DIR", &dir);
    let ran = shell.with("STORE", fixture.store()).with("OTHER", &other).run(&script).success();
    assert_eq!(ran.stdout, "8\n".repeat(5), "{ran}");
    assert_eq!(ran.stderr.matches("eve is a dead mount").count(), 5, "{ran}");
    fixture.workfs(&["unmount", other.to_str().unwrap()]).success();
    let agents = fixture.workfs(&["agent", "list"]).success();
    assert!(!agents.stdout.contains("intruder"), "{agents}");
    fixture.workfs(&["unmount", dir.to_str().unwrap()]).success();
}

// P6.1 P6.3
#[test]
fn who_unmounts_waits_for_no_daemon_that_goes_on_with_another_s_mount() {
    let fixture = Setup::default().mounts(2).prepare();
    let [first, second] = [0, 1].map(|nth| fixture.mount(nth).to_str().unwrap().to_owned());
    let mut longest = Duration::ZERO;
    for round in 0..20 {
        fixture.workfs(&["mount", &first]).success();
        let mut mounting = fixture.command(&["mount", &second]);
        let mut mounting = mounting.stderr(Stdio::null()).spawn().unwrap();
        // Each time at another moment of the other's.
        std::thread::sleep(Duration::from_millis(round % 10));
        let begin = Instant::now();
        fixture.workfs(&["unmount", &first]).success();
        longest = longest.max(begin.elapsed());
        assert!(mounting.wait().unwrap().success());
        fixture.workfs(&["unmount", "--all"]).success();
    }
    assert!(longest < DAEMON_ANSWER_WAIT / 2, "{longest:?}");
}

// P6.1 P6.2
#[test]
fn who_mounts_while_the_daemon_ends_gets_the_next_one() {
    let fixture = Setup::default().mounts(2).prepare();
    let [first, second] = [0, 1].map(|nth| fixture.mount(nth).to_str().unwrap().to_owned());
    for round in 0..40 {
        // Each time at another moment of the daemon's life.
        let later = |step: u64| std::thread::sleep(Duration::from_millis(round * step % 43));
        let start = |arguments: &[&str]| {
            let mut command = fixture.command(arguments);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut mounts = vec![start(&["mount", &first])];
        later(7);
        let mut ends = start(&["unmount", "--all"]);
        mounts.push(start(&["mount", &second]));
        later(11);
        mounts.push(start(&["mount", &first]));
        for mount in mounts {
            let ended = mount.wait_with_output().unwrap();
            assert!(ended.status.success(), "round {round}: {ended:?}");
        }
        // It may have come before there was a daemon.
        ends.wait().unwrap();
        fixture.workfs(&["unmount", "--all"]);
    }
}

// P6.1
#[test]
fn who_mounts_with_another_level_when_all_was_unmounted_gets_the_next_daemon() {
    if !rustix::process::geteuid().is_root() {
        return left_out("umount(8) needs root");
    }
    let fixture = Setup::default().mounts(2).prepare();
    let mounts = [0, 1].map(|nth| fixture.mount(nth).to_str().unwrap());
    for round in 0..24 {
        let [sync, other] = if round % 2 == 0 { ["full", "normal"] } else { ["normal", "full"] };
        let (dir, next) = (mounts[round % 2], mounts[(round + 1) % 2]);
        fixture.workfs(&["mount", dir, "--sync", sync]).success();
        // Where anything is left that it serves, it says no.
        let refused = fixture.workfs(&["mount", next, "--sync", other]).failure();
        assert_eq!(refused.code, 5, "{refused}");
        // Not by workfs, which would wait for the daemon's end.
        run(Command::new("umount").arg(dir)).success();
    }
}
