//! What the first bytes of a file tell: whether it can be a store at all.
//!
//! What must stay true: a file that is another's is left as it is, and nothing is left beside it; no
//! store that this process has open is asked, since to close any descriptor of a file ends all POSIX
//! locks that the process has on it, SQLite's, too.
//! Deliberately not here: what only SQLite can tell (`schema`).

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::tables::schema::APPLICATION_ID;
use crate::names::Shown;
use crate::store::{Result, StoreError, beside};

/// How each file of SQLite begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Where a file of SQLite has its `application_id`.
const APPLICATION_AT: std::ops::Range<usize> = 68..72;

/// Where it says by which versions of the format it can be written and read, and the newest that there is.
const VERSIONS_AT: std::ops::Range<usize> = 18..20;
const VERSION_MAX: u8 = 2;

/// Where it has the number of its schema's form, and the newest that there is.
const FORM_AT: std::ops::Range<usize> = 44..48;
const FORM_MAX: i64 = 4;

/// Refuses what is there and no store. What is missing or empty can become one.
///
/// # Errors
/// A file that is none, or of another program, or whose head is damaged: SQLite takes one that only a later
/// version of it could write for one that may not be written here.
pub fn refuse_other(path: &Path) -> Result<()> {
    let other = || StoreError::NotAStore(path.shown());
    let Ok(meta) = std::fs::metadata(path) else { return Ok(()) };
    if !meta.is_file() {
        return Err(other());
    }
    // The making of a store that was broken off is taken back when SQLite opens it.
    if meta.len() == 0 || beside(path, "-journal").exists() {
        return Ok(());
    }
    let mut head = [0; APPLICATION_AT.end];
    // Another may have put a pipe there since.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    match opened.and_then(|mut file| file.read_exact(&mut head)) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Err(other()),
        // Who may not read it is told so when it is opened.
        Err(_) => return Ok(()),
    }
    if !head.starts_with(MAGIC) || number(&head[APPLICATION_AT]) != APPLICATION_ID {
        return Err(other());
    }
    let versions = &head[VERSIONS_AT];
    if versions.iter().any(|version| !(1..=VERSION_MAX).contains(version)) {
        let what = format!("its head says {versions:?} of the versions of SQLite's format");
        return Err(StoreError::Impossible(what));
    }
    let form = number(&head[FORM_AT]);
    if form > FORM_MAX {
        return Err(StoreError::Impossible(format!("its head says {form} of its schema's form")));
    }
    Ok(())
}

fn number(bytes: &[u8]) -> i64 {
    bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_file_tells_whose_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.db");
        assert!(refuse_other(&path).is_ok() && refuse_other(dir.path()).is_err());
        for (text, is_ours) in [("", true), ("short", false), (&"long ".repeat(99), false)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(refuse_other(&path).is_ok(), is_ours, "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        let sql = rusqlite::Connection::open(&path).unwrap();
        sql.execute_batch("CREATE TABLE t (a)").unwrap();
        assert!(refuse_other(&path).is_err());
        sql.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}")).unwrap();
        assert!(refuse_other(&path).is_ok());
    }
}
