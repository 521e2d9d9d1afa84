//! What an earlier run has left that was killed itself, and so could not tidy up after itself.
//!
//! What must stay true: a directory is swept only if it says which process owns it, and that
//! process is gone; of one in another name space of processes nobody here knows that.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

use super::proc::started;
use super::teardown::take_down;

/// The start of the name of each fixture's directory.
pub const PREFIX: &str = "workfs-test-";

/// Names the owner, and where the store lies.
const OWNER: &str = "owner";

/// Makes this process the owner of a fixture's directory.
pub fn own(base: &Path, store: &Path) {
    let me = std::process::id();
    let start = started(me).unwrap_or_default();
    let owner = format!("{me}\n{start}\n{}\n{}\n", name_space(), store.display());
    fs::write(base.join(OWNER), owner).expect("a new directory can be written");
}

/// Sweeps, once in a process.
pub fn sweep_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                sweep(&entry.path());
            }
        }
    });
}

fn sweep(base: &Path) {
    // Others may sweep at the same time: who gets the file does it.
    let taken = base.join(format!("{OWNER}.{}", std::process::id()));
    let Ok(owner) = fs::read_to_string(base.join(OWNER)) else { return };
    let mut lines = owner.lines();
    let [Some(pid), Some(start), Some(space), Some(store)] = [(); 4].map(|()| lines.next()) else {
        return;
    };
    if space != name_space() {
        return;
    }
    let alive = pid.parse().ok().and_then(started).is_some_and(|started| started == start);
    if alive || fs::rename(base.join(OWNER), taken).is_err() {
        return;
    }
    println!("sweeping {}, whose test was killed", base.display());
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let mounts: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    take_down(base, Path::new(store), &mounts);
    let _ = fs::remove_dir_all(base);
}

/// The name space in which process numbers of this process count.
fn name_space() -> String {
    fs::read_link("/proc/self/ns/pid").unwrap_or_default().display().to_string()
}
