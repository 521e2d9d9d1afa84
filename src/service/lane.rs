//! The directory of a state, made where it is missing.

use crate::engine::{Create, NewContent};
use crate::kind::{Kind, StateIx};
use crate::names::{AgentName, FileName};
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::Rule;
use crate::store::WorkspaceRow;

use super::{Caller, Exit, Failure, Service};

/// The first directory of a state that can be named with this owner.
pub(super) fn names(
    kind: &Kind,
    state: StateIx,
    owner: Option<&AgentName>,
    now: UnixNanos,
) -> Result<Vec<FileName>, Failure> {
    let dirs = &kind.state(state).dirs;
    dirs.iter().find_map(|dir| dir.fill(owner, now)).ok_or_else(|| {
        let shown = kind.state(state).shown(None);
        let remedy = "say whose with --agent";
        Failure::new(Exit::Usage, format!("{shown} needs an owner, and there is none"), remedy)
    })
}

/// The directory `names` below a workspace; what is missing of it is made, with the permissions
/// of the directory above it.
pub(super) fn make(
    service: &Service,
    caller: &Caller,
    workspace: &WorkspaceRow,
    names: &[FileName],
) -> Result<Ino, Failure> {
    let mut at = workspace.dir.ok_or_else(|| {
        let reason = format!("the directory of the workspace `{}` is gone", workspace.path);
        Failure::new(Exit::Absent, reason, "make it again")
    })?;
    for name in names {
        at = step(service, caller, at, name)?;
    }
    Ok(at)
}

fn step(service: &Service, caller: &Caller, parent: Ino, name: &FileName) -> Result<Ino, Failure> {
    let look = || service.read(|read| Ok((read.lookup(parent, name)?, read.node(parent)?)));
    let (found, above) = look()?;
    if let Some(node) = found {
        return Ok(node.ino);
    }
    let mode = above.map_or(0o755, |node| node.mode & 0o777);
    let create =
        Create { parent, name: name.clone(), mode, content: NewContent::Directory, on_draft: None };
    match service.engine.run(caller.context(), create) {
        Ok(node) => Ok(node.ino),
        // Somebody else made it meanwhile.
        Err(refusal) if refusal.rule == Rule::Taken => {
            let (found, _) = look()?;
            found.map(|node| node.ino).ok_or_else(|| refusal.into())
        }
        Err(refusal) => Err(refusal.into()),
    }
}
