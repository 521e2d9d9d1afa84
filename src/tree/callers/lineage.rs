//! Who a thread is, and who started it: as `/proc` says.
//!
//! What must stay true: none of it decides a right, since a process can choose who starts it. Where
//! nothing can be known (another name space of processes, a process that has ended) there is no
//! answer, and whoever asks must do without.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use workfs_mount::{has_ended, proc_text, thread_here};

use crate::limits::{ANCESTORS_MAX, LINEAGES_KEPT_FOR, LINEAGES_MAX};

/// A thread's process, and those that started it, the nearest first: as far as they are of its
/// session, which is what one terminal, or one service, has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) struct Lineage {
    thread: u32,
    process: Option<u32>,
    ancestors: [u32; ANCESTORS_MAX],
}

impl Lineage {
    /// The thread.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// Whether both are threads of one process.
    pub fn is_same_process(&self, other: &Lineage) -> bool {
        self.thread == other.thread || self.process.is_some() && self.process == other.process
    }

    /// The process, if it is known.
    pub fn process(&self) -> Option<u32> {
        self.process
    }

    /// Who started it, the nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = u32> {
        self.ancestors.into_iter().filter(|process| *process != 0)
    }

    /// The process and those above it, up to the one that `process` started itself.
    pub fn started_by(&self, process: u32) -> impl Iterator<Item = u32> {
        self.process.into_iter().chain(self.ancestors()).take_while(move |one| *one != process)
    }

    /// Whether this is that process, or was started by it.
    pub fn is_of(&self, process: u32) -> bool {
        self.process == Some(process) || self.ancestors.contains(&process)
    }
}

/// What `/proc` said of a thread.
#[derive(Clone, Copy)]
struct Known {
    process: u32,
    parent: u32,
    session: u32,
    at: Instant,
}

/// Lineages, each asked of `/proc` once in a while.
#[derive(Default)]
pub(in crate::tree) struct Lineages(Mutex<HashMap<u32, Known>>);

impl Lineages {
    /// That of a thread that lives.
    pub fn of(&self, thread: u32) -> Lineage {
        let mut lineage = Lineage { thread, process: None, ancestors: [0; ANCESTORS_MAX] };
        let Some(own) = self.known(thread) else { return lineage };
        lineage.process = Some(own.process);
        let mut parent = own.parent;
        for ancestor in &mut lineage.ancestors {
            let Some(next) = self.known(parent).filter(|next| next.session == own.session) else {
                break;
            };
            (*ancestor, parent) = (parent, next.parent);
        }
        lineage
    }

    /// The process that a thread belongs to, or belonged to a moment ago.
    pub fn process_of(&self, thread: u32) -> Option<u32> {
        self.known(thread).map(|known| known.process)
    }

    fn known(&self, thread: u32) -> Option<Known> {
        let is_fresh = |known: &Known| known.at.elapsed() < LINEAGES_KEPT_FOR;
        if let Some(known) = self.0.lock().get(&thread).copied().filter(is_fresh) {
            return Some(known);
        }
        let known = ask(thread)?;
        let mut kept = self.0.lock();
        if kept.len() >= LINEAGES_MAX {
            kept.retain(|_, known| is_fresh(known));
        }
        if kept.len() < LINEAGES_MAX {
            kept.insert(thread, known);
        }
        Some(known)
    }
}

fn ask(thread: u32) -> Option<Known> {
    let status = status(thread)?;
    let number = |name| field(&status, name)?.split_whitespace().next()?.parse().ok();
    let (process, parent) = (number("Tgid:")?, number("PPid:")?);
    Some(Known { process, parent, session: number("NSsid:")?, at: Instant::now() })
}

/// The process that a thread belongs to.
pub(in crate::tree) fn process_of(thread: u32) -> Option<u32> {
    field(&status(thread)?, "Tgid:")?.parse().ok()
}

/// A thread's process, and those that started it, the nearest first, in whichever session; but not who
/// takes in what nobody waits for.
pub(in crate::tree) fn line_of(thread: u32) -> Vec<u32> {
    let parent = |process: &u32| {
        let parent = field(&status(*process)?, "PPid:")?.parse().ok();
        parent.filter(|parent| *parent > 1)
    };
    std::iter::successors(process_of(thread), parent).take(1 + ANCESTORS_MAX).collect()
}

/// Of a process and those that started it, the nearest first, all who have only what has ended between
/// them and it.
pub(in crate::tree) fn family(line: &[u32]) -> impl Iterator<Item = u32> {
    let below = [None].into_iter().chain(line.iter().map(Some));
    let line = line.iter().zip(below);
    line.take_while(|(_, below)| below.is_none_or(|one| has_ended(*one))).map(|(one, _)| *one)
}

/// Whether a thread runs a program that only removes files.
pub(in crate::tree) fn removes_files(thread: u32) -> bool {
    let name = proc_text(format!("/proc/{thread}/comm")).unwrap_or_default();
    matches!(name.trim_end(), "rm" | "unlink")
}

/// Whether a process runs a shell. A script has the name of its file, so it is asked which program
/// reads that; where the process is another user's, its name must do.
pub(in crate::tree) fn is_shell(process: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{process}/exe"));
    let program = program
        .or_else(|_| proc_text(format!("/proc/{process}/comm")).map(|name| name.trim_end().into()));
    let Ok(program) = program else { return false };
    let name = letters(&program);
    // That one is many programs, each by the name that it is called by.
    let called = if name == "busybox" { called(process) } else { None };
    SHELLS.contains(&called.as_deref().unwrap_or(&*name))
}

/// Programs whose commands are processes of their own.
const SHELLS: [&str; 13] = [
    "ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "yash",
    "zsh",
];

/// By which name a process was called.
fn called(process: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let name = line.split(|byte| *byte == 0).next()?;
    // A login shell's begins so.
    let name = String::from_utf8_lossy(name.strip_prefix(b"-").unwrap_or(name)).into_owned();
    Some(letters(Path::new(&name)))
}

/// A program's name without its version (`ksh93`, `zsh-5.9`), and without what is said of one that was
/// replaced since it was started: `bash (deleted)`.
fn letters(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.chars().take_while(char::is_ascii_alphabetic).collect()
}

/// Whether there is such a thread; one that nobody waited for yet counts.
pub(super) fn is_there(thread: u32) -> bool {
    let pid = i32::try_from(thread).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// How long ago a process was started, as `/proc` counts it: in ticks of 10 ms.
pub(super) fn age(process: u32) -> Option<Duration> {
    let stat = proc_text(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything; the start time is the 20th field after it.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let started = Duration::from_secs_f64(ticks as f64 / per_second as f64);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let up = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32);
    Some(up.saturating_sub(started))
}

/// What `/proc` says of a thread under this word of its status.
pub(super) fn told(thread: u32, word: &str) -> Option<String> {
    Some(field(&status(thread)?, word)?.to_owned())
}

fn status(thread: u32) -> Option<String> {
    let thread = thread_here(thread)?;
    proc_text(format!("/proc/{thread}/status")).ok()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A program that has begun, and ends once its input is closed.
    fn begun(command: &mut Command) -> Child {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        child
    }

    #[test]
    fn a_thread_is_of_its_process_and_of_who_started_that() {
        let lineages = Lineages::default();
        let own = lineages.of(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned());
        let me = std::process::id();
        assert_eq!(own.process(), Some(me));
        assert!(own.is_of(me));
        assert!(own.is_same_process(&lineages.of(me)));
        assert!(age(me).is_some());

        let mut child = begun(Command::new("sh").args(["-c", "echo begun; read end"]));
        let of_child = lineages.of(child.id());
        assert_eq!(of_child.process(), Some(child.id()));
        assert_eq!(of_child.ancestors().next(), Some(me));
        assert!(of_child.is_of(me) && !of_child.is_same_process(&own));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_session_of_its_own_was_started_by_nobody() {
        let mut child = begun(Command::new("setsid").args(["sh", "-c", "echo begun; read end"]));
        let lineage = Lineages::default().of(child.id());
        assert_eq!(lineage.process(), Some(child.id()));
        assert_eq!(lineage.ancestors().next(), None);
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_shell_is_one_whatever_its_version_and_its_script_are_called() {
        let dir = tempfile::tempdir().unwrap();
        let is = |file: &str, called: &str| {
            let program = dir.path().join(file);
            // By another process: what another test starts meanwhile would have the copy open to write, and
            // nobody may run it then.
            assert!(Command::new("cp").arg("/bin/sh").arg(&program).status().unwrap().success());
            let mut command = Command::new(&program);
            command.arg0(called).args(["-c", "echo begun; read end"]);
            let mut child = begun(&mut command);
            let is = is_shell(child.id());
            drop(child.stdin.take());
            child.wait().unwrap();
            is
        };
        for shell in ["sh", "bash", "ksh93", "zsh-5.9", "dash.old"] {
            assert!(is(shell, "claim.sh"), "{shell}");
        }
        assert!(is("busybox", "-sh") && is("busybox", "/bin/busybox") && !is("busybox", "mv"));
        assert!(!is("python3", "sh") && !is("shuf", "shuf") && !is_shell(u32::MAX));
    }

    #[test]
    fn a_line_goes_up_to_whom_nobody_waits_for() {
        let mut child = begun(Command::new("setsid").args(["sh", "-c", "echo begun; read end"]));
        let line = line_of(child.id());
        assert_eq!(line[..2], [child.id(), std::process::id()]);
        assert!(line.len() <= 1 + ANCESTORS_MAX && !line.contains(&1), "{line:?}");
        assert!(line_of(0).is_empty());
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn whatever_a_program_is_called_it_is_known() {
        let renamed = "printf 'warteschlange-\\303' > /proc/$$/comm; echo begun; read end";
        let mut child = begun(Command::new("sh").args(["-c", renamed]));
        let comm = std::fs::read(format!("/proc/{}/comm", child.id())).unwrap();
        assert_eq!(comm, b"warteschlange-\xc3\n");
        assert_eq!(process_of(child.id()), Some(child.id()));
        assert!(Lineages::default().of(child.id()).is_of(std::process::id()));
        assert!(!has_ended(child.id()) && age(child.id()).is_some());
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn of_nobody_nothing_is_known() {
        let nobody = Lineages::default().of(0);
        assert_eq!((nobody.process(), nobody.ancestors().next()), (None, None));
    }
}
