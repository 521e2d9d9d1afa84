//! What a machine may lack, and the forms of the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Says that a test, or a part of it, was left out; where `CI=true` nothing is, so it fails.
pub fn left_out(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "left out in CI: {why}");
    println!("left out: {why}");
}

/// Whether this signal is ignored here, and so by what is started: SIGHUP under nohup(1). A shell cannot trap
/// that, and what is well-behaved leaves it ignored.
pub fn is_ignored(signal: rustix::process::Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let is = u64::from_str_radix(ignored.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1;
    if is {
        println!("left out: {signal:?} is ignored here");
    }
    is
}

/// Are all these programs here? If not, says so.
pub fn needs(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !is_here(program));
    if let Some(program) = missing {
        left_out(&format!("{program} is not installed"));
    }
    missing.is_none()
}

fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// The real interpreter, without the wrapper that version managers put before it.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let asked =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let path = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        PathBuf::from(path.ok().filter(|path| !path.is_empty()).unwrap_or("python3".to_owned()))
    })
}

/// The workfs that is tested: the one that `WORKFS_TESTED` names, else the one that cargo built with the tests.
pub fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let named = std::env::var("WORKFS_TESTED");
        named.unwrap_or_else(|_| env!("CARGO_BIN_EXE_workfs").to_owned())
    })
}

/// Is the long form wanted?
pub fn long() -> bool {
    std::env::var("WORKFS_TORTURE").as_deref() == Ok("long")
}

/// A directory beside the repository with real files; a clone has none.
pub fn shared(path: &str) -> Option<PathBuf> {
    let beside = std::env::var_os("WORKFS_SHARED").map(PathBuf::from);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let above = here.ancestors().skip(1).take(3).map(|dir| dir.join("shared"));
    let found = beside.into_iter().chain(above).map(|dir| dir.join(path)).find(|dir| dir.exists());
    if found.is_none() {
        left_out(&format!("there is no ../shared/{path}"));
    }
    found
}
