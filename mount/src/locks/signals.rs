//! Whether a thread that waits was told to stop waiting.
//!
//! The FUSE library knows no FUSE_INTERRUPT, and a thread that waits for an answer cannot even be
//! killed. What the kernel would have told is read from `/proc` instead.

/// How it stands with a thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    /// Nothing has happened to it.
    Waits,
    /// A signal that it does not block is there for it (SIGKILL among them).
    Signalled,
    /// It cannot be seen: it lives outside the daemon's name space of processes.
    Unseen,
}

/// Looks at thread `id`.
pub(crate) fn look(id: u32) -> Thread {
    if id == 0 {
        return Thread::Unseen;
    }
    match std::fs::read_to_string(format!("/proc/{id}/status")) {
        Ok(status) => judge(&status),
        Err(_) => Thread::Unseen,
    }
}

fn judge(status: &str) -> Thread {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
    };
    match (mask("SigPnd:"), mask("ShdPnd:"), mask("SigBlk:")) {
        (Some(own), Some(shared), Some(blocked)) if (own | shared) & !blocked != 0 => {
            Thread::Signalled
        }
        (Some(_), Some(_), Some(_)) => Thread::Waits,
        _ => Thread::Unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(own: &str, shared: &str, blocked: &str) -> String {
        format!("Name:\tx\nSigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\nSigIgn:\t0\n")
    }

    #[test]
    fn only_what_is_not_blocked_counts() {
        let none = "0000000000000000";
        assert_eq!(judge(&status(none, none, "ffffffffffffffff")), Thread::Waits);
        assert_eq!(judge(&status(none, "0000000000004000", none)), Thread::Signalled);
        assert_eq!(judge(&status(none, "0000000000004000", "0000000000004000")), Thread::Waits);
        assert_eq!(judge(&status("0000000000000100", none, none)), Thread::Signalled);
        assert_eq!(judge("Name:\tx\n"), Thread::Unseen);
    }

    #[test]
    fn this_thread_waits_for_nothing() {
        assert_eq!(look(std::process::id()), Thread::Waits);
        assert_eq!(look(0), Thread::Unseen);
    }
}
