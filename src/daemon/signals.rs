//! Signals, as messages.
//!
//! What must stay true: one thread a process waits for them, so that each comes to who is there to hear it;
//! they are blocked before any other thread starts, so that none is ended by one; what whoever started us
//! lets us ignore (`nohup`, a shell's `&`) stays ignored, but for SIGCHLD. Deliberately not here: what a signal
//! means.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::failure::Failure;

/// The signals that end a daemon.
const ENDING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Keeps a limit on the length of files (`ulimit -f`) from ending the process at a write beyond it: the
/// write fails with EFBIG instead. By a handler, which a program that is started here does not inherit, as
/// it would an ignored signal.
pub fn outlive_long_writes() {
    extern "C" fn nothing(_: libc::c_int) {}
    if is_ignored(libc::SIGXFSZ) {
        return;
    }
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeros are a valid `sigaction`, sigemptyset makes its mask one; the handler does nothing, so it
    // may come at any moment.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = nothing as *const () as libc::sighandler_t;
        (*action.as_mut_ptr()).sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut (*action.as_mut_ptr()).sa_mask);
        libc::sigaction(libc::SIGXFSZ, action.as_ptr(), std::ptr::null_mut());
    }
}

/// Has the kernel tell of the ends of what is started here: where whoever started us ignores them (SIGCHLD), which is
/// inherited, nobody could wait for a command or for `fusermount3`.
pub fn hear_of_children() {
    // SAFETY: the default action needs no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Keeps the ending signals from ending this thread and those that it starts.
fn block() {
    let set = ending();
    // SAFETY: `set` is a valid signal set; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Signals that follow each other so soon are one person's or program's: timeout(1) sends its to the process
/// and then to the process's group.
const AT_ONCE: Duration = Duration::from_millis(10);

/// What is done at the first ending signal, which it is told.
type Act = Box<dyn FnOnce(i32) + Send>;

/// What an ending signal means now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It ends the process, as it would without workfs.
    Impatient,
    /// The first is told; the next comes from somebody who has waited long enough, and ends the process.
    Patient,
    /// The first is told, and none ends the process.
    Outlasting,
}

/// What the one thread that waits for signals goes by.
struct Ending {
    has_thread: bool,
    stage: Stage,
    exit_code: i32,
    /// The first that came.
    seen: Option<i32>,
    act: Option<Act>,
}

static ENDS: Mutex<Ending> = Mutex::new(Ending {
    has_thread: false,
    stage: Stage::Impatient,
    exit_code: 0,
    seen: None,
    act: None,
});

impl Ending {
    /// Takes a signal: what is to be done now, or the code that the process is to exit with.
    fn comes(&mut self, signal: i32) -> Result<Option<Act>, i32> {
        let again = self.seen.replace(self.seen.unwrap_or(signal)).is_some();
        match self.stage {
            Stage::Patient if again => Err(self.exit_code),
            Stage::Impatient => Err(self.exit_code),
            Stage::Patient | Stage::Outlasting => Ok(self.act.take()),
        }
    }
}

/// Waits for ending signals, as long as the process lives. Those that come at once count for one.
fn listen() {
    let mut last: Option<Instant> = None;
    loop {
        let set = ending();
        let mut signal = 0;
        // SAFETY: both pointers are to valid places that outlive the call; the signals of
        // `set` are blocked in every thread (see the head of this file).
        if unsafe { libc::sigwait(&raw const set, &raw mut signal) } != 0 {
            return;
        }
        if last.is_some_and(|last| last.elapsed() < AT_ONCE) {
            continue;
        }
        let comes = ENDS.lock().comes(signal);
        match comes {
            Ok(Some(act)) => act(signal),
            Ok(None) => {}
            Err(exit_code) => std::process::exit(exit_code),
        }
        last = Some(Instant::now());
    }
}

/// A stretch of work that an ending signal does not end at once: whoever works asks now and then, or says
/// what is to be done when it comes.
///
/// Outside of any, an ending signal ends the process, as it would without workfs.
#[derive(Debug)]
pub struct Patience(());

impl Patience {
    /// Begins one; before the threads that take part are started. Only one at a time.
    ///
    /// # Errors
    /// If the thread cannot be started that waits for signals.
    pub fn begin(exit_code: i32) -> Result<Patience, Failure> {
        block();
        let mut ends = ENDS.lock();
        if !ends.has_thread {
            let thread = std::thread::Builder::new().name("signals".into()).stack_size(128 << 10);
            let started = thread.spawn(listen);
            started.map_err(|error| Failure::start("waiting for signals", &error))?;
            ends.has_thread = true;
        }
        (ends.stage, ends.exit_code) = (Stage::Patient, exit_code);
        Ok(Patience(()))
    }

    /// Does that, in place of what was said before, when the signal comes, or now if it has: for whoever
    /// waits and cannot ask.
    pub fn when_over(&self, act: impl FnOnce(i32) + Send + 'static) {
        Patience::becomes(Stage::Patient, Box::new(act));
    }

    /// The same for who ends by it in due order, and whom no further signal may end before: mounts would be
    /// left dead.
    pub fn outlast(&self, act: impl FnOnce(i32) + Send + 'static) {
        Patience::becomes(Stage::Outlasting, Box::new(act));
    }

    fn becomes(stage: Stage, act: Act) {
        let mut ends = ENDS.lock();
        ends.stage = stage;
        match ends.seen {
            None => ends.act = Some(act),
            Some(signal) => {
                drop(ends);
                act(signal);
            }
        }
    }

    /// Whether a signal has come, in this one or in one before.
    #[must_use]
    pub fn is_over(&self) -> bool {
        ENDS.lock().seen.is_some()
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        let mut ends = ENDS.lock();
        ends.act = None;
        // Who outlasts signals is about to end the process.
        if ends.stage == Stage::Patient {
            ends.stage = Stage::Impatient;
        }
    }
}

/// The ending signals, but for those that are ignored.
fn ending() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset makes the set valid, sigaddset is given a valid set and real signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Whether a signal is ignored, as under `nohup`: one that is blocked waits all the same.
#[must_use]
pub fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is set; where the call succeeds it has filled `action`.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(stage: Stage) -> Ending {
        Ending { has_thread: true, stage, exit_code: 130, seen: None, act: Some(Box::new(drop)) }
    }

    #[test]
    fn the_first_signal_is_told_and_the_second_ends_only_who_does_not_outlast_it() {
        let mut patient = ending(Stage::Patient);
        assert!(patient.comes(libc::SIGTERM).is_ok_and(|act| act.is_some()));
        assert_eq!(patient.comes(libc::SIGINT).err(), Some(130));
        assert_eq!(patient.seen, Some(libc::SIGTERM), "the first counts");
        let mut outlasting = ending(Stage::Outlasting);
        assert!(outlasting.comes(libc::SIGTERM).is_ok_and(|act| act.is_some()));
        assert!(outlasting.comes(libc::SIGTERM).is_ok_and(|act| act.is_none()));
        assert_eq!(ending(Stage::Impatient).comes(libc::SIGTERM).err(), Some(130));
    }
}
