//! Where a record lies that has no file of its own name, whose one is that another text would be, and whether a draft
//! has its name.
//!
//! Deliberately not here: how it came to lie there (`nodes/rename`), and how it comes back (`backup`).

use crate::config::Config;
use crate::engine::Home;
use crate::engine::places::governed::{Slot, governed, path_of, slot};
use crate::kind::Kind;
use crate::names::{FileName, RecordId, TreePath};
use crate::numbers::WorkspaceKey;
use crate::store::{Class, Read, Record, Result, Standing};

/// The name that a parked record's file had, where its kind still has records of that name; and else the
/// usual one.
pub(in crate::engine) fn name_of_parked(
    read: &dyn Read,
    kind: &Kind,
    record: &Record,
) -> Result<Option<FileName>> {
    let noted = read.parked_name(record.key)?;
    let noted = noted.filter(|name| kind.record_id(name).as_ref() == Some(&record.id));
    let usual = || FileName::new(format!("{}.{}", record.id, kind.usual_extension())).ok();
    Ok(noted.or_else(usual))
}

/// Whether a record lay at `home` before it was parked. Its directory may be another state's by now.
pub(in crate::engine) fn is_parked_at(record: &Record, home: &Home) -> bool {
    record.standing == Standing::Parked { dir: home.dir }
        && record.state == home.kind().state(home.state).name
        && record.owner == home.owner
}

/// Where a parked record lies as soon as its backup has its name again; `None` where the configuration has
/// no such place for it.
///
/// # Errors
/// A failure of the store.
pub fn home_of_parked(read: &dyn Read, config: &Config, record: &Record) -> Result<Option<Home>> {
    let Standing::Parked { dir } = record.standing else { return Ok(None) };
    let Some(here) = governed(read, config, dir)? else { return Ok(None) };
    let Some(name) = name_of_parked(read, &here.binding.kind, record)? else { return Ok(None) };
    let Slot::Record(home) = slot(read, config, dir, &name)? else { return Ok(None) };
    let is_it = home.governed.workspace == record.workspace && is_parked_at(record, &home);
    Ok(is_it.then_some(*home))
}

/// Where the backup of a parked record lies.
///
/// # Errors
/// A failure of the store.
pub fn path_of_backup(read: &dyn Read, record: &Record) -> Result<Option<TreePath>> {
    let Some(ino) = read.backup_of(record.key)? else { return Ok(None) };
    let Some(file) = read.node(ino)? else { return Ok(None) };
    let name = read.name_in(file.parent, ino)?;
    name.map(|name| path_of(read, file.parent, &name)).transpose()
}

/// Whether a record is another's, or lies in the state of `home` already.
pub(super) fn is_theirs(record: &Record, home: &Home) -> bool {
    let owned_by_other = record.owner.is_some() && record.owner != home.owner;
    owned_by_other || record.state == home.kind().state(home.state).name
}

/// Whether a draft of a workspace has the name of the record `id`.
///
/// # Errors
/// A failure of the store.
pub(in crate::engine) fn has_draft(
    read: &dyn Read,
    kind: &Kind,
    workspace: WorkspaceKey,
    id: &RecordId,
) -> Result<bool> {
    let names = kind.names_of(id.as_str());
    for (dir, _) in read.places_of(workspace)? {
        for name in &names {
            if read.lookup(dir, name)?.is_some_and(|node| node.class == Class::Draft) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
