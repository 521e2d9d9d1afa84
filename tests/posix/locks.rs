//! Locks: between processes, between mounts, and when their holder dies.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;

use crate::harness::{Errno, Fixture, Setup, Worker, Workers, cut_off, left_out, send_signal};

/// What each worker begins with: `lock` takes and leaves by the call that its argument names.
const LOCKER: &str = r#"
import fcntl, os, struct, signal, errno
mode = sys.argv[3]
fd = os.open(os.path.join(sys.argv[2], "lock"), os.O_RDWR | os.O_CREAT, 0o644)
def lock(kind, wait, start=0, length=0):
    flags = {"s": fcntl.LOCK_SH, "x": fcntl.LOCK_EX, "u": fcntl.LOCK_UN}[kind]
    if not wait: flags |= fcntl.LOCK_NB
    if mode == "flock": fcntl.flock(fd, flags)
    else: fcntl.lockf(fd, flags, length, start)
"#;

fn two_mounts() -> (Fixture, Vec<PathBuf>) {
    let fixture = Setup::default().mounts(2).start();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    let dirs = fixture.mounts().iter().map(|mount| mount.join("scratchpad")).collect();
    (fixture, dirs)
}

/// Each of `modes` in turn, with a worker in each of two mounts.
fn each_mode(program: &str, test: impl Fn(&Fixture, Workers)) {
    for mode in ["flock", "fcntl"] {
        let (fixture, dirs) = two_mounts();
        let program = format!("{LOCKER}{program}");
        let workers = Workers::start(&Worker::Python(&program), &dirs, &[mode]);
        test(&fixture, workers);
    }
}

// P7.6
#[test]
fn a_lock_that_is_held_in_one_mount_is_refused_in_another() {
    let program = r#"
if sys.argv[1] == "0":
    lock("x", True)
    ready(); say("held"); sys.stdin.readline()
    lock("u", True); say("free"); sys.stdin.readline()
else:
    ready()
    while True:
        try:
            lock("x", False); say("got"); break
        except BlockingIOError: say("refused")
        sys.stdin.readline()
"#;
    each_mode(program, |_, mut workers| {
        workers.go_on();
        let mut lines: Vec<_> = (0..2).map(|_| workers.next().unwrap().line).collect();
        // The word that both waited for lets the one go and the other ask again.
        lines.sort();
        assert_eq!(lines, ["held", "refused"]);
        let mut got = false;
        while !got {
            workers.go_on();
            while let Some(said) = workers.next() {
                got |= said.line == "got";
                if got || said.nth == 1 {
                    break;
                }
            }
        }
    });
}

// P7.6
#[test]
fn who_waits_gets_the_lock_of_a_holder_that_was_killed() {
    let program = r#"
if sys.argv[1] == "0":
    lock("x", True); ready(); sys.stdin.readline()
else:
    ready(); say("waits"); lock("x", True); say("got")
"#;
    each_mode(program, |fixture, mut workers| {
        workers.go_on();
        assert_eq!(workers.next().unwrap().line, "waits");
        // Who waits holds up nobody: the mount serves others meanwhile.
        for nth in 0..50 {
            fs::write(fixture.path(&format!("scratchpad/other-{nth}")), b"x").unwrap();
        }
        send_signal(workers.pids()[0], rustix::process::Signal::KILL);
        assert_eq!(workers.next().unwrap().line, "got");
    });
}

// P7.6
#[test]
fn who_waits_waits_on_whatever_its_program_is_called() {
    let program = r#"
if sys.argv[1] == "0":
    lock("x", True); ready(); sys.stdin.readline()
else:
    open("/proc/self/comm", "wb").write(b"warteschlange-\xc3")
    ready(); say("waits"); lock("x", True); say("got")
"#;
    each_mode(program, |_, mut workers| {
        workers.go_on();
        assert_eq!(workers.next().unwrap().line, "waits");
        // Whoever cannot be seen waits for two seconds.
        std::thread::sleep(Duration::from_millis(2500));
        send_signal(workers.pids()[0], rustix::process::Signal::KILL);
        assert_eq!(workers.next().unwrap().line, "got");
    });
}

// P7.4, P7.6
#[test]
fn a_lock_of_an_open_file_is_free_as_soon_as_that_is_closed() {
    let (_fixture, dirs) = two_mounts();
    let lock = |file: &fs::File, how| rustix::fs::flock(file, how);
    let held =
        |dir: &Path| fs::File::options().read(true).write(true).open(dir.join("lock")).unwrap();
    let read = |dir: &Path| fs::File::open(dir.join("lock")).unwrap();
    fs::write(dirs[0].join("lock"), "").unwrap();
    for nth in 0..200 {
        let open: &dyn Fn(&Path) -> fs::File = if nth % 2 == 0 { &held } else { &read };
        let (mine, theirs) = (open(&dirs[0]), open(&dirs[1]));
        lock(&mine, FlockOperation::NonBlockingLockExclusive).unwrap();
        let refused = lock(&theirs, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(refused, Err(rustix::io::Errno::AGAIN));
        drop(mine);
        lock(&theirs, FlockOperation::NonBlockingLockExclusive).unwrap();
    }
    // What only loses a copy of its descriptor is held on.
    let (mine, theirs) = (held(&dirs[0]), held(&dirs[1]));
    lock(&mine, FlockOperation::LockExclusive).unwrap();
    drop(mine.try_clone().unwrap());
    let refused = lock(&theirs, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(refused, Err(rustix::io::Errno::AGAIN));
}

// P7.6
#[test]
fn who_waits_can_be_interrupted_and_killed() {
    let program = r#"
if sys.argv[1] == "0":
    lock("x", True); ready(); sys.stdin.readline()
else:
    class Alarm(Exception): pass
    def rings(*_): raise Alarm()
    signal.signal(signal.SIGALRM, rings)
    ready()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try: lock("x", True)
    except Alarm: say("interrupted")
    # Whose handler lets the call go on waits on.
    count = [0]
    def counts(*_): count[0] += 1
    signal.signal(signal.SIGALRM, counts); signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    say("waits"); lock("x", True); say("got it?")
"#;
    each_mode(program, |fixture, mut workers| {
        workers.go_on();
        assert_eq!(workers.next().unwrap().line, "interrupted");
        assert_eq!(workers.next().unwrap().line, "waits");
        let waiting = workers.pids()[1];
        send_signal(waiting, rustix::process::Signal::KILL);
        assert!(crate::harness::await_exit(waiting, crate::harness::DEADLINE));
        // It is not in the line any more: whoever is next gets the lock.
        send_signal(workers.pids()[0], rustix::process::Signal::KILL);
        let said = fixture.sh("cd scratchpad; flock lock echo free").success();
        assert_eq!(said.stdout, "free\n");
    });
}

// P7.6
#[test]
fn a_thread_that_waits_hears_nothing_of_signals_that_another_thread_takes() {
    let program = r#"
import threading, time
if sys.argv[1] == "0":
    lock("x", True); ready(); other = int(open(os.path.join(sys.argv[2], "pid")).read())
    until = time.monotonic() + 1
    while time.monotonic() < until: os.kill(other, signal.SIGUSR1)
    say("told enough"); lock("u", True); sys.stdin.readline()
else:
    signal.signal(signal.SIGUSR1, lambda *_: None)
    with open(os.path.join(sys.argv[2], "pid"), "w") as f: f.write(str(os.getpid()))
    def waits():
        try: lock("x", True); say("got")
        except OSError as error: say(f"errno {error.errno}")
    ready(); say("waits")
    thread = threading.Thread(target=waits); thread.start(); thread.join()
"#;
    each_mode(program, |_, mut workers| {
        workers.go_on();
        assert_eq!(workers.next().unwrap().line, "waits");
        let mut lines: Vec<_> = (0..2).map(|_| workers.next().unwrap().line).collect();
        lines.sort();
        assert_eq!(lines, ["got", "told enough"]);
    });
}

// P7.6
#[test]
fn ranges_families_and_closes() {
    let (fixture, dirs) = two_mounts();
    let program = r#"
import fcntl, os, struct
one = os.open(sys.argv[2] + "/f", os.O_RDWR | os.O_CREAT)
other = os.path.join(sys.argv[3], "f")
fcntl.lockf(one, fcntl.LOCK_EX, 10, 100)
fcntl.lockf(one, fcntl.LOCK_UN, 2, 104)
ready()
child = os.fork()
def free(start, length):
    fd = os.open(other, os.O_RDWR)
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, start, length, 0)
    kind, _, start, length, pid = struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    return "free" if kind == fcntl.F_UNLCK else f"{start}+{length} of {pid - os.getppid()}"
if child == 0:
    say(free(0, 100)); say(free(103, 1)); say(free(104, 2)); say(free(106, 0)); say(free(110, 0))
    fd = os.open(other, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    say("flock is another family")
    os._exit(0)
os.waitpid(child, 0)
# Closing any descriptor of the file ends all that the process holds in it.
os.close(os.open(sys.argv[2] + "/f", os.O_RDONLY))
if os.fork() == 0:
    say(free(0, 0)); os._exit(0)
os.wait()
"#;
    let other = dirs[1].to_str().unwrap().to_owned();
    let workers = Workers::start(&Worker::Python(program), &dirs[..1], &[&other]);
    let said: Vec<_> = workers.go_and_finish().into_iter().map(|said| said.line).collect();
    let wanted =
        ["free", "100+4 of 0", "free", "106+4 of 0", "free", "flock is another family", "free"];
    assert_eq!(said, wanted);
    drop(fixture);
}

// P7.6
#[test]
fn an_open_file_is_told_what_it_holds_itself() {
    let (_fixture, dirs) = two_mounts();
    let program = r#"
import errno, fcntl, os, struct
fds = [os.open(path + "/f", os.O_RDWR | os.O_CREAT) for path in (sys.argv[2], sys.argv[2], sys.argv[3])]
GETLK, SETLK = 36, 37
def ofd(nth, command, kind, start, length):
    asked = struct.pack("hhqqi4x", kind, 0, start, length, 0)
    kind, _, start, length, _ = struct.unpack("hhqqi4x", fcntl.fcntl(fds[nth], command, asked))
    return "none" if kind == fcntl.F_UNLCK else f"{'sx'[kind == fcntl.F_WRLCK]}{start}+{length}"
ready()
try:
    ofd(0, GETLK, fcntl.F_UNLCK, 0, 0)
except OSError as e:
    say(errno.errorcode[e.errno])
    sys.exit()
ofd(0, SETLK, fcntl.F_WRLCK, 5, 10)
ofd(1, SETLK, fcntl.F_RDLCK, 40, 2)
# F_UNLCK asks for the open file's own locks.
say(" ".join(ofd(nth, GETLK, fcntl.F_UNLCK, 0, 0) for nth in range(3)))
say(" ".join(ofd(nth, GETLK, fcntl.F_WRLCK, 0, 0) for nth in range(3)))
"#;
    let other = dirs[1].to_str().unwrap().to_owned();
    let workers = Workers::start(&Worker::Python(program), &dirs[..1], &[&other]);
    let said: Vec<_> = workers.go_and_finish().into_iter().map(|said| said.line).collect();
    if said == ["EINVAL"] {
        return left_out("this kernel does not pass it on (Linux 6.6 does)");
    }
    assert_eq!(said, ["x5+10 s40+2 none", "s40+2 x5+10 x5+10"]);
}

// P7.6
#[test]
fn locks_that_wait_for_each_other_are_refused() {
    let (_fixture, dirs) = two_mounts();
    let program = r#"
import fcntl, os, errno
fd = os.open(sys.argv[2] + "/f", os.O_RDWR | os.O_CREAT)
me = int(sys.argv[1])
fcntl.lockf(fd, fcntl.LOCK_EX, 1, me)
ready()
try:
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, 1 - me); say("got")
except OSError as error: say("EDEADLK" if error.errno == errno.EDEADLK else str(error))
"#;
    let workers = Workers::start(&Worker::Python(program), &dirs, &[]);
    let mut said: Vec<_> = workers.go_and_finish().into_iter().map(|said| said.line).collect();
    said.sort();
    assert_eq!(said, ["EDEADLK", "got"]);
}

/// Eight processes in two mounts count to 200 in one file, each step under a lock.
fn counts_right(take: &str, leave: &str) {
    let (fixture, dirs) = two_mounts();
    fs::write(fixture.path("scratchpad/count"), b"0").unwrap();
    let program = format!(
        r#"
import fcntl, os, time
os.chdir(sys.argv[2])
name = "mine-" + sys.argv[1]
open(name, "w").close()
lock = os.open("lock", os.O_RDWR | os.O_CREAT) if {take:?}.startswith("fcntl") else None
def till(attempt):
    while True:
        try: return attempt()
        except FileExistsError: time.sleep(0.001)
ready()
for _ in range(25):
    {take}
    count = int(open("count").read())
    with open("count.tmp", "w") as out: out.write(str(count + 1))
    os.rename("count.tmp", "count")
    {leave}
    say("counted")
"#
    );
    let dirs: Vec<_> = (0..8).map(|nth| dirs[nth % 2].clone()).collect();
    Workers::start(&Worker::Python(&program), &dirs, &[]).go_and_finish();
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/count")).unwrap(), "200");
}

// P7.6
#[test]
fn flock_keeps_a_count() {
    counts_right("fcntl.flock(lock, fcntl.LOCK_EX)", "fcntl.flock(lock, fcntl.LOCK_UN)");
}

// P7.6
#[test]
fn fcntl_keeps_a_count() {
    counts_right("fcntl.lockf(lock, fcntl.LOCK_EX)", "fcntl.lockf(lock, fcntl.LOCK_UN)");
}

// P7.6
#[test]
fn an_exclusive_file_keeps_a_count() {
    let take = r#"till(lambda: os.close(os.open("l", os.O_CREAT | os.O_EXCL)))"#;
    counts_right(take, r#"os.unlink("l")"#);
}

// P7.6
#[test]
fn a_link_keeps_a_count() {
    counts_right(r#"till(lambda: os.link(name, "l"))"#, r#"os.unlink("l")"#);
}

/// Who shares a lock reads what was written under the last one that was exclusive, all of it: one writes through one
/// mount, and several read through another by descriptors that they keep.
fn shared_reads_are_whole(take: [&str; 2], leave: &str) {
    let (fixture, dirs) = two_mounts();
    fs::write(fixture.path("scratchpad/pages"), vec![b'0'; 8 * 4096]).unwrap();
    let [exclusive, shared] = take;
    let program = format!(
        r#"
import fcntl, os
os.chdir(sys.argv[2])
file = os.open("pages", os.O_RDWR)
ready()
for turn in range(400):
    if sys.argv[1] == "0":
        {exclusive}
        for page in range(8): os.pwrite(file, b"%08d" % turn, page * 4096)
    else:
        {shared}
        seen = {{os.pread(file, 8, page * 4096) for page in range(8)}}
        if len(seen) > 1: sys.exit("%s in turn %d" % (seen, turn))
    {leave}
"#
    );
    let dirs: Vec<_> = (0..5).map(|nth: usize| dirs[nth.min(1)].clone()).collect();
    Workers::start(&Worker::Python(&program), &dirs, &[]).go_and_finish();
}

// P7.4 P7.6
#[test]
fn who_shares_flock_reads_nothing_torn_through_another_mount() {
    for _ in 0..4 {
        let take = ["fcntl.flock(file, fcntl.LOCK_EX)", "fcntl.flock(file, fcntl.LOCK_SH)"];
        shared_reads_are_whole(take, "fcntl.flock(file, fcntl.LOCK_UN)");
    }
}

// P7.4 P7.6
#[test]
fn who_shares_fcntl_reads_nothing_torn_through_another_mount() {
    for _ in 0..4 {
        let take = ["fcntl.lockf(file, fcntl.LOCK_EX)", "fcntl.lockf(file, fcntl.LOCK_SH)"];
        shared_reads_are_whole(take, "fcntl.lockf(file, fcntl.LOCK_UN)");
    }
}

// P7.6
#[test]
fn a_mount_that_is_taken_away_lets_go() {
    let (fixture, dirs) = two_mounts();
    let program = format!("{LOCKER}\nlock('x', True)\nready(); sys.stdin.readline()");
    let mut workers = Workers::start(&Worker::Python(&program), &dirs[..1], &["flock"]);
    workers.go_on();
    let second = fixture.mount(1).join("scratchpad/lock");
    let open = fs::File::open(second).unwrap();
    let try_lock = || {
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&open, exclusive)
    };
    assert_eq!(try_lock(), Err(Errno::AGAIN));
    // An aborted connection says nothing more of its open files. The mount is busy and stays.
    cut_off(fixture.root(), rustix::mount::UnmountFlags::empty()).unwrap();
    crate::harness::until_polled("the lock is free", || (try_lock() == Ok(())).then_some(()));
}
