//! What `/proc` tells, as text.
//!
//! What must stay true: a process is known whatever it is called. Its name stands in the midst of what is told of it, is
//! any bytes, and is cut after fifteen of them, also within a character.

use std::io;
use std::path::Path;

/// A file in which something may stand that is not UTF-8: other characters stand for that.
///
/// # Errors
/// If it cannot be read.
pub fn proc_text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

/// Whether a process of this name space has ended, waited for or not.
#[must_use]
pub fn has_ended(process: u32) -> bool {
    let stat = proc_text(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, None | Some('Z' | 'X'))
}
