//! `.workfs/history/`: versions as files, `<path…>/<g>` of plain files and
//! `<workspace>/<id>/<g>.yaml` of records (or with their kind's first extension).
//!
//! What must stay true: only names that lead to a version are shown. Their directories have no
//! rows; each gets a number when it is first seen, for as long as the daemon lives.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;

use crate::config::Config;
use crate::engine::{names_below, record_version_name, version_name};
use crate::names::{FileName, RecordId, TreePath};
use crate::numbers::{G, UnixNanos};
use crate::store::{History, Read, Record, Result, earlier};

use super::computed::Computed;

/// The numbers of the directories below `.workfs/history/`; it has 0 itself.
#[derive(Default)]
pub(super) struct Pasts(Mutex<Numbers>);

#[derive(Default)]
struct Numbers {
    paths: Vec<TreePath>,
    by_path: HashMap<TreePath, u64>,
}

impl Pasts {
    fn number(&self, path: &TreePath) -> u64 {
        if path.names().is_empty() {
            return 0;
        }
        let mut numbers = self.0.lock();
        if let Some(number) = numbers.by_path.get(path) {
            return *number;
        }
        numbers.paths.push(path.clone());
        let number = numbers.paths.len() as u64;
        numbers.by_path.insert(path.clone(), number);
        number
    }

    fn path(&self, number: u64) -> Option<TreePath> {
        if number == 0 {
            return Some(TreePath::root());
        }
        self.0.lock().paths.get(usize::try_from(number - 1).ok()?).cloned()
    }
}

/// What `name` is in the directory with this number.
pub(super) fn lookup(
    read: &dyn Read,
    config: &Config,
    pasts: &Pasts,
    dir: u64,
    name: &FileName,
) -> Result<Option<Computed>> {
    let Some(path) = pasts.path(dir) else { return Ok(None) };
    let child = path.join(name.clone());
    if has_past(read, &child)? {
        return Ok(Some(Computed::History(pasts.number(&child))));
    }
    // A version has another name than usual only where that is the name of a directory.
    let usual = !name.as_bytes().ends_with(b"~");
    let below = if usual { BTreeSet::new() } else { names_below(read, &path)? };
    Ok(version_named(read, config, (&path, name), &below)?.map(Computed::Past))
}

/// The version that has this name among the [`versions`]. It is found by its number, since whoever looks at all
/// of them would else have each read for each.
fn version_named(
    read: &dyn Read,
    config: &Config,
    (path, name): (&TreePath, &FileName),
    below: &BTreeSet<FileName>,
) -> Result<Option<G>> {
    let digits = name.as_str().and_then(|name| name.split(|c: char| !c.is_ascii_digit()).next());
    let Some(g) = digits.and_then(|digits| digits.parse().ok()).map(G) else { return Ok(None) };
    let is_its_name = |usual| version_name(below, usual).as_ref() == Some(name);
    if is_its_name(g.to_string())
        && let Some(history) = read.history(path)?
    {
        let is_one = read.file_version_of(g)?.is_some_and(|(of, _)| of == history.key);
        return Ok(is_one.then_some(g));
    }
    let Some((above, record)) = record_at(read, path)? else { return Ok(None) };
    let is_one = is_its_name(record_version_name(config, &above, g))
        && read.version(g)?.is_some_and(|version| version.record == record.key);
    Ok(is_one.then_some(g))
}

/// Whether `path` is one of the [`names_below`] its directory.
fn has_past(read: &dyn Read, path: &TreePath) -> Result<bool> {
    let has_versions = |history: History| history.versions > 0;
    let mut any = read.history(path)?.is_some_and(has_versions);
    any |= record_at(read, path)?.is_some();
    any |= read.workspaces()?.iter().any(|row| row.path.names().starts_with(path.names()));
    if !any {
        read.histories(path, None, &mut |history| {
            any |= has_versions(history);
            !any
        })?;
    }
    Ok(any)
}

/// The names of the directory with this number.
pub(super) fn list(
    read: &dyn Read,
    config: &Config,
    pasts: &Pasts,
    dir: u64,
) -> Result<Vec<(FileName, Computed)>> {
    let Some(path) = pasts.path(dir) else { return Ok(Vec::new()) };
    let below = names_below(read, &path)?;
    let versions = versions(read, config, &path, &below)?;
    let directory = |name: FileName| {
        let computed = Computed::History(pasts.number(&path.join(name.clone())));
        (name, computed)
    };
    let mut all: Vec<(FileName, Computed)> = below.into_iter().map(directory).collect();
    all.extend(versions.into_iter().map(|(name, g)| (name, Computed::Past(g))));
    Ok(all)
}

/// The files of the versions that `path` has, beside the directories `below`: of the plain file there,
/// or of the record whose id is its last component.
fn versions(
    read: &dyn Read,
    config: &Config,
    path: &TreePath,
    below: &BTreeSet<FileName>,
) -> Result<BTreeMap<FileName, G>> {
    let mut found = BTreeMap::new();
    if let Some(history) = read.history(path)? {
        read.file_versions(history.key, &mut |version| {
            let name = version_name(below, version.g.to_string());
            found.extend(name.map(|name| (name, version.g)));
            true
        })?;
    }
    if let Some((above, record)) = record_at(read, path)? {
        let mut at = record.version_g;
        while let Some(row) = read.version(at)? {
            let name = version_name(below, record_version_name(config, &above, at));
            found.extend(name.map(|name| (name, at)));
            at = earlier(at, row.before_g)?;
        }
    }
    Ok(found)
}

/// The record that `path` names as `<workspace>/<id>`, with its workspace's path.
fn record_at(read: &dyn Read, path: &TreePath) -> Result<Option<(TreePath, Record)>> {
    let Some((above, name)) = path.split_last() else { return Ok(None) };
    let Some(row) = read.workspace_at(&above)? else { return Ok(None) };
    let Some(id) = name.as_str().and_then(|id| RecordId::new(id).ok()) else { return Ok(None) };
    Ok(read.record_named(row.key, &id)?.map(|record| (above, record)))
}

/// When the version that event `g` made was saved.
pub(super) fn saved_at(read: &dyn Read, g: G) -> Result<Option<UnixNanos>> {
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
