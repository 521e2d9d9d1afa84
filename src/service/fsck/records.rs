//! Records, drafts and places: each record in one place, each version with its event.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::Failure;
use super::ledger::Ledger;
use super::noted::Last;
use super::one::One;
use super::tree::Nodes;
use super::{Check, Rules, shown};
use crate::config::Binding;
use crate::engine::path_of_dir;
use crate::ledger::Hash;
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{G, Ino, UnixNanos, Version, WorkspaceKey};
use crate::store::{Class, Read, Standing, WorkspaceRow};

/// A workspace, and by what its records are judged, where a layout says that.
struct Workspace {
    row: WorkspaceRow,
    binding: Option<Arc<Binding>>,
}

pub(super) fn check(
    read: &dyn Read,
    nodes: &mut Nodes,
    (ledger, rules): (&Ledger, Option<&Rules<'_>>),
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    let mut workspaces: HashMap<WorkspaceKey, Workspace> = HashMap::new();
    let mut rows = Vec::new();
    let listed = read.all_workspaces(&mut |(key, row)| {
        match row {
            Ok(row) => rows.push(row),
            Err(why) => check.illegible(format!("workspace {}", key.0), &why),
        }
        true
    });
    check.got(|| "workspaces".to_owned(), listed)?;
    for row in rows {
        places(read, &row, (&*nodes, ledger), check)?;
        let binding = rules.and_then(|rules| rules.config.bind(&row.path));
        workspaces.insert(row.key, Workspace { row, binding });
    }
    // As many as were numbered: none is ever removed.
    let numbers = check.got(|| "numbers".to_owned(), read.numbers())?.unwrap_or_default();
    let total = numbers.iter().find(|one| one.of == "records").map_or(0, |one| one.highest);
    let (mut failed, mut nth) = (None, 0);
    let listed = read.all_records(&mut |(key, file, row)| {
        let record = match row {
            Ok(record) => record,
            Err(why) => {
                file.map(|file| nodes.take(file));
                check.illegible(format!("record {}", key.0), &why);
                return true;
            }
        };
        if !check.tick(nth, total, "records") {
            return false;
        }
        nth += 1;
        // Of what was removed there is the past alone, which no listing counts.
        check.report.records += u64::from(record.standing != Standing::Gone);
        // What lies in none was told of.
        let Some(workspace) = workspaces.get(&record.workspace) else {
            record.ino().map(|file| nodes.take(file));
            return true;
        };
        let rules = rules.zip(workspace.binding.as_deref());
        let (workspace, record, told) = (&workspace.row, &record, None);
        let mut one = One { read, workspace, record, rules, ledger, told, check };
        failed = one.all(nodes).err();
        failed.is_none()
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    let are_known = check.got(|| "records".to_owned(), listed)?.is_some();
    if check.report.interrupted {
        return Ok(());
    }
    strays(read, check)?;
    for seen in nodes.untaken().filter(|_| are_known) {
        check.problem(format!("node {}", seen.ino.0), "is a record's file of no record");
    }
    let drafts = nodes.all().iter().filter(|seen| seen.names > 0 && seen.class == Class::Draft);
    for seen in drafts {
        draft(read, seen.ino, check)?;
    }
    Ok(())
}

/// What belongs to records that are not there.
fn strays(read: &dyn Read, check: &mut Check<'_>) -> Result<(), Failure> {
    let listed = read.stray_versions(&mut |g| {
        check.problem(format!("the version that event {g} made"), "is of no record");
        true
    });
    check.got(|| "versions".to_owned(), listed)?;
    let listed = read.stray_edges(&mut |(by, other)| {
        let what = "is declared by a record that is not there";
        check.problem(format!("the edge of {by} and {other}"), what);
        true
    });
    check.got(|| "edges".to_owned(), listed)?;
    Ok(())
}

/// A workspace's directories lie where the rows say, and it is of the kind with which it was registered.
fn places(
    read: &dyn Read,
    workspace: &WorkspaceRow,
    (nodes, ledger): (&Nodes, &Ledger),
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    let thing = || format!("workspace {}", workspace.path);
    let path_of = |dir: Ino, check: &mut Check<'_>| {
        check.got(|| format!("path of node {}", dir.0), path_of_dir(read, dir))
    };
    if let Some((g, kind)) = ledger.kind_of(&workspace.path.to_string())
        && *kind != workspace.kind
    {
        let what = format!("is noted as of kind {}, and event {g} as of {kind}", workspace.kind);
        check.problem(thing(), what);
    }
    if let Some(dir) = workspace.dir
        && let Some(path) = path_of(dir, check)?
        && (nodes.is_gone(dir) || path != workspace.path)
    {
        check.problem(thing(), format!("its directory, node {}, is {}", dir.0, named(&path)));
    }
    let places = check.got(thing, read.places_of(workspace.key))?;
    if let Some(places) = &places {
        let is_root = |dir| places.iter().any(|(at, row)| *at == dir && row.relative.is_empty());
        match workspace.dir {
            Some(dir) if !is_root(dir) => {
                check.problem(
                    thing(),
                    format!("its directory, node {}, is not noted as its", dir.0),
                );
            }
            None if !places.is_empty() => {
                let count = places.len();
                check.problem(thing(), format!("is noted as gone, and has {count} directories"));
            }
            _ => {}
        }
    }
    for (dir, place) in places.unwrap_or_default() {
        let Some(path) = path_of(dir, check)? else { continue };
        let wanted: TreePath = place.path.names().iter().chain(&place.relative).cloned().collect();
        let there = match nodes.get(dir) {
            Some(seen) => seen.nlink > 0,
            None => !nodes.is_gone(dir),
        };
        if !there || path != wanted {
            check.problem(shown(read, dir), format!("is noted as {wanted}"));
        }
    }
    Ok(())
}

fn named(path: &TreePath) -> String {
    if path.names().is_empty() { "nowhere".to_owned() } else { path.to_string() }
}

fn draft(read: &dyn Read, ino: Ino, check: &mut Check<'_>) -> Result<(), Failure> {
    check.report.drafts += 1;
    let thing = || format!("node {}", ino.0);
    let Some(draft) = check.got(thing, read.draft(ino))? else { return Ok(()) };
    let Some(draft) = draft else {
        check.problem(thing(), "is a draft without content");
        return Ok(());
    };
    let Some(found) = check.got(thing, read.lookup(draft.dir, &draft.name))? else { return Ok(()) };
    match found.filter(|node| node.ino == ino) {
        Some(node) if node.size == draft.content.len() as u64 => {}
        Some(_) => check.problem(thing(), "is a draft of another size than its content"),
        None => {
            let what = format!("is the draft {}, whose name leads elsewhere", draft.name);
            check.problem(thing(), what);
        }
    }
    Ok(())
}

impl One<'_, '_> {
    fn all(&mut self, nodes: &mut Nodes) -> Result<(), Failure> {
        self.standing(nodes)?;
        let content = self.versions()?;
        let step = self.told()?;
        self.noted(Last { step, content })?;
        self.order()?;
        self.lease()
    }

    fn standing(&mut self, nodes: &mut Nodes) -> Result<(), Failure> {
        match &self.record.standing {
            Standing::Live { ino, dir, name, .. } => self.live(nodes, *ino, Dentry::of(*dir, name)),
            Standing::Parked { dir } => self.parked(nodes, *dir),
            Standing::Gone => Ok(()),
        }
    }

    /// A parked record's backup lies where the record lay. Programs before schema 12 noted none.
    fn parked(&mut self, nodes: &Nodes, dir: Ino) -> Result<(), Failure> {
        let backup = self.read.backup_of(self.record.key);
        let Some(ino) = self.got(backup)?.flatten() else { return Ok(()) };
        match nodes.get(ino).filter(|seen| seen.names > 0) {
            None if nodes.get(ino).is_some() || nodes.is_gone(ino) => {
                self.problem(format!("is parked, and its backup, node {}, is gone", ino.0));
            }
            None => {}
            Some(seen) if seen.class != Class::Plain => {
                self.problem(format!("its backup, node {}, is not a plain file", ino.0));
            }
            Some(seen) if seen.parent != dir => {
                self.problem(format!("its backup, node {}, does not lie where it lay", ino.0));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// A living record is in exactly one place, of its workspace.
    fn live(
        &mut self,
        nodes: &mut Nodes,
        ino: Ino,
        Dentry { dir, name }: Dentry<&FileName>,
    ) -> Result<(), Failure> {
        if !nodes.take(ino) {
            self.problem(format!("shares its file, node {}, with another record", ino.0));
        }
        match nodes.get(ino) {
            None if nodes.is_gone(ino) => {
                self.problem(format!("its file, node {}, does not exist", ino.0));
            }
            Some(seen) if seen.class != Class::Record => {
                self.problem(format!("its file, node {}, is not marked as a record's", ino.0));
            }
            _ => {}
        }
        let mut size = None;
        let found = self.read.lookup(dir, name);
        match self.got(found)? {
            Some(Some(node)) if node.ino == ino => size = Some(node.size),
            Some(_) => self.problem(format!("its name {name} does not lead to its file")),
            None => {}
        }
        let place = self.read.place(dir);
        match self.got(place)? {
            Some(Some(place)) if place.workspace == self.record.workspace => {}
            Some(_) => self.problem("lies outside its workspace"),
            None => {}
        }
        let version = self.read.version(self.record.version_g);
        let version = self.got(version)?.flatten();
        if let (Some(size), Some(version)) = (size, version)
            && size != version.content.len() as u64
        {
            self.problem("its file has another size than its content");
        }
        Ok(())
    }

    /// The versions go down to the first, each with the content that its event names. Gives the newest.
    fn versions(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut newest = None;
        let mut at = self.record.version_g;
        let mut wanted = self.record.version;
        while wanted > Version(0) {
            let row = self.read.version(at);
            let Some(row) = self.got(row)? else { return Ok(newest) };
            let Some(row) = row else {
                self.problem(format!("version {wanted}, made by event {at}, is missing"));
                return Ok(newest);
            };
            self.check.report.versions += 1;
            if row.record != self.record.key || row.version != wanted {
                self.problem(format!("event {at} made another version than {wanted}"));
                return Ok(newest);
            }
            let told = self.event(at)?;
            let then = told.as_ref().and_then(|told| UnixNanos::parse_rfc3339(&told.at));
            if then.is_some_and(|then| then != row.at) {
                self.problem(format!(
                    "version {wanted} is noted as of another time than event {at}"
                ));
            }
            if told.is_some_and(|told| {
                told.payload.content_sha256 != Some(Hash::of(&row.content).to_string())
            }) {
                self.problem(format!("version {wanted} is not what event {at} says it is"));
            } else if wanted == self.record.version {
                newest = Some(row.content);
            }
            at = row.before_g;
            wanted = Version(wanted.0 - 1);
        }
        if at != G(0) {
            self.problem(format!("version 1 points to event {at} as one before it"));
        }
        Ok(newest)
    }
}
