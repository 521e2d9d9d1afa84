//! Watching: events reach who waits for them at once.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Fixture, Setup, Task};

struct Watcher {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watcher {
    fn start(mut command: Command) -> Watcher {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Watcher { child, lines }
    }

    fn next(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The median time from before a save to the line that tells of it.
fn median(fixture: &Fixture, save_in: &std::path::Path) -> Duration {
    let since = fixture.ledger().last_g().to_string();
    let arguments = ["watch", "scratchpad/**", "--json", "--since", &since];
    let mut watcher = Watcher::start(fixture.command(&arguments));
    let mut times = Vec::new();
    for round in 0..60 {
        let temporary = save_in.join(format!("scratchpad/w.{round}.tmp"));
        let path = save_in.join(format!("scratchpad/w{round}"));
        std::fs::write(&temporary, format!("round {round}\n")).unwrap();
        let begin = Instant::now();
        std::fs::rename(&temporary, &path).unwrap();
        let event = watcher.next();
        times.push(begin.elapsed());
        assert_eq!(event["payload"]["path"], format!("scratchpad/w{round}"));
        assert_eq!(event["event"], "saved");
    }
    times.sort();
    times[times.len() / 2]
}

// P11.5
#[test]
fn a_change_is_told_within_10_ms_at_the_median() {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("mkdir -p scratchpad").success();
    for mount in fixture.mounts() {
        let median = median(&fixture, mount);
        println!("median from rename to line: {median:?}");
        assert!(median < Duration::from_millis(10), "{median:?}");
    }
}

// P11.5
#[test]
fn records_and_files_are_told_by_their_glob() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad/a").success();
    let since = fixture.ledger().last_g().to_string();
    fixture.task("inbox", &Task::new("t-1"));
    fixture
        .sh("echo x > scratchpad/a/f.md; echo x > scratchpad/a/f.txt; mv work/inbox/t-1.yaml \
                work/assigned/bob/; rm scratchpad/a/f.md")
        .success();
    let watch = |glob: &str| -> Vec<String> {
        let arguments = ["watch", glob, "--json", "--since", &since, "--timeout", "1"];
        let ran = fixture.workfs(&arguments);
        ran.json_lines().iter().map(|e| e["event"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(watch("**/*.md"), ["saved", "removed"]);
    assert_eq!(watch("work/**"), ["created", "claimed"]);
    assert!(watch("nowhere/*").is_empty());
    assert_eq!(fixture.workfs(&["watch", "x/*", "--timeout", "1"]).code, 3);
    assert_eq!(fixture.workfs(&["watch", "/x"]).code, 2);
}

// P11.5
#[test]
fn a_command_is_run_for_each_event() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad").success();
    let since = fixture.ledger().last_g().to_string();
    fixture.sh("echo x > scratchpad/f; rm scratchpad/f").success();
    let told = "echo $WORKFS_EVENT $WORKFS_PATH $WORKFS_ACTOR";
    let arguments = ["watch", "scratchpad/**", "--since", &since, "-n", "2", "--exec", told];
    let ran = fixture.workfs(&arguments).success();
    assert_eq!(ran.stdout, "saved scratchpad/f root\nremoved scratchpad/f root\n");
    fixture.unmount_all();
    let alone = fixture.workfs(&["watch", "**"]).failure();
    assert_eq!(alone.code, 8, "{alone}");
}
