//! What a change pays the disk for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::harness::{Fixture, Setup, Task, needs, save, send_signal, until_polled};

/// A tracer that writes which flushes a daemon asks for.
struct Tracer(Child);

impl Tracer {
    /// Attaches to all threads of the daemon.
    fn start(fixture: &Fixture) -> Tracer {
        Tracer::start_with(fixture, &["-e", "trace=fsync,fdatasync"])
    }

    /// The same, with what is to be traced, or made to fail.
    fn start_with(fixture: &Fixture, what: &[&str]) -> Tracer {
        let pid = fixture.daemon_pid();
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-y"]).args(what).arg("-o");
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
    fn end(self, fixture: &Fixture) -> (usize, usize) {
        let calls = self.calls(fixture);
        let count = |call: &str| calls.lines().filter(|line| line.contains(call)).count();
        (count(" fsync("), count(" fdatasync("))
    }

    /// Detaches; gives what was traced.
    fn calls(mut self, fixture: &Fixture) -> String {
        send_signal(self.0.id(), Signal::INT);
        self.0.wait().unwrap();
        whole_calls(&fs::read_to_string(fixture.outside("calls")).unwrap())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A call in the midst of which another thread was traced is two lines: one, where it ended.
fn whole_calls(traced: &str) -> String {
    let mut begun = std::collections::HashMap::new();
    let mut whole = String::new();
    for line in traced.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, begin);
            continue;
        }
        let end = call.trim_start().strip_prefix("<... ").and_then(|it| it.split_once(" resumed>"));
        match end.zip(begun.remove(thread)) {
            Some(((_, end), begin)) => whole.push_str(&format!("{thread} {begin}{end}\n")),
            None => whole.push_str(&format!("{line}\n")),
        }
    }
    whole
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
    let draft = fixture.path("work/inbox/draft.yaml");
    save(&draft, b"status: [").unwrap_err();
    let removed = flushes(&|| fs::remove_file(&draft).unwrap());
    assert_eq!(removed, (0, 1), "a draft that is removed");
    fs::write(fixture.path("notes/new"), Task::new("t-2").text()).unwrap();
    let to = fixture.path("work/inbox/t-2.yaml");
    let made = flushes(&|| fs::rename(fixture.path("notes/new"), &to).unwrap());
    assert_eq!(made, (0, 1), "a record that a rename makes");
}

// P4.4
#[test]
fn nothing_is_moved_from_a_log_that_a_flush_has_not_kept_before_it_is_on_the_disk() {
    if !needs(&["strace"]) {
        return;
    }
    let fixture = Setup::default().start();
    let task = fixture.task("inbox", &Task::new("t-1"));
    fs::create_dir_all(fixture.path("work/assigned/bob")).unwrap();
    // Of each thread the first one.
    let fails = ["-e", "trace=fdatasync,pwrite64", "-e", "inject=fdatasync:error=EIO:when=1"];
    let tracer = Tracer::start_with(&fixture, &fails);
    let lane = fixture.path("work/assigned/bob/t-1.yaml");
    let mut failed = 0;
    while fs::rename(&task, &lane).is_err() {
        failed += 1;
        assert!(failed < 100, "it goes on failing");
    }
    let calls = tracer.calls(&fixture);
    let calls: Vec<&str> = calls.lines().collect();
    let is_of_log = |call: &str| call.contains("team.db-wal>");
    let failure = calls.iter().rposition(|call| is_of_log(call) && call.contains("EIO"));
    let (failure, after) = calls.split_at(failure.unwrap() + 1);
    assert!(failed > 0 && !failure.is_empty());
    let moved =
        after.iter().position(|call| call.contains("pwrite64(") && call.contains("team.db>"));
    let before = &after[..moved.expect("the log is moved after that")];
    let is_rewritten = |call: &&str| is_of_log(call) && call.contains("pwrite64(");
    let rewritten = before.iter().position(is_rewritten);
    let rewritten = rewritten.unwrap_or_else(|| panic!("{before:#?}"));
    let is_flushed = |call: &&str| is_of_log(call) && call.contains("fdatasync(");
    assert!(before[rewritten..].iter().any(is_flushed), "{before:#?}");
    fixture.fsck_clean();
}

// P6.8
#[test]
fn what_a_covered_directory_was_like_is_on_the_disk_before_it_is_closed() {
    if !needs(&["strace"]) {
        return;
    }
    let fixture = Setup::default().start();
    let point = fixture.outside("second");
    fs::create_dir(&point).unwrap();
    let tracer = Tracer::start_with(&fixture, &["-e", "trace=fsync,rename,fchmod"]);
    fixture.mount_at(&point).success();
    let calls = tracer.calls(&fixture);
    let listed = calls.lines().position(|call| call.contains("team.db.covers\") = 0"));
    let after: Vec<&str> = calls.lines().skip(listed.expect(&calls) + 1).collect();
    let closed = after.iter().position(|call| call.contains("fchmod(")).unwrap();
    assert!(after[..closed].iter().any(|call| call.contains(" fsync(")), "{calls}");
    fixture.workfs(&["unmount", point.to_str().unwrap()]).success();
}
