//! What `.workfs/hold/` and `.workfs/leases` list and say.
//!
//! What must stay true: a mount is told of what it shows. Deliberately not here: what opening one does (`handles/hold`).

use workfs_mount::ROOT;

use super::{Computed, Viewer};
use crate::engine::{path_below, path_of, told_of_return};
use crate::names::{AgentName, Dentry, FileName, RecordId};
use crate::numbers::{Ino, RecordKey};
use crate::store::{LeaseRow, Read, Record, Result, Standing};

/// A record that somebody has for a time, with its lease, where it lies in the part of the tree that is
/// `root` and below.
pub(in crate::tree) fn leased(
    read: &dyn Read,
    root: Ino,
    key: RecordKey,
) -> Result<Option<(Record, LeaseRow)>> {
    let Some((record, row)) = read.record(key)?.zip(read.lease(key)?) else { return Ok(None) };
    let (Standing::Live { dir, .. } | Standing::Parked { dir }) = &record.standing else {
        return Ok(None);
    };
    // That of a parked record may be gone.
    let is_shown = root == ROOT || path_below(read, *dir, root)?.is_some();
    Ok((is_shown && record.owner.is_some()).then_some((record, row)))
}

/// The leased record of that id, in whichever workspace it is that a mount with this root shows; of
/// several that of `actor`, since each workspace has its own ids.
pub(in crate::tree) fn find(
    read: &dyn Read,
    Dentry { dir: root, name }: Dentry<&FileName>,
    actor: Option<&AgentName>,
) -> Result<Option<Computed>> {
    let Some(id) = name.as_str().and_then(|name| RecordId::new(name).ok()) else {
        return Ok(None);
    };
    let mut found = None;
    for workspace in read.workspaces()? {
        let Some(record) = read.record_named(workspace.key, &id)? else { continue };
        let Some((record, _)) = leased(read, root, record.key)? else { continue };
        let hold = Some(Computed::Hold(record.key));
        if actor.is_some() && record.owner.as_ref() == actor {
            return Ok(hold);
        }
        found = found.or(hold);
    }
    Ok(found)
}

/// The records that the viewer has, by which they can be held.
pub(super) fn list(read: &dyn Read, viewer: &Viewer) -> Result<Vec<(FileName, Computed)>> {
    let mut own = Vec::new();
    read.leases(&mut |(row, owner)| {
        if owner == viewer.actor {
            own.push(row.record);
        }
        true
    })?;
    let mut names = Vec::new();
    for key in own {
        let shown = leased(read, viewer.root, key)?.filter(|(_, row)| !viewer.ends.has(row));
        let id = shown.and_then(|(record, _)| FileName::new(record.id.as_str()).ok());
        names.extend(id.map(|name| (name, Computed::Hold(key))));
    }
    Ok(names)
}

/// What `.workfs/hold/<id>` says.
pub(in crate::tree) fn render(read: &dyn Read, viewer: &Viewer, key: RecordKey) -> Result<String> {
    let Some((record, row)) = leased(read, viewer.root, key)? else {
        return Ok("nobody has it any more\n".to_owned());
    };
    Ok(line(read, viewer, &record, &row)?.unwrap_or_default())
}

/// What `.workfs/leases` says: a line for each, the first to end first, then those that are over and
/// whose records cannot go back yet.
pub(super) fn render_all(read: &dyn Read, viewer: &Viewer) -> Result<String> {
    let mut rows = Vec::new();
    read.leases(&mut |(row, _)| {
        rows.push(row);
        true
    })?;
    rows.sort_by_key(|row| viewer.lease_clock.end_of(row));
    let mut out = String::new();
    for row in rows {
        if let Some(record) = read.record(row.record)?
            && let Some(line) = line(read, viewer, &record, &row)?
        {
            out.push_str(&line);
        }
    }
    for record in read.returns()? {
        if let Some(record) = read.record(record)?
            && let Some(told) = told_of_return(read, &record)?
        {
            out.push_str(&over(read, &record, &told)?);
        }
    }
    if out.is_empty() {
        out.push_str("nobody has a lease\n");
    }
    Ok(out)
}

/// What is said of a record that cannot go back yet.
fn over(read: &dyn Read, record: &Record, told: &str) -> Result<String> {
    let owner = record.owner.as_ref().map_or("nobody", |owner| owner.as_str());
    Ok(format!("over {owner}'s lease of {}: {told}\n", place(read, record)?))
}

/// Where a record lies; one whose name went to a backup is called by its id.
fn place(read: &dyn Read, record: &Record) -> Result<String> {
    Ok(match &record.standing {
        Standing::Live { dir, name, .. } => path_of(read, *dir, name)?.to_string(),
        Standing::Parked { .. } | Standing::Gone => record.id.to_string(),
    })
}

fn line(
    read: &dyn Read,
    viewer: &Viewer,
    record: &Record,
    row: &LeaseRow,
) -> Result<Option<String>> {
    let Some(owner) = &record.owner else { return Ok(None) };
    let place = place(read, record)?;
    if let Some(told) = viewer.ends.told(record) {
        return Ok(Some(over(read, record, told)?));
    }
    if !row.runs() {
        let told = "it keeps it, and has a lease again when it is heard of";
        return Ok(Some(over(read, record, told)?));
    }
    let clock = &viewer.lease_clock;
    let until = clock.shown(clock.end_of(row), viewer.now).rfc3339_seconds();
    Ok(Some(format!("{until} {owner} attempt {} {place}\n", row.attempt)))
}
