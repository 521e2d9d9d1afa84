//! One side of a connection: lines that are sent and received, in bounded time where that is wanted.
//!
//! What must stay true: no line is longer than its limit; what bounds the time for a line bounds all of
//! it, however many pieces it comes in. Deliberately not here: what the lines say (`wire`).

use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire::{Answer, Ask};
use crate::daemon::failure::Failure;
use crate::daemon::socket;
use crate::limits::{
    ANSWER_BYTES_MAX, ASK_BYTES_MAX, INTERRUPT_BYTES_MAX, SOCKET_BYTES_A_SECOND, SOCKET_PATIENCE,
};

/// One side of a connection.
#[derive(Debug)]
pub struct Lines {
    stream: BufReader<UnixStream>,
    /// The beginning of the next line, of which no end had come when it was looked at.
    begun: Vec<u8>,
    /// How long the other side may take for a line, if that is bounded here.
    patience: Option<Duration>,
}

impl Lines {
    /// Lines over this connection.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Lines { stream: BufReader::new(stream), begun: Vec::new(), patience: None }
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

    /// Sends one line to a side that may take it when it likes, as long as `goes_on` says so: it is asked each
    /// time that any other line would have to be taken.
    ///
    /// # Errors
    /// If the other side is gone, or it does not go on.
    pub fn send_while<T: Serialize>(
        &mut self,
        value: &T,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<()> {
        let every = self.patience.unwrap_or(SOCKET_PATIENCE);
        socket::send_while(self.stream(), &text(value)?, every, goes_on)
    }

    /// Sends one line that may as well be left out, unless the other side is behind.
    ///
    /// # Errors
    /// If it is gone, or does not take it in time.
    pub fn send_unless_behind<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        if socket::has_room(self.stream()) {
            return self.send(value);
        }
        match socket::is_gone(self.stream()) {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(()),
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
        let mut line = std::mem::take(&mut self.begun);
        match self.patience {
            None => {
                let room = bytes_max.saturating_sub(line.len() as u64);
                self.stream.by_ref().take(room).read_until(b'\n', &mut line)?;
            }
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

    /// Whether the other side has read what it was sent, as far as it shows in this time: by what it sends, or
    /// by its end.
    #[must_use]
    pub fn is_read(&self, patience: Duration) -> bool {
        let begin = Instant::now();
        let mut shows = self.await_some(patience).unwrap_or(false);
        // One that only sends no more shows that at once, and may read yet.
        if shows && socket::only_sends_no_more(self.stream()) {
            let left = patience.saturating_sub(begin.elapsed());
            shows = socket::await_gone(self.stream(), left).unwrap_or(false);
        }
        !(shows && socket::has_left_unread(self.stream()))
    }

    /// The next answer; `None` when the daemon has closed the connection.
    ///
    /// # Errors
    /// If the connection fails or the daemon says what this client does not understand.
    pub fn answer(&mut self) -> io::Result<Option<Answer>> {
        self.line(ANSWER_BYTES_MAX)?.map(|line| read(&line)).transpose()
    }

    /// Whether the next ask is one to interrupt, which is taken then; any other waits for its turn. Waits for
    /// nothing.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn was_interrupted(&mut self) -> io::Result<bool> {
        while self.await_some(Duration::ZERO)? {
            let there = self.stream.fill_buf()?;
            let Some(end) = there.iter().position(|byte| *byte == b'\n') else {
                // Programs may send a line in pieces. What is too long for this one is another.
                let taken = there.len();
                if taken == 0 || self.begun.len() + taken > INTERRUPT_BYTES_MAX {
                    return Ok(false);
                }
                self.begun.extend_from_slice(there);
                self.stream.consume(taken);
                continue;
            };
            let line = [&self.begun, &there[..=end]].concat();
            let is_it = matches!(Ask::of_line(&line), Ok(Ask::Interrupt));
            if is_it {
                self.begun.clear();
                self.stream.consume(end + 1);
            }
            return Ok(is_it);
        }
        Ok(false)
    }

    /// The next ask; `None` when the client has closed the connection. The inner error is to be
    /// answered.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn ask(&mut self) -> io::Result<Option<Result<Ask, Failure>>> {
        let Some(line) = self.line(ASK_BYTES_MAX)? else { return Ok(None) };
        Ok(Some(Ask::of_line(&line)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::failure::Cause;
    use crate::daemon::socket::wire::MountAsk;

    fn pair() -> (Lines, Lines) {
        let (one, other) = UnixStream::pair().unwrap();
        (Lines::new(one), Lines::new(other))
    }

    #[test]
    fn asks_and_answers_cross() {
        let (mut client, mut daemon) = pair();
        let ask = Ask::Mount(MountAsk { dir: "/m".into(), hold: true, ..MountAsk::default() });
        client.send(&ask.line()).unwrap();
        assert_eq!(daemon.ask().unwrap().unwrap().unwrap(), ask);
        daemon.send(&Answer::Unmounted { ending: true }).unwrap();
        assert_eq!(client.answer().unwrap(), Some(Answer::Unmounted { ending: true }));
        drop(daemon);
        assert_eq!(client.answer().unwrap(), None);
    }

    #[test]
    fn who_interrupts_is_heard_between_answers_and_asks_keep_their_turn() {
        let (client, mut daemon) = pair();
        assert!(!daemon.was_interrupted().unwrap(), "nothing was said");
        // However a program writes it.
        client.stream().write_all(b"{\"workfs\": 1, \"ask\": \"interrupt\"}\n").unwrap();
        assert!(daemon.was_interrupted().unwrap());
        // In however many pieces, each of which is looked at.
        for ask in [
            b"{\"workfs\": 1, \"ask\": \"interrupt\"}\n".as_slice(),
            b"{\"workfs\":1,\"ask\":\"ps\"}\n",
        ] {
            for piece in ask[..ask.len() - 1].chunks(5) {
                client.stream().write_all(piece).unwrap();
                assert!(!daemon.was_interrupted().unwrap());
            }
            client.stream().write_all(b"\n").unwrap();
            assert_eq!(daemon.was_interrupted().unwrap(), !ask.ends_with(b"\"ps\"}\n"));
        }
        assert!(!daemon.was_interrupted().unwrap(), "that is another ask");
        assert_eq!(daemon.ask().unwrap().unwrap().unwrap(), Ask::Ps);
        // One that only sends no more still wants its answer.
        client.stream().shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!daemon.was_interrupted().unwrap());
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
        client.send(&Ask::Ps.line()).unwrap();
        assert!(daemon.receive_descriptor().is_err(), "a line is no descriptor");
    }

    #[test]
    fn nonsense_and_other_protocols_are_answered() {
        let (mut client, mut daemon) = pair();
        client.send(&serde_json::json!({"workfs": 1, "ask": {"explode": {}}})).unwrap();
        assert_eq!(daemon.ask().unwrap().unwrap().unwrap_err().cause, Cause::Usage);
        client.send(&serde_json::json!({"workfs": 99, "ask": {"later": {}}})).unwrap();
        assert_eq!(daemon.ask().unwrap().unwrap().unwrap_err().cause, Cause::Mount);
        // Of a key that is there twice nobody knows which is meant.
        for twice in [
            r#"{"workfs":1,"ask":{"do":{"claim":{"agent":"bob","agent":"eve"}}}}"#,
            r#"{"workfs":1,"ask":{"do":"status","do":"fsck"}}"#,
            r#"{"workfs":1,"ask":"ps","ask":"stop"}"#,
        ] {
            client.stream().write_all(format!("{twice}\n").as_bytes()).unwrap();
            assert_eq!(daemon.ask().unwrap().unwrap().unwrap_err().cause, Cause::Usage, "{twice}");
        }
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
    fn what_may_be_left_out_waits_for_nobody_and_of_who_is_gone_it_tells() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut daemon = Lines::within(other, Duration::from_secs(60));
        let answer = Answer::Unmounted { ending: true };
        for _ in 0..10_000 {
            daemon.send_unless_behind(&answer).unwrap();
        }
        // What must be told has room.
        daemon.send_at_once(&answer).unwrap();
        drop(one);
        assert!(daemon.send_unless_behind(&answer).is_err());
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
