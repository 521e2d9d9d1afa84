//! Asking a daemon.
//!
//! What must stay true: that nobody listens is told apart from every other failure; what is
//! answered at once is not waited for without end. Deliberately not here: starting a daemon
//! (`spawn`).

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::failure::{Cause, Failure};
use super::paths::StorePaths;
use super::socket;
use super::wire::{Answer, Ask, Lines};
use crate::limits::{DAEMON_ANSWER_WAIT, SOCKET_PATIENCE};

/// A connection to a store's daemon.
#[derive(Debug)]
pub struct Client {
    lines: Lines,
    paths: StorePaths,
}

impl Client {
    /// Connects; `None` if no daemon listens.
    ///
    /// # Errors
    /// If the system refuses, or the daemon does not accept.
    pub fn connect(paths: &StorePaths) -> Result<Option<Client>, Failure> {
        for path in paths.sockets() {
            if let Some(client) = Client::connect_to(paths, &path)? {
                return Ok(Some(client));
            }
        }
        Ok(None)
    }

    fn connect_to(paths: &StorePaths, path: &Path) -> Result<Option<Client>, Failure> {
        let error = match socket::connect(path) {
            Ok(None) => return Ok(None),
            Ok(Some(stream)) => {
                return Ok(Some(Client { lines: Lines::new(stream), paths: paths.clone() }));
            }
            Err(error) => error,
        };
        let reason = format!("the daemon's socket {}: {error}", path.display());
        Err(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let remedy = "ask the store's owner to make you an agent (`workfs agent add NAME --uid \
                              UID`) and to let you pass to the socket, or use a store of your own \
                              (`--store`)";
                Failure::new(Cause::Denied, reason, remedy)
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Failure::new(Cause::Busy, reason, "try again in a moment")
            }
            _ => Failure::new(Cause::Mount, reason, "see the daemon's log beside the store"),
        })
    }

    fn send(&mut self, ask: &Ask) -> io::Result<()> {
        self.lines.stream().set_write_timeout(Some(SOCKET_PATIENCE))?;
        self.lines.send(&ask.line()?)
    }

    /// Asks for what is answered once and soon. `None`: the daemon ended before it answered.
    ///
    /// # Errors
    /// What the daemon said, or that it says nothing, or nothing that can be understood.
    pub fn ask(&mut self, ask: &Ask) -> Result<Option<Answer>, Failure> {
        self.limit(Some(DAEMON_ANSWER_WAIT))?;
        // A daemon that does not want us answers and hangs up before it has read anything.
        let sent = self.send(ask);
        let answer = match sent {
            Err(error) if !is_end(&error) => Err(error),
            _ => self.lines.answer(),
        };
        match answer {
            Ok(Some(Answer::Failed(failure))) => Err(failure),
            Ok(answer) => Ok(answer),
            Err(error) if is_end(&error) => Ok(None),
            Err(error) => Err(unanswered(&error)),
        }
    }

    /// Sends the connection of a private mount, when the daemon asked for it; its answer follows.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn send_connection(&mut self, connection: BorrowedFd<'_>) -> Result<Answer, Failure> {
        let sent = self.lines.send_descriptor(connection);
        match sent.and_then(|()| self.lines.answer()) {
            Ok(Some(Answer::Failed(failure))) => Err(failure),
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(gone()),
            Err(error) => Err(unanswered(&error)),
        }
    }

    /// Asks for what may have many answers, for as long as it takes; when the daemon has said
    /// nothing for `silence`, it is asked whether it lives, and then each time after twice as long.
    ///
    /// # Errors
    /// If the daemon is gone before it has read the ask.
    pub fn ask_many(&mut self, ask: &Ask, silence: Duration) -> Result<Answers<'_>, Failure> {
        self.limit(Some(DAEMON_ANSWER_WAIT))?;
        // As above: there may be an answer all the same.
        self.send(ask).or_else(|error| if is_end(&error) { Ok(()) } else { Err(lost(&error)) })?;
        Ok(Answers { client: self, silence, over: false })
    }

    /// The next answer of a held mount; `None` when the daemon has closed the connection.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn await_answer(&mut self) -> Result<Option<Answer>, Failure> {
        self.limit(None)?;
        self.lines.answer().map_err(|error| lost(&error))
    }

    /// Waits, not without end, until the daemon has noticed that a private mount is gone, and has
    /// ended if it was the last.
    pub fn await_unmounted(&mut self) {
        if self.limit(Some(DAEMON_ANSWER_WAIT)).is_ok()
            && let Ok(Some(Answer::Unmounted { ending: true })) = self.lines.answer()
        {
            self.await_end();
        }
    }

    /// Waits, not without end, until the daemon has closed the connection.
    pub fn await_end(&mut self) {
        if self.limit(Some(DAEMON_ANSWER_WAIT)).is_ok() {
            while let Ok(Some(_)) = self.lines.answer() {}
        }
    }

    /// The connection, to end it from another thread.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn connection(&self) -> Result<UnixStream, Failure> {
        let copy = self.lines.stream().try_clone();
        copy.map_err(|error| Failure::io("the daemon's socket", &error))
    }

    /// Fails unless the daemon answers on another connection; a refusal is an answer, too.
    fn expect_alive(&self) -> Result<(), Failure> {
        let Some(mut other) = Client::connect(&self.paths)? else { return Err(gone()) };
        other.limit(Some(DAEMON_ANSWER_WAIT))?;
        let answer = other.send(&Ask::Ps).and_then(|()| other.lines.answer());
        match answer {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(gone()),
            Err(error) => Err(lost(&error)),
        }
    }

    fn limit(&self, patience: Option<Duration>) -> Result<(), Failure> {
        let set = self.lines.stream().set_read_timeout(patience);
        set.map_err(|error| Failure::io("the daemon's socket", &error))
    }
}

/// Answers as they come, up to the final one.
#[derive(Debug)]
pub struct Answers<'c> {
    client: &'c mut Client,
    silence: Duration,
    over: bool,
}

impl Answers<'_> {
    /// Waits for the beginning of an answer, as long as the daemon lives.
    fn await_some(&mut self) -> Result<(), Failure> {
        let broken = |error: io::Error| lost(&error);
        while !self.client.lines.await_some(self.silence).map_err(broken)? {
            self.client.expect_alive()?;
            self.silence = self.silence.saturating_mul(2);
        }
        Ok(())
    }
}

impl Iterator for Answers<'_> {
    type Item = Result<Answer, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let answer = self.await_some().and_then(|()| match self.client.lines.answer() {
            Ok(Some(Answer::Failed(failure))) => Err(failure),
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(gone()),
            Err(error) => Err(lost(&error)),
        });
        self.over = answer.as_ref().map_or(true, Answer::is_final);
        Some(answer)
    }
}

/// Whether the other side is simply gone.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}

fn lost(error: &io::Error) -> Failure {
    if is_end(error) { gone() } else { unanswered(error) }
}

fn unanswered(error: &io::Error) -> Failure {
    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
        let reason = "the daemon does not answer";
        return Failure::new(Cause::Busy, reason, "is it stopped? See its log beside the store");
    }
    Failure::new(Cause::Mount, format!("asking the daemon: {error}"), "see its log")
}

/// The failure of a daemon that ended under a request.
fn gone() -> Failure {
    let reason = "the daemon ended before it answered";
    Failure::new(Cause::Mount, reason, "look whether the change is there, then try again")
}
