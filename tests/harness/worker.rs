//! Worker processes: this very test binary, started again for one of its ignored tests, or a
//! Python script. They say `ready`, wait for `go`, and then say a line for each thing they did.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::io::Errno;

use super::tools::python;
use super::wait::{DEADLINE, await_exit, until_polled};

/// Marks a worker's environment.
const MARK: &str = "WORKFS_TEST_WORKER";

/// Stands before what a worker says: the test runner in it prints lines of its own.
const SAYS: &str = "@@ ";

/// What a worker process was told.
pub struct Work {
    /// Which of the workers it is.
    pub nth: usize,
    /// The workspace in its mount.
    pub dir: PathBuf,
    arguments: Vec<String>,
}

impl Work {
    /// An argument.
    pub fn argument(&self, nth: usize) -> &str {
        &self.arguments[nth]
    }

    /// Says something to the test, at once.
    pub fn say(&self, line: &str) {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{SAYS}{line}").and_then(|()| out.flush()).expect("the test listens");
    }

    /// Whether a call failed since the daemon has ended. One that the daemon was just being handed
    /// when it was killed fails with EIO (`fuse_dev_do_read`), and then all that follow fail.
    pub fn is_end(&self, errno: Errno) -> bool {
        let is_end = |errno| matches!(errno, Errno::NOTCONN | Errno::CONNABORTED);
        let mut asked = 0;
        let mut ended = || {
            // A name that nobody asked for yet, so that the kernel has no answer of its own.
            asked += 1;
            let name = self.dir.join(format!("asked-{}-{asked}", self.nth));
            let error = std::fs::symlink_metadata(name).err()?;
            Errno::from_io_error(&error).filter(|errno| is_end(*errno)).map(|_| true)
        };
        is_end(errno)
            || errno == Errno::IO && until_polled("the daemon's end after EIO", &mut ended)
    }

    /// Says that it is ready, and waits for the word.
    pub fn await_go(&self) {
        self.say("ready");
        let mut word = String::new();
        std::io::stdin().read_line(&mut word).expect("the test speaks");
    }
}

/// The work of this process, if it is a worker; an ignored test that is run by hand is none.
pub fn work() -> Option<Work> {
    let nth = std::env::var(MARK).ok()?.parse().ok()?;
    let dir = PathBuf::from(std::env::var_os("WORKER_DIR")?);
    let arguments = std::env::var("WORKER_ARGUMENTS").unwrap_or_default();
    let arguments = arguments.split('\u{1f}').map(str::to_owned).collect();
    Some(Work { nth, dir, arguments })
}

/// What is to be started.
pub enum Worker<'a> {
    /// The ignored test of this name in this binary.
    Test(&'a str),
    /// This Python program; it gets `nth`, the directory and the arguments as `sys.argv`, and
    /// has `ready()` and `say(text)`.
    Python(&'a str),
    /// This script for bash; it gets `$nth` and `$dir`, and has `ready` and `say TEXT`.
    Shell(&'a str),
}

/// A line that a worker said.
#[derive(Clone, Debug)]
pub struct Said {
    /// Which worker.
    pub nth: usize,
    /// What.
    pub line: String,
}

/// Workers that run.
pub struct Workers {
    children: Vec<Child>,
    inputs: Vec<Option<ChildStdin>>,
    errors: Vec<Receiver<String>>,
    said: Receiver<Said>,
}

impl Workers {
    /// Starts one worker for each directory; when this returns all are ready.
    #[track_caller]
    pub fn start(worker: &Worker<'_>, dirs: &[PathBuf], arguments: &[&str]) -> Workers {
        let (send, said) = channel();
        let (children, inputs, errors) = (Vec::new(), Vec::new(), Vec::new());
        let mut workers = Workers { children, inputs, errors, said };
        for (nth, dir) in dirs.iter().enumerate() {
            let mut command = worker.command(nth, dir, arguments);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.process_group(0).spawn().expect("a worker starts");
            listen(nth, child.stdout.take().expect("piped"), send.clone());
            workers.errors.push(drain(child.stderr.take().expect("piped")));
            workers.inputs.push(child.stdin.take());
            workers.children.push(child);
        }
        drop(send);
        let mut ready = 0;
        while ready < dirs.len() {
            match workers.said.recv_timeout(DEADLINE) {
                Ok(said) if said.line == "ready" => ready += 1,
                Ok(_) => {}
                Err(why) => panic!("a worker does not get ready ({why}): {}", workers.complaints()),
            }
        }
        workers
    }

    /// Gives the word, and says that none will follow.
    pub fn go(&mut self) {
        self.go_on();
        self.inputs.iter_mut().for_each(|input| drop(input.take()));
    }

    /// Gives the word; another may follow.
    pub fn go_on(&mut self) {
        for input in self.inputs.iter_mut().flatten() {
            // One that is gone already will be noticed by what it did not say.
            let _ = input.write_all(b"go\n");
        }
    }

    /// The next line of any worker; none once all have ended.
    #[track_caller]
    pub fn next(&mut self) -> Option<Said> {
        match self.said.recv_timeout(DEADLINE) {
            Ok(said) => Some(said),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no worker gets on: {}", self.complaints()),
        }
    }

    /// The processes.
    pub fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Takes all that is said until all have ended; fails the test if one ended badly.
    #[track_caller]
    pub fn finish(mut self) -> Vec<Said> {
        let mut all = Vec::new();
        while let Some(said) = self.next() {
            all.push(said);
        }
        for nth in 0..self.children.len() {
            let child = &mut self.children[nth];
            assert!(await_exit(child.id(), DEADLINE), "worker {nth} does not end");
            let status = child.wait().expect("a child can be waited for");
            assert!(status.success(), "worker {nth}: {status}: {}", self.complaints());
        }
        all
    }

    /// Gives the word and finishes.
    #[track_caller]
    pub fn go_and_finish(mut self) -> Vec<Said> {
        self.go();
        self.finish()
    }

    fn complaints(&self) -> String {
        let texts = self.errors.iter().map(|from| from.recv_timeout(Duration::from_secs(1)));
        texts.map(|text| text.unwrap_or_default()).collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Those that have ended are not there to be killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Worker<'_> {
    fn command(&self, nth: usize, dir: &std::path::Path, arguments: &[&str]) -> Command {
        match self {
            Worker::Test(test) => {
                let mut command = Command::new(std::env::current_exe().expect("our own path"));
                command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
                command.env(MARK, nth.to_string()).env("WORKER_DIR", dir);
                command.env("WORKER_ARGUMENTS", arguments.join("\u{1f}"));
                command
            }
            Worker::Python(program) => {
                let mut command = Command::new(python());
                command.arg("-c").arg(format!("{PRELUDE}\n{program}"));
                command.arg(nth.to_string()).arg(dir).args(arguments);
                command
            }
            Worker::Shell(script) => {
                let mut command = Command::new("bash");
                command.arg("-c").arg(format!("{SHELL_PRELUDE}\n{script}"));
                command.env("nth", nth.to_string()).env("dir", dir);
                command
            }
        }
    }
}

/// What each worker in bash begins with.
const SHELL_PRELUDE: &str = "
say() { echo \"@@ $*\"; }
ready() { say ready; read -r word; }
";

/// What each Python worker begins with.
const PRELUDE: &str = "
import os, sys, errno
nth, work, args = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
def say(text):
    os.write(1, ('@@ ' + text + '\\n').encode())
def ready():
    say('ready')
    os.read(0, 3)
";

fn listen(nth: usize, from: impl Read + Send + 'static, to: Sender<Said>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { return };
            if let Some((_, line)) = line.split_once(SAYS)
                && to.send(Said { nth, line: line.to_owned() }).is_err()
            {
                return;
            }
        }
    });
}

fn drain(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receive
}
