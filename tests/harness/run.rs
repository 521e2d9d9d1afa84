//! Programs that are run to their end, with a deadline and with all that they said.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::wait::{DEADLINE, await_exit};

/// A program that has ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; 128 + the signal, as shells have it, if a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
    /// How it was called.
    pub called: String,
}

impl Ran {
    /// Is it content?
    pub fn ok(&self) -> bool {
        self.code == 0
    }

    /// Fails the test unless it ended with 0.
    #[track_caller]
    pub fn success(self) -> Ran {
        assert!(self.code == 0, "this should have succeeded: {self}");
        self
    }

    /// Fails the test if it ended with 0, or said nothing about its failure.
    #[track_caller]
    pub fn failure(self) -> Ran {
        assert!(self.code != 0, "this should have failed: {self}");
        assert!(!self.said().trim().is_empty(), "this failed without a word: {self}");
        self
    }

    /// All that it said, on both ways.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// What it printed, each line as JSON.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let line = |line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}: {self}"))
        };
        self.stdout.lines().map(line).collect()
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cut = |text: &str| text.chars().take(4000).collect::<String>();
        let (called, out, err) = (cut(&self.called), cut(&self.stdout), cut(&self.stderr));
        write!(f, "exit {} of {called}\n--- stdout:\n{out}\n--- stderr:\n{err}", self.code)
    }
}

/// Runs a program to its end.
#[track_caller]
pub fn run(command: &mut Command) -> Ran {
    run_within(command, DEADLINE)
}

/// The same with another deadline; what is not done by then is killed, and the test fails.
#[track_caller]
pub fn run_within(command: &mut Command, deadline: Duration) -> Ran {
    let called = format!("{command:?}");
    // In a group of its own, so that what it started can be ended with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{called}: {error}"));
    let stdout = collect(child.stdout.take().expect("piped"));
    let stderr = collect(child.stderr.take().expect("piped"));
    let ended = await_exit(child.id(), deadline);
    if !ended {
        kill_group(&mut child);
    }
    let status = child.wait().expect("a child can be waited for");
    // A daemon that keeps the pipe of who started it makes `$(workfs mount …)` hang.
    let text = |from: Receiver<Vec<u8>>| match from.recv_timeout(Duration::from_secs(10)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => panic!("something keeps the output open after the end of {called}"),
    };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let ran = Ran { code, stdout: text(stdout), stderr: text(stderr), called };
    assert!(ended, "not done within {deadline:?}: {ran}");
    ran
}

fn collect(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What a broken pipe has brought until then is what there is.
        let _ = from.read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    receive
}

fn kill_group(child: &mut Child) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

/// A shell's snippet, with variables.
pub struct Shell<'a> {
    shell: &'a str,
    dir: &'a Path,
    variables: BTreeMap<String, std::ffi::OsString>,
}

impl<'a> Shell<'a> {
    /// `bash` in `dir`.
    pub fn bash(dir: &'a Path) -> Self {
        Shell { shell: "bash", dir, variables: BTreeMap::new() }
    }

    /// `dash` in `dir`.
    pub fn dash(dir: &'a Path) -> Self {
        Shell { shell: "dash", dir, variables: BTreeMap::new() }
    }

    /// With a variable.
    pub fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.insert(name.to_owned(), value.as_ref().to_owned());
        self
    }

    /// Runs the snippet.
    #[track_caller]
    pub fn run(self, snippet: &str) -> Ran {
        self.run_within(snippet, DEADLINE)
    }

    /// The same with another deadline.
    #[track_caller]
    pub fn run_within(self, snippet: &str, deadline: Duration) -> Ran {
        let mut command = Command::new(self.shell);
        // Messages are compared, so they are wanted in English.
        command.arg("-c").arg(snippet).current_dir(self.dir).env("LC_ALL", "C.UTF-8");
        run_within(command.envs(self.variables), deadline)
    }
}
