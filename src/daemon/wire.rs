//! What is said over the control socket: one JSON value a line.
//!
//! The client sends an [`Ask`], the daemon sends [`Answer`]s, the last of which is final; then the
//! client may ask again. What must stay true: no line is longer than its limit, and a client of
//! another protocol is told so. Deliberately not here: how an ask is served.

use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::failure::{Cause, Failure};
use super::socket;
use crate::limits::{ANSWER_BYTES_MAX, ASK_BYTES_MAX, SOCKET_BYTES_A_SECOND};
use crate::names::{ShownPath, TreePath};
use crate::service::{Part, Reply, Request};

/// The protocol's number; it changes when an older client would misunderstand.
pub const PROTOCOL: u32 = 1;

/// A line of the client.
#[derive(Debug, Serialize, Deserialize)]
pub struct AskLine {
    /// See [`PROTOCOL`].
    pub workfs: u32,
    /// What is asked.
    pub ask: serde_json::Value,
}

/// What can be asked of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Mount on a directory.
    Mount(MountAsk),
    /// Unmount a directory.
    Unmount(UnmountAsk),
    /// What is mounted?
    Ps,
    /// Unmount all and end.
    Stop,
    /// One of the commands on what the store holds.
    Do(Request),
    /// The same for somebody in a mount that shows a part of the tree.
    Within(WithinAsk),
}

/// See [`Ask::Within`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithinAsk {
    /// The directory of the tree that is all there is; what the request names lies below it.
    pub root: ShownPath,
    /// What is asked.
    #[serde(rename = "do")]
    pub request: Request,
}

/// See [`Ask::Mount`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountAsk {
    /// The directory, absolute and resolved.
    pub dir: String,
    /// What `-o` said.
    #[serde(default)]
    pub options: String,
    /// For which agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// In which role.
    #[serde(default)]
    pub role: Option<String>,
    /// The directory of the tree that is shown.
    #[serde(default)]
    pub root: Option<String>,
    /// The directory may have files.
    #[serde(default)]
    pub nonempty: bool,
    /// The mount lives as long as the connection; its end is answered with [`Answer::Ended`].
    #[serde(default)]
    pub hold: bool,
    /// The directory was made for this mount and goes with it.
    #[serde(default)]
    pub temporary: bool,
    /// The client mounts in a name space of its own and sends the connection, when it hears
    /// [`Answer::SendConnection`].
    #[serde(default)]
    pub private: bool,
}

/// See [`Ask::Unmount`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnmountAsk {
    /// The directory, absolute and resolved.
    pub dir: String,
    /// Take it from sight also when it is in use.
    #[serde(default)]
    pub lazy: bool,
}

/// One mount of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountInfo {
    /// Its number.
    pub mount: u32,
    /// Where.
    pub dir: String,
    /// For which agent.
    pub agent: Option<String>,
    /// In which role whoever uses it acts.
    pub role: String,
    /// The directory of the tree that is shown; empty for all of it.
    pub root: ShownPath,
    /// What `-o` said.
    pub options: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// The user who mounted it.
    pub uid: u32,
    /// Taken from sight, but still in use.
    pub detached: bool,
    /// Seen only in a name space of its own (`workfs exec`).
    pub private: bool,
    /// The device number of its files, wherever they are seen; none where the daemon does not see them.
    pub device: Option<u64>,
}

/// A daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Its store.
    pub store: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// What a commit survives: `full` or `normal`.
    pub sync: String,
}

/// What a daemon answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Of a command: progress, lines, at last a report or an error.
    Reply(Reply),
    /// To a private mount: the client is to make it and to send its connection to the kernel.
    SendConnection,
    /// It is mounted.
    Mounted {
        /// The mount.
        mount: MountInfo,
        /// It was before.
        already: bool,
        /// What else is to be told.
        notes: Vec<String>,
    },
    /// It is unmounted.
    Unmounted {
        /// It was the last one: the daemon ends, and closes the connection when it has.
        ending: bool,
    },
    /// What is mounted.
    Mounts {
        /// The daemon.
        daemon: DaemonInfo,
        /// Its mounts.
        mounts: Vec<MountInfo>,
    },
    /// The daemon ends, and closes the connection when it has.
    Stopping,
    /// The held mount has ended.
    Ended,
    /// It was not done.
    Failed(Failure),
}

impl WithinAsk {
    /// What of the tree is in sight.
    ///
    /// # Errors
    /// If its root is no path.
    pub fn part(&self) -> Result<Part, Failure> {
        part_of(&self.root).ok_or_else(|| {
            let reason = format!("`{}` is no path of the tree", self.root);
            Failure::new(Cause::Usage, reason, "name it as `ps` shows it")
        })
    }
}

/// The part of the tree at a path of a report.
#[must_use]
pub fn part_of(root: &ShownPath) -> Option<Part> {
    TreePath::parse(root.as_bytes()).ok().map(Part::below)
}

impl Answer {
    /// Whether nothing more follows.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Answer::Reply(reply) => matches!(reply, Reply::Report(_) | Reply::Error(_)),
            Answer::SendConnection
            | Answer::Mounted { .. }
            | Answer::Unmounted { .. }
            | Answer::Mounts { .. }
            | Answer::Stopping
            | Answer::Ended
            | Answer::Failed(_) => true,
        }
    }
}

/// One side of a connection.
#[derive(Debug)]
pub struct Lines {
    stream: BufReader<UnixStream>,
    /// How long the other side may take for a line, if that is bounded here.
    patience: Option<Duration>,
}

impl Lines {
    /// Lines over this connection.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Lines { stream: BufReader::new(stream), patience: None }
    }

    /// Lines whose other side gets so long for each that it sends, and that it takes, however many
    /// pieces it makes of it.
    #[must_use]
    pub fn within(stream: UnixStream, patience: Duration) -> Self {
        Lines { patience: Some(patience), ..Lines::new(stream) }
    }

    /// The connection itself.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        self.stream.get_ref()
    }

    /// Sends one line.
    ///
    /// # Errors
    /// If the other side is gone or does not take it in time.
    pub fn send<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let line = text(value)?;
        match self.patience {
            None => self.stream.get_mut().write_all(&line),
            Some(patience) => {
                let more = Duration::from_secs(line.len() as u64 / SOCKET_BYTES_A_SECOND);
                socket::send_within(self.stream(), &line, patience + more)
            }
        }
    }

    /// Sends one line to a side that takes it at once.
    ///
    /// # Errors
    /// If it is gone or does not. It may have a part of the line then, and is to hear nothing more.
    pub fn send_at_once<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        socket::send_within(self.stream(), &text(value)?, Duration::ZERO)
    }

    /// Sends a descriptor, with one byte that carries it.
    ///
    /// # Errors
    /// If the other side is gone.
    pub fn send_descriptor(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let carried = [descriptor];
        control.push(SendAncillaryMessage::ScmRights(&carried));
        sendmsg(self.stream(), &[IoSlice::new(b"c")], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Receives what the other side sends with [`Lines::send_descriptor`], which it does only when
    /// it was asked to, so that no line is in between.
    ///
    /// # Errors
    /// If it sends none.
    pub fn receive_descriptor(&self) -> io::Result<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let part = &mut [IoSliceMut::new(&mut byte)];
        recvmsg(self.stream(), part, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let sent = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        sent.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no descriptor was sent"))
    }

    /// The next line; `None` at the end.
    fn line(&mut self, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        match self.patience {
            None => drop(self.stream.by_ref().take(bytes_max).read_until(b'\n', &mut line)?),
            Some(patience) => self.read_line_within(&mut line, bytes_max, patience)?,
        }
        if line.is_empty() {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            let why = if line.len() as u64 == bytes_max { "a line is too long" } else { "cut off" };
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(Some(line))
    }

    /// Reads to the end of the line, or of what is sent, in so long for all of it.
    fn read_line_within(
        &mut self,
        line: &mut Vec<u8>,
        bytes_max: u64,
        patience: Duration,
    ) -> io::Result<()> {
        let until = Instant::now() + patience;
        loop {
            if !self.await_some(until.saturating_duration_since(Instant::now()))? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let room = usize::try_from(bytes_max).unwrap_or(usize::MAX) - line.len();
            let there = self.stream.fill_buf()?;
            let end = there.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let taken = end.unwrap_or(there.len()).min(room);
            line.extend_from_slice(&there[..taken]);
            self.stream.consume(taken);
            if taken == 0 || line.last() == Some(&b'\n') {
                return Ok(());
            }
        }
    }

    /// Waits until there is something to read, or the end; false if it does not come in time.
    ///
    /// # Errors
    /// A failure of poll(2).
    pub fn await_some(&self, patience: Duration) -> io::Result<bool> {
        if !self.stream.buffer().is_empty() {
            return Ok(true);
        }
        socket::await_input(self.stream(), patience)
    }

    /// The next answer; `None` when the daemon has closed the connection.
    ///
    /// # Errors
    /// If the connection fails or the daemon says what this client does not understand.
    pub fn answer(&mut self) -> io::Result<Option<Answer>> {
        self.line(ANSWER_BYTES_MAX)?.map(|line| read(&line)).transpose()
    }

    /// The next ask; `None` when the client has closed the connection. The inner error is to be
    /// answered.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn ask(&mut self) -> io::Result<Option<Result<Ask, Failure>>> {
        let Some(line) = self.line(ASK_BYTES_MAX)? else { return Ok(None) };
        let line: AskLine = match read(&line) {
            Ok(line) => line,
            Err(error) => return Ok(Some(Err(misunderstood(&error)))),
        };
        if line.workfs != PROTOCOL {
            return Ok(Some(Err(other_protocol(line.workfs))));
        }
        let ask = serde_json::from_value(line.ask).map_err(|error| misunderstood(&error.into()));
        Ok(Some(ask))
    }
}

impl Ask {
    /// What somebody asks who sees this of the tree.
    #[must_use]
    pub fn of(part: &Part, request: Request) -> Ask {
        if part.is_whole() {
            return Ask::Do(request);
        }
        Ask::Within(WithinAsk { root: part.root().into(), request })
    }

    /// The line to send.
    ///
    /// # Errors
    /// Never for what the types allow; a path that is not UTF-8 does not get here.
    pub fn line(&self) -> io::Result<AskLine> {
        let ask = serde_json::to_value(self).map_err(io::Error::other)?;
        Ok(AskLine { workfs: PROTOCOL, ask })
    }
}

fn text<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    Ok(line)
}

fn read<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

fn misunderstood(error: &io::Error) -> Failure {
    let reason = format!("the daemon does not understand the request: {error}");
    Failure::new(Cause::Usage, reason, "use the workfs that the daemon was started from")
}

fn other_protocol(theirs: u32) -> Failure {
    let pid = std::process::id();
    Failure::new(
        Cause::Mount,
        format!("the daemon (process {pid}) speaks protocol {PROTOCOL}, this workfs {theirs}"),
        "unmount with the older workfs and mount again with the newer one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Lines, Lines) {
        let (one, other) = UnixStream::pair().unwrap();
        (Lines::new(one), Lines::new(other))
    }

    #[test]
    fn asks_and_answers_cross() {
        let (mut client, mut daemon) = pair();
        let ask = Ask::Mount(MountAsk { dir: "/m".into(), hold: true, ..MountAsk::default() });
        client.send(&ask.line().unwrap()).unwrap();
        assert_eq!(daemon.ask().unwrap().unwrap().unwrap(), ask);
        daemon.send(&Answer::Unmounted { ending: true }).unwrap();
        assert_eq!(client.answer().unwrap(), Some(Answer::Unmounted { ending: true }));
        drop(daemon);
        assert_eq!(client.answer().unwrap(), None);
    }

    #[test]
    fn a_descriptor_crosses_between_two_lines() {
        let (client, mut daemon) = pair();
        daemon.send(&Answer::SendConnection).unwrap();
        let mut client = client;
        assert_eq!(client.answer().unwrap(), Some(Answer::SendConnection));
        let (sent, other) = UnixStream::pair().unwrap();
        client.send_descriptor(std::os::fd::AsFd::as_fd(&sent)).unwrap();
        let received = UnixStream::from(daemon.receive_descriptor().unwrap());
        (&received).write_all(b"x").unwrap();
        let mut byte = [0];
        (&other).read_exact(&mut byte).unwrap();
        assert_eq!(byte, [b'x']);
        client.send(&Ask::Ps.line().unwrap()).unwrap();
        assert!(daemon.receive_descriptor().is_err(), "a line is no descriptor");
    }

    #[test]
    fn nonsense_and_other_protocols_are_answered() {
        let (mut client, mut daemon) = pair();
        client.send(&serde_json::json!({"workfs": 1, "ask": {"explode": {}}})).unwrap();
        assert_eq!(daemon.ask().unwrap().unwrap().unwrap_err().cause, Cause::Usage);
        client.send(&serde_json::json!({"workfs": 99, "ask": {"later": {}}})).unwrap();
        assert_eq!(daemon.ask().unwrap().unwrap().unwrap_err().cause, Cause::Mount);
        client.send(&serde_json::json!("hello")).unwrap();
        assert_eq!(daemon.ask().unwrap().unwrap().unwrap_err().cause, Cause::Usage);
    }

    #[test]
    fn a_line_without_end_is_cut_off() {
        for patience in [None, Some(Duration::from_secs(60))] {
            let (mut client, mut daemon) = pair();
            daemon.patience = patience;
            let flood = vec![b'x'; ASK_BYTES_MAX as usize + 1];
            let sending = std::thread::spawn(move || {
                let _ = client.stream.get_mut().write_all(&flood);
            });
            assert!(daemon.ask().is_err());
            drop(daemon);
            sending.join().unwrap();
        }
    }

    #[test]
    fn who_dribbles_has_no_longer_than_who_is_silent() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut daemon = Lines::within(other, Duration::from_millis(50));
        let dribbling = std::thread::spawn(move || {
            // A byte at a time, each at once, for as long as somebody listens.
            while (&one).write_all(b" ").is_ok() {
                std::thread::yield_now();
            }
        });
        let error = daemon.ask().unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::InvalidData));
        drop(daemon);
        dribbling.join().unwrap();
    }

    #[test]
    fn who_takes_nothing_is_not_waited_for() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut daemon = Lines::within(other, Duration::from_millis(50));
        let answer = Answer::Unmounted { ending: true };
        while daemon.send_at_once(&answer).is_ok() {}
        let error = daemon.send(&answer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut client = Lines::new(one);
        assert_eq!(client.answer().unwrap(), Some(answer));
    }
}
