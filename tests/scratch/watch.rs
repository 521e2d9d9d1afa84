//! Watching: events reach who waits for them at once.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Echo, Fixture, Setup, Task, run};

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

/// The median time from before a save to the line that tells of it. The echo sounds as often.
fn median(fixture: &Fixture, save_in: &std::path::Path, echo: &mut Echo) -> Duration {
    let since = fixture.ledger().last_g().to_string();
    let arguments = ["watch", "scratchpad/**", "--json", "--since", &since];
    let mut watcher = Watcher::start(fixture.command(&arguments));
    let mut times = Vec::new();
    for round in 0..60 {
        let temporary = save_in.join(format!("scratchpad/w.{round}.tmp"));
        let path = save_in.join(format!("scratchpad/w{round}"));
        std::fs::write(&temporary, format!("round {round}\n")).unwrap();
        echo.sound();
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
        let mut echo = Echo::start();
        let median = median(&fixture, mount, &mut echo);
        println!("median from rename to line: {median:?}");
        // Some processes come by turns, and the machine may be busy.
        assert!(median < Duration::from_millis(10) + echo.ten(), "{median:?}");
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
    assert_eq!(fixture.workfs(&["watch", "x", "-n", "0"]).code, 2);
    let ran = fixture.workfs(&["watch", "scratchpad/"]);
    assert!(ran.code == 2 && ran.stderr.contains("'scratchpad/**'"), "{ran}");
}

// P11.5
#[test]
fn what_leaves_a_place_is_told_to_who_watches_that() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad/d/sub out; echo x > scratchpad/d/sub/f.json").success();
    fixture.task("inbox", &Task::new("t-1"));
    let since = fixture.ledger().last_g().to_string();
    let watch = |glob: &str| -> Vec<String> {
        let arguments = ["watch", glob, "--json", "--since", &since, "--timeout", "0"];
        let ran = fixture.workfs(&arguments);
        ran.json_lines().iter().map(|e| e["event"].as_str().unwrap().to_owned()).collect()
    };
    // Of a record.
    fixture
        .sh("cd work; mv inbox/t-1.yaml assigned/bob/; touch assigned/bob/t-1.yaml
             mv assigned/bob/t-1.yaml inbox/; rm inbox/t-1.yaml")
        .success();
    assert_eq!(watch("work/inbox/*"), ["claimed", "released", "removed"]);
    assert_eq!(watch("work/assigned/bob/*"), ["claimed", "released"]);
    assert!(watch("work/done/**").is_empty());
    let log = fixture.workfs(&["log", "work/assigned/bob", "--since", &since]).success();
    assert!(log.stdout.contains("claimed") && log.stdout.contains("released"), "{log}");
    // And of what goes with its directory, of which alone there is an event.
    fixture
        .sh("cd scratchpad; mkdir d/sub/new; mv d e; mv e ../out/; mv ../out/e d; mv d/sub/f.json .")
        .success();
    let moved = ["renamed", "removed", "created"];
    assert_eq!(watch("scratchpad/[de]/sub/*.json"), [&moved[..], &["renamed"]].concat());
    assert_eq!(watch("scratchpad/d/**"), ["created", "renamed", "created", "renamed"]);
    assert_eq!(watch("scratchpad/e/sub/**"), ["renamed", "removed"]);
    assert!(watch("scratchpad/d/sub/new/*.md") == ["renamed", "created"], "not the mkdir");
    assert!(watch("scratchpad/*/f.json/*").len() == 3, "of files there is nothing below");
}

// P11.5
#[test]
fn no_number_that_is_given_is_too_large() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad && echo x > scratchpad/f").success();
    let max = u64::MAX.to_string();
    let max = max.as_str();
    let ends = |arguments: &[&str], code: i32| {
        let ran = fixture.workfs(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{ran}");
        assert!(!ran.stderr.contains("panicked"), "{ran}");
    };
    // After an event that is never to come there is none.
    ends(&["watch", "**", "--since", max, "--timeout", "1"], 3);
    ends(&["log", "--since", max], 0);
    ends(&["log", "--since", max, "-n", max], 0);
    ends(&["show", "scratchpad/f", "--g", max], 4);
    ends(&["show", "scratchpad/f", "--at", max], 2);
    ends(&["restore", "scratchpad/f", "--at", max], 4);
    assert_eq!(fixture.workfs(&["log", "-n", max, "--json"]).success().json_lines().len(), {
        fixture.ledger().0.len()
    });
    fixture.workfs(&["why", "-n", max]).success();
    fixture.workfs(&["gc", "--older-than", max]).success();
    let watch = ["watch", "**", "-n", "1", "--since", "0", "--timeout", max];
    fixture.workfs(&watch).success();
    // Who waits for so long is served, and so is everybody after it.
    let mut waiting: Vec<Child> = (0..2)
        .map(|_| fixture.command(&["claim", "--wait", "--timeout", max]).spawn().unwrap())
        .collect();
    for id in ["t-1", "t-2"] {
        fixture.task("inbox", &Task::new(id));
    }
    waiting.iter_mut().for_each(|child| assert!(child.wait().unwrap().success()));
    fixture.fsck_clean();
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
    let told = "saved scratchpad/f root\nremoved scratchpad/f root\n";
    assert_eq!(ran.stdout, told);
    // Nothing stands between what a program reads.
    let ran = fixture.workfs(&[&["--json"][..], &arguments].concat()).success();
    assert_eq!(ran.stderr, told);
    let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let events: Vec<_> = ran.stdout.lines().map(read).collect();
    assert_eq!(events.len(), 2);
    fixture.unmount_all();
    let alone = fixture.workfs(&["watch", "**"]).failure();
    assert_eq!(alone.code, 8, "{alone}");
}

/// Names that text output escapes, the last two also in JSON: it is not UTF-8, or reads like that.
const ODD: [&[u8]; 6] =
    ["cafe\u{301}".as_bytes(), b"two\nlines", b"back\\slash", b"\\u{301}", b"a\xffb", b"a\\xffb"];

// P8.1
#[test]
fn json_and_the_environment_have_a_file_s_own_name() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad").success();
    let since = fixture.ledger().last_g().to_string();
    for (nth, name) in ODD.iter().enumerate() {
        let path = fixture.path("scratchpad").join(OsStr::from_bytes(name));
        std::fs::write(&path, format!("{nth}\n")).unwrap();
    }
    let count = ODD.len().to_string();
    let watch = ["watch", "scratchpad/**", "--since", &since, "-n", &count];
    let told = fixture.workfs(&[&watch[..], &["--json"]].concat()).success().json_lines();
    let paths: Vec<&str> =
        told.iter().map(|event| event["payload"]["path"].as_str().unwrap()).collect();
    for (path, name) in paths.iter().zip(&ODD[..4]) {
        assert_eq!(path.as_bytes(), [b"scratchpad/", *name].concat());
    }
    assert_eq!(paths[4..], ["scratchpad/a\\xffb", "scratchpad/a\\\\xffb"]);
    let cat = "cat \"$WORKFS_PATH\"";
    let mut command = fixture.command(&[&watch[..], &["--exec", cat]].concat());
    let read = run(command.current_dir(fixture.root())).success();
    assert_eq!(read.stdout, "0\n1\n2\n3\n4\n5\n");

    // Each command takes what JSON says, and the name itself; of what is gone, too.
    let asks = |word: &OsStr, nth: usize| {
        let ask = |arguments: &[&str]| {
            let mut command = fixture.command(arguments);
            run(command.arg(word).arg("--json")).success()
        };
        let shown = ask(&["show", "--g", &told[nth]["g"].to_string()]).json();
        assert_eq!(shown["text"], format!("{nth}\n"), "{word:?}");
        assert_eq!(shown["path"], paths[nth]);
        assert_eq!(ask(&["log"]).json_lines()[0]["g"], told[nth]["g"], "{word:?}");
        let back = ask(&["restore", "--at", &told[nth]["g"].to_string()]).json();
        assert_eq!(back["path"], paths[nth]);
    };
    for gone in [false, true] {
        for (nth, name) in ODD.iter().enumerate() {
            let path = std::path::Path::new("scratchpad").join(OsStr::from_bytes(name));
            if gone {
                std::fs::remove_file(fixture.path("").join(&path)).unwrap();
            }
            // What stands for a name that is not UTF-8 may be a name, too: then that is meant.
            if !gone || nth != 5 {
                asks(path.as_os_str(), nth);
            }
            if nth != 4 {
                asks(OsStr::new(paths[nth]), nth);
            }
        }
    }
    std::fs::remove_file(fixture.path("scratchpad/a\\xffb")).unwrap();
    asks(OsStr::new(paths[4]), 4);
    fixture.fsck_clean();
}
