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
