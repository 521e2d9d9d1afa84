//! Signals, as messages.
//!
//! What must stay true: [`block`] runs before any other thread starts, so that no thread is ended
//! by a signal that [`on_each`] waits for; what whoever started us lets us ignore (`nohup`, a
//! shell's `&`) stays ignored. Deliberately not here: what a signal means.

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

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

/// Keeps the ending signals from ending this thread and those that it starts.
pub fn block() {
    let set = ending();
    // SAFETY: `set` is a valid signal set; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Signals that follow each other so soon are one person's or program's: timeout(1) sends its to the process
/// and then to the process's group.
const AT_ONCE: Duration = Duration::from_millis(10);

/// Calls `act` at each ending signal, from a thread of its own, until it says false; at those that come at once
/// for all.
///
/// # Errors
/// If the thread cannot be started.
pub fn on_each(act: impl Fn(i32) -> bool + Send + 'static) -> std::io::Result<()> {
    let wait = move || {
        let mut last: Option<Instant> = None;
        loop {
            let set = ending();
            let mut signal = 0;
            // SAFETY: both pointers are to valid places that outlive the call; the signals of
            // `set` are blocked in every thread (see the head of this file).
            let waited = unsafe { libc::sigwait(&raw const set, &raw mut signal) };
            if waited == 0 && last.is_some_and(|last| last.elapsed() < AT_ONCE) {
                continue;
            }
            if waited != 0 || !act(signal) {
                return;
            }
            last = Some(Instant::now());
        }
    };
    std::thread::Builder::new().name("signals".into()).stack_size(128 << 10).spawn(wait)?;
    Ok(())
}

/// Blocks the ending signals and calls `act` at the first; the second ends the process, since
/// whoever sends it has waited long enough.
///
/// # Errors
/// If a thread cannot be started.
pub fn on_first(exit_code: i32, act: impl Fn() + Send + 'static) -> std::io::Result<()> {
    block();
    let seen = AtomicBool::new(false);
    on_each(move |_| {
        if seen.swap(true, Ordering::SeqCst) {
            std::process::exit(exit_code);
        }
        act();
        true
    })
}

/// A stretch of work that an ending signal does not end at once: whoever works asks now and then.
///
/// Outside of any, an ending signal ends the process, as it would without workfs.
pub struct Patience(&'static Interrupt);

#[derive(Default)]
struct Interrupt {
    patient: AtomicBool,
    seen: AtomicBool,
    /// What is to be done at the signal.
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Patience {
    /// Begins one; before the threads that take part are started. Only one at a time.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn begin(exit_code: i32) -> std::io::Result<Patience> {
        static ONLY: OnceLock<Interrupt> = OnceLock::new();
        let is_new = ONLY.get().is_none();
        let interrupt = ONLY.get_or_init(Interrupt::default);
        interrupt.patient.store(true, Ordering::SeqCst);
        if is_new {
            block();
            on_each(move |_| {
                // The second one comes from somebody who has waited long enough.
                let again = interrupt.seen.swap(true, Ordering::SeqCst);
                if again || !interrupt.patient.load(Ordering::SeqCst) {
                    std::process::exit(exit_code);
                }
                let act = interrupt.act.lock().take();
                if let Some(act) = act {
                    act();
                }
                true
            })?;
        }
        Ok(Patience(interrupt))
    }

    /// Does that when the signal comes, or now if it has: for whoever waits and cannot ask.
    pub fn when_over(&self, act: impl FnOnce() + Send + 'static) {
        *self.0.act.lock() = Some(Box::new(act));
        if self.is_over() {
            let act = self.0.act.lock().take();
            if let Some(act) = act {
                act();
            }
        }
    }

    /// Whether a signal has come, in this one or in one before.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.seen.load(Ordering::SeqCst)
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.0.patient.store(false, Ordering::SeqCst);
        self.0.act.lock().take();
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
