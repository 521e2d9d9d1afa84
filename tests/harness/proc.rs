//! What `/proc` tells of a process, or of one of its threads (`self/task/7`).

use std::fs;

/// What its `stat` has behind its name; nothing if it is gone.
fn stat(task: impl std::fmt::Display) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{task}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    fields.split_whitespace().map(str::to_owned).collect()
}

/// The letter of what it does: `S` sleeps, `T` is stopped, `Z` has ended.
pub fn state_of(task: impl std::fmt::Display) -> Option<char> {
    stat(task).first()?.chars().next()
}

/// Is it there, and more than a zombie?
pub fn pid_alive(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// When a process was started, in the kernel's ticks: tells it from a later one of its number. One
/// that has ended and was not waited for is none.
pub fn started(pid: u32) -> Option<String> {
    let fields = stat(pid);
    (!matches!(fields.first()?.as_str(), "Z" | "X")).then(|| fields.get(19).cloned()).flatten()
}

/// What a process has used of processors, in ticks of 10 ms.
pub fn ticks_of(pid: u32) -> u64 {
    let used = stat(pid);
    used[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}
