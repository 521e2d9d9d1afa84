//! Under which names the past is shown, in `.workfs/history/` and by `export --versions`.
//!
//! What must stay true: `<path>` is always a directory, with the versions of what that path was.
//! Where the path was a file, and also a directory with a file named `17`, it is version 17 that
//! gets another name. Deliberately not here: what a version is of (`files`), and how long it is
//! kept (`versions`).

use std::collections::BTreeSet;

use crate::config::Config;
use crate::names::{FileName, TreePath};
use crate::numbers::G;
use crate::store::{Read, StoreError};

/// The names below `path` at which something has a past that is kept, or may have.
///
/// # Errors
/// A failure of the store.
pub fn names_below(read: &dyn Read, path: &TreePath) -> Result<BTreeSet<FileName>, StoreError> {
    let depth = path.names().len();
    let mut below = BTreeSet::new();
    read.histories(path, None, &mut |history| {
        if history.versions > 0 {
            below.extend(history.path.names().get(depth).cloned());
        }
        true
    })?;
    for row in read.workspaces()? {
        if row.path.names().starts_with(path.names()) {
            below.extend(row.path.names().get(depth).cloned());
        }
        if row.path == *path {
            read.records(row.key, &mut |record| {
                below.extend(FileName::new(record.id.as_str()).ok());
                true
            })?;
        }
    }
    Ok(below)
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
pub fn version_name(below: &BTreeSet<FileName>, usual: String) -> Option<FileName> {
    let mut name = FileName::new(usual).ok()?;
    while below.contains(&name) {
        name = FileName::new([name.as_bytes(), b"~"].concat()).ok()?;
    }
    Some(name)
}
