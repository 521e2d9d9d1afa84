//! Under which names the past is shown, in `.workfs/history/` and by `export --versions`.
//!
//! What must stay true: `<path>` is always a directory, with the versions of what that path was.
//! Where the path was a file, and also a directory with a file named `17`, it is version 17 that
//! gets another name. Deliberately not here: what a version is of (`plain_files/files`), and how long it is
//! kept (`plain_files/versions`).

use std::collections::BTreeMap;

use crate::config::Config;
use crate::names::{FileName, RecordId, TreePath};
use crate::numbers::{G, RecordKey};
use crate::store::{History, Read, Record, StoreError};

/// What has a past, or may have one, at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// A record, and nothing else.
    Record(RecordKey),
    /// Files, workspaces, or a record beside them.
    Path,
}

/// The names below a path at which something has a past.
pub type PastNames = BTreeMap<FileName, Past>;

/// The names below `path` at which something has a past that is kept, or may have.
///
/// # Errors
/// A failure of the store.
pub fn names_below(read: &dyn Read, path: &TreePath) -> Result<PastNames, StoreError> {
    let depth = path.names().len();
    let workspaces = read.workspaces()?;
    let mut below = PastNames::new();
    for row in workspaces.iter().filter(|row| row.path == *path) {
        read.records(row.key, &mut |record| {
            let name = FileName::new(record.id.as_str()).ok();
            below.extend(name.map(|name| (name, Past::Record(record.key))));
            true
        })?;
    }
    read.histories(path, None, &mut |history| {
        if history.versions > 0 {
            below.extend(history.path.names().get(depth).map(|name| (name.clone(), Past::Path)));
        }
        true
    })?;
    for row in workspaces {
        if row.path.names().starts_with(path.names()) {
            below.extend(row.path.names().get(depth).map(|name| (name.clone(), Past::Path)));
        }
    }
    Ok(below)
}

/// What of these has a past at `path`: it is one of the [`names_below`] the directory above.
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
    let Some(id) = name.as_str().and_then(|id| RecordId::new(id).ok()) else { return Ok(None) };
    Ok(read.record_named(row.key, &id)?.map(|record| (above, record)))
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

/// The name of the file of a version beside directories of these names: with a `~` for each name that
/// is one of theirs. None where no name is short enough.
#[must_use]
pub fn version_name(below: &PastNames, usual: String) -> Option<FileName> {
    let mut name = FileName::new(usual).ok()?;
    while below.contains_key(&name) {
        name = FileName::new([name.as_bytes(), b"~"].concat()).ok()?;
    }
    Some(name)
}
