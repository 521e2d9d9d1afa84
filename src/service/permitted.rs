//! What a user may read who is bound to an agent: at the socket no more than in a mount.
//!
//! What must stay true: it is decided by the modes on the way, as the kernel does for such a user.
//! Whoever runs the store reads all of it. Deliberately not here: what roles allow (`engine`).

use crate::names::TreePath;
use crate::refusal::Rule;
use crate::store::{Node, Read};

use super::find::node_at;
use super::{Caller, Failure, Service};

/// Whether the caller is an agent by its user id.
pub(super) fn is_bound(service: &Service, caller: &Caller) -> bool {
    service.engine.agents().bound(caller.uid).is_some()
}

/// Fails unless the caller's user may read what lies at a path in its sight.
pub(super) fn expect_readable(
    read: &dyn Read,
    caller: &Caller,
    path: &TreePath,
) -> Result<(), Failure> {
    let names = path.names();
    let top = caller.part.root().names().len();
    let mut at = node_at(read, caller.part.root())?;
    for name in names.iter().skip(top) {
        let Some(dir) = at.filter(|dir| allows(dir, caller, 0o1)) else {
            return Err(not_theirs(caller, path));
        };
        at = read.lookup(dir.ino, name)?;
    }
    match at {
        Some(node) if !allows(&node, caller, 0o4) => Err(not_theirs(caller, path)),
        _ => Ok(()),
    }
}

/// Fails for versions of the past, which in a mount are the daemon's user's alone.
pub(super) fn not_the_past(caller: &Caller) -> Failure {
    let reason = format!("old versions are not for user {}, an agent", caller.uid);
    Failure::by(Rule::Forbidden, reason, "ask whoever runs the store")
}

fn not_theirs(caller: &Caller, path: &TreePath) -> Failure {
    let path = caller.part.show(path);
    let reason = format!("user {} may not read `{path}`", caller.uid);
    Failure::by(Rule::Forbidden, reason, "ask its owner to allow it (`chmod`)")
}

/// Whether the node's mode has these bits for the caller. Groups besides its own are not known.
fn allows(node: &Node, caller: &Caller, bits: u32) -> bool {
    let shift = match (node.uid == caller.uid, node.gid == caller.gid) {
        (true, _) => 6,
        (false, true) => 3,
        (false, false) => 0,
    };
    node.mode >> shift & bits == bits
}
