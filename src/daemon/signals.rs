//! Signals, as messages.
//!
//! What must stay true: [`block`] runs before any other thread starts, so that no thread is ended
//! by a signal that [`on_each`] waits for. Deliberately not here: what a signal means.

use std::mem::MaybeUninit;

/// The signals that end a daemon.
const ENDING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Keeps the ending signals from ending this thread and those that it starts.
pub fn block() {
    let set = ending();
    // SAFETY: `set` is a valid signal set; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Calls `act` at each ending signal, from a thread of its own, until it says false.
///
/// # Errors
/// If the thread cannot be started.
pub fn on_each(act: impl Fn(i32) -> bool + Send + 'static) -> std::io::Result<()> {
    let wait = move || {
        loop {
            let set = ending();
            let mut signal = 0;
            // SAFETY: both pointers are to valid places that outlive the call; the signals of
            // `set` are blocked in every thread (see the head of this file).
            let waited = unsafe { libc::sigwait(&raw const set, &raw mut signal) };
            if waited != 0 || !act(signal) {
                return;
            }
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
    let seen = std::sync::atomic::AtomicBool::new(false);
    on_each(move |_| {
        if seen.swap(true, std::sync::atomic::Ordering::SeqCst) {
            std::process::exit(exit_code);
        }
        act();
        true
    })
}

fn ending() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset makes the set valid, sigaddset is given a valid set and real signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in ENDING {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}
