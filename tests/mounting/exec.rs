//! `workfs exec`: a command in a mount of its own, of which nothing is left.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::harness::{
    DEADLINE, Fixture, Ran, Setup, Task, await_end, await_exit, is_ignored, mounted_below, needs,
    pid_alive, processes_of, program, prompt, python, run, send_signal, until_polled,
};
use crate::{may_have_a_name_space, with_devices, without_fuse};

/// Where the mounts of a fixture's commands lie.
fn place(fixture: &Fixture) -> PathBuf {
    let place = fixture.outside("exec");
    fs::create_dir_all(&place).unwrap();
    place
}

/// `workfs exec ARGUMENTS`, to be run or started.
fn exec(fixture: &Fixture, arguments: &[&str]) -> Command {
    let mut command = fixture.command(&["exec"]);
    command.args(arguments).env("TMPDIR", place(fixture)).env("OUT", fixture.outside(""));
    command
}

/// Bash as bob.
fn as_bob(fixture: &Fixture, script: &str) -> Ran {
    run(&mut exec(fixture, &["--agent", "bob", "--", "bash", "-c", script]))
}

/// Starts a command of bob that tells its process in a file, and waits until it has.
fn started(mut command: Command, fixture: &Fixture) -> (Child, u32) {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let told = fixture.outside("pid");
    let pid =
        until_polled("the command runs", || fs::read_to_string(&told).ok()?.trim().parse().ok());
    fs::remove_file(told).unwrap();
    (child, pid)
}

/// Tells its process, whole, and goes on.
const TELL: &str = "echo $$ > $OUT/pid.new; mv $OUT/pid.new $OUT/pid;";

#[track_caller]
fn nothing_is_left(fixture: &Fixture) {
    fixture.await_no_daemon();
    assert_eq!(fs::read_dir(place(fixture)).unwrap().count(), 0);
    assert!(mounted_below(fixture.base()).is_empty());
}

// P10.7
#[test]
fn a_command_runs_in_a_mount_of_its_own_and_nothing_is_left() {
    let fixture = Setup::default().prepare();
    let ran = as_bob(
        &fixture,
        "pwd; echo $WORKFS_AGENT $WORKFS_ROLE; test $PWD = $WORKFS_MOUNT || exit 1
         echo $WORKFS_STORE; mkdir -p work/inbox work/assigned/bob
         echo 'title: x' > work/inbox/t-1.yaml && mv work/inbox/t-1.yaml work/assigned/bob/",
    )
    .success();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(Path::new(lines[0]).starts_with(place(&fixture)), "{ran}");
    assert_eq!(lines[1..], ["bob agent", fixture.store().to_str().unwrap()]);
    // It has ended when the command returns.
    assert!(processes_of(fixture.store()).is_empty());
    nothing_is_left(&fixture);
    assert_eq!(fixture.ledger().of_record("t-1")[1].text("actor"), "bob");
    fixture.fsck_clean();
}

// P10.7
#[test]
fn the_command_s_end_is_told_as_a_shell_tells_it() {
    let fixture = Setup::default().prepare();
    let code = |script: &str| as_bob(&fixture, script).code;
    assert_eq!(code("exit 0"), 0);
    assert_eq!(code("exit 37"), 37);
    assert_eq!(code("kill -KILL $$"), 137);
    assert_eq!(code("kill -SEGV $$"), 139);
    let one = |arguments: &[&str]| run(&mut exec(&fixture, arguments)).code;
    assert_eq!(one(&["no-such-command"]), 127);
    assert_eq!(one(&["/etc/passwd"]), 126);
    assert_eq!(one(&[]), 2);
    assert_eq!(one(&["--agent", "b b", "true"]), 2);
    assert_eq!(one(&["--root", "nowhere", "true"]), 4);
    // What follows the command is the command's.
    let ran = run(&mut exec(&fixture, &["echo", "--agent", "-x"])).success();
    assert_eq!(ran.stdout, "--agent -x\n");
    nothing_is_left(&fixture);
}

// P10.7
#[test]
fn at_a_running_daemon_nobody_else_sees_the_mount_and_the_command_sees_no_other() {
    if !may_have_a_name_space() {
        return;
    }
    let fixture = Setup::default().mounts(2).start();
    fixture.task("inbox", &Task::new("t-1"));
    let seen = "grep -c fuse.workfs /proc/self/mountinfo; ls $M0 | wc -l";
    let script = format!("{TELL} mv inbox/t-1.yaml assigned/bob/; {seen}; exec sleep 600");
    let mut command =
        exec(&fixture, &["--agent", "bob", "--root", "work", "--", "bash", "-c", &script]);
    command.env("M0", fixture.root());
    let (mut child, pid) = started(command, &fixture);
    until_polled("it has claimed", || {
        fixture.path("work/assigned/bob/t-1.yaml").exists().then_some(())
    });
    assert_eq!(mounted_below(fixture.base()).len(), 2);
    let mounts = fixture.workfs(&["ps", "--json"]).success().json()["mounts"].clone();
    assert_eq!((&mounts[2]["agent"], &mounts[2]["private"]), (&"bob".into(), &true.into()));
    assert_eq!(mounts[2]["root"], "work");
    let dir = mounts[2]["dir"].as_str().unwrap();
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "it is seen there only");
    // Whom it belongs to takes it away, nobody else.
    fixture.workfs(&["unmount", dir]).failure();
    send_signal(pid, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(fixture.workfs(&["ps", "--json"]).json()["mounts"].as_array().unwrap().len(), 2);

    let mut command = exec(&fixture, &["bash", "-c", seen]);
    let ran = run(command.env("M0", fixture.root())).success();
    assert_eq!(ran.stdout, "1\n0\n");
    assert_eq!(fixture.ledger().of_record("t-1")[1].text("actor"), "bob");
    fixture.unmount_all();
    nothing_is_left(&fixture);
}

// P10.7
#[test]
fn signals_are_passed_on() {
    let fixture = Fixture::new();
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
    ] {
        if is_ignored(signal) {
            continue;
        }
        let script = format!(
            "trap 'echo {name} > $OUT/told; exit 9' {name}; {TELL} while :; do sleep 0.02; done"
        );
        let command = exec(&fixture, &["--agent", "bob", "--", "bash", "-c", &script]);
        let (mut child, _) = started(command, &fixture);
        send_signal(child.id(), signal);
        assert_eq!(child.wait().unwrap().code(), Some(9), "{name}");
        assert_eq!(fs::read_to_string(fixture.outside("told")).unwrap().trim(), name);
    }
    assert_eq!(fs::read_dir(place(&fixture)).unwrap().count(), 0);
}

// P10.7
#[test]
fn the_end_of_the_terminal_is_passed_on() {
    if is_ignored(Signal::HUP) {
        return;
    }
    let fixture = Fixture::new();
    // No other test's daemon is to have it, which openpty(3) does not promise.
    let flags = libc::O_NOCTTY | libc::O_CLOEXEC;
    let both = fs::File::options().read(true).write(true).custom_flags(flags).to_owned();
    let ours = both.open("/dev/ptmx").unwrap();
    // SAFETY: it is open; both calls take and give numbers.
    let theirs = unsafe {
        assert_eq!(libc::unlockpt(ours.as_raw_fd()), 0);
        libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, libc::O_RDWR | flags)
    };
    assert!(theirs >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: it was just opened, and is nobody else's.
    let theirs = unsafe { OwnedFd::from_raw_fd(theirs) };
    let script = format!("trap 'exit 9' HUP; {TELL} while :; do sleep 0.02; done");
    let mut command = exec(&fixture, &["--agent", "bob", "--", "bash", "-c", &script]);
    command.stdin(theirs);
    // SAFETY: only system calls are made between fork and exec.
    unsafe {
        // As the first command of a window, or of a session of ssh.
        command.pre_exec(|| {
            rustix::process::setsid()?;
            match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let (mut child, pid) = started(command, &fixture);
    drop(ours);
    let ended = await_exit(child.id(), DEADLINE / 4);
    if !ended {
        send_signal(pid, Signal::KILL);
    }
    assert_eq!((ended, child.wait().unwrap().code()), (true, Some(9)));
}

// P10.7
#[test]
fn who_is_killed_takes_the_command_and_the_mount_along() {
    let fixture = Setup::default().prepare();
    let script = format!("{TELL} exec sleep 600");
    let command = exec(&fixture, &["--agent", "bob", "--", "bash", "-c", &script]);
    let (mut child, pid) = started(command, &fixture);
    send_signal(child.id(), Signal::KILL);
    child.wait().unwrap();
    until_polled("the command ends", || (!pid_alive(pid)).then_some(()));
    until_polled("its directory goes", || {
        (fs::read_dir(place(&fixture)).unwrap().count() == 0).then_some(())
    });
    nothing_is_left(&fixture);
}

// P10.7
#[test]
fn what_the_command_leaves_running_keeps_the_mount_until_it_ends() {
    if !may_have_a_name_space() {
        return;
    }
    let fixture = Setup::default().prepare();
    let script = "mkdir -p work; (exec sleep 600) > /dev/null 2>&1 & echo $! > $OUT/pid";
    as_bob(&fixture, script).success();
    let pid: u32 = fs::read_to_string(fixture.outside("pid")).unwrap().trim().parse().unwrap();
    assert!(pid_alive(pid));
    assert_eq!(fs::read_dir(place(&fixture)).unwrap().count(), 0);
    let inside = PathBuf::from(format!("/proc/{pid}/cwd/work"));
    assert!(inside.is_dir(), "who works in it goes on");
    send_signal(pid, Signal::KILL);
    nothing_is_left(&fixture);
}

// P10.7
#[test]
fn the_end_of_the_daemon_does_not_end_the_command() {
    let fixture = Setup::default().prepare();
    let script =
        format!("trap 'ls work && exit 1; exit 5' USR1; {TELL} while :; do sleep 0.02; done");
    let command = exec(&fixture, &["--agent", "bob", "--", "bash", "-c", &script]);
    let (mut child, _) = started(command, &fixture);
    let daemon = fixture.daemon_pid();
    send_signal(daemon, Signal::TERM);
    await_end(daemon);
    send_signal(child.id(), Signal::USR1);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    nothing_is_left(&fixture);
}

// P10.7
#[test]
fn where_no_name_space_can_be_had_it_is_an_ordinary_mount_for_as_long() {
    if !may_have_a_name_space() || !needs(&["setpriv"]) {
        return;
    }
    let fixture = Fixture::new();
    let started_as = |script: &str| {
        let exec = exec(&fixture, &["--agent", "bob", "--", "bash", "-c", script]);
        let mut command = Command::new("setpriv");
        command.args(["--inh-caps", "-sys_admin", "--bounding-set", "-sys_admin"]);
        command.arg(exec.get_program()).args(exec.get_args()).current_dir(fixture.base());
        command.envs(exec.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    let ran = run(&mut started_as("ls -d work; grep -c $PWD /proc/1/mountinfo; exit 3"));
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "work\n1\n"), "{ran}");
    assert_eq!(fs::read_dir(place(&fixture)).unwrap().count(), 0);
    assert_eq!(mounted_below(fixture.base()).len(), 1);

    let (mut child, pid) = started(started_as(&format!("{TELL} exec sleep 600")), &fixture);
    assert_eq!(mounted_below(fixture.base()).len(), 2);
    send_signal(child.id(), Signal::KILL);
    child.wait().unwrap();
    assert!(await_exit(pid, DEADLINE));
    until_polled("its directory goes", || {
        (fs::read_dir(place(&fixture)).unwrap().count() == 0).then_some(())
    });
    assert_eq!(mounted_below(fixture.base()).len(), 1);
}

// P10.7 P6.1
#[test]
fn where_nothing_can_be_mounted_no_daemon_and_no_store_are_left() {
    let fixture = Setup::default().prepare();
    let nothing = |ran: Ran, code: i32, said: &str| {
        assert_eq!(ran.code, code, "{ran}");
        assert!(ran.stderr.contains(said), "{ran}");
        // The daemon ends when it has answered.
        fixture.await_no_daemon();
        assert_eq!(fs::read_dir(fixture.store().parent().unwrap()).unwrap().count(), 0);
    };
    let mut command = exec(&fixture, &["--", "true"]);
    let ran = run(command.env("TMPDIR", fixture.outside("none")));
    nothing(ran, 4, "set TMPDIR to a directory");
    // Set to nothing it counts as unset.
    let ran = run(exec(&fixture, &["--root", "none", "--", "true"]).env("TMPDIR", ""));
    nothing(ran, 4, "no directory `none`");
    nothing(run(&mut exec(&fixture, &["--agent", "a b", "--", "true"])), 2, "no agent's name");
    nothing(run(&mut exec(&fixture, &["--root", "none", "--", "true"])), 4, "no directory `none`");
    if !may_have_a_name_space() || !needs(&["unshare"]) {
        return;
    }
    if needs(&["setpriv"]) {
        let given = exec(&fixture, &["--", "true"]);
        let mut command = Command::new("setpriv");
        command.args(["--inh-caps", "-sys_admin", "--bounding-set", "-sys_admin"]);
        command.arg(given.get_program()).args(given.get_args()).current_dir(fixture.base());
        command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = run(&mut command);
        // Its directory is its own; nobody named it.
        assert!(!ran.stderr.contains("mount on a directory"), "{ran}");
        nothing(ran, 6, "a container needs CAP_SYS_ADMIN; else set TMPDIR");
    }
    let mut hidden = without_fuse(&fixture, &exec(&fixture, &["--json", "--", "true"]));
    let mut ran = None;
    // It waits for nobody: a daemon to which nothing was said would end after ten.
    prompt(std::time::Duration::from_secs(8), || {
        let began = std::time::Instant::now();
        ran = Some(run(&mut hidden));
        began.elapsed()
    });
    let ran = ran.unwrap();
    let told: serde_json::Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    assert!(told["error"]["remedy"].as_str().unwrap().contains("modprobe fuse"), "{told}");
    nothing(ran, 8, "/dev/fuse");
    let fuse = "mknod -m 666 /dev/fuse c 10 229";
    let mut hidden = with_devices(fuse, &fixture, &exec(&fixture, &["--", "true"]));
    nothing(run(&mut hidden), 8, "mknod -m 666 /dev/null");
    nothing_is_left(&fixture);
    // One that was there stays, and can be used at once.
    fixture.workfs(&["init"]).success();
    let mut command = exec(&fixture, &["--root", "none", "--", "true"]);
    assert_eq!(run(&mut command).code, 4);
    run(&mut exec(&fixture, &["--", "true"])).success();
    nothing_is_left(&fixture);
}

/// A script where processes are numbered otherwise, as in a container.
fn numbered(fixture: &Fixture, script: &str) -> Command {
    let given = exec(fixture, &["--", "bash", "-c", script]);
    let mut numbered = Command::new("unshare");
    numbered.args(["--pid", "--fork", "--mount-proc"]).arg(given.get_program());
    numbered.args(given.get_args()).current_dir(fixture.base());
    numbered.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    numbered
}

// P3.2 P7.6
#[test]
fn where_processes_are_numbered_otherwise_one_is_told_from_another() {
    if !may_have_a_name_space() || !needs(&["unshare"]) {
        return;
    }
    let fixture = Fixture::new();
    let task = fixture.task("inbox", &Task::new("t-1"));
    let saved = fs::metadata(task).unwrap().len();
    let writer = "import os, time
fd = os.open('work/inbox/t-1.yaml', os.O_WRONLY | os.O_APPEND)
os.write(fd, b'# unsaved\\n')
print(os.stat('work/inbox/t-1.yaml').st_size, flush=True)
open(os.environ['OUT'] + '/written', 'w').close()
while not os.path.exists(os.environ['OUT'] + '/seen'): time.sleep(0.01)
";
    fs::write(fixture.outside("writer.py"), writer).unwrap();
    let script = format!(
        "{} $OUT/writer.py & until [ -e $OUT/written ]; do sleep 0.01; done
         stat -c %s work/inbox/t-1.yaml; touch $OUT/seen; wait $!",
        python().display()
    );
    let ran = run(&mut numbered(&fixture, &script)).success();
    assert_eq!(ran.stdout, format!("{}\n{saved}\n", saved + 10));
}

/// A container numbers its processes anew: one of them has the number of the daemon's thread that tells watchers,
/// whose calls change nothing, and is not the one that `/proc` here has by that number.
// P7.6
#[test]
fn where_processes_are_numbered_otherwise_none_is_taken_for_its_namesake() {
    const LAST: &str = "/proc/sys/kernel/ns_last_pid";
    if !may_have_a_name_space() || !needs(&["unshare", "flock"]) || !Path::new(LAST).exists() {
        return;
    }
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), b"").unwrap();
    let threads = fs::read_dir(format!("/proc/{}/task", fixture.daemon_pid())).unwrap();
    let is_teller = |thread: &PathBuf| {
        fs::read_to_string(thread.join("comm")).is_ok_and(|name| name == "toucher\n")
    };
    let teller = threads.map(|thread| thread.unwrap().path()).find(is_teller).unwrap();
    let teller: u32 = teller.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let next = format!("echo {} > {LAST}", teller - 1);
    let script = format!(
        "{next}; chmod 600 f; stat -c %a f; {next}; touch new; {next}; rm new; {next}; \
         flock f true; echo $?"
    );
    let mut numbered = numbered(&fixture, &script);
    let held = fs::File::open(fixture.path("f")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(6));
        drop(held);
    });
    let ran = run(&mut numbered);
    release.join().unwrap();
    let told: Vec<_> = ran.stdout.lines().collect();
    assert!(told.len() == 2 && told[0] == "600" && told[1] != "0", "{ran}");
    assert!(ran.stderr.lines().all(|line| line.contains("flock")), "{ran}");
}

// P10.7
#[test]
fn who_ignores_the_ends_of_children_hears_of_the_command_s() {
    let fixture = Fixture::new();
    let ignoring = |mut command: Command| {
        // SAFETY: between fork and exec only one system call is made.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                Ok(())
            })
        };
        run(&mut command)
    };
    assert_eq!(ignoring(exec(&fixture, &["sh", "-c", "sleep 0.1; exit 7"])).code, 7);
    let mut txn = fixture.command(&["txn", "--", "sh", "-c", "echo x > made; sleep 0.1"]);
    txn.current_dir(fixture.root());
    assert_eq!(ignoring(txn).code, 0);
    assert!(fixture.path("made").exists());
}

// P8.4
#[test]
fn a_place_in_a_mount_that_the_daemon_does_not_see_is_refused() {
    if !may_have_a_name_space() {
        return;
    }
    let fixture = Setup::default().prepare();
    let script = "mkdir in; touch in/f; mkdir $OUT/other; mount -t tmpfs none $OUT/other
        for what in 'export out' 'backup copy.db' 'import in notes' \"export $OUT/other/to\" 'mount in' \
            'mount -f in'; do
            workfs $what; echo $?
        done; workfs export $OUT/to; test -e $OUT/to/in/f -a ! -e out -a ! -e notes && echo well";
    let script = script.replace("workfs ", &format!("{} ", program()));
    let ran = as_bob(&fixture, &script);
    assert!(
        ran.stdout.starts_with(&format!("{}exported ", "2\n".repeat(6)))
            && ran.stdout.ends_with("well\n"),
        "{ran}"
    );
    assert!(ran.stderr.contains("which the daemon does not see"), "{ran}");
    assert!(ran.stderr.contains("mount on a directory outside of it"), "{ran}");
    assert!(ran.stderr.contains("is another place for the daemon"), "{ran}");
    nothing_is_left(&fixture);
}

// P10.7
#[test]
fn what_others_have_mounted_over_a_mount_stays_where_it_is() {
    if !may_have_a_name_space() {
        return;
    }
    let fixture = Fixture::new();
    let over = || run(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(fixture.root()));
    over().success();
    fs::write(fixture.path("on the volume"), b"x").unwrap();
    let mut command = exec(&fixture, &["bash", "-c", "ls $M0"]);
    let ran = run(command.env("M0", fixture.root()));
    run(Command::new("umount").arg(fixture.root())).success();
    assert_eq!(ran.success().stdout, "on the volume\n");
}

// P10.7
#[test]
fn where_its_directory_would_lie_in_a_mount_that_it_does_not_see_it_is_refused() {
    if !may_have_a_name_space() {
        return;
    }
    let fixture = Fixture::new();
    let other = fixture.outside("other.db");
    let ran = run(fixture.command_on(&other, &["exec", "true"]).env("TMPDIR", fixture.root()));
    assert!(ran.code == 2 && ran.stderr.contains("TMPDIR"), "{ran}");
    let names = fs::read_dir(fixture.root()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_str().unwrap().starts_with("workfs-")));
    assert!(!other.exists());
}
