//! How soon something is, on a machine that may be busy with others.
//!
//! What must stay true: what waits for a clock, or for nothing, is found out on a busy machine, too; what is only kept
//! from a processor is not taken for that.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How many times something may be late that is prompt: what waits for a clock is so each time.
const ATTEMPTS: usize = 10;

/// Fails the test unless what is tried takes less than this, once in some attempts.
#[track_caller]
pub fn prompt(limit: Duration, mut attempt: impl FnMut() -> Duration) {
    let mut took = Vec::new();
    while took.len() < ATTEMPTS {
        took.push(attempt());
        if took.last().is_some_and(|last| *last < limit) {
            return;
        }
    }
    panic!("each time later than {limit:?}: {took:?}");
}

/// A process that says what it hears: how long two changes of process take just now.
pub struct Echo {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    took: Vec<Duration>,
}

impl Echo {
    pub fn start() -> Echo {
        let mut cat = Command::new("cat");
        let mut child = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Echo { child, input, output, took: Vec::new() }
    }

    /// Has it say something.
    pub fn sound(&mut self) {
        let begin = Instant::now();
        let mut line = String::new();
        self.input.write_all(b"x\n").unwrap();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "x\n");
        self.took.push(begin.elapsed());
    }

    /// What ten of these take, by the median of those so far: on an idle machine about a millisecond.
    pub fn ten(&mut self) -> Duration {
        self.took.sort();
        self.took[self.took.len() / 2] * 10
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
