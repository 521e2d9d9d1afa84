//! The directory of a state: what it is called, and whether it is there. Whoever brings something to
//! it makes it (`engine::IntoLane`).

use crate::kind::{Kind, StateIx};
use crate::names::{AgentName, FileName};
use crate::numbers::{Ino, UnixNanos};
use crate::service::{Exit, Failure};
use crate::store::{Read, WorkspaceRow};

/// The first directory of a state that can be named with this owner.
pub(in crate::service) fn names(
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

/// The workspace's own directory, below which the names begin.
pub(in crate::service) fn above(workspace: &WorkspaceRow) -> Result<Ino, Failure> {
    workspace.dir.ok_or_else(|| {
        let reason = format!("the directory of the workspace `{}` is gone", workspace.path);
        Failure::new(Exit::Absent, reason, "make it again")
    })
}

/// The directory `names` below `above`, if it is there.
pub(in crate::service) fn find(
    read: &dyn Read,
    above: Ino,
    names: &[FileName],
) -> Result<Option<Ino>, Failure> {
    let mut at = above;
    for name in names {
        let Some(node) = read.lookup(at, name)? else { return Ok(None) };
        at = node.ino;
    }
    Ok(Some(at))
}
