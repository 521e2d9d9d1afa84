//! The control socket: binding it, connecting to it, and who is at the other end.
//!
//! What must stay true: it is its owner's alone (0600) from the moment it exists, unless others are
//! to come to it, too: users who are bound to agents, or the user who has the store's file; paths
//! of any length work; connecting ends, whatever the other side does. Deliberately not here: what
//! is said over it (`wire`).

pub(super) mod client;
mod elsewhere;
pub(super) mod held;
pub(super) mod lines;
pub(super) mod places;
mod room;
pub(super) mod server;
pub(super) mod wire;
mod working;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::limits::SOCKET_PATIENCE;
use crate::names::Shown;
use crate::store::sqlite::Lock;
use crate::store::{Identity, StoreError};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Who is at the other end of a connection, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The process, a label; 0 where it is of an outer name space of processes.
    pub pid: u32,
}

/// Keeps other daemons from the socket at `path`, of a store whose lock is shared, since it is only read.
///
/// # Errors
/// If another has it, or the system refuses.
pub fn alone(path: &Path, store: &Path) -> Result<Lock, StoreError> {
    Lock::take(path).map_err(|error| match error {
        StoreError::Held { pid, .. } => StoreError::Held { path: store.shown(), pid },
        other => other,
    })
}

/// Binds the socket at `path` in place of a stale one. Only for whoever holds the store's lock, or [`alone`].
///
/// # Errors
/// If something that is no socket lies there, or the system refuses.
pub fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(path)?;
    let socket = new_socket()?;
    // The kernel gives the file the mode of the socket, so that it never is anybody else's.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    with_address(path, |address| rustix::net::bind(&socket, address))?;
    let (identity, path) = (Identity::named(path)?, path.to_owned());
    let file = SocketFile { identity, path, alone: None };
    rustix::net::listen(&socket, BACKLOG)?;
    Ok((socket.into(), file))
}

/// Removes the socket of a daemon that is gone. Only for whoever holds the store's lock.
///
/// # Errors
/// If something that is no socket lies there, or the system refuses.
pub fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "not a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The file of a socket that was bound here. Its name may be another's by now: where somebody removed it,
/// and the store, while a daemon had them.
#[derive(Clone)]
pub struct SocketFile {
    path: PathBuf,
    identity: Identity,
    /// What keeps other daemons from this name, where the store's lock does not.
    alone: Option<Arc<Lock>>,
}

impl SocketFile {
    /// Lets users besides its owner come to the socket, or none of them: who they are is asked then.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn let_others_in(&self, let_in: bool) -> io::Result<()> {
        let mode = if let_in { 0o666 } else { 0o600 };
        self.identity.set_mode(&self.path, mode).map(drop)
    }

    /// With what keeps others from its name.
    pub fn held_by(self, alone: Option<Lock>) -> SocketFile {
        SocketFile { alone: alone.map(Arc::new), ..self }
    }

    /// Removes it, with what keeps others from its name.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn remove(&self) -> io::Result<()> {
        let removed = self.identity.remove(&self.path).map(drop);
        if let Some(alone) = &self.alone {
            alone.remove(&self.path);
        }
        removed
    }
}

/// Whether a socket at `path` can be told to the system: by its path, or by its name in a directory that is
/// open.
#[must_use]
pub fn has_address(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let longest = Path::new("/proc/self/fd").join(i32::MAX.to_string()).join(name);
    SocketAddrUnix::new(path).is_ok() || SocketAddrUnix::new(longest).is_ok()
}

/// Connects to the socket at `path`; `None` if nobody listens there.
///
/// # Errors
/// If the system refuses, or the daemon does not accept in time.
pub fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    if !has_address(path) {
        // Where none can be nobody listens.
        return Ok(None);
    }
    let socket = new_socket()?;
    // A connection that nobody accepts waits as long as a send may.
    sockopt::set_socket_timeout(&socket, Timeout::Send, Some(SOCKET_PATIENCE))?;
    match with_address(path, |address| rustix::net::connect(&socket, address)) {
        Ok(()) => Ok(Some(socket.into())),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}

/// Who is at the other end.
///
/// # Errors
/// If the kernel does not say.
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    // Not by rustix, whose process numbers are never 0.
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
    let (of, socket) = (libc::SOL_SOCKET, stream.as_raw_fd());
    // SAFETY: both pointers are to what lives on this stack, and `size` is that of the first.
    let said = unsafe {
        libc::getsockopt(socket, of, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut size)
    };
    if said != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { uid: peer.uid, gid: peer.gid, pid: peer.pid.unsigned_abs() })
}

/// The groups of the user at the other end, besides that of [`peer`]; none where the kernel does not say.
#[must_use]
pub fn peer_groups(stream: &UnixStream) -> Vec<u32> {
    // As many as there can be.
    let mut groups = vec![0; 1 << 16];
    let mut size = libc::socklen_t::try_from(size_of_val(&*groups)).unwrap_or_default();
    let (of, socket) = (libc::SOL_SOCKET, stream.as_raw_fd());
    // SAFETY: both pointers are to what lives in this call, and `size` is the length of the first in bytes.
    let said = unsafe {
        libc::getsockopt(socket, of, libc::SO_PEERGROUPS, groups.as_mut_ptr().cast(), &raw mut size)
    };
    groups.truncate(if said == 0 { size as usize / size_of::<libc::gid_t>() } else { 0 });
    groups
}

/// Whether the other end has gone away. One that only sends no more still wants its answer.
#[must_use]
pub fn is_gone(stream: &UnixStream) -> bool {
    now(stream, PollFlags::empty()).intersects(PollFlags::HUP | PollFlags::ERR)
}

/// What is there of what is wanted, and of a hang-up or an error, which whoever wants nothing is told of, too.
fn now(stream: &UnixStream, wanted: PollFlags) -> PollFlags {
    let mut fds = [PollFd::new(stream, wanted)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut fds, Some(&at_once)) {
        Ok(_) => fds[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// Whether the other end is there, and has only said that it sends no more: of one that does something.
#[must_use]
pub fn only_sends_no_more(stream: &UnixStream) -> bool {
    !is_gone(stream) && rustix::io::ioctl_fionread(stream) == Ok(0)
}

/// Whether the other end went away with something unread of what it was sent: of a local socket the kernel says so.
#[must_use]
pub fn has_left_unread(stream: &UnixStream) -> bool {
    matches!(sockopt::socket_error(stream), Ok(Err(rustix::io::Errno::CONNRESET)))
}

/// Whether the other end is there, and has something unread of what it was sent. Asks for no error, which that would
/// take from [`has_left_unread`].
#[must_use]
pub fn may_read_yet(stream: &UnixStream) -> bool {
    let is_there = !now(stream, PollFlags::empty()).contains(PollFlags::ERR);
    let mut unread: libc::c_int = 0;
    // SAFETY: this call (SIOCOUTQ, by its other name) writes one `int`, to a place that is one.
    let said = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut unread) };
    is_there && said == 0 && unread > 0
}

/// What ended first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What is watched.
    Watched,
    /// The client's end of the connection, or ours for reading.
    Client,
}

/// Waits for a hang-up of `watched`, or until the client is gone.
///
/// # Errors
/// A failure of poll(2).
pub fn await_end(watched: &OwnedFd, client: Option<&UnixStream>) -> io::Result<End> {
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let mut fds = vec![PollFd::new(watched, PollFlags::HUP)];
    fds.extend(client.map(|client| PollFd::new(client, gone)));
    loop {
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[0].revents().is_empty() {
            return Ok(End::Watched);
        }
        if fds.get(1).is_some_and(|client| !client.revents().is_empty()) {
            return Ok(End::Client);
        }
    }
}

/// Waits until there is something to read, or the other end is gone; false if neither comes in
/// time.
///
/// # Errors
/// A failure of poll(2).
pub fn await_input(from: impl AsFd, patience: Duration) -> io::Result<bool> {
    await_event(from, PollFlags::IN, patience)
}

/// Waits until the other end is gone, and does more than send no more; false if it does not in time.
///
/// # Errors
/// A failure of poll(2).
pub fn await_gone(stream: &UnixStream, patience: Duration) -> io::Result<bool> {
    await_event(stream, PollFlags::empty(), patience)
}

fn await_event(file: impl AsFd, wanted: PollFlags, patience: Duration) -> io::Result<bool> {
    let until = Instant::now().checked_add(patience);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&file, wanted)], left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends all bytes, and waits no longer than `patience` for the other side to take them; not at all if
/// that is zero. What it took until then it has.
///
/// # Errors
/// If the other side is gone, or did not take all in time.
pub fn send_within(stream: &UnixStream, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    send_some(stream, &mut bytes, patience)
}

/// The same, for as long as the other side takes and `goes_on` says so, which is asked each time that
/// `every` has passed.
///
/// # Errors
/// If the other side is gone, or it does not go on.
pub fn send_while(
    stream: &UnixStream,
    mut bytes: &[u8],
    every: Duration,
    goes_on: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    loop {
        match send_some(stream, &mut bytes, every) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut && goes_on() => {}
            sent => return sent,
        }
    }
}

/// Whether the other side has taken most of what it was sent, so that a little more does not wait for it.
#[must_use]
pub fn has_room(stream: &UnixStream) -> bool {
    now(stream, PollFlags::OUT).contains(PollFlags::OUT)
}

/// Sends; what the other side did not take in time is left in `bytes`.
fn send_some(stream: &UnixStream, bytes: &mut &[u8], patience: Duration) -> io::Result<()> {
    use rustix::io::Errno;
    let until = Instant::now() + patience;
    while !bytes.is_empty() {
        match rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(sent) => *bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = until.saturating_duration_since(Instant::now());
                let time = Timespec::try_from(left).map_err(io::Error::other)?;
                match poll(&mut [PollFd::new(stream, PollFlags::OUT)], Some(&time)) {
                    Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Calls `work` with the address of `path`; one that is too long goes by way of its directory.
fn with_address(
    path: &Path,
    work: impl Fn(&SocketAddrUnix) -> rustix::io::Result<()>,
) -> io::Result<()> {
    if let Ok(address) = SocketAddrUnix::new(path) {
        return Ok(work(&address)?);
    }
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let parent = path.parent().ok_or_else(invalid)?;
    let name = path.file_name().ok_or_else(invalid)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(parent, flags, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
    let address = SocketAddrUnix::new(&short)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the store's name is too long"))?;
    Ok(work(&address)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn long_paths_work_and_the_socket_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("t.db.sock");
        assert!(connect(&path).unwrap().is_none());
        let (listener, _) = bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let client = connect(&path).unwrap().unwrap();
        let (server, _) = listener.accept().unwrap();
        assert_eq!(peer(&server).unwrap().pid, std::process::id());
        let own = rustix::process::getgroups().unwrap();
        let own: Vec<u32> = own.into_iter().map(rustix::process::Gid::as_raw).collect();
        assert_eq!((peer_groups(&client), peer_groups(&server)), (own.clone(), own));
        assert!(!is_gone(&server));
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!is_gone(&server), "it waits for its answer");
        drop(client);
        assert!(is_gone(&server));
        drop(listener);
        assert!(connect(&path).unwrap().is_none(), "a stale socket is nobody");
        let (_own, file) = bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (_other, others) = bind(&path).unwrap();
        file.remove().unwrap();
        file.let_others_in(true).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        others.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db.sock");
        std::fs::write(&path, "mine").unwrap();
        assert!(bind(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
