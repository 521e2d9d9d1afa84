//! Under which names the past is shown, in `.workfs/history/` and by `export --versions`.
//!
//! What must stay true: `<path>` is always a directory, with the versions of what that path was.
//! Where the path was a file, and also a directory with a file named `17`, it is version 17 that
//! gets another name. Deliberately not here: what a version is of (`plain_files/files`), and how long it is
//! kept (`plain_files/versions`).

use std::collections::BTreeSet;

use crate::config::Config;
use crate::names::{FileName, RecordId, TreePath};
use crate::numbers::{G, RecordKey, WorkspaceKey};
use crate::store::{History, Read, Record, StoreError};

/// What has a past, or may have one, at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// A record, and nothing else.
    Record(RecordKey),
    /// Files, workspaces, or a record beside them.
    Path,
}

/// The names below a path at which something has a past that is kept, or may have.
#[derive(Default)]
pub struct PastNames {
    /// Those at which files have one or workspaces lie, whether or not a record has one beside them.
    paths: BTreeSet<FileName>,
    /// The workspace that lies there: its records have one, of which there may be millions.
    workspace: Option<WorkspaceKey>,
}

impl PastNames {
    /// What has a past below `path`.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn below(read: &dyn Read, path: &TreePath) -> Result<PastNames, StoreError> {
        let depth = path.names().len();
        let mut below = PastNames::default();
        read.histories(path, None, &mut |history| {
            if history.versions > 0 {
                below.paths.extend(history.path.names().get(depth).cloned());
            }
            true
        })?;
        for row in read.workspaces()? {
            if row.path == *path {
                below.workspace = Some(row.key);
            } else if row.path.names().starts_with(path.names()) {
                below.paths.extend(row.path.names().get(depth).cloned());
            }
        }
        Ok(below)
    }

    /// Those of files and workspaces, in their order.
    pub fn paths(&self) -> impl Iterator<Item = &FileName> {
        self.paths.iter()
    }

    /// The records that have a past under other names than [`paths`](Self::paths); [`path_of_past`] has their names.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn records(&self, read: &dyn Read) -> Result<Vec<RecordKey>, StoreError> {
        let mut keys = Vec::new();
        let Some(workspace) = self.workspace else { return Ok(keys) };
        read.records(workspace, &mut |record| {
            let name = FileName::new(record.id.as_str());
            if name.is_ok_and(|name| !self.paths.contains(&name)) {
                keys.push(record.key);
            }
            true
        })?;
        Ok(keys)
    }

    fn has(&self, read: &dyn Read, name: &FileName) -> Result<bool, StoreError> {
        if self.paths.contains(name) {
            return Ok(true);
        }
        let Some(workspace) = self.workspace else { return Ok(false) };
        Ok(record_named(read, workspace, name)?.is_some())
    }

    /// The name of the file of a version beside these: with a `~` for each name that is one of them. None where no name
    /// is short enough.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn version_name(
        &self,
        read: &dyn Read,
        usual: String,
    ) -> Result<Option<FileName>, StoreError> {
        let mut next = FileName::new(usual).ok();
        while let Some(name) = next {
            if !self.has(read, &name)? {
                return Ok(Some(name));
            }
            next = FileName::new([name.as_bytes(), b"~"].concat()).ok();
        }
        Ok(None)
    }
}

/// What of these has a past at `path`: it is one of the [`PastNames`] of the directory above.
///
/// # Errors
/// A failure of the store.
pub fn past_at(read: &dyn Read, path: &TreePath) -> Result<Option<Past>, StoreError> {
    let has_versions = |history: History| history.versions > 0;
    let mut any = read.history(path)?.is_some_and(has_versions);
    any |= read.workspaces()?.iter().any(|row| row.path.names().starts_with(path.names()));
    if !any {
        read.histories(path, None, &mut |history| {
            any |= has_versions(history);
            !any
        })?;
    }
    if any {
        return Ok(Some(Past::Path));
    }
    Ok(past_record(read, path)?.map(|(_, record)| Past::Record(record.key)))
}

/// The record that `path` names as `<workspace>/<id>`, with its workspace's path.
///
/// # Errors
/// A failure of the store.
pub fn past_record(
    read: &dyn Read,
    path: &TreePath,
) -> Result<Option<(TreePath, Record)>, StoreError> {
    let Some((above, name)) = path.split_last() else { return Ok(None) };
    let Some(row) = read.workspace_at(&above)? else { return Ok(None) };
    Ok(record_named(read, row.key, name)?.map(|record| (above, record)))
}

fn record_named(
    read: &dyn Read,
    workspace: WorkspaceKey,
    name: &FileName,
) -> Result<Option<Record>, StoreError> {
    let Some(id) = name.as_str().and_then(|id| RecordId::new(id).ok()) else { return Ok(None) };
    read.record_named(workspace, &id)
}

/// Where the record with this key has its past; [`past_record`] of that is it.
///
/// # Errors
/// A failure of the store.
pub fn path_of_past(read: &dyn Read, key: RecordKey) -> Result<Option<TreePath>, StoreError> {
    let Some(record) = read.record(key)? else { return Ok(None) };
    let Some(row) = read.workspace(record.workspace)? else { return Ok(None) };
    Ok(FileName::new(record.id.as_str()).ok().map(|name| row.path.join(name)))
}

/// The usual name of the file of a version of a record of the workspace at `workspace`.
#[must_use]
pub fn record_version_name(config: &Config, workspace: &TreePath, g: G) -> String {
    format!("{g}.{}", usual_extension(config, workspace))
}

/// What names of records there end in, that workfs makes; those of a workspace that the configuration does
/// not have any more, too.
#[must_use]
pub fn usual_extension(config: &Config, workspace: &TreePath) -> String {
    let binding = config.bind(workspace);
    binding.map_or_else(|| "yaml".to_owned(), |binding| binding.kind.usual_extension().to_owned())
}
