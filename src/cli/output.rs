//! What the commands print, and where: results to standard output, the rest to standard error.
//!
//! What must stay true: a reader that closes the pipe ends the command quietly; progress is shown
//! on a terminal only and leaves no trace; nothing printed can steer a terminal. Deliberately not
//! here: what is said.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::exit::Exit;
use super::stdout::expect_open;
use crate::daemon::Failure;
use crate::names::{Shown, unsteering};
use crate::refusal::Rule;
use crate::service;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Why a command ends early.
#[derive(Debug)]
pub enum Stop {
    /// It failed.
    Failed(Box<Failed>),
    /// Nobody reads what it prints any more.
    NobodyReads,
    /// Ctrl-C, and a report has told what was done.
    Interrupted,
    /// A command that was run ended with this exit code, which is ours.
    Ended(u8),
}

/// A failure, as it is shown.
#[derive(Debug)]
pub struct Failed {
    /// How the process ends.
    pub exit: Exit,
    /// What is wrong.
    pub reason: String,
    /// The way out; may be empty.
    pub remedy: String,
    /// The code of the rule that refused it.
    pub rule: Option<&'static str>,
    /// Where in the content.
    pub place: Option<Place>,
}

/// A line, and the column in it where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: Option<u32>,
}

impl Place {
    fn json(self) -> Value {
        match self.column {
            Some(column) => json!({"line": self.line, "column": column}),
            None => json!({"line": self.line}),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.column {
            Some(column) => write!(f, "line {}, column {column}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

impl Stop {
    /// A failure that was found here.
    pub fn failed(exit: Exit, reason: impl Into<String>, remedy: impl Into<String>) -> Stop {
        let (reason, remedy) = (reason.into(), remedy.into());
        Stop::Failed(Box::new(Failed { exit, reason, remedy, rule: None, place: None }))
    }

    /// The same, with the store's file where the store itself failed and it is not named.
    pub fn of(self, store: &Path) -> Stop {
        let shown = store.shown();
        match self {
            Stop::Failed(mut failed)
                if failed.exit == Exit::Store && !failed.reason.contains(&shown) =>
            {
                failed.reason = format!("{shown}: {}", failed.reason);
                Stop::Failed(failed)
            }
            other => other,
        }
    }

    /// The same of what was done, and could not be told.
    fn after(self, done: &str) -> Stop {
        match self {
            Stop::Failed(mut failed) => {
                failed.reason.push_str(&format!("; it was done all the same: {done}"));
                Stop::Failed(failed)
            }
            other => other,
        }
    }

    /// The same of what was interrupted: the failure is all that tells of it, and the exit code says why.
    pub fn interrupted(self) -> Stop {
        match self {
            Stop::Failed(mut failed) => {
                failed.exit = Exit::Interrupted;
                Stop::Failed(failed)
            }
            _ => Stop::Interrupted,
        }
    }

    /// A command that was run ended so. As a shell tells it: its exit code, or 128 and its signal's
    /// number.
    pub fn ended(status: ExitStatus) -> Stop {
        let signal = status.signal().map(|signal| 128 + signal);
        let code = status.code().or(signal).and_then(|code| u8::try_from(code).ok());
        Stop::Ended(code.unwrap_or(u8::MAX))
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        let Failure { cause, reason, remedy, rule, line } = failure;
        let rule = rule.map(Rule::code);
        let place = line.map(|line| Place { line, column: None });
        Stop::Failed(Box::new(Failed { exit: cause.into(), reason, remedy, rule, place }))
    }
}

impl From<service::Failure> for Stop {
    fn from(failure: service::Failure) -> Stop {
        let exit = failure.exit.into();
        let place = failure.place.map(|at| Place { line: at.line, column: Some(at.column) });
        let rule = failure.rule.map(Rule::code);
        let service::Failure { reason, remedy, .. } = failure;
        Stop::Failed(Box::new(Failed { exit, reason, remedy, rule, place }))
    }
}

/// How one command prints.
#[derive(Debug)]
pub struct Output {
    /// Results are JSON.
    pub json: bool,
    /// Only results and failures.
    pub quiet: bool,
    colour: Colour,
    progress_shown: Cell<bool>,
    progress_at: Cell<Option<Instant>>,
    buffer: RefCell<io::BufWriter<io::Stdout>>,
}

/// How often progress is drawn.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

impl Output {
    /// Printing in this way.
    #[must_use]
    pub fn new(json: bool, quiet: bool, colour: Colour) -> Self {
        Output {
            json,
            quiet,
            colour,
            progress_shown: Cell::new(false),
            progress_at: Cell::new(None),
            buffer: RefCell::new(io::BufWriter::new(io::stdout())),
        }
    }

    /// Prints lines of a result: as they are where they are JSON, which programs read.
    ///
    /// # Errors
    /// If nobody reads them, or they cannot be written.
    pub fn line(&self, text: &str) -> Result<(), Stop> {
        match self.json {
            true => self.raw(format!("{text}\n").as_bytes()),
            false => self.raw(format!("{}\n", unsteering(text)).as_bytes()),
        }
    }

    /// Prints what is somebody's content, or a program's, as it is, without a newline at its end.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn raw(&self, text: &[u8]) -> Result<(), Stop> {
        self.clear_progress();
        written(expect_open().and_then(|()| self.buffer.borrow_mut().write_all(text)))
    }

    /// Prints a result as one line of JSON.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn value(&self, value: &Value) -> Result<(), Stop> {
        self.line(&value.to_string())
    }

    /// Hands on what was printed.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn flush(&self) -> Result<(), Stop> {
        written(self.buffer.borrow_mut().flush())
    }

    /// The same of what was done: where it could not be told of (`told`), the failure names it. Whoever heard
    /// of a failure alone would do it again.
    ///
    /// # Errors
    /// What could not be told.
    pub fn of_done(
        &self,
        told: Result<(), Stop>,
        done: impl FnOnce() -> String,
    ) -> Result<(), Stop> {
        told.and_then(|()| self.flush()).map_err(|stop| stop.after(&done()))
    }

    /// Fails, before anything is done, where nothing can be printed of what a command gives.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn expect_open(&self, command: &str) -> Result<(), Stop> {
        written(expect_open()).map_err(|stop| match stop {
            Stop::Failed(mut failed) => {
                failed.reason +=
                    &format!("; nobody would hear what `{command}` gives, so it gave nothing");
                Stop::Failed(failed)
            }
            stop => stop,
        })
    }

    /// Hands it on, if somebody watches the lines come.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn flush_if_watched(&self) -> Result<(), Stop> {
        if io::stdout().is_terminal() { self.flush() } else { Ok(()) }
    }

    /// Tells what is no result.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.clear_progress();
            self.to_stderr(&format!("workfs: {}\n", unsteering(text)));
        }
    }

    /// Tells of a failure what is said of it already.
    pub fn told(&self, text: &str) {
        self.clear_progress();
        self.to_stderr(&unsteering(text));
    }

    /// Tells a failure.
    pub fn failure(&self, failed: &Failed) {
        self.clear_progress();
        if self.json {
            let error = json!({"error": {
                "code": failed.exit.code(), "reason": failed.reason, "remedy": failed.remedy,
                "rule": failed.rule, "place": failed.place.map(Place::json),
            }});
            self.to_stderr(&format!("{error}\n"));
            return;
        }
        let place = failed.place.map_or_else(String::new, |place| format!(" ({place})"));
        let rule = failed.rule.map_or_else(String::new, |rule| format!(" [{rule}]"));
        let (on, off) = if self.colours() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        let reason = unsteering(&failed.reason);
        let mut text = format!("{on}workfs:{off} {reason}{place}{rule}\n");
        if !failed.remedy.is_empty() {
            text.push_str(&format!("  {}\n", unsteering(&failed.remedy)));
        }
        self.to_stderr(&text);
    }

    /// Shows how far something is.
    pub fn progress(&self, done: u64, total: u64, what: &str) {
        if self.quiet || self.json || !is_steered() {
            return;
        }
        let now = Instant::now();
        let soon = |at: Instant| now.duration_since(at) < PROGRESS_EVERY;
        if self.progress_at.get().is_some_and(soon) {
            return;
        }
        self.progress_at.set(Some(now));
        self.progress_shown.set(true);
        let of = if total > 0 { format!("/{total}") } else { String::new() };
        self.to_stderr(&format!("\r\x1b[K{done}{of} {what}"));
    }

    fn clear_progress(&self) {
        if self.progress_shown.replace(false) {
            self.to_stderr("\r\x1b[K");
        }
    }

    fn colours(&self) -> bool {
        match self.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                !no && is_steered()
            }
        }
    }

    fn to_stderr(&self, text: &str) {
        // Where standard error is gone there is nobody to tell.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Whether standard error is a terminal that takes more than text.
fn is_steered() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// What came of writing to standard output.
pub fn written(result: io::Result<()>) -> Result<(), Stop> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Stop::NobodyReads,
        kind => {
            let exit = Exit::from(service::Exit::from(kind));
            let remedy = match error.raw_os_error() {
                Some(libc::EBADF) => "it is closed; give `>/dev/null` where nobody needs it",
                Some(libc::ENOSPC | libc::EDQUOT) => "make space where it goes, then ask again",
                _ => "",
            };
            Stop::failed(exit, format!("standard output: {error}"), remedy)
        }
    })
}
