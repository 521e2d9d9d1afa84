//! What a file's mode lets a user do, where the kernel does not ask.
//!
//! The kernel asks for every call in a mount. What is left is commands; names that change without a
//! call that names their directory (a claim by copy, the end of a hold); and what is governed, once
//! a user is bound to an agent: the kernel has one answer for all users, so the bits to write are
//! asked here ([`Bits`]). What must stay true: the answer is the kernel's, except that of the
//! groups of a user in a mount only the first is known.

use crate::config::Config;
use crate::engine::places::governed::{governed, path_of, path_of_dir};
use crate::engine::{Context, Origin, Stop, Turn};
use crate::kind::Place;
use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType, Read, StoreError};

/// What the bits to write, of what is governed, are to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// The kernel asks them as they are stored, or nobody does.
    Kernel,
    /// Nothing: the caller is an agent by its user, and roles and ownership bind it.
    Roles,
    /// The kernel was shown them for those, and the caller is none of them: they are asked here.
    Stored,
}

/// The bits that a kernel is shown where roles decide: who may read may write.
#[must_use]
pub fn for_roles(mode: u32) -> u32 {
    mode | (mode & 0o444) >> 1
}

/// Whether roles say who may write a node: a record or draft, or a directory in which they lie or in
/// which lanes are made.
///
/// # Errors
/// A failure of the store.
pub fn goes_by_roles(read: &dyn Read, config: &Config, node: &Node) -> Result<bool, StoreError> {
    if node.node_type != NodeType::Directory {
        return Ok(node.class != Class::Plain);
    }
    let place = governed(read, config, node.ino)?.map(|governed| governed.place);
    Ok(matches!(place, Some(Place::State { .. } | Place::Prefix)))
}

/// The sticky bit: of its directory only its owner, or that of the file, takes a file away.
const S_ISVTX: u32 = 0o1000;

/// Whether no mode binds this user: root, and who has the store's file itself.
#[must_use]
pub fn runs_the_store(uid: u32) -> bool {
    workfs_mount::runs_this_process(uid)
}

/// Whether a mode has all these bits (4 to read, 2 to write, 1 to search) for its owner, else for its group,
/// else for all others.
#[must_use]
pub fn has_bits(mode: u32, is_owner: bool, is_of_group: impl FnOnce() -> bool, bits: u32) -> bool {
    let shift = match is_owner {
        true => 6,
        false if is_of_group() => 3,
        false => 0,
    };
    mode >> shift & bits == bits
}

/// Whom a mode is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Who<'g> {
    /// The user.
    pub uid: u32,
    /// The first group.
    pub gid: u32,
    /// The further ones, as far as they are known.
    pub groups: &'g [u32],
}

/// Whether a node's mode has all these bits for a user.
#[must_use]
pub fn mode_allows(node: &Node, who: Who<'_>, bits: u32) -> bool {
    let is_of_group = || node.gid == who.gid || who.groups.contains(&node.gid);
    runs_the_store(who.uid) || has_bits(node.mode, node.uid == who.uid, is_of_group, bits)
}

/// Whether a directory of this mode lets only its owner, or that of the file, take a file away, and `uid` is
/// neither of these `owners`.
#[must_use]
pub fn is_stuck(mode: u32, owners: [u32; 2], uid: u32) -> bool {
    mode & S_ISVTX != 0 && !owners.contains(&uid)
}

/// Whether this user may take the name of `file` out of `dir`, as `rename` would ask.
fn may_take_out(who: Who<'_>, dir: &Node, file: &Node) -> bool {
    let is_stuck = is_stuck(dir.mode, [dir.uid, file.uid], who.uid);
    mode_allows(dir, who, 0o3) && (!is_stuck || runs_the_store(who.uid))
}

/// Refuses to take the file `ino` out of the directory `dir`, which is called `shown`, to whom its
/// permission bits do not allow it. `as_stored` says whether the caller's mount shows the stored ones.
///
/// # Errors
/// A failure of the store.
pub fn forbids_taking(
    read: &dyn Read,
    context: &Context,
    as_stored: bool,
    (dir, ino, shown): (Ino, Ino, &TreePath),
) -> Result<Option<Refusal>, StoreError> {
    let (Some(mut dir), Some(file)) = (read.node(dir)?, read.node(ino)?) else { return Ok(None) };
    if context.bits == Bits::Roles {
        dir.mode = for_roles(dir.mode);
    }
    if !as_stored || may_take_out(context.who(), &dir, &file) {
        return Ok(None);
    }
    // The socket tells them all.
    let by_group = match context.origin {
        Origin::Mount(_) => "if another of your groups than the first may, `mv` does it; else ",
        Origin::Socket | Origin::Daemon => "",
    };
    Ok(Some(Refusal::new(
        Rule::Forbidden,
        format!("user {} may not take a name out of `{shown}`", context.actor.uid),
        format!("{by_group}ask its owner, user {}", dir.uid),
    )))
}

/// Refuses to write what is governed to whom its stored bits do not allow it, where the kernel did not
/// ask them.
///
/// # Errors
/// A failure of the store.
pub fn forbids_writing(
    read: &dyn Read,
    config: &Config,
    context: &Context,
    ino: Ino,
) -> Result<Option<Refusal>, StoreError> {
    if context.bits != Bits::Stored {
        return Ok(None);
    }
    let (uid, Some(node)) = (context.actor.uid, read.node(ino)?) else { return Ok(None) };
    if mode_allows(&node, context.who(), 0o2) || !goes_by_roles(read, config, &node)? {
        return Ok(None);
    }
    let shown = match (node.node_type, read.record_at(ino)?) {
        (NodeType::Directory, _) => path_of_dir(read, ino)?.to_string(),
        (_, Some(record)) => record.id.to_string(),
        (_, None) => "this draft".to_owned(),
    };
    Ok(Some(Refusal::new(
        Rule::Forbidden,
        format!(
            "user {uid} is no agent, and `{shown}` has the mode {:03o}, of user {}",
            node.mode & 0o7777,
            node.uid
        ),
        how_to_bind(uid),
    )))
}

/// The way out for a user who is bound to no agent.
#[must_use]
pub fn how_to_bind(uid: u32) -> String {
    format!("an operator may bind the user: workfs agent add NAME --uid {uid}")
}

impl Turn<'_> {
    /// Refuses to whom the mode of the directory `dir` does not allow this (2 to write, 1 to search) what no
    /// kernel was asked for.
    pub(in crate::engine) fn require_mode(&self, dir: &Node, bits: u32) -> Result<(), Stop> {
        let uid = self.context.actor.uid;
        if mode_allows(dir, self.context.who(), bits) {
            return Ok(());
        }
        let shown = path_of_dir(self.txn, dir.ino)?;
        let reason = format!("user {uid} may not make anything in `{shown}`");
        let remedy = format!("ask its owner, user {}, to allow it (`chmod`)", dir.uid);
        Err(Refusal::new(Rule::Forbidden, reason, remedy).into())
    }

    /// Refuses to take the name of `file` out of `dir`, or to replace it, to whom the sticky bit forbids that. The
    /// kernel asks it of what it has looked up: since then another mount may have put another file there.
    pub(in crate::engine) fn require_loose(
        &self,
        dir: &Node,
        (name, file): (&FileName, &Node),
    ) -> Result<(), Stop> {
        let uid = self.context.actor.uid;
        let mount = self.context.origin.mount();
        if uid == 0
            || !is_stuck(dir.mode, [dir.uid, file.uid], uid)
            || !mount.is_some_and(|mount| self.audience.shows_stored(mount.0))
            || self.context.actor.pid.is_some_and(|thread| self.audience.acts_as_owner(thread))
        {
            return Ok(());
        }
        let reason = format!("`{name}` is user {}'s, and its directory is sticky", file.uid);
        Err(Refusal::new(Rule::Forbidden, reason, "ask its owner to move or remove it").into())
    }

    /// Refuses to judge what a file has to whom its mode does not allow to read it, as in a `read`: a refused text is
    /// the caller's to read, and a record whose who claims it.
    pub(in crate::engine) fn require_readable(
        &self,
        file: &Node,
        (name, becomes): (&FileName, &TreePath),
    ) -> Result<(), Stop> {
        const READ: u32 = 0o4;
        let (who, actor) = (self.context.who(), &self.context.actor);
        let is_asked = match self.context.origin {
            Origin::Mount(mount) => self.audience.shows_stored(mount.0),
            Origin::Socket => true,
            Origin::Daemon => false,
        };
        let thread = |asks: &dyn Fn(u32) -> bool| actor.pid.is_some_and(asks);
        // In a mount only the first group is known.
        let is_of_group = || {
            let is_known = file.gid == who.gid || who.groups.contains(&file.gid);
            is_known || thread(&|thread| self.audience.is_of_group(thread, file.gid))
        };
        if !is_asked
            || runs_the_store(who.uid)
            || has_bits(file.mode, file.uid == who.uid, is_of_group, READ)
            || thread(&|thread| self.audience.reads_all(thread))
        {
            return Ok(());
        }
        let reason = format!(
            "user {} may not read `{name}`, of user {}, and what gets this name is read",
            who.uid, file.uid
        );
        let remedy = "ask its owner to move it, or to allow it (`chmod`)";
        Err(Stop::kept(Refusal::new(Rule::Forbidden, reason, remedy), becomes.clone()))
    }

    /// Refuses a change in the directory `dir` to whom its stored bits forbid it.
    pub(super) fn require_bits_of_dir(
        &self,
        dir: Ino,
        name: &crate::names::FileName,
    ) -> Result<(), Stop> {
        match forbids_writing(self.txn, self.config, self.context, dir)? {
            Some(refusal) => Err(Stop::kept(refusal, path_of(self.txn, dir, name)?)),
            None => Ok(()),
        }
    }

    /// Refuses a change of a node to whom its stored bits forbid it, and who does not own it.
    pub(super) fn require_bits_of(&self, node: &Node) -> Result<(), Stop> {
        if node.uid == self.context.actor.uid {
            return Ok(());
        }
        match forbids_writing(self.txn, self.config, self.context, node.ino)? {
            Some(refusal) => Err(refusal.into()),
            None => Ok(()),
        }
    }
}
