//! Whether a thread that waits was told to stop waiting.
//!
//! The FUSE library knows no FUSE_INTERRUPT, and a thread that waits for an answer cannot even be
//! killed. What the kernel would have told is read from `/proc` instead.
//!
//! What must stay true: a thread that the kernel did not choose for a signal is not told of it: it
//! would see errno 512, which is for the kernel itself (`ERESTARTSYS`).

/// How it stands with a thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    /// Nothing has happened to it.
    Waits,
    /// A signal is there that it is to take (SIGKILL among them).
    Signalled,
    /// A signal is there that it takes if the first thread goes on blocking it.
    Perhaps,
    /// It cannot be seen: it lives outside the daemon's name space of processes.
    Unseen,
}

/// Looks at thread `id`.
pub(crate) fn look(id: u32) -> Thread {
    if id == 0 {
        return Thread::Unseen;
    }
    let status = |id: u32| crate::proc_text(format!("/proc/{id}/status")).ok();
    match status(id) {
        Some(own) => judge(id, &own, status),
        None => Thread::Unseen,
    }
}

/// A signal for the process is the first thread's, unless that blocks it (`complete_signal` in the
/// kernel's `signal.c`): only then it may be another one's.
fn judge(id: u32, status: &str, leader: impl FnOnce(u32) -> Option<String>) -> Thread {
    let (Some(own), Some(shared), Some(blocked)) =
        (mask(status, "SigPnd:"), mask(status, "ShdPnd:"), mask(status, "SigBlk:"))
    else {
        return Thread::Unseen;
    };
    let for_process = shared & !blocked;
    if own & !blocked != 0 {
        return Thread::Signalled;
    }
    if for_process == 0 {
        return Thread::Waits;
    }
    match field(status, "Tgid:").and_then(|process| process.parse().ok()) {
        Some(process) if process != id => {
            let left = leader(process).and_then(|status| mask(&status, "SigBlk:"));
            let is_left = for_process & left.unwrap_or(u64::MAX) != 0;
            if is_left { Thread::Perhaps } else { Thread::Waits }
        }
        _ => Thread::Signalled,
    }
}

fn field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn mask(status: &str, name: &str) -> Option<u64> {
    u64::from_str_radix(field(status, name)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(own: &str, shared: &str, blocked: &str) -> String {
        format!(
            "Name:\tx\nTgid:\t7\nSigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\n\
             SigIgn:\t0\n"
        )
    }

    /// What is said of a process's first and only thread.
    fn first(status: &str) -> Thread {
        judge(7, status, |_| panic!("nobody else is asked"))
    }

    #[test]
    fn only_what_is_not_blocked_counts() {
        let none = "0000000000000000";
        assert_eq!(first(&status(none, none, "ffffffffffffffff")), Thread::Waits);
        assert_eq!(first(&status(none, "0000000000004000", none)), Thread::Signalled);
        assert_eq!(first(&status(none, "0000000000004000", "0000000000004000")), Thread::Waits);
        assert_eq!(first(&status("0000000000000100", none, none)), Thread::Signalled);
        assert_eq!(first("Name:\tx\n"), Thread::Unseen);
    }

    #[test]
    fn what_the_first_thread_takes_is_nobody_else_s() {
        let (none, alarm) = ("0000000000000000", "0000000000002000");
        let other = |own, shared, blocked_by_first| {
            judge(8, &status(own, shared, none), |_| Some(status(none, shared, blocked_by_first)))
        };
        assert_eq!(other(none, alarm, none), Thread::Waits);
        assert_eq!(other(none, alarm, alarm), Thread::Perhaps);
        assert_eq!(other(alarm, none, none), Thread::Signalled);
    }

    #[test]
    fn this_thread_waits_for_nothing() {
        assert_eq!(look(std::process::id()), Thread::Waits);
        assert_eq!(look(0), Thread::Unseen);
    }
}
