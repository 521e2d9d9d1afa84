//! The watchers that people use, unmodified: they hear through their mount of what is done through
//! another one.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::harness::{Fixture, Setup, Task, left_out, needs, python, save, until_polled};

/// How long something that must be told may take.
const SOON: Duration = Duration::from_secs(60);

/// A program that prints what it hears of the second mount, a line each: what, path, new path.
struct Watcher {
    child: Child,
    lines: Receiver<String>,
    mount: PathBuf,
}

impl Watcher {
    /// Starts one, and waits until it hears.
    fn start(fixture: &Fixture, command: &mut Command) -> Watcher {
        let mount = fixture.mount(1).to_owned();
        let watcher = Watcher::run(command.arg(&mount), mount);
        // In each directory that counts: they are not all watched at once.
        for dir in ["scratchpad", "work/inbox", "work/assigned/bob"] {
            watcher.is_noticed(fixture, "", dir);
        }
        watcher
    }

    /// Starts a program that prints lines.
    fn run(command: &mut Command, mount: PathBuf) -> Watcher {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            from.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        Watcher { child, lines, mount }
    }

    /// Waits until it hears of this directory, which lies below that one (with a slash, if any).
    fn is_noticed(&self, fixture: &Fixture, above: &str, dir: &str) {
        let mut round = 0;
        until_polled("the watcher is noticed", || {
            round += 1;
            let probe = format!("{dir}/probe-{round}");
            fixture.sh(&format!("echo > {above}{probe}")).success();
            self.hears(&[&probe], Duration::from_millis(500)).then_some(())
        });
    }

    /// Whether there comes a line with all these in it; paths are below the mount.
    fn hears(&self, words: &[&str], within: Duration) -> bool {
        let until = Instant::now() + within;
        while let Some(line) = self.next(until) {
            let heard: Vec<&str> = line.split('\t').collect();
            if words.iter().all(|word| heard.contains(word)) {
                return true;
            }
        }
        false
    }

    /// The next line, if it comes in time.
    fn next(&self, until: Instant) -> Option<String> {
        let left = until.saturating_duration_since(Instant::now());
        let line = self.lines.recv_timeout(left).ok()?;
        Some(line.replace(&format!("{}/", self.mount.display()), ""))
    }

    #[track_caller]
    fn must_hear(&self, words: &[&str]) {
        assert!(self.hears(words, SOON), "nobody told {words:?}");
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scratch/programs").join(name)
}

/// What each of the two calls the things that happen.
struct Words {
    made: &'static str,
    changed: &'static str,
    removed: &'static str,
    /// Whether a rename is one event, `moved`; else it is a removal and something made.
    has_moves: bool,
}

impl Words {
    fn must_hear_move(&self, watcher: &Watcher, from: &str, to: &str) {
        if self.has_moves {
            watcher.must_hear(&["moved", from, to]);
            return;
        }
        // They come in either order.
        let mut left = vec![(self.removed, from), (self.made, to)];
        let until = Instant::now() + SOON;
        while let Some((what, path)) = left.first().copied() {
            let line = watcher.next(until);
            let line = line.unwrap_or_else(|| panic!("nobody told {what} {path}"));
            left.retain(|(what, path)| line != format!("{what}\t{path}"));
        }
    }
}

fn hears_all(mut command: Command, words: &Words) {
    let fixture = Setup::default().mounts(2).lanes(["bob"]).start();
    fixture.sh("mkdir -p scratchpad; echo 0 > scratchpad/known").success();
    let task = fixture.task("inbox", &Task::new("t-1"));
    let watcher = Watcher::start(&fixture, &mut command);

    fixture.sh("echo x > scratchpad/new.yaml").success();
    watcher.must_hear(&[words.made, "scratchpad/new.yaml"]);
    fixture.sh("echo y >> scratchpad/known").success();
    watcher.must_hear(&[words.changed, "scratchpad/known"]);
    fixture.sh("mv scratchpad/new.yaml scratchpad/moved.yaml").success();
    words.must_hear_move(&watcher, "scratchpad/new.yaml", "scratchpad/moved.yaml");
    fixture.sh("rm scratchpad/moved.yaml").success();
    watcher.must_hear(&[words.removed, "scratchpad/moved.yaml"]);
    fixture.sh("mkdir scratchpad/deep; echo x > scratchpad/deep/file").success();
    watcher.must_hear(&[words.made, "scratchpad/deep/file"]);

    // A record that is saved, and claimed.
    save(&task, Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    watcher.must_hear(&[words.changed, "work/inbox/t-1.yaml"]);
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    words.must_hear_move(&watcher, "work/inbox/t-1.yaml", "work/assigned/bob/t-1.yaml");
}

// P11.8
#[test]
fn watchdog_of_python() {
    // Debian's package is for Debian's interpreter.
    let mut command = Command::new("/usr/bin/python3");
    let known = Command::new("/usr/bin/python3").args(["-c", "import watchdog"]).output();
    if !known.is_ok_and(|known| known.status.success()) {
        return left_out("watchdog is not installed");
    }
    command.arg(program("watch.py"));
    let words = Words { made: "created", changed: "modified", removed: "deleted", has_moves: true };
    hears_all(command, &words);
}

// P11.8
#[test]
fn chokidar_of_node() {
    if !needs(&["node"]) {
        return;
    }
    let node = || {
        let mut node = Command::new("node");
        // Where Debian's package lies; another node does not look there.
        node.env("NODE_PATH", "/usr/share/nodejs:/usr/lib/nodejs");
        node
    };
    let known = node().args(["-e", "require('chokidar')"]).output();
    if !known.is_ok_and(|known| known.status.success()) {
        return left_out("chokidar is not installed");
    }
    let mut command = node();
    command.arg(program("watch.js"));
    let words = Words { made: "add", changed: "change", removed: "unlink", has_moves: false };
    hears_all(command, &words);
}

// P11.8
#[test]
fn a_watcher_in_the_mount_of_an_exec() {
    let fixture = Setup::default().lanes(["bob"]).start();
    fixture.sh("mkdir scratchpad").success();
    let (program, python) = (program("inotify.py"), python());
    // Where root calls it, its mount is seen by nobody else.
    let whole = (&[][..], "", "scratchpad", "work/ready");
    let part = (&["--root", "work"][..], "work/", "inbox", "ready");
    for (nth, (options, above, probed, ready)) in [whole, part].into_iter().enumerate() {
        let mut command = fixture.command(&["exec", "--agent", "bob"]);
        command.args(options).env("TMPDIR", fixture.outside(""));
        command.arg("--").arg(python).arg(&program).args([probed, ready]);
        let mut watcher = Watcher::run(&mut command, fixture.root().to_owned());
        watcher.is_noticed(&fixture, above, probed);
        fixture.task("inbox", &Task::new(&format!("t-{nth}")));
        watcher.must_hear(&[&format!("{ready}/")]);
        drop(watcher.child.stdin.take());
        assert!(watcher.child.wait().unwrap().success());
        until_polled("the mount has gone", || {
            let mounts = fixture.workfs(&["ps", "--json"]).success().json();
            (mounts["mounts"].as_array().unwrap().len() == 1).then_some(())
        });
    }
    fixture.fsck_clean();
}
