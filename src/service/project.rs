//! `project new`: a new project's directories in the scratchpad.
//!
//! What must stay true: where many ask at once each gets an id of its own, because an id is taken
//! by making its directories, none of which was there; a project has all of them or is not there.
//! Other layouts are just directories, and no concern of this.

use serde::{Deserialize, Serialize};

use crate::engine::MakeDirs;
use crate::names::{FileName, ShownPath, TreePath};
use crate::refusal::{Refusal, Rule};

use super::request::part::tree_path;
use super::{Caller, Exit, Failure, ProjectNewArgs, Service};
use crate::engine::node_at;

/// The scratchpad, and its parts that have a directory for each project. In the last lies more than files.
pub const SCRATCHPAD: &str = "scratchpad";
/// See [`SCRATCHPAD`].
pub const PARTS: [&str; 4] = ["info", "documents", "issues", "progress"];
/// The directories of `progress/<id>`.
const PROGRESS: [&str; 3] = ["work_orders", "results", "reviews"];

/// Digits of a name that counts as a number: a date with its time, also in nanoseconds, fits, and so does
/// whatever is counted from it. What is longer is nobody's count.
const DIGITS_MAX: usize = 18;

/// Ids that are tried before somebody is told that there are too many.
const TRIES_MAX: u64 = 10_000;

/// See [`super::Request::ProjectNew`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectReport {
    /// The project's id.
    pub project: ShownPath,
    /// The directories that were made.
    pub made: Vec<ShownPath>,
}

impl ProjectReport {
    /// The id alone, so that a script has it: `id=$(workfs project new)`.
    #[must_use]
    pub fn human(&self) -> String {
        self.project.to_string()
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
    let parts: Result<Vec<_>, _> =
        PARTS.iter().map(|part| tree_path(&format!("{SCRATCHPAD}/{part}"))).collect();
    let parts = parts?;
    let (id, made) = match &args.id {
        Some(id) => {
            let id = FileName::new(id).map_err(|why| {
                let shown = crate::names::printable(id.as_bytes());
                let remedy = "give a name of one directory";
                Failure::new(Exit::Usage, format!("`{shown}` is no project id: {why}"), remedy)
            })?;
            let made = make(service, caller, &parts, &id)?;
            (id, made)
        }
        None => take_next(service, caller, &parts)?,
    };
    let made = made.iter().map(ShownPath::from).collect();
    Ok(ProjectReport { project: (&id).into(), made })
}

/// Takes the next number above all that any part has.
fn take_next(
    service: &Service,
    caller: &Caller,
    parts: &[TreePath],
) -> Result<(FileName, Vec<TreePath>), Failure> {
    let mut last = 0;
    service.read(|read| {
        for part in parts {
            let Some(dir) = node_at(read, part)? else { continue };
            read.list(dir.ino, None, &mut |(name, _)| {
                last = last.max(name.as_str().and_then(number).unwrap_or(0));
                true
            })?;
        }
        Ok(())
    })?;
    for number in last + 1..=last + TRIES_MAX {
        let id = tree_path(&format!("{number:03}"))?.names()[0].clone();
        match make(service, caller, parts, &id) {
            Ok(made) => return Ok((id, made)),
            // Somebody else was faster.
            Err(refusal) if refusal.rule == Rule::Taken => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Err(Failure::new(Exit::Failed, "no number is free", "name an id: `workfs project new ID`"))
}

/// The number that a name is, if it counts as one.
fn number(name: &str) -> Option<u64> {
    let counts = name.len() <= DIGITS_MAX && name.bytes().all(|byte| byte.is_ascii_digit());
    if counts { name.parse().ok() } else { None }
}

/// Makes all directories of a project, or none.
fn make(
    service: &Service,
    caller: &Caller,
    parts: &[TreePath],
    id: &FileName,
) -> Result<Vec<TreePath>, Refusal> {
    let own: Vec<TreePath> = parts.iter().map(|part| part.join(id.clone())).collect();
    let progress = own.last().into_iter();
    let inner = progress.flat_map(|path| {
        let names = PROGRESS.iter().filter_map(|name| FileName::new(name).ok());
        names.map(|name| path.join(name))
    });
    let inner = inner.collect();
    service.engine.run(caller.context(), MakeDirs { new: own, inner })
}
