//! Asking a daemon.
//!
//! What must stay true: that nobody listens is told apart from every other failure; what is
//! answered at once is not waited for without end; who may not serve the store is asked nothing.
//! Deliberately not here: starting a daemon (`spawn`).

use std::fs::Metadata;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::elsewhere::expect_same_place;
use super::held::HeldWait;
use super::lines::Lines;
use super::wire::{Answer, Ask};
use crate::daemon::failure::{Cause, Failure};
use crate::daemon::mounts::users::Process;
use crate::daemon::paths::StorePaths;
use crate::daemon::socket;
use crate::daemon::spawn::LOOK_AGAIN;
use crate::limits::{DAEMON_ANSWER_WAIT, DAEMON_STOPPED_WAIT, INTERRUPT_WAIT, SOCKET_PATIENCE};
use crate::names::Shown;
use crate::store::StoreError;
use crate::store::sqlite::{Lock, is_held, lock_holder};

/// A connection to a store's daemon.
#[derive(Debug)]
pub struct Client {
    lines: Lines,
    paths: StorePaths,
    until: Option<Instant>,
}

/// Who listens at a socket.
enum Listens {
    Daemon(Client),
    /// Somebody who cannot be the store's daemon, and why.
    Stranger(Failure),
    Nobody,
}

impl Client {
    /// Connects; `None` if no daemon listens.
    ///
    /// # Errors
    /// If the system refuses, or the daemon does not accept.
    pub fn connect(paths: &StorePaths) -> Result<Option<Client>, Failure> {
        let mut in_the_way = None;
        for path in paths.sockets() {
            match Client::connect_to(paths, &path)? {
                Listens::Daemon(client) => return Ok(Some(client)),
                // Where a daemon of this user's would listen. Elsewhere it keeps nobody from one.
                Listens::Stranger(why) if path == paths.socket() => in_the_way = Some(why),
                Listens::Stranger(_) | Listens::Nobody => {}
            }
        }
        in_the_way.map_or(Ok(None), Err)
    }

    /// Connects; `None` if nobody has the store either. A daemon that has just begun listens in a
    /// moment, and a command that does without one ends.
    ///
    /// # Errors
    /// As [`Client::connect`], and if somebody has the store and does not listen.
    pub fn connect_or_nobody(paths: &StorePaths) -> Result<Option<Client>, Failure> {
        let mut wait = HeldWait::of(paths);
        loop {
            if let Some(client) = Client::connect(paths)? {
                return Ok(Some(client));
            }
            if !is_held(paths.store()) {
                return Ok(None);
            }
            if !wait.goes_on() {
                let Some(pid) = lock_holder(paths.store()) else { return Ok(None) };
                let path = paths.store().shown();
                return Err(StoreError::Held { path, pid }.into());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn connect_to(paths: &StorePaths, path: &Path) -> Result<Listens, Failure> {
        let error = match socket::connect(path) {
            Ok(None) => return Ok(Listens::Nobody),
            Ok(Some(stream)) => {
                if let Some(why) = not_entitled(paths.store(), path, &stream)? {
                    return Ok(Listens::Stranger(why));
                }
                let (lines, paths) = (Lines::new(stream), paths.clone());
                return Ok(Listens::Daemon(Client { lines, paths, until: None }));
            }
            // One that another user's daemon left when it was killed, or at which a stranger answers nobody.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                ) && Lock::share(paths.store()).is_ok() =>
            {
                return Ok(Listens::Nobody);
            }
            Err(error) => error,
        };
        let reason = format!("the daemon's socket {}: {error}", path.shown());
        Err(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let remedy = "ask the store's owner to make you an agent (`workfs agent add NAME --uid \
                              UID`) and to let you pass to the socket, or use a store of your own \
                              (`--store`)";
                Failure::new(Cause::Denied, reason, remedy)
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                silent(paths, lock_holder(paths.store()))
            }
            _ => Failure::new(Cause::Mount, reason, "see the daemon's log beside the store"),
        })
    }

    /// Whatever is asked is waited for no longer than until then.
    #[must_use]
    pub fn until(self, until: Option<Instant>) -> Client {
        Client { until, ..self }
    }

    /// The answer to what is answered soon; of a daemon that is stopped none is waited for.
    fn answer_soon(&mut self) -> io::Result<Option<Answer>> {
        let until = Instant::now() + self.at_most(DAEMON_ANSWER_WAIT);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.lines.await_some(left.min(DAEMON_STOPPED_WAIT))? {
                return self.lines.answer();
            }
            if left <= DAEMON_STOPPED_WAIT
                || self.process().is_some_and(|pid| Process::of(pid).is_stopped())
            {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// The daemon's process.
    fn process(&self) -> Option<u32> {
        self.listener().or_else(|| lock_holder(self.paths.store()))
    }

    /// The same by its number here; `None` where it has none.
    fn listener(&self) -> Option<u32> {
        let peer = socket::peer(self.lines.stream()).ok();
        peer.map(|peer| peer.pid).filter(|pid| *pid != 0)
    }

    /// Fails where the daemon would find another place by a path than this process does.
    ///
    /// # Errors
    /// If it would, or the place does not answer.
    pub fn expect_sees(&self, path: &Path) -> Result<(), Failure> {
        self.listener().map_or(Ok(()), |daemon| expect_same_place(daemon, path))
    }

    fn lost(&self, error: &io::Error) -> Failure {
        if is_end(error) { gone() } else { self.unanswered(error) }
    }

    fn unanswered(&self, error: &io::Error) -> Failure {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return silent(&self.paths, self.process());
        }
        Failure::new(Cause::Mount, format!("asking the daemon: {error}"), "see its log")
    }

    /// As long as that, but no longer than until its end; a system's timeout of zero would be none.
    fn at_most(&self, patience: Duration) -> Duration {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(patience, |left| left.min(patience)).max(Duration::from_millis(1))
    }

    fn send(&mut self, ask: &Ask) -> io::Result<()> {
        self.lines.stream().set_write_timeout(Some(self.at_most(SOCKET_PATIENCE)))?;
        self.lines.send(&ask.line())
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
            _ => self.answer_soon(),
        };
        match answer {
            Ok(Some(Answer::Failed(failure))) => Err(failure),
            Ok(answer) => Ok(answer),
            Err(error) if is_end(&error) => Ok(None),
            Err(error) => Err(self.unanswered(&error)),
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
            Err(error) => Err(self.lost(&error)),
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
        let sent = self.send(ask);
        sent.or_else(|error| if is_end(&error) { Ok(()) } else { Err(self.lost(&error)) })?;
        Ok(Answers { client: self, silence, over: false })
    }

    /// The next answer of a held mount; `None` when the daemon has closed the connection.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn await_answer(&mut self) -> Result<Option<Answer>, Failure> {
        self.limit(None)?;
        self.lines.answer().map_err(|error| self.lost(&error))
    }

    /// Whether the daemon says something, or has ended, within this time.
    ///
    /// # Errors
    /// If the connection cannot be asked.
    pub fn is_heard_within(&self, patience: Duration) -> Result<bool, Failure> {
        socket::await_input(self.lines.stream(), patience)
            .map_err(|error| Failure::io("the daemon's socket", &error))
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

    /// What asks the daemon, from another thread, to do no more of what was asked here, and to say how far it
    /// came. One that does not is waited for no longer than a while: then the connection is over.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn interrupter(&self) -> Result<impl FnOnce() + Send + use<>, Failure> {
        let mut connection = self.connection()?;
        Ok(move || {
            let line = serde_json::to_vec(&Ask::Interrupt.line()).map_err(io::Error::other);
            let sent = line.and_then(|line| connection.write_all(&[&line[..], b"\n"].concat()));
            let end = move || {
                if sent.is_ok() {
                    std::thread::sleep(INTERRUPT_WAIT);
                }
                // If it fails it is over already.
                let _ = connection.shutdown(Shutdown::Both);
            };
            let _ = std::thread::Builder::new().name("interrupted".into()).spawn(end);
        })
    }

    /// Fails unless the daemon answers on another connection; a refusal is an answer, too.
    fn expect_alive(&self) -> Result<(), Failure> {
        let Some(other) = Client::connect(&self.paths)? else { return Err(gone()) };
        let mut other = other.until(self.until);
        other.limit(Some(DAEMON_ANSWER_WAIT))?;
        let answer = other.send(&Ask::Ps).and_then(|()| other.answer_soon());
        match answer {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(gone()),
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn limit(&self, patience: Option<Duration>) -> Result<(), Failure> {
        let patience = patience.map(|patience| self.at_most(patience));
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
        loop {
            let silence = self.client.at_most(self.silence);
            let came = self.client.lines.await_some(silence);
            if came.map_err(|error| self.client.lost(&error))? {
                break;
            }
            if self.client.until.is_some_and(|until| until <= Instant::now()) {
                return Err(self.client.unanswered(&io::ErrorKind::TimedOut.into()));
            }
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
            Err(error) => Err(self.client.lost(&error)),
        });
        self.over = answer.as_ref().map_or(true, Answer::is_final);
        Some(answer)
    }
}

/// Why somebody who listens at the store's socket cannot be its daemon, if so. Where others may make files
/// beside the store (`/tmp`) anybody can, while none runs, and would be sent all that is asked, and with `exec` the
/// connection of a mount.
fn not_entitled(
    store: &Path,
    socket: &Path,
    stream: &UnixStream,
) -> Result<Option<Failure>, Failure> {
    let io = |error: io::Error| Failure::io(format!("the socket {}", socket.shown()), &error);
    let peer = socket::peer(stream).map_err(io)?;
    let own = rustix::process::geteuid().as_raw();
    // Whoever may write the store's file may have a daemon for it.
    let may_write = |found: Metadata| {
        let is_in_group =
            || peer.gid == found.gid() || socket::peer_groups(stream).contains(&found.gid());
        match found.mode() {
            _ if peer.uid == found.uid() => true,
            mode if mode & 0o020 != 0 && is_in_group() => true,
            mode => mode & 0o002 != 0,
        }
    };
    let entitles = |found: io::Result<Metadata>| match found {
        Ok(found) => may_write(found),
        // The store was removed under its daemon, who is the directory's owner, where others make no files there.
        Err(_) => store
            .parent()
            .and_then(|dir| std::fs::metadata(dir).ok())
            .is_some_and(|dir| dir.uid() == peer.uid && dir.mode() & 0o022 == 0),
    };
    if peer.uid == 0
        || peer.uid == own
        || is_unknown(peer.uid)
        || entitles(std::fs::metadata(store))
    {
        return Ok(None);
    }
    let reason = format!(
        "user {} listens at the socket {}, and may not write the store",
        peer.uid,
        socket.shown()
    );
    let remedy = "a daemon runs as root, as you, or as a user who may write the store's file: if none of these \
                  serves it, remove that socket, or use a store in a directory where nobody else makes files \
                  (`--store`)";
    Ok(Some(Failure::new(Cause::Denied, reason, remedy)))
}

/// Whether this is what the kernel calls all users who have no number in this process's name space of users, as
/// root there may have none: then it says nothing of who that is.
fn is_unknown(uid: u32) -> bool {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let overflow = read("/proc/sys/kernel/overflowuid").trim().parse().unwrap_or(65_534);
    let maps_all = |line: &str| line.split_whitespace().eq(["0", "0", "4294967295"]);
    uid == overflow && !read("/proc/self/uid_map").lines().any(maps_all)
}

/// Whether the other side is simply gone.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}

/// The failure of a daemon that says nothing.
fn silent(paths: &StorePaths, process: Option<u32>) -> Failure {
    let store = paths.store().shown();
    let Some(pid) = process else {
        let reason = format!("the daemon of {store} does not answer");
        return Failure::new(Cause::Busy, reason, "is it stopped? See its log beside the store");
    };
    let lazy = "`workfs unmount --lazy DIR` takes a mount from sight all the same";
    let (how, remedy) = if Process::of(pid).is_stopped() {
        (", which is stopped,", format!("let it go on (`kill -CONT {pid}`); {lazy}"))
    } else {
        (",", format!("try again, see its log beside the store, or end it (`kill {pid}`); {lazy}"))
    };
    let reason = format!("the daemon of {store}, process {pid}{how} does not answer");
    Failure::new(Cause::Busy, reason, remedy)
}

/// The failure of a daemon that ended under a request.
fn gone() -> Failure {
    let reason = "the daemon ended before it answered";
    Failure::new(Cause::Mount, reason, "look whether the change is there, then try again")
}
