//! `.workfs/history/`: versions as files, `<path…>/<g>` of plain files and
//! `<workspace>/<id>/<g>.yaml` of records (or with their kind's first extension).
//!
//! What must stay true: only names that lead to a version are shown. Deliberately not here: the numbers of its
//! directories (`pasts`).

use std::collections::BTreeMap;

use crate::config::Config;
use crate::engine::{Past, PastNames, past_at, past_record, record_version_name};
use crate::names::{FileName, TreePath};
use crate::numbers::{G, UnixNanos};
use crate::store::{Read, Result, earlier};

use super::pasts::PastDir;
use super::{Child, Computed, Listing, Records};

/// What stands for what has a past at a name of a directory of the past.
fn child(dir: PastDir, past: Past) -> Option<Child> {
    match past {
        Past::Record(key) => Some(Child::Node(Computed::History(PastDir::Record(key)))),
        Past::Path => dir.inner(),
    }
}

/// What `name` is in a directory of the past of `path`.
pub(super) fn lookup(
    read: &dyn Read,
    config: &Config,
    (dir, path): (PastDir, &TreePath),
    name: &FileName,
) -> Result<Option<Child>> {
    if let Some(past) = past_at(read, &path.join(name.clone()))? {
        return Ok(child(dir, past));
    }
    // A version has another name than usual only where that is the name of a directory.
    let usual = !name.as_bytes().ends_with(b"~");
    let below = if usual { PastNames::default() } else { PastNames::below(read, path)? };
    let version = version_named(read, config, (path, name), &below)?;
    Ok(version.map(|g| Child::Node(Computed::Past(g))))
}

/// The version that has this name among the [`versions`]. It is found by its number, since whoever looks at all
/// of them would else have each read for each.
fn version_named(
    read: &dyn Read,
    config: &Config,
    (path, name): (&TreePath, &FileName),
    below: &PastNames,
) -> Result<Option<G>> {
    let digits = name.as_str().and_then(|name| name.split(|c: char| !c.is_ascii_digit()).next());
    let Some(g) = digits.and_then(|digits| digits.parse().ok()).map(G) else { return Ok(None) };
    let is_its_name =
        |usual| -> Result<bool> { Ok(below.version_name(read, usual)?.as_ref() == Some(name)) };
    if is_its_name(g.to_string())?
        && let Some(history) = read.history(path)?
    {
        let is_one = read.file_version_of(g)?.is_some_and(|(of, _)| of == history.key);
        return Ok(is_one.then_some(g));
    }
    let Some((above, record)) = past_record(read, path)? else { return Ok(None) };
    let is_one = is_its_name(record_version_name(config, &above, g))?
        && read.version(g)?.is_some_and(|version| version.record == record.key);
    Ok(is_one.then_some(g))
}

/// What a directory of the past of `path` has.
pub(super) fn list(
    read: &dyn Read,
    config: &Config,
    (dir, path): (PastDir, &TreePath),
) -> Result<Listing> {
    let below = PastNames::below(read, path)?;
    let versions = versions(read, config, path, &below)?;
    let paths = below.paths().filter_map(|name| Some((name.clone(), child(dir, Past::Path)?)));
    let versions = versions.into_iter().map(|(name, g)| (name, Child::Node(Computed::Past(g))));
    Ok(Listing {
        named: paths.chain(versions).collect(),
        records: below.records(read)?,
        of: Records::Pasts,
    })
}

/// The files of the versions that `path` has, beside the directories `below`: of the plain file there,
/// or of the record whose id is its last component.
fn versions(
    read: &dyn Read,
    config: &Config,
    path: &TreePath,
    below: &PastNames,
) -> Result<BTreeMap<FileName, G>> {
    let mut found = BTreeMap::new();
    if let Some(history) = read.history(path)? {
        let mut gs = Vec::new();
        read.file_versions(history.key, &mut |version| {
            gs.push(version.g);
            true
        })?;
        for g in gs {
            let name = below.version_name(read, g.to_string())?;
            found.extend(name.map(|name| (name, g)));
        }
    }
    if let Some((above, record)) = past_record(read, path)? {
        let mut at = record.version_g;
        while let Some(row) = read.version(at)? {
            let name = below.version_name(read, record_version_name(config, &above, at))?;
            found.extend(name.map(|name| (name, at)));
            at = earlier(at, row.before_g)?;
        }
    }
    Ok(found)
}

/// When the version that event `g` made was saved.
pub(in crate::tree) fn saved_at(read: &dyn Read, g: G) -> Result<Option<UnixNanos>> {
    match read.file_version_of(g)? {
        Some((_, at)) => Ok(Some(at)),
        None => Ok(read.version(g)?.map(|version| version.at)),
    }
}

/// The content of the version that event `g` made.
pub(super) fn content(read: &dyn Read, g: G) -> Result<Vec<u8>> {
    if let Some(content) = read.file_version(g)? {
        return Ok(content);
    }
    Ok(read.version(g)?.map(|version| version.content).unwrap_or_default())
}
