//! How much of a file's past is kept.
//!
//! What must stay true: the newest version stays; what goes is told beforehand by the same rule.
//! Deliberately not here: what a version is of, and its event (`files`).

use crate::config::{Config, Retention};
use crate::ledger::Hash;
use crate::names::TreePath;
use crate::numbers::UnixNanos;
use crate::store::{FileVersion, History, Read, StoreError};

use super::Turn;

/// What is kept of the file at a path; nothing, if no rule counts it.
#[must_use]
pub fn retention(config: &Config, path: &TreePath) -> Option<Retention> {
    let (dir, name) = path.split_last()?;
    let scope = config.files().scope(&dir)?;
    config.files().keep(&scope, name)
}

/// The versions of `history` that `keep` does not keep: too many, too old, or too large together.
///
/// # Errors
/// A failure of the store.
pub fn late_versions(
    read: &dyn Read,
    history: &History,
    keep: &Retention,
    now: UnixNanos,
) -> Result<Vec<FileVersion>, StoreError> {
    let oldest = oldest(keep, now);
    let (mut count, mut bytes, mut late) = (0, 0, Vec::new());
    read.file_versions(history.key, &mut |version| {
        count += 1;
        bytes += version.size;
        let is_late = count > keep.versions || bytes > keep.bytes || version.at < oldest;
        if is_late && count > 1 {
            late.push(version);
        }
        true
    })?;
    Ok(late)
}

/// Versions from before this are too old.
fn oldest(keep: &Retention, now: UnixNanos) -> UnixNanos {
    let age = i64::try_from(keep.age.as_nanos()).unwrap_or(i64::MAX);
    UnixNanos(now.0.saturating_sub(age))
}

impl Turn<'_> {
    /// Keeps a version where the content is another than that of the newest, and lets go of those
    /// that are too many, too old or too large together.
    pub(super) fn keep_version(
        &mut self,
        history: &mut History,
        keep: &Retention,
        sha256: Hash,
        content: &[u8],
    ) -> Result<(), StoreError> {
        let mut newest = None;
        self.txn.file_versions(history.key, &mut |version| {
            newest = Some(version);
            false
        })?;
        if newest.as_ref().is_some_and(|newest| newest.sha256 == sha256) {
            return Ok(());
        }
        let size = content.len() as u64;
        let version = FileVersion { g: history.last_g, at: self.now, size, sha256 };
        self.txn.insert_file_version(history.key, &version, content)?;
        history.versions += 1;
        history.bytes += size;
        let over = history.versions > keep.versions || history.bytes > keep.bytes;
        // Where the newest was too old all are. Otherwise ages are looked at once in a while: what is
        // too old for some saves more does not hurt.
        let all_are_old = newest.is_some_and(|newest| newest.at < oldest(keep, self.now));
        if over || all_are_old || history.versions.is_multiple_of(8) {
            self.prune(history, keep)?;
        }
        Ok(())
    }

    /// Deletes all versions of a past.
    pub(super) fn forget_versions(&mut self, history: &mut History) -> Result<(), StoreError> {
        let mut gone = Vec::new();
        self.txn.file_versions(history.key, &mut |version| {
            gone.push(version.g);
            true
        })?;
        gone.into_iter().try_for_each(|g| self.txn.delete_file_version(g))?;
        (history.versions, history.bytes) = (0, 0);
        Ok(())
    }

    /// Deletes the versions of `history` that `keep` does not keep.
    pub(super) fn prune(
        &mut self,
        history: &mut History,
        keep: &Retention,
    ) -> Result<(), StoreError> {
        for version in late_versions(self.txn, history, keep, self.now)? {
            self.txn.delete_file_version(version.g)?;
            history.versions -= 1;
            history.bytes -= version.size;
        }
        Ok(())
    }
}
