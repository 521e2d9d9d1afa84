//! Starting a daemon in the background, and the one line by which it says that it serves.
//!
//! What must stay true: whoever starts it learns in the end whether it serves, or why not; the
//! daemon holds nothing of its caller (terminal, directory, descriptors). It is executed anew, not
//! forked, so no lock of another thread is held in it for ever. Deliberately not here: the
//! daemon's work.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::failure::{Cause, Failure};
use super::mounts::options::sync_name;
use super::socket::await_input;
use super::{Options, StorePaths, open, trim_log};
use crate::limits::{DAEMON_END_WAIT, DAEMON_START_WAIT};
use crate::names::Shown;
use crate::store::sqlite::{is_held, refuse_other};
use crate::store::{Identity, NotOwn, OWN_STORE, open_own};

/// Where what a daemon says to nobody goes.
const NULL: &str = "/dev/null";

/// What a daemon says when it serves, or why it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// It serves.
    Serves,
    /// It does not.
    Failed(Failure),
}

/// A daemon that was started here.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
    /// Where its store lies.
    paths: StorePaths,
    /// There was a store before.
    was_there: bool,
}

impl Spawned {
    /// Why it is gone, where it did not end by itself as one does that nobody needs: it is not worth another.
    pub fn broke_off(&mut self) -> Option<Failure> {
        let status = self.child.try_wait().ok()??;
        if status.success() {
            return None;
        }
        self.take_back();
        let reason = format!("the daemon broke off ({status})");
        let log = self.paths.log();
        let remedy = format!("its log tells more, such as of want of memory: {}", log.shown());
        Some(Failure::new(Cause::Mount, reason, remedy))
    }

    /// Waits, not for long, until it has ended.
    pub fn await_end(self) {
        let Spawned { mut child, .. } = self;
        // That it goes on, since another mount was asked for, is nobody's trouble.
        let _ = workfs_mount::within(DAEMON_END_WAIT, move || child.wait());
    }

    /// Ends it, where it serves nobody; says how it ended.
    fn end(&mut self) -> String {
        // One that has ended cannot be ended.
        let _ = self.child.kill();
        self.child.wait().map(|status| status.to_string()).unwrap_or_default()
    }

    /// What it made and nobody has used is of no use.
    fn take_back(&self) {
        if !self.was_there {
            open::take_back(&self.paths, self.child.id());
        }
    }
}

/// Starts a daemon in the background; returns when it serves.
///
/// # Errors
/// Why it does not.
pub fn start(options: &Options) -> Result<Spawned, Failure> {
    // Nothing is left beside what is no store.
    refuse_other(options.paths.store())?;
    let log = trim_log(&options.paths)?;
    let was_logged = log.exists();
    let mut command = Command::new(own_program());
    command.arg0("workfs").arg("daemon");
    command.arg("--store").arg(options.paths.store());
    command.arg("--sync").arg(sync_name(options.sync));
    if options.linger {
        command.arg("--linger");
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
    let file = open_own(OpenOptions::new().append(true).create(true), &log);
    let looked = file.and_then(|file| file.metadata().map(|found| (file, Identity::of(&found))));
    let (file, own_log) = looked.map_err(|error| {
        let what = format!("the log {}", log.shown());
        match NotOwn::of(&error) {
            Some(NotOwn(why)) => {
                Failure::new(Cause::Denied, format!("{what}: {why}"), "move it away")
            }
            None => Failure::io(what, &error).if_denied(OWN_STORE),
        }
    })?;
    let was_there = options.paths.exists();
    // One that was begun for this daemon alone.
    let remove_log = || {
        if !was_logged && let Err(error) = own_log.remove(&log) {
            tracing::debug!(%error, "there is no log");
        }
    };
    let mut child = command.stderr(file).spawn().map_err(|error| {
        remove_log();
        if error.kind() == std::io::ErrorKind::NotFound && !Path::new("/proc/self").exists() {
            let reason =
                "starting the daemon: this program is not found, since /proc is not mounted here";
            return Failure::new(Cause::Mount, reason, "mount it (`mount -t proc proc /proc`)");
        }
        if error.kind() == std::io::ErrorKind::NotFound && !Path::new(NULL).exists() {
            let reason = format!("starting the daemon: there is no {NULL} here");
            return Failure::new(Cause::Mount, reason, "make it (`mknod -m 666 /dev/null c 1 3`)");
        }
        Failure::start("starting the daemon", &error)
    })?;
    let said = first_line(&mut child, DAEMON_START_WAIT);
    let mut spawned = Spawned { child, paths: options.paths.clone(), was_there };
    let how = match said {
        Ok(Some(Readiness::Serves)) => return Ok(spawned),
        Ok(Some(Readiness::Failed(failure))) => {
            // It ends by itself; it must not stay a zombie while we go on.
            let _ = spawned.child.wait();
            // Why the store cannot be opened is told to whoever asked; nothing is left beside it. A daemon
            // that has the store by this name logs to the same file; by another name it does not.
            let is_useless =
                matches!(failure.cause, Cause::Store | Cause::Held) || !options.paths.exists();
            if is_useless && !is_held(options.paths.store()) && !is_held(&options.paths.socket()) {
                remove_log();
            }
            return Err(failure);
        }
        Ok(None) => spawned.end(),
        Err(error) => {
            spawned.end();
            match error.kind() {
                std::io::ErrorKind::TimedOut => {
                    format!("it said nothing for {} s, and was ended", DAEMON_START_WAIT.as_secs())
                }
                _ => error.to_string(),
            }
        }
    };
    spawned.take_back();
    let reason = format!("the daemon did not start ({how})");
    let remedy = format!("its log tells more: {}", log.shown());
    Err(Failure::new(Cause::Mount, reason, remedy))
}

/// The child's first line; `None` if it ends without one.
///
/// # Errors
/// It takes too long, or cannot be read from.
fn first_line(child: &mut Child, patience: Duration) -> std::io::Result<Option<Readiness>> {
    let Some(mut stdout) = child.stdout.take() else { return Ok(None) };
    let (until, mut line) = (Instant::now() + patience, Vec::new());
    while !line.ends_with(b"\n") {
        if !await_input(&stdout, until.saturating_duration_since(Instant::now()))? {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        let mut more = [0; 4096];
        match stdout.read(&mut more) {
            Ok(0) => break,
            Ok(read) => line.extend_from_slice(&more[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(serde_json::from_slice(&line).ok())
}

/// This program. The name of its file, if it is still there, is what `ps` shows.
fn own_program() -> PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => PathBuf::from("/proc/self/exe"),
    }
}

/// In the daemon, before anything else: lets go of what it has from its caller.
pub fn detach_from_caller() {
    // Descriptors that a careless caller left open would hold its pipes and locks for ever.
    // SAFETY: nothing was opened yet, so nobody relies on a descriptor from 3 on.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
    // Fails only for the leader of a group, which then stays where it is.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    raise_limits();
}

/// As far as the caller may. A hundred mounts and as many clients need more descriptors than the usual 1,024; and
/// a time of processor that was meant for a command would end what serves others, too.
fn raise_limits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Root may have more than its limit.
    let _ = setrlimit(Resource::Cpu, Rlimit { current: None, maximum: None });
    for resource in [Resource::Nofile, Resource::Cpu] {
        let maximum = getrlimit(resource).maximum;
        if let Err(error) = setrlimit(resource, Rlimit { current: maximum, maximum }) {
            tracing::warn!(?resource, %error, "a limit stays");
        }
    }
}

/// Says the line to whoever waits on standard output, and lets go of it. False if nobody does.
pub fn ready_line(readiness: &Readiness) -> bool {
    let mut line = serde_json::to_vec(readiness).unwrap_or_default();
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    let said = stdout.write_all(&line).and_then(|()| stdout.flush()).is_ok();
    if let Ok(null) = OpenOptions::new().write(true).open(NULL) {
        use std::os::fd::AsRawFd;
        // SAFETY: both are open descriptors; 1 is written to by nobody else, its lock is held.
        unsafe { libc::dup2(null.as_raw_fd(), 1) };
    }
    said
}

/// How long a client waits before it looks again for a daemon that just starts or ends.
pub const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn who_says_nothing_is_late_and_who_ends_without_a_word_has_said_none() {
        let said_by = |script: &str, patience| {
            let mut command = Command::new("sh");
            let mut child = command.arg("-c").arg(script).stdout(Stdio::piped()).spawn().unwrap();
            let said = first_line(&mut child, patience);
            let _ = child.kill();
            child.wait().unwrap();
            said
        };
        let (soon, long) = (Duration::from_millis(50), Duration::from_secs(60));
        let late = said_by("printf '\"ser'; exec sleep 60", soon).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        assert_eq!(said_by("printf '\"ser'; exit 3", long).unwrap(), None);
        let said = said_by("printf '\"ser'; echo 'ves\"'; exec sleep 60", long).unwrap();
        assert_eq!(said, Some(Readiness::Serves));
    }
}
