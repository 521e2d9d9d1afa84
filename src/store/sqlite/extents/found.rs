//! What lies at the name of a store's file of big files when the store is opened.
//!
//! What must stay true: no other store's is taken for its own, nor one from another time. Deliberately not here: what
//! comes of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rusqlite::Connection;

use super::{FIRST, MAGIC, NO_END, end_of_named, failed, head, key_of};
use crate::names::Shown;
use crate::store::sqlite::beside::expect_own;
use crate::store::sqlite::fail;
use crate::store::{Result, StoreError};

/// What a store says of its file, and what is there.
#[derive(Default)]
pub(super) struct Found {
    pub key: String,
    /// The end of what any row names.
    pub end: u64,
    /// The end of what can be there.
    pub reach: u64,
    pub file: Option<File>,
}

/// What lies at `path`, if anything does; it must be this store's.
pub(super) fn find(store: &Path, path: &Path, sql: &Connection, write: bool) -> Result<Found> {
    let key = key_of(sql).map_err(fail)?;
    let end = end_of_named(sql)?;
    let none = |key| Found { key, end, reach: NO_END, file: None };
    let (shown, is_needed) = (path.shown(), end > FIRST);
    // Whatever leads to it: by the key it is known. A pipe that somebody put there is not waited for.
    let mut options = File::options();
    let options = options.read(true).write(write).custom_flags(libc::O_NONBLOCK);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let what = match path.is_symlink() {
                true => "leads nowhere: remove it",
                false if is_needed => "is missing: bring it back",
                false => return Ok(none(key)),
            };
            return Err(StoreError::Impossible(format!("{shown} {what}")));
        }
        Err(error) => {
            return Err(match failed(path, "opening", &error) {
                lacking @ StoreError::NoDescriptors(_) => lacking,
                _ => StoreError::Impossible(format!("opening {shown}: {error}")),
            });
        }
    };
    let found = file.metadata().map_err(|error| failed(path, "opening", &error))?;
    if !found.is_file() {
        return Err(StoreError::Impossible(format!("{shown} is no file: move it away")));
    }
    // One that has content is known by its key; in any other somebody could wait for what will come.
    if !is_needed && expect_own(&file, path, store).is_err() {
        let what = format!("{shown} is neither root's nor the store's owner's: move it away");
        return Err(StoreError::Impossible(what));
    }
    let length = found.len();
    // Its making was broken off.
    let mut there = head(&key, &key).into_bytes();
    if !is_needed && length < there.len() as u64 {
        return Ok(none(key));
    }
    let is_read = file.read_exact_at(&mut there, 0).is_ok();
    let of_store = String::from_utf8_lossy(&there)
        .strip_prefix(MAGIC)
        .is_some_and(|keys| keys.lines().any(|known| known == key));
    // A restoring that was killed left the old store's there; whoever has it aside has it by another name.
    let is_left = write && !is_needed && found.nlink() > 1;
    if is_read && !of_store && is_left && std::fs::remove_file(path).is_ok() {
        return Ok(none(key));
    }
    if !is_read || !of_store {
        let way = if is_needed { "bring the one that was with it" } else { "move it away" };
        let store = store.shown();
        let what = format!("{shown} is another store's, or of another time than {store}: {way}");
        return Err(StoreError::Impossible(what));
    }
    if length < end {
        tracing::warn!("{shown} has {length} bytes and should have {end}: the rest is lost");
    }
    Ok(Found { key, end, reach: length, file: Some(file) })
}
