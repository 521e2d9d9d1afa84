//! Plain files whose changes count: their names lead to them, their versions are what was hashed.

use crate::ledger::Hash;
use crate::names::TreePath;
use crate::store::{FileVersion, History, Read};

use super::super::Failure;
use super::ledger::LastEvents;
use super::tree::Nodes;
use super::{Check, shown};

pub(super) fn check(
    read: &dyn Read,
    nodes: &Nodes,
    last: &LastEvents,
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    let mut names = Vec::new();
    read.all_file_names(&mut |row| {
        names.push(row);
        true
    })?;
    for (ino, dir, name) in names {
        if !nodes.contains_key(&ino) {
            check.problem(format!("node {}", ino.0), "is gone, and its name is noted");
        } else if let Some(found) = read.lookup(dir, &name)?
            && found.ino != ino
        {
            check.problem(shown(read, ino), format!("is noted as {name}, which is another file"));
        }
    }
    let mut histories = Vec::new();
    read.histories(&TreePath::root(), None, &mut |history| {
        histories.push(history);
        true
    })?;
    let total = histories.len() as u64;
    for (nth, history) in histories.into_iter().enumerate() {
        if !check.tick(nth as u64, total, "histories") {
            break;
        }
        one(read, &history, last, check)?;
    }
    Ok(())
}

fn one(
    read: &dyn Read,
    history: &History,
    last: &LastEvents,
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    let thing = || format!("file {}", history.path);
    if last.of_file(&history.path.to_string()) != Some(history.last_g) {
        check.problem(thing(), format!("event {} is not its last one", history.last_g));
    }
    let mut versions: Vec<FileVersion> = Vec::new();
    read.file_versions(history.key, &mut |version| {
        versions.push(version);
        true
    })?;
    let bytes: u64 = versions.iter().map(|version| version.size).sum();
    if (versions.len() as u64, bytes) != (history.versions, history.bytes) {
        check.problem(thing(), "does not know how many versions are kept of it");
    }
    for version in versions {
        check.report.file_versions += 1;
        let content = read.file_version(version.g)?.unwrap_or_default();
        if Hash::of(&content) != version.sha256 {
            check.problem(thing(), format!("version {} is not what was saved", version.g));
        }
    }
    Ok(())
}
