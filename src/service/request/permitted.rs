//! What a user who is bound to an agent may read and take by a command: no more at the socket than
//! in a mount.
//!
//! What must stay true: it is decided by the modes on the way, as the kernel does for such a user.
//! Deliberately not here: what a mode allows, and what roles do (`engine`).

use crate::engine::node_at;
use crate::engine::{forbids_taking, mode_allows};
use crate::names::TreePath;
use crate::refusal::Rule;
use crate::service::find::FoundRecord;
use crate::service::{Caller, Failure, Service};
use crate::store::{Node, Read, Record, Standing};

/// Whether the caller is an agent by its user id.
pub(in crate::service) fn is_bound(service: &Service, caller: &Caller) -> bool {
    service.engine.agents().bound(caller.uid).is_some()
}

/// Fails where the caller asks as from a part of the tree to which its user has no way, neither from the root nor from
/// what mounts show that others may use (`shown`): which part that is the caller says itself.
///
/// # Errors
/// Then, and for a failure of the store.
pub fn expect_way_to_part(
    service: &Service,
    caller: &Caller,
    shown: impl FnOnce() -> Vec<TreePath>,
) -> Result<(), Failure> {
    let part = caller.part.root();
    if !is_bound(service, caller) || caller.part.is_whole() {
        return Ok(());
    }
    let leads_from = |from: &[TreePath]| {
        service.read(|read| {
            for from in from {
                let is_above = part.below(from).is_some();
                if is_above && reach_from(read, caller, (from, part))?.is_open() {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    };
    if leads_from(&[TreePath::root()])? || leads_from(&shown())? {
        return Ok(());
    }
    let reason = format!("user {} may not pass to `{part}`", caller.uid);
    let remedy = "ask its owner to allow it (`chmod`), or whoever runs the store for a mount of it that others may use";
    Err(Failure::by(Rule::Forbidden, reason, remedy))
}

/// Whether the caller is told what lies at a path in its sight: no user is asked who is no agent.
pub(in crate::service) fn may_read(
    (service, read): (&Service, &dyn Read),
    caller: &Caller,
    path: &TreePath,
) -> Result<bool, Failure> {
    Ok(!is_bound(service, caller) || is_readable(read, caller, path)?)
}

/// The same of a record whose name is its backup's just now.
pub(in crate::service) fn may_read_parked(
    (service, read): (&Service, &dyn Read),
    caller: &Caller,
    record: &Record,
) -> Result<bool, Failure> {
    if !is_bound(service, caller) {
        return Ok(true);
    }
    let backup = read.backup_of(record.key)?.map(|ino| read.node(ino)).transpose()?.flatten();
    Ok(backup.is_some_and(|node| mode_allows(&node, caller.who(), 0o4)))
}

/// Fails unless the caller's user may read what lies at a path in its sight.
pub(in crate::service) fn expect_readable(
    read: &dyn Read,
    caller: &Caller,
    path: &TreePath,
) -> Result<(), Failure> {
    if is_readable(read, caller, path)? { Ok(()) } else { Err(not_theirs(caller, path)) }
}

/// Fails unless the caller's user may take a record that is not its own, as `mv` in a mount would: it would read it
/// then.
pub(in crate::service) fn expect_takeable(
    (service, read): (&Service, &dyn Read),
    caller: &Caller,
    found: &FoundRecord,
) -> Result<(), Failure> {
    let is_own = found.record.owner.as_ref() == Some(&caller.name);
    let (Some(path), Standing::Live { ino, dir, .. }) = (&found.path, &found.record.standing)
    else {
        return Ok(());
    };
    if is_own || !is_bound(service, caller) {
        return Ok(());
    }
    if is_closed(read, caller, path)? {
        return Err(not_theirs(caller, path));
    }
    let above = path.split_last().map(|(above, _)| above).unwrap_or_default();
    match forbids_taking(read, &caller.context(), true, (*dir, *ino, &above))? {
        Some(refusal) => Err(refusal.into()),
        None => Ok(()),
    }
}

/// Where nothing lies there is nothing to hide.
fn is_readable(read: &dyn Read, caller: &Caller, path: &TreePath) -> Result<bool, Failure> {
    Ok(match reach(read, caller, path)? {
        Reached::Closed => false,
        Reached::Nothing => true,
        Reached::Node(node) => mode_allows(&node, caller.who(), 0o4),
    })
}

/// Whether a directory on the way to a path in the caller's sight lets its user not pass.
pub(in crate::service) fn is_closed(
    read: &dyn Read,
    caller: &Caller,
    path: &TreePath,
) -> Result<bool, Failure> {
    Ok(!reach(read, caller, path)?.is_open())
}

/// What a user comes to who goes to a path.
enum Reached {
    /// A directory on the way lets it not pass.
    Closed,
    /// Nothing lies there.
    Nothing,
    Node(Node),
}

impl Reached {
    fn is_open(&self) -> bool {
        !matches!(self, Reached::Closed)
    }
}

/// What lies at a path in the caller's sight.
fn reach(read: &dyn Read, caller: &Caller, path: &TreePath) -> Result<Reached, Failure> {
    reach_from(read, caller, (caller.part.root(), path))
}

/// The same of a path below `from`, at which its user is already. A directory that is missing on the way lets nobody
/// pass: who waits at a part would be in it by the time when somebody makes and closes what lies above.
fn reach_from(
    read: &dyn Read,
    caller: &Caller,
    (from, path): (&TreePath, &TreePath),
) -> Result<Reached, Failure> {
    let names = path.names();
    let top = from.names().len();
    let mut at = node_at(read, from)?;
    for name in names.iter().skip(top) {
        let Some(dir) = at.filter(|dir| mode_allows(dir, caller.who(), 0o1)) else {
            return Ok(Reached::Closed);
        };
        at = read.lookup(dir.ino, name)?;
    }
    Ok(at.map_or(Reached::Nothing, Reached::Node))
}

/// Fails unless what lies at a path in the caller's sight is a file of its user's.
pub(in crate::service) fn expect_own(
    read: &dyn Read,
    caller: &Caller,
    path: &TreePath,
) -> Result<(), Failure> {
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
pub(in crate::service) fn not_the_past(caller: &Caller) -> Failure {
    let reason = format!("old versions are not for user {}, an agent", caller.uid);
    Failure::by(Rule::Forbidden, reason, "ask whoever runs the store")
}

/// Fails for what its mode closes to the caller.
pub(in crate::service) fn not_theirs(caller: &Caller, path: &TreePath) -> Failure {
    let path = caller.part.show(path);
    let reason = format!("user {} may not read `{path}`", caller.uid);
    Failure::by(Rule::Forbidden, reason, "ask its owner to allow it (`chmod`)")
}
