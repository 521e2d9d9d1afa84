//! The end of a fixture: politely, then firmly.
//!
//! What must stay true: only processes of this very store are ended, known by the store's path in
//! their command line or among their open files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};

use super::wait::await_exit;

/// How long a daemon may take to end after SIGTERM: far above what is normal, since the machine may be busy.
const POLITE: Duration = Duration::from_secs(60);

/// Takes everything down; gives what did not go politely.
pub fn take_down(base: &Path, store: &Path, mounts: &[PathBuf]) -> Vec<String> {
    let mut stays = Vec::new();
    for pid in processes_of(store) {
        signal(pid, Signal::CONT);
        signal(pid, Signal::TERM);
        if !await_exit(pid, POLITE) {
            stays.push(format!("process {pid} after SIGTERM"));
            signal(pid, Signal::KILL);
            await_exit(pid, POLITE);
        }
    }
    // A daemon that was killed by its test leaves a dead mount; that is the test's doing.
    abort_mounts(base);
    for dir in mounts {
        uncover(dir);
    }
    stays.extend(mounted_below(base).into_iter().map(|mount| format!("mount {mount:?}")));
    stays.extend(processes_of(store).into_iter().map(|pid| format!("process {pid}")));
    stays
}

/// Cuts a mount off from its daemon, as `umount -f` does. That it is busy hinders nothing, nor that the daemon
/// has heard of it and takes the mount away before the kernel does (EINVAL).
///
/// # Errors
/// What else the system says: it takes root.
pub fn cut_off(mount: &Path, more: UnmountFlags) -> Result<(), Errno> {
    match unmount(mount, UnmountFlags::FORCE | more) {
        Ok(()) | Err(Errno::BUSY | Errno::INVAL) => Ok(()),
        refused => refused,
    }
}

/// Takes all mounts away and answers whoever waits for them: a killed process may leave a
/// connection open as long as one of its threads is stuck in it.
fn abort_mounts(base: &Path) {
    for mount in mounted_below(base) {
        let _ = cut_off(&mount, UnmountFlags::DETACH);
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

/// Everything mounted at or below `base`, innermost first.
pub fn mounted_below(base: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = text.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    let mut found: Vec<PathBuf> = points.filter(|point| point.starts_with(base)).collect();
    found.reverse();
    found
}

/// The processes that serve this store: those of our name with the store's path in their command
/// line or with its file open.
pub fn processes_of(store: &Path) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let at = entry.path();
        if fs::read(at.join("comm")).unwrap_or_default() != b"workfs\n" {
            continue;
        }
        let called = fs::read(at.join("cmdline")).unwrap_or_default();
        let store_bytes = store.as_os_str().as_encoded_bytes();
        let named = called.split(|byte| *byte == 0).any(|argument| argument == store_bytes);
        let opened = || {
            let files = fs::read_dir(at.join("fd")).into_iter().flatten().flatten();
            files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == store)
        };
        if named || opened() {
            found.push(pid);
        }
    }
    found
}

/// The directory below a mount is immutable while it is mounted, and after a crash.
fn uncover(dir: &Path) {
    let mut chattr = Command::new("chattr");
    let _ = chattr.arg("-i").arg(dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Ends the daemon of a test that takes far too long: whoever is stuck in a call is freed, and the
/// test fails instead of hanging.
pub struct Watchdog {
    done: Option<Sender<()>>,
}

impl Watchdog {
    /// Watches from now on.
    pub fn start(base: &Path, store: &Path, seconds: u64) -> Watchdog {
        let (done, waiting) = channel();
        let (base, store) = (base.to_owned(), store.to_owned());
        std::thread::spawn(move || {
            if waiting.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout)
            {
                eprintln!("the test hangs after {seconds} s; its daemon is killed");
                processes_of(&store).into_iter().for_each(|pid| signal(pid, Signal::KILL));
                abort_mounts(&base);
            }
        });
        Watchdog { done: Some(done) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.done.take());
    }
}
