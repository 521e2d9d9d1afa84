//! Records, drafts and places: each record in one place, each version with its event.

use std::collections::HashSet;

use serde_json::Value;

use crate::engine::path_of_dir;
use crate::ledger::Hash;
use crate::names::{FileName, TreePath};
use crate::numbers::{G, Ino, Version};
use crate::store::{Class, Read, Record, Standing, When, WorkspaceRow};

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
    let mut files: HashSet<Ino> = HashSet::new();
    for workspace in read.workspaces()? {
        places(read, &workspace, nodes, check)?;
        let mut records = Vec::new();
        read.records(workspace.key, &mut |record| {
            records.push(record);
            true
        })?;
        let total = records.len() as u64;
        for (nth, record) in records.iter().enumerate() {
            if !check.tick(nth as u64, total, "records") {
                return Ok(());
            }
            check.report.records += 1;
            let mut one = One { read, workspace: &workspace, record, check };
            one.standing(nodes, &mut files)?;
            one.versions()?;
            one.events(last);
            one.order()?;
            one.lease()?;
        }
    }
    for seen in nodes.values().filter(|seen| seen.names > 0) {
        let ino = seen.node.ino;
        match seen.node.class {
            Class::Record if !files.contains(&ino) => {
                check.problem(format!("node {}", ino.0), "is a record's file of no record");
            }
            Class::Draft => draft(read, ino, check)?,
            _ => {}
        }
    }
    Ok(())
}

/// A workspace's directories lie where the rows say.
fn places(
    read: &dyn Read,
    workspace: &WorkspaceRow,
    nodes: &Nodes,
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    if let Some(dir) = workspace.dir {
        let path = path_of_dir(read, dir)?;
        if !nodes.contains_key(&dir) || path != workspace.path {
            let what = format!("its directory is {path}");
            check.problem(format!("workspace {}", workspace.path), what);
        }
    }
    for (dir, place) in read.places_of(workspace.key)? {
        let path = path_of_dir(read, dir)?;
        let wanted: TreePath = place.path.names().iter().chain(&place.relative).cloned().collect();
        let there = nodes.get(&dir).is_some_and(|seen| seen.node.nlink > 0);
        if !there || path != wanted {
            check.problem(shown(read, dir), format!("is noted as {wanted}"));
        }
    }
    Ok(())
}

fn draft(read: &dyn Read, ino: Ino, check: &mut Check<'_>) -> Result<(), Failure> {
    check.report.drafts += 1;
    let thing = format!("node {}", ino.0);
    let Some(draft) = read.draft(ino)? else {
        check.problem(thing, "is a draft without content");
        return Ok(());
    };
    let there = read.lookup(draft.dir, &draft.name)?;
    match there {
        Some(node) if node.ino == ino => {
            if node.size != draft.content.len() as u64 {
                check.problem(thing, "is a draft of another size than its content");
            }
        }
        _ => {
            check.problem(thing, format!("is the draft {}, whose name leads elsewhere", draft.name))
        }
    }
    Ok(())
}

struct One<'r, 'c, 's> {
    read: &'r dyn Read,
    workspace: &'r WorkspaceRow,
    record: &'r Record,
    check: &'c mut Check<'s>,
}

impl One<'_, '_, '_> {
    fn problem(&mut self, what: impl Into<String>) {
        let thing = format!("record {}:{}", self.workspace.path, self.record.id);
        self.check.problem(thing, what);
    }

    fn standing(&mut self, nodes: &Nodes, files: &mut HashSet<Ino>) -> Result<(), Failure> {
        match &self.record.standing {
            Standing::Live { ino, dir, name, .. } => self.live(nodes, files, *ino, (*dir, name)),
            Standing::Parked { dir } => self.parked(nodes, *dir),
            Standing::Gone => Ok(()),
        }
    }

    /// A parked record's backup lies where the record lay. Programs before schema 12 noted none.
    fn parked(&mut self, nodes: &Nodes, dir: Ino) -> Result<(), Failure> {
        let Some(ino) = self.read.backup_of(self.record.key)? else { return Ok(()) };
        match nodes.get(&ino).filter(|seen| seen.names > 0) {
            None => self.problem(format!("is parked, and its backup, node {}, is gone", ino.0)),
            Some(seen) if seen.node.class != Class::Plain => {
                self.problem(format!("its backup, node {}, is not a plain file", ino.0));
            }
            Some(seen) if seen.node.parent != dir => {
                self.problem(format!("its backup, node {}, does not lie where it lay", ino.0));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// A living record is in exactly one place, of its workspace.
    fn live(
        &mut self,
        nodes: &Nodes,
        files: &mut HashSet<Ino>,
        ino: Ino,
        (dir, name): (Ino, &FileName),
    ) -> Result<(), Failure> {
        if !files.insert(ino) {
            self.problem(format!("shares its file, node {}, with another record", ino.0));
        }
        match nodes.get(&ino) {
            None => self.problem(format!("its file, node {}, does not exist", ino.0)),
            Some(seen) if seen.node.class != Class::Record => {
                self.problem(format!("its file, node {}, is not marked as a record's", ino.0));
            }
            Some(_) => {}
        }
        match self.read.lookup(dir, name)? {
            Some(node) if node.ino == ino => {}
            _ => self.problem(format!("its name {name} does not lead to its file")),
        }
        match self.read.place(dir)? {
            Some(place) if place.workspace == self.record.workspace => {}
            _ => self.problem("lies outside its workspace"),
        }
        let size = nodes.get(&ino).map(|seen| seen.node.size);
        let version = self.read.version(self.record.version_g)?;
        if let (Some(size), Some(version)) = (size, version)
            && size != version.content.len() as u64
        {
            self.problem("its file has another size than its content");
        }
        Ok(())
    }

    /// The versions go down to the first, each with the content that its event names.
    fn versions(&mut self) -> Result<(), Failure> {
        let mut at = self.record.version_g;
        let mut wanted = self.record.version;
        while wanted > Version(0) {
            let Some(row) = self.read.version(at)? else {
                self.problem(format!("version {wanted}, made by event {at}, is missing"));
                return Ok(());
            };
            self.check.report.versions += 1;
            if row.record != self.record.key || row.version != wanted {
                self.problem(format!("event {at} made another version than {wanted}"));
                return Ok(());
            }
            self.content(at, wanted, &Hash::of(&row.content).to_string())?;
            at = row.before_g;
            wanted = Version(wanted.0 - 1);
        }
        if at != G(0) {
            self.problem(format!("version 1 points to event {at} as one before it"));
        }
        Ok(())
    }

    fn content(&mut self, g: G, version: Version, sha256: &str) -> Result<(), Failure> {
        let Some(row) = self.read.event(g)? else { return Ok(()) };
        let event: Value = serde_json::from_str(&row.line).unwrap_or_default();
        let said = event.pointer("/payload/content_sha256").and_then(Value::as_str);
        if said != Some(sha256) {
            self.problem(format!("version {version} is not what event {g} says it is"));
        }
        Ok(())
    }

    /// Only what somebody has is leased, and under the claim that it has.
    fn lease(&mut self) -> Result<(), Failure> {
        let Some(row) = self.read.lease(self.record.key)? else { return Ok(()) };
        let is_owned = self.record.owner.is_some() && self.record.standing != Standing::Gone;
        if !is_owned || row.attempt != self.record.attempt || self.record.is_lapsed() {
            self.problem(format!("has a lease of attempt {}, which is over", row.attempt));
        }
        Ok(())
    }

    /// How it stands in the order of work is what the edges and its own row say.
    fn order(&mut self) -> Result<(), Failure> {
        let Record { workspace, id, readiness, .. } = self.record;
        let open = self.read.open_dependencies(*workspace, id)?;
        if readiness.open != open {
            self.problem(format!("is noted with {} open dependencies, not {open}", readiness.open));
        }
        if readiness.when == When::Now && (open > 0 || !self.record.is_valid()) {
            self.problem("is noted as ready and is not");
        }
        Ok(())
    }

    /// Its last event is the ledger's last event of it.
    fn events(&mut self, last: &LastEvents) {
        let path = self.workspace.path.to_string();
        let known = last.of(&path, self.record.id.as_str());
        if known != Some(self.record.last_g) {
            let known = known.map_or_else(|| "none".to_owned(), |g| g.to_string());
            let said = self.record.last_g;
            self.problem(format!("says event {said} is its last; the ledger says {known}"));
        }
    }
}
