//! Waiting for events, never for time alone.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// How long anything may take before it counts as hung. Far above what is normal: the machine may
/// be busy with other tests.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Waits for the end of a process, also of one that is not our child; false after `deadline`.
pub fn await_exit(pid: u32, deadline: Duration) -> bool {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { return true };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let end = Instant::now() + deadline;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("a short time");
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Waits for the end of a process; fails the test if it does not come.
#[track_caller]
pub fn await_end(pid: u32) {
    assert!(await_exit(pid, DEADLINE), "process {pid} does not end");
}

/// Sends a signal to a process that a test has started.
#[track_caller]
pub fn send_signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    kill_process(pid, signal).unwrap_or_else(|error| panic!("signal to {pid:?}: {error}"));
}

/// Asks again and again until there is an answer: only for what nothing can be awaited on, such as
/// a line of `/proc`. Fails the test at the deadline.
#[track_caller]
pub fn until_polled<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "waited in vain for: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
