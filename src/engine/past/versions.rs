//! Which version that is kept a plain file was at a moment.

use super::event::{PastEvent, last_told};
use super::whence::{Elsewhere, Told, told_elsewhere};
use crate::names::TreePath;
use crate::numbers::{G, UnixNanos};
use crate::store::{FileVersion, Read, StoreError};

/// What is kept of what the file at a path was at a moment, if its own events tell of that.
pub enum VersionThen {
    /// This.
    Kept(FileVersion),
    /// Its saves were told under another of its names.
    Elsewhere(Elsewhere),
    /// Nothing.
    None,
}

/// The version that a file was at a moment, to which `includes` belongs what happened until then, where the events of
/// `told` tell of it, as [`whence`](super::whence::whence) has found, which has the same `counts`.
///
/// # Errors
/// A failure of the store.
pub fn version_then(
    read: &dyn Read,
    told: &Told,
    counts: impl Fn(&TreePath) -> bool,
    includes: impl Fn(G, UnixNanos) -> bool,
) -> Result<VersionThen, StoreError> {
    let Told { path, before } = told;
    let kept = versions_of(read, path)?;
    let version = kept.iter().find(|kept| kept.g < *before && includes(kept.g, kept.at));
    let Some(version) = version else { return Ok(VersionThen::None) };
    let is_of_then = |event: &PastEvent| includes(event.row.g, event.at());
    let is_its_own = |event: &PastEvent| event.row.g < *before && is_of_then(event);
    // Of what was saved after it none may be kept, as it was too large.
    let last = last_told(read, path, version.g, is_its_own)?;
    let said = last.as_ref().filter(|last| last.row.g > version.g);
    let said = said.map(|last| last.says("/payload/content_sha256"));
    if said.is_some_and(|hash| hash != version.sha256.to_string()) {
        return Ok(VersionThen::None);
    }
    // Another name may have been moved elsewhere than this one: it tells of the file until the moment itself.
    let elsewhere = match last {
        Some(last) => told_elsewhere(read, path, (version, &last), counts, is_of_then)?,
        None => None,
    };
    Ok(elsewhere.map_or_else(|| VersionThen::Kept(version.clone()), VersionThen::Elsewhere))
}

/// All versions that are kept of what lay at `path`, the newest first.
///
/// # Errors
/// A failure of the store.
pub fn versions_of(read: &dyn Read, path: &TreePath) -> Result<Vec<FileVersion>, StoreError> {
    let mut kept = Vec::new();
    if let Some(history) = read.history(path)? {
        read.file_versions(history.key, &mut |version| {
            kept.push(version);
            true
        })?;
    }
    Ok(kept)
}
