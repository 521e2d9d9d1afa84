//! What a change pays the disk for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::harness::{Fixture, Setup, Task, needs, send_signal, until_polled};

/// A tracer that writes which flushes a daemon asks for.
struct Tracer(Child);

impl Tracer {
    /// Attaches to all threads of the daemon.
    fn start(fixture: &Fixture) -> Tracer {
        let pid = fixture.daemon_pid();
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]);
        command.arg(fixture.outside("calls")).args(["-p", &pid.to_string()]);
        let tracer = Tracer(command.spawn().unwrap());
        let is_traced = |thread: fs::DirEntry| {
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            !status.contains("TracerPid:\t0\n")
        };
        until_polled("the tracer", || {
            let mut threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
            threads.all(is_traced).then_some(())
        });
        tracer
    }

    /// Detaches; gives how often `fsync` and `fdatasync` were called.
    fn end(mut self, fixture: &Fixture) -> (usize, usize) {
        send_signal(self.0.id(), Signal::INT);
        self.0.wait().unwrap();
        let calls = fs::read_to_string(fixture.outside("calls")).unwrap();
        let count = |call: &str| calls.lines().filter(|line| line.contains(call)).count();
        (count(" fsync("), count(" fdatasync("))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The flushes of twenty claims.
fn flushes_of_claims(sync: &str) -> Option<(usize, usize)> {
    if !needs(&["strace"]) {
        return None;
    }
    let fixture = Setup::default().arguments(&["--sync", sync]).start();
    let names = (0..20).map(|nth| format!("t-{nth}"));
    let tasks: Vec<_> = names.map(|id| fixture.task("inbox", &Task::new(&id))).collect();
    let tracer = Tracer::start(&fixture);
    for task in tasks {
        let lane = fixture.path("work/assigned/bob");
        fs::rename(&task, lane.join(task.file_name().unwrap())).unwrap();
    }
    Some(tracer.end(&fixture))
}

// P4.4
#[test]
fn a_claim_is_flushed_once_and_the_logs_time_stamps_are_not() {
    if let Some(flushes) = flushes_of_claims("full") {
        assert_eq!(flushes, (0, 20));
    }
}

// P4.4
#[test]
fn without_the_promise_nothing_is_flushed() {
    if let Some(flushes) = flushes_of_claims("normal") {
        assert_eq!(flushes, (0, 0));
    }
}

// P4.4
#[test]
fn who_flushes_what_is_judged_by_its_new_name_has_that_on_the_disk() {
    if !needs(&["strace"]) {
        return;
    }
    let layout =
        "workspaces: [ { path: work, kind: task } ]\nchecks: [ { path: \"notes/*.yaml\" } ]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir notes; echo a: 1 > notes/t.tmp; echo a > notes/t").success();
    let task = fixture.task("inbox", &Task::new("t-1"));
    let flushes = |change: &dyn Fn()| {
        let tracer = Tracer::start(&fixture);
        change();
        tracer.end(&fixture)
    };
    for (from, to) in [("notes/t", "notes/plain"), ("notes/t.tmp", "notes/c.yaml")] {
        let name = fixture.path(to);
        let renamed = flushes(&|| {
            fs::rename(fixture.path(from), &name).unwrap();
            fs::File::open(&name).unwrap().sync_all().unwrap();
        });
        assert_eq!(renamed, (0, 1), "{to}");
    }
    let mode = flushes(&|| fs::set_permissions(&task, fs::Permissions::from_mode(0o600)).unwrap());
    assert_eq!(mode, (0, 1), "the mode of a record");
    let touched = flushes(&|| {
        let task = fs::File::open(&task).unwrap();
        task.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        task.sync_all().unwrap();
    });
    assert_eq!(touched, (0, 1), "the time of a record");
}
