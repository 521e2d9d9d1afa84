//! Plain files whose changes count: what is noted is of files that there are, their versions are what
//! was hashed, and so is what lies there; and those that are locks.

use serde_json::Value;

use crate::config::Config;
use crate::engine::path_of_dir;
use crate::ledger::Hash;
use crate::names::{Dentry, TreePath};
use crate::numbers::{G, Ino, LeaseTime, UnixNanos};
use crate::store::{self, FileVersion, History, Read};

use super::super::Failure;
use super::ledger::Ledger;
use super::tree::Nodes;
use super::{Check, Rules, lies, shown_file};

pub(super) fn check(
    read: &dyn Read,
    nodes: &Nodes,
    (ledger, rules): (&Ledger, Option<&Rules<'_>>),
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    let mut names = Vec::new();
    let listed = read.all_file_names(&mut |(ino, ..)| (names.push(ino), true).1);
    check.got(|| "noted names of files".to_owned(), listed)?;
    // Where it leads needs no look: one whose name is another file's by now counts for nothing.
    for ino in names.into_iter().filter(|ino| nodes.is_gone(*ino)) {
        check.problem(format!("node {}", ino.0), "is gone, and its name is noted");
    }
    let (mut there, mut failed) = (0, None);
    let listed = read.histories(&TreePath::root(), None, &mut |history| {
        failed = one(read, (&history, there), (ledger, rules), check).err();
        there += 1;
        failed.is_none() && !check.report.interrupted
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    check.got(|| "histories of files".to_owned(), listed)?;
    if ledger.is_unbroken && ledger.files > there && !check.report.interrupted {
        let what = format!("{there} are there, and events tell of {}", ledger.files);
        check.problem("histories of files", what);
    }
    Ok(())
}

/// Only what the configuration calls a lock has the lease of one: it would vanish at its end.
pub(super) fn locks(
    read: &dyn Read,
    nodes: &Nodes,
    config: &Config,
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    let mut leased = Vec::new();
    let listed = read.leases_from(LeaseTime(0), &mut |(ino, _)| (leased.push(ino), true).1);
    check.got(|| "leases of locks".to_owned(), listed)?;
    for ino in leased {
        // Of what is no file, or has no name, it is told elsewhere.
        let Some(seen) = nodes.get(ino).filter(|seen| seen.names > 0) else { continue };
        let is_lock = is_lock(read, config, (seen.ino, seen.parent));
        if check.got(|| format!("names of node {}", ino.0), is_lock)? == Some(false) {
            let what = "has the lease of a lock, and no name that the configuration calls one";
            check.problem(shown_file(read, (seen.ino, seen.parent)), what);
        }
    }
    Ok(())
}

/// Whether a file has a name that the configuration calls a lock's.
fn is_lock(read: &dyn Read, config: &Config, (file, parent): (Ino, Ino)) -> store::Result<bool> {
    let first = read.name_in(parent, file)?.map(|name| Dentry::of(parent, name));
    for Dentry { dir, name } in first.into_iter().chain(read.further_names(file)?) {
        let scope = config.files().scope(&path_of_dir(read, dir)?);
        if scope.is_some_and(|scope| config.files().lock(&scope, &name).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What an event says; of one that is missing or damaged, which is told of elsewhere, nothing.
fn event(read: &dyn Read, g: G, check: &mut Check<'_>) -> Result<Value, Failure> {
    let event = check.got(|| format!("event {g}"), read.event(g))?.flatten();
    Ok(event.map(|row| row.said()).unwrap_or_default())
}

/// What the event by which a version is called says otherwise.
fn misnoted(version: &FileVersion, event: &Value) -> Option<String> {
    let said = |at: &str| event.pointer(at).and_then(Value::as_str);
    let g = version.g;
    if said("/payload/content_sha256") != Some(version.sha256.to_string().as_str()) {
        return Some(format!("event {g} has not saved the version that is noted as its"));
    }
    let is_of_then = said("/at").and_then(UnixNanos::parse_rfc3339) == Some(version.at);
    (!is_of_then).then(|| format!("version {g} is noted as of another time than event {g}"))
}

fn one(
    read: &dyn Read,
    (history, nth): (&History, u64),
    (ledger, rules): (&Ledger, Option<&Rules<'_>>),
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    let thing = || format!("file {}", history.path);
    let known = ledger.of_file(&history.path.to_string());
    if ledger.is_whole && known != Some(history.last_g) {
        check.problem(thing(), format!("event {} is not its last one", history.last_g));
    }
    let mut versions: Vec<FileVersion> = Vec::new();
    let listed = read.file_versions(history.key, &mut |version| {
        versions.push(version);
        true
    });
    if check.got(thing, listed)?.is_none() {
        return Ok(());
    }
    let bytes: u64 = versions.iter().map(|version| version.size).sum();
    if (versions.len() as u64, bytes) != (history.versions, history.bytes) {
        check.problem(thing(), "does not know how many versions are kept of it");
    }
    let total = ledger.files.max(nth + 1);
    // What the events say is compared only where they are known to be right.
    let last = match ledger.is_unbroken {
        true => event(read, history.last_g, check)?,
        false => Value::Null,
    };
    let is_known = ledger.is_unbroken && known == Some(history.last_g);
    if let Some(rules) = rules.filter(|_| is_known && check.tick(nth, total, "histories")) {
        // The newest comes first.
        lies::check(read, (history, &last, versions.first()), (ledger, rules), check)?;
    }
    for version in versions {
        // Each is read, and may be large.
        if !check.tick(nth, total, "histories") {
            break;
        }
        check.report.file_versions += 1;
        let Some(content) = check.got(thing, read.file_version(version.g))? else { continue };
        if Hash::of(content.unwrap_or_default()) != version.sha256 {
            check.problem(thing(), format!("version {} is not what was saved", version.g));
        } else if ledger.is_unbroken {
            let is_last = version.g == history.last_g;
            let said = if is_last { last.clone() } else { event(read, version.g, check)? };
            if let Some(what) = misnoted(&version, &said) {
                check.problem(thing(), what);
            }
        }
    }
    Ok(())
}
