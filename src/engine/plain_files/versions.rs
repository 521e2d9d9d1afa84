//! How much of a file's past is kept.
//!
//! What must stay true: the newest version stays, as long as a rule counts the file; what goes is told
//! beforehand by the same rule.
//! Deliberately not here: what a version is of, and its event (`files`).

use crate::config::{Config, Retention};
use crate::engine::Turn;
use crate::ledger::Hash;
use crate::names::TreePath;
use crate::numbers::UnixNanos;
use crate::store::{FileVersion, History, Read, StoreError};

/// What is kept of the file at a path; nothing, if no rule counts it. As of [`Scopes::of`](crate::engine::Scopes::of),
/// nothing counts where a directory's path is too long to be named.
#[must_use]
pub fn retention(config: &Config, path: &TreePath) -> Option<Retention> {
    let (dir, name) = path.split_last()?;
    let scope = config.files().scope(&dir).filter(|_| dir.can_be_named())?;
    config.files().keep(&scope, name)
}

/// Whether saves of the file at a path count, by the configuration of today: elsewhere it changes, comes and goes
/// without an event.
pub fn counted(config: &Config) -> impl Fn(&TreePath) -> bool + Copy {
    |path| retention(config, path).is_some()
}

/// The versions of `history` that `keep` does not keep: too many, too old, or too large together; all of
/// them, where no rule counts the file (any more).
///
/// # Errors
/// A failure of the store.
pub fn late_versions(
    read: &dyn Read,
    history: &History,
    keep: Option<&Retention>,
    now: UnixNanos,
) -> Result<Vec<FileVersion>, StoreError> {
    let (mut count, mut bytes, mut late) = (0, 0, Vec::new());
    read.file_versions(history.key, &mut |version| {
        count += 1;
        bytes += version.size;
        let is_late = keep.is_none_or(|keep| {
            let is_over = count > keep.versions || bytes > keep.bytes;
            count > 1 && (is_over || version.at < oldest(keep, now))
        });
        if is_late {
            late.push(version);
        }
        true
    })?;
    Ok(late)
}

/// Versions from before this are too old.
fn oldest(keep: &Retention, now: UnixNanos) -> UnixNanos {
    now.before(keep.age)
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
            self.prune(history, Some(keep))?;
        }
        Ok(())
    }

    /// Deletes the versions of `history` that `keep` does not keep, as [`late_versions`] tells them.
    pub(in crate::engine) fn prune(
        &mut self,
        history: &mut History,
        keep: Option<&Retention>,
    ) -> Result<(), StoreError> {
        for version in late_versions(self.txn, history, keep, self.now)? {
            self.txn.delete_file_version(version.g)?;
            history.versions = history.versions.saturating_sub(1);
            history.bytes = history.bytes.saturating_sub(version.size);
        }
        Ok(())
    }
}
