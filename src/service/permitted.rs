//! What a user may read who is bound to an agent: at the socket no more than in a mount.
//!
//! What must stay true: it is decided by the modes on the way, as the kernel does for such a user.
//! Deliberately not here: what a mode allows, and what roles do (`engine`).

use crate::engine::mode_allows;
use crate::names::TreePath;
use crate::refusal::Rule;
use crate::store::{Read, Record};

use super::find::node_at;
use super::{Caller, Failure, Service};

/// Whether the caller is an agent by its user id.
pub(super) fn is_bound(service: &Service, caller: &Caller) -> bool {
    service.engine.agents().bound(caller.uid).is_some()
}

/// Whether the caller is told what lies at a path in its sight: no user is asked who is no agent.
pub(super) fn may_read(
    (service, read): (&Service, &dyn Read),
    caller: &Caller,
    path: &TreePath,
) -> Result<bool, Failure> {
    Ok(!is_bound(service, caller) || is_readable(read, caller, path)?)
}

/// The same of a record whose name is its backup's just now.
pub(super) fn may_read_parked(
    (service, read): (&Service, &dyn Read),
    caller: &Caller,
    record: &Record,
) -> Result<bool, Failure> {
    if !is_bound(service, caller) {
        return Ok(true);
    }
    let backup = read.backup_of(record.key)?.map(|ino| read.node(ino)).transpose()?.flatten();
    Ok(backup.is_some_and(|node| mode_allows(&node, (caller.uid, caller.gid), 0o4)))
}

/// Fails unless the caller's user may read what lies at a path in its sight.
pub(super) fn expect_readable(
    read: &dyn Read,
    caller: &Caller,
    path: &TreePath,
) -> Result<(), Failure> {
    if is_readable(read, caller, path)? { Ok(()) } else { Err(not_theirs(caller, path)) }
}

/// Where nothing lies there is nothing to hide.
fn is_readable(read: &dyn Read, caller: &Caller, path: &TreePath) -> Result<bool, Failure> {
    let names = path.names();
    let top = caller.part.root().names().len();
    let mut at = node_at(read, caller.part.root())?;
    for name in names.iter().skip(top) {
        let Some(dir) = at.filter(|dir| mode_allows(dir, (caller.uid, caller.gid), 0o1)) else {
            return Ok(false);
        };
        at = read.lookup(dir.ino, name)?;
    }
    Ok(at.is_none_or(|node| mode_allows(&node, (caller.uid, caller.gid), 0o4)))
}

/// Fails unless what lies at a path in the caller's sight is a file of its user's.
pub(super) fn expect_own(read: &dyn Read, caller: &Caller, path: &TreePath) -> Result<(), Failure> {
    expect_readable(read, caller, path)?;
    match node_at(read, path)? {
        Some(node) if node.uid == caller.uid => Ok(()),
        _ => {
            let path = caller.part.show(path);
            let reason = format!("`{path}` is not user {}'s", caller.uid);
            Err(Failure::by(Rule::Forbidden, reason, "ask its owner, or whoever runs the store"))
        }
    }
}

/// Fails for versions of the past, which in a mount are the daemon's user's alone.
pub(super) fn not_the_past(caller: &Caller) -> Failure {
    let reason = format!("old versions are not for user {}, an agent", caller.uid);
    Failure::by(Rule::Forbidden, reason, "ask whoever runs the store")
}

/// Fails for what its mode closes to the caller.
pub(super) fn not_theirs(caller: &Caller, path: &TreePath) -> Failure {
    let path = caller.part.show(path);
    let reason = format!("user {} may not read `{path}`", caller.uid);
    Failure::by(Rule::Forbidden, reason, "ask its owner to allow it (`chmod`)")
}
