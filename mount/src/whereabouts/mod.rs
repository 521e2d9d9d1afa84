//! Where a mount of ours is by now: a directory above it may have been given another name, or have been bound
//! elsewhere, or something may have been mounted over it.
//!
//! What must stay true: nobody else's mount is taken for ours. Its device number is its own only as long as the
//! kernel has it: the next mount of anybody is given the same at once, and may be on the same directory. So the
//! connection must be alive, and have been when the kernel's table was read, or the mount be the very one that was
//! made; and when the session has ended it is nowhere. Deliberately not here: the session.

pub(super) mod mountinfo;
pub(super) mod proc_text;
pub(super) mod standing;
mod unique_id;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::mounting::attach::{self, Unmounting};
use mountinfo::{MountLine, mount_at, mounts};
use unique_id::UniqueId;

/// A mount of ours in this process's name space.
#[derive(Debug)]
pub(crate) struct Whereabouts {
    dir: PathBuf,
    device: u64,
    /// The mount that was made, where the kernel tells.
    id: Option<UniqueId>,
    /// The connection to the kernel; none any more when the session has ended.
    connection: Mutex<Option<OwnedFd>>,
}

/// Where among others it is.
enum Place {
    /// Nowhere any more.
    Gone,
    /// On this directory, the topmost there.
    Top(PathBuf),
    /// Below another mount, wherever it is.
    Below,
}

impl Whereabouts {
    /// A mount that was just made on `dir`, over this connection, as the table has it.
    pub fn new(dir: &Path, line: &MountLine, connection: OwnedFd) -> Whereabouts {
        let is_it = |id: &UniqueId| id.line().is_ok_and(|at| at == Some(line.id));
        let (device, id) = (line.device, UniqueId::at(dir).filter(is_it));
        Whereabouts { dir: dir.to_owned(), device, id, connection: Mutex::new(Some(connection)) }
    }

    /// Its device number.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Lets go of the connection, when the session has ended and nothing of the mount is left.
    pub fn end(&self) {
        *self.connection.lock() = None;
    }

    /// The directory that it is on, as that is called now.
    pub fn dir(&self) -> Option<PathBuf> {
        Some(self.places().ok()?.into_iter().next()?.dir)
    }

    /// Whether it is nowhere any more; not where that cannot be told.
    pub fn is_gone(&self) -> bool {
        self.places().is_ok_and(|all| all.is_empty())
    }

    /// Whether the kernel has it, be it nowhere to be seen.
    pub fn is_connected(&self) -> bool {
        self.connection.lock().as_ref().is_some_and(is_alive)
    }

    /// Takes it away from wherever it is to be seen; says whether it was anywhere.
    ///
    /// # Errors
    /// EBUSY where it is in use or something is mounted on top of it.
    pub fn remove(&self, how: Unmounting) -> io::Result<bool> {
        let mut was_here = false;
        loop {
            match self.place()? {
                Place::Gone => return Ok(was_here),
                // One fewer each time.
                Place::Top(dir) => attach::unmount(&dir, how)?,
                Place::Below => return Err(io::Error::from_raw_os_error(libc::EBUSY)),
            }
            was_here = true;
        }
    }

    /// Ends the connection of one that is nowhere to be seen.
    ///
    /// # Errors
    /// If the kernel does not let this user end it.
    pub fn abort(&self) -> io::Result<()> {
        attach::abort(self.device)
    }

    /// The same, lazily, and ends its connection, so that whoever still uses it fails.
    ///
    /// # Errors
    /// As [`Whereabouts::remove`], or if the kernel does not let this user end it.
    pub fn cut_off(&self) -> io::Result<()> {
        for line in self.places()?.into_iter().skip(1) {
            // Also where this fails the connection is ended.
            let _ = attach::unmount(&line.dir, Unmounting::Lazily);
        }
        if let Place::Top(dir) = self.place()?
            && attach::cut_off(&dir).is_ok()
        {
            return Ok(());
        }
        self.remove(Unmounting::Lazily)?;
        self.abort()
    }

    fn place(&self) -> io::Result<Place> {
        let all = self.places()?;
        if all.is_empty() {
            return Ok(Place::Gone);
        }
        for line in all {
            if mount_at(&line.dir)?.is_some_and(|top| top.id == line.id) {
                return Ok(Place::Top(line.dir));
            }
        }
        Ok(Place::Below)
    }

    /// All that shows it: first the whole of it, and of that where it was made.
    fn places(&self) -> io::Result<Vec<MountLine>> {
        let mut all = mounts()?;
        let connection = self.connection.lock();
        // One that was aborted leaves its mount where that is.
        match connection.as_ref().map(is_alive) {
            Some(true) => all.retain(|line| line.device == self.device),
            Some(false) => {
                let is_made = self.made();
                all.retain(|line| line.device == self.device && is_made(line));
            }
            None => all.clear(),
        }
        all.sort_by_key(|line| (line.bound != Path::new("/"), line.dir != self.dir));
        Ok(all)
    }

    /// What tells the mount that was made from others. Asked for after the table was read: what has the
    /// number by then had it before.
    fn made(&self) -> impl Fn(&MountLine) -> bool {
        let line = self.id.map(UniqueId::line);
        move |one| match &line {
            Some(Ok(line)) => *line == Some(one.id),
            Some(Err(_)) | None => one.dir == self.dir,
        }
    }
}

/// Whether the kernel has the mount, which it tells by the connection without being asked to wait.
fn is_alive(connection: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(connection, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok() && asked[0].revents().is_empty()
}
