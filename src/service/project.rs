//! `project new`: a new project's directories in the scratchpad.
//!
//! What must stay true: of many that ask at once each gets an id of its own, because making
//! `info/<id>` is what takes it. Other layouts are just directories, and nobody's business.

use serde::{Deserialize, Serialize};

use crate::engine::{Create, NewContent};
use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::Rule;
use crate::store::{Node, NodeType};

use super::find::{ROOT, node_at, tree_path};
use super::{Caller, Exit, Failure, ProjectNewArgs, Service};

/// The scratchpad, and its parts that have a directory for each project. The first takes the id.
pub const SCRATCHPAD: &str = "scratchpad";
/// See [`SCRATCHPAD`].
pub const PARTS: [&str; 4] = ["info", "documents", "issues", "progress"];
/// The directories of `progress/<id>`.
const PROGRESS: [&str; 3] = ["work_orders", "results", "reviews"];

/// Ids that are tried before somebody is told that there are too many.
const TRIES_MAX: u32 = 10_000;

/// See [`super::Request::ProjectNew`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectReport {
    /// The project's id.
    pub project: String,
    /// The directories that were made.
    pub made: Vec<String>,
}

impl ProjectReport {
    /// The id alone, so that a script has it: `id=$(workfs project new)`.
    #[must_use]
    pub fn human(&self) -> String {
        self.project.clone()
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Makes a project's directories.
///
/// # Errors
/// An id that is taken or no file name, or a refusal.
pub(super) fn new(
    service: &Service,
    caller: &Caller,
    args: &ProjectNewArgs,
) -> Result<ProjectReport, Failure> {
    let mut made = Vec::new();
    let mut parts = Vec::new();
    for part in PARTS {
        let path = tree_path(&format!("{SCRATCHPAD}/{part}"))?;
        parts.push((path.clone(), directories(service, caller, &path)?));
    }
    let (info, dir) = &parts[0];
    let id = match &args.id {
        Some(id) => {
            let id = FileName::new(id).map_err(|why| {
                let shown = crate::names::printable(id.as_bytes());
                let remedy = "give a name of one directory";
                Failure::new(Exit::Usage, format!("`{shown}` is no project id: {why}"), remedy)
            })?;
            create(service, caller, *dir, &id)?;
            id
        }
        None => take_next(service, caller, &parts)?,
    };
    made.push(info.join(id.clone()).to_string());
    for (path, dir) in &parts[1..] {
        let (ino, is_new) = directory(service, caller, *dir, &id)?;
        let path = path.join(id.clone());
        made.extend(is_new.then(|| path.to_string()));
        if path.names().get(1).map(FileName::as_bytes) == Some(b"progress") {
            for name in PROGRESS {
                let name = tree_path(name)?.names()[0].clone();
                let (_, is_new) = directory(service, caller, ino, &name)?;
                made.extend(is_new.then(|| path.join(name).to_string()));
            }
        }
    }
    Ok(ProjectReport { project: id.to_string(), made })
}

/// Takes the next number above all that any part has.
fn take_next(
    service: &Service,
    caller: &Caller,
    parts: &[(TreePath, Ino)],
) -> Result<FileName, Failure> {
    let mut last = 0;
    service.read(|read| {
        for (_, dir) in parts {
            read.list(*dir, None, &mut |(name, _)| {
                let number = name.as_str().and_then(|name| name.parse::<u32>().ok());
                last = last.max(number.unwrap_or(0));
                true
            })?;
        }
        Ok(())
    })?;
    for number in last.saturating_add(1)..=last.saturating_add(TRIES_MAX) {
        let name = tree_path(&format!("{number:03}"))?.names()[0].clone();
        match create(service, caller, parts[0].1, &name) {
            Ok(_) => return Ok(name),
            // Somebody else was faster.
            Err(failure) if failure.rule == Some(Rule::Taken) => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::new(Exit::Failed, "no number is free", "name an id: `workfs project new ID`"))
}

/// Makes a directory; it must not be there.
fn create(
    service: &Service,
    caller: &Caller,
    parent: Ino,
    name: &FileName,
) -> Result<Ino, Failure> {
    let content = NewContent::Directory;
    let create = Create { parent, name: name.clone(), mode: 0o755, content, on_draft: None };
    Ok(service.engine.run(caller.context(), create)?.ino)
}

/// Makes a directory where there is none; says whether it was made.
fn directory(
    service: &Service,
    caller: &Caller,
    parent: Ino,
    name: &FileName,
) -> Result<(Ino, bool), Failure> {
    let there = |read: &dyn crate::store::Read| Ok(read.lookup(parent, name)?);
    let known = |node: Node| (node.node_type == NodeType::Directory).then_some((node.ino, false));
    if let Some(found) = service.read(there)?.and_then(known) {
        return Ok(found);
    }
    match create(service, caller, parent, name) {
        Ok(ino) => Ok((ino, true)),
        // Somebody else was faster.
        Err(failure) => service.read(there)?.and_then(known).ok_or(failure),
    }
}

/// Makes a directory and those above it.
fn directories(service: &Service, caller: &Caller, path: &TreePath) -> Result<Ino, Failure> {
    if let Some(node) = service.read(|read| node_at(read, path))? {
        return Ok(node.ino);
    }
    let mut at = ROOT;
    for name in path.names() {
        (at, _) = directory(service, caller, at, name)?;
    }
    Ok(at)
}
