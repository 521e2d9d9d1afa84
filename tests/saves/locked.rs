//! Programs that open a file, wait for a lock of it, and change what it says then.

use std::fs;
use std::path::PathBuf;

use crate::harness::{Fixture, Setup, Task, Worker, Workers};

/// Each counts one further, so many times.
const ROUNDS: usize = 20;

/// How they lock, and what they open the file for.
const WORKER: &str = r##"
import fcntl, os, re
path, lock, mode = args
path = work + "/" + path
lock = getattr(fcntl, lock)
ready()
for _ in range(ROUNDS):
    with open(path, mode) as file:
        lock(file, fcntl.LOCK_EX)
        if mode == "a+":
            file.seek(0)
            file.write("# line %d\n" % (1 + file.read().count("# line")))
        else:
            size = os.fstat(file.fileno()).st_size
            text = file.read()
            assert len(text) == size, (size, text)
            text = re.sub("count: ([0-9]+)", lambda n: "count: %d" % (1 + int(n[1])), text)
            file.seek(0)
            file.truncate()
            file.write(text)
say("done")
"##;

fn counted_by_four(fixture: &Fixture, path: &str, lock: &str, mode: &str) -> String {
    let worker = WORKER.replace("ROUNDS", &ROUNDS.to_string());
    let dirs: Vec<PathBuf> =
        (0..4).map(|nth| fixture.mount(nth % fixture.mounts().len()).to_owned()).collect();
    let arguments = [path, lock, mode];
    let workers = Workers::start(&Worker::Python(&worker), &dirs, &arguments);
    let said = workers.go_and_finish();
    assert!(said.iter().all(|said| said.line == "done") && said.len() == 4, "{path} {said:?}");
    fs::read_to_string(fixture.path(path)).unwrap()
}

const CHECKED: &str =
    "workspaces: [{ path: work, kind: task }]\nchecks: [{ path: \"plans/*\", syntax: yaml }]\n";

// P2.1 P1.4 P7.6
#[test]
fn who_waited_for_a_lock_changes_what_was_saved_meanwhile() {
    let fixture = Setup::default().mounts(2).layout(CHECKED).start();
    fixture.sh("mkdir -p work/assigned/team plans").success();
    let task = Task::new("t-1").status("assigned").owner("team").with("# count: 0\n");
    fixture.task("assigned/team", &task);
    for lock in ["flock", "lockf"] {
        for (path, start) in [
            ("work/assigned/team/t-1.yaml", None),
            ("plans/one.yaml", Some("count: 0\n")),
            ("plain.yaml", Some("count: 0\n")),
        ] {
            if let Some(start) = start {
                fs::write(fixture.path(path), start).unwrap();
            }
            let text = counted_by_four(&fixture, path, lock, "r+");
            let counted = if start.is_some() || lock == "flock" { 80 } else { 160 };
            assert!(text.contains(&format!("count: {counted}\n")), "{path} {lock}: {text}");
        }
    }
    for path in ["work/assigned/team/t-1.yaml", "plans/one.yaml"] {
        let text = counted_by_four(&fixture, path, "flock", "a+");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("# line")).collect();
        let expected: Vec<String> = (1..=80).map(|nth| format!("# line {nth}")).collect();
        assert_eq!(lines, expected, "{path}");
    }
    let saves = fixture.ledger().names("t-1").iter().filter(|name| **name == "saved").count();
    assert_eq!(saves, 240);
    fixture.fsck_clean();
}
