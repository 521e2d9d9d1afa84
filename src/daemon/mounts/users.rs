//! What `/proc` tells of the processes that use a mount, and of the one that keeps the directory below.
//!
//! What must stay true: nothing is asked of any mount, which may not answer; of another user's processes
//! nothing is known. Deliberately not here: what is to become of them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use workfs_mount::MountLine;

use super::mount_table;
use crate::daemon::spawn::LOOK_AGAIN;
use crate::limits::DAEMON_END_WAIT;
use crate::names::printable;

/// The flags of a socket that takes connections (`__SO_ACCEPTCON`).
const LISTENS: &str = "00010000";

/// Who uses a mount, wherever it is bound: names and numbers of processes. Who has the directory below open, as its
/// daemon has, does not.
#[must_use]
pub fn users_of(mount: &MountLine) -> Vec<String> {
    let places = mount_table::of_workfs().into_iter().filter(|one| one.device == mount.device);
    let ids: Vec<u64> = places.map(|place| place.id).collect();
    let lies_in =
        |link: PathBuf| workfs_mount::mount_number(&link).is_ok_and(|id| ids.contains(&id));
    let named = |process: Process| {
        let links = ["cwd", "root", "exe"].map(|link| process.dir.join(link));
        links.into_iter().chain(process.open()).any(lies_in).then(|| process.name())
    };
    processes().filter_map(named).collect()
}

/// The process that keeps the directory below a mount, to give it back: its daemon.
pub struct Keeper {
    process: Process,
    dir: PathBuf,
}

impl Keeper {
    /// Of the mount on this directory.
    #[must_use]
    pub fn of(dir: &Path) -> Option<Keeper> {
        let keeps = |process: &Process| process.has_open(dir) && process.serves();
        processes().find(keeps).map(|process| Keeper { process, dir: dir.to_owned() })
    }

    /// Waits until it has given the directory back, and, where it was its last mount, has ended; not without end.
    pub fn await_given_back(&self) {
        let begin = Instant::now();
        // Of one that has ended no open files are told.
        let is_busy = || {
            self.process.has_open(&self.dir)
                || !self.process.serves() && self.process.open().next().is_some()
        };
        while is_busy() && begin.elapsed() < DAEMON_END_WAIT {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// A process's directory in `/proc`.
pub(in crate::daemon) struct Process {
    number: u32,
    dir: PathBuf,
}

impl Process {
    pub(in crate::daemon) fn of(number: u32) -> Process {
        Process { number, dir: Path::new("/proc").join(number.to_string()) }
    }

    /// Whether it was called as what serves a store: in the background, or in front.
    pub(in crate::daemon) fn is_daemon(&self) -> bool {
        let called = std::fs::read(self.dir.join("cmdline")).unwrap_or_default();
        called.split(|byte| *byte == 0).skip(1).any(|word| word == b"daemon" || word == b"mount")
    }

    /// Whether it listens at a socket that has a name, or had one; `None` where it is not told.
    pub(in crate::daemon) fn listens(&self) -> Option<bool> {
        let files = std::fs::read_dir(self.dir.join("fd")).ok()?;
        let open: HashSet<PathBuf> =
            files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok()).collect();
        let sockets = std::fs::read_to_string(self.dir.join("net/unix")).ok()?;
        // `Num RefCount Protocol Flags Type St Inode Path`, by proc_net_unix(5).
        Some(sockets.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, _, _, LISTENS, _, _, inode, _, ..] = words[..] else { return false };
            open.contains(Path::new(&format!("socket:[{inode}]")))
        }))
    }

    /// Whether it was stopped, by a signal or from a terminal.
    pub(in crate::daemon) fn is_stopped(&self) -> bool {
        let stat = workfs_mount::proc_text(self.dir.join("stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, state)| state.trim_start().starts_with('T'))
    }

    fn open(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let files = std::fs::read_dir(self.dir.join("fd"));
        files.into_iter().flatten().flatten().map(|file| file.path())
    }

    /// By the name that it had when it was opened, and what was mounted there since does not count.
    fn has_open(&self, path: &Path) -> bool {
        self.open().any(|file| std::fs::read_link(file).is_ok_and(|to| to == path))
    }

    fn serves(&self) -> bool {
        self.has_open(Path::new("/dev/fuse"))
    }

    fn name(&self) -> String {
        let name = std::fs::read(self.dir.join("comm")).unwrap_or_default();
        format!("{} ({})", printable(name.trim_ascii()), self.number)
    }
}

fn processes() -> impl Iterator<Item = Process> {
    let process =
        |entry: std::fs::DirEntry| Some(Process::of(entry.file_name().to_str()?.parse().ok()?));
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(process)
}
