//! Running the command: signals are passed on to it, and its end is told as a shell tells it.
//!
//! What must stay true: a signal that comes before the command runs is not lost; the command does
//! not outlive this process, whatever ends it. Deliberately not here: the mount.

use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use super::super::exit::Exit;
use super::super::output::Stop;
use crate::daemon::{Failure, is_ignored};
use crate::names::Shown;

/// What is passed on.
const PASSED: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// Those of them that ask for the end.
const ASKING: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// How a command ended.
pub struct Ended {
    /// What it says itself.
    pub status: ExitStatus,
    /// Who asked for the end of this process meanwhile, and so for its own.
    pub asked: Asked,
}

/// Who asked for the end.
#[derive(Default)]
pub struct Asked {
    /// By which signal; `None`: nobody.
    pub signal: Option<Signal>,
    /// A key of the terminal was pressed for that (Ctrl-C): the command has that signal, too, and knows what it is to
    /// mean.
    pub by_key: bool,
}

/// Keeps signals back until the command runs.
pub fn hold_signals() {
    mask(libc::SIG_BLOCK);
}

/// Lets signals through again. One that was kept back since the command ended, and that would have
/// ended this process, is told.
pub fn release_signals() -> Option<ExitStatus> {
    let mut ended_by = None;
    while let Some((number, _)) = pending_signal() {
        if number != libc::SIGCHLD && !is_ignored(number) {
            ended_by = Some(ExitStatus::from_raw(number));
        }
    }
    mask(libc::SIG_UNBLOCK);
    ended_by
}

fn mask(how: libc::c_int) {
    let set = waited_for();
    // SAFETY: `set` is a valid signal set; the old one is not asked for.
    unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
}

/// Runs the command to its end in `dir`.
pub fn run(
    command: &[OsString],
    dir: &Path,
    variables: &[(&'static str, OsString)],
) -> Result<Ended, Stop> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Stop::failed(Exit::Usage, "no command is given", "see `workfs exec --help`"));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).envs(variables.iter().cloned());
    // What is not a shell takes it as it is (`make`), and would work where this was called.
    command.env("PWD", dir);
    let parent = getpid();
    // SAFETY: between fork and exec only system calls are made: nothing is allocated or locked.
    unsafe {
        command.pre_exec(move || {
            mask(libc::SIG_UNBLOCK);
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // It may have ended before that.
            if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
        });
    }
    let child = command.spawn().map_err(|error| {
        // Where it was to run is gone with its daemon: that is not the command's failure.
        if let Err(gone) = dir.metadata() {
            let reason = format!("{} cannot be entered any more: {gone}", dir.shown());
            return Stop::failed(Exit::Mount, reason, "its daemon has ended: try again");
        }
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::NotRun,
        };
        let reason = format!("{} cannot be run: {error}", program.shown());
        Stop::failed(exit, reason, "see that it is in PATH and may be executed")
    })?;
    await_end(child).map_err(|error| Failure::io("waiting for the command", &error).into())
}

fn await_end(mut child: Child) -> std::io::Result<Ended> {
    let pid = Pid::from_child(&child);
    let mut asked = Asked::default();
    loop {
        if let Some(status) = child.try_wait()? {
            asked.note_pending()?;
            return Ok(Ended { status, asked });
        }
        let (number, by_kernel) = next_signal()?;
        // The command has ended, and this comes too late for it: it waits for `release_signals`.
        if !is_key(number, by_kernel)
            && let Some(status) = child.try_wait()?
        {
            raise(number)?;
            asked.note_pending()?;
            return Ok(Ended { status, asked });
        }
        asked.note(number, by_kernel);
        // What a key sends (Ctrl-C) goes to all of the group, so the command has it already. That the terminal
        // is gone is told to the leader of its session alone, which this process may be.
        if number != libc::SIGCHLD
            && !is_key(number, by_kernel)
            && let Some(signal) = Signal::from_named_raw(number)
        {
            // It may just have ended, which the next turn sees.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Whether it is a key of the terminal.
fn is_key(number: libc::c_int, by_kernel: bool) -> bool {
    by_kernel && [libc::SIGINT, libc::SIGQUIT].contains(&number)
}

/// Sends this process a signal that it keeps back.
fn raise(number: libc::c_int) -> std::io::Result<()> {
    match Signal::from_named_raw(number) {
        Some(signal) if number != libc::SIGCHLD => {
            Ok(rustix::process::kill_process(getpid(), signal)?)
        }
        _ => Ok(()),
    }
}

impl Asked {
    fn note(&mut self, number: libc::c_int, by_kernel: bool) {
        let is_key = is_key(number, by_kernel);
        // Whoever sends one by itself, or hangs up, has the last word.
        if ASKING.contains(&number)
            && !is_ignored(number)
            && !(is_key && self.signal.is_some() && !self.by_key)
        {
            (self.signal, self.by_key) = (Signal::from_named_raw(number), is_key);
        }
    }

    /// A key that the command had, too, may have been pressed before it ended, and be seen only now. What
    /// else is kept back waits for `release_signals`.
    fn note_pending(&mut self) -> std::io::Result<()> {
        let mut others = Vec::new();
        while let Some((number, by_kernel)) = pending_signal() {
            match is_key(number, by_kernel) {
                true => self.note(number, by_kernel),
                false => others.push(number),
            }
        }
        others.into_iter().try_for_each(raise)
    }
}

/// A signal that is kept back, and whether the kernel itself sent it.
fn pending_signal() -> Option<(libc::c_int, bool)> {
    let (set, at_once) = (waited_for(), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
    // SAFETY: all pointers are to valid places that outlive the call.
    let number =
        unsafe { libc::sigtimedwait(&raw const set, info.as_mut_ptr(), &raw const at_once) };
    // SAFETY: the call succeeded and has filled it.
    (number > 0).then(|| (number, unsafe { info.assume_init() }.si_code == libc::SI_KERNEL))
}

/// The next signal, and whether the kernel itself sent it.
fn next_signal() -> std::io::Result<(libc::c_int, bool)> {
    let set = waited_for();
    let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
    loop {
        // SAFETY: both pointers are to valid places that outlive the call; the signals are
        // blocked (`hold_signals`).
        let number = unsafe { libc::sigwaitinfo(&raw const set, info.as_mut_ptr()) };
        if number > 0 {
            // SAFETY: the call succeeded and has filled it.
            let info = unsafe { info.assume_init() };
            return Ok((number, info.si_code == libc::SI_KERNEL));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn waited_for() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset makes the set valid, sigaddset is given a valid set and real signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in PASSED.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Stop;

    #[test]
    fn a_directory_that_is_gone_is_no_command_that_was_not_found() {
        let dir = tempfile::tempdir().unwrap();
        for (command, dir, wanted) in [
            ("true", dir.path().join("gone"), Exit::Mount),
            ("no-such-command", dir.path().to_owned(), Exit::NotFound),
            ("/dev/null", dir.path().to_owned(), Exit::NotRun),
        ] {
            match run(&[command.into()], &dir, &[]) {
                Err(Stop::Failed(failed)) => assert_eq!(failed.exit, wanted, "{command}"),
                _ => panic!("{command} ran"),
            }
        }
    }
}
