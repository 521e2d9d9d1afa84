//! Changes of names: they become commands of the engine.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use workfs_mount::{Caller, Entry, Errno, NewNode, Reply, XattrMode};

use crate::engine::{
    About, Create, Home, Link, NEXT, NewContent, Refuse, Remove, RemoveWhat, RemoveXattr, Rename,
    RenameMode, SetXattr, Slot, moved_by_copy, only_shown, slot,
};
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Door, Refusal, Rule};
use crate::store::{Class, NodeType, Read, StoreError};
use crate::tree::WorkTree;
use crate::tree::computed::{self, Computed, is_computed_name};
use crate::tree::saves::busy::Of;

/// What the engine makes of what the kernel asks for.
pub(in crate::tree) fn content_of(node: NewNode) -> NewContent {
    match node {
        NewNode::Directory => NewContent::Directory,
        NewNode::File => NewContent::File,
        NewNode::Symlink(target) => NewContent::Symlink(target),
        NewNode::Special(node_type, rdev) => NewContent::Special(node_type, rdev),
    }
}

impl WorkTree {
    pub(in crate::tree) fn make_node(
        &self,
        caller: &Caller,
        parent: Ino,
        name: FileName,
        mode: u32,
        node: NewNode,
        reply: Reply<Entry>,
    ) {
        if Computed::of(parent).is_some() {
            return reply.send(Err(Rule::ReadOnly.errno(Door::Name)));
        }
        self.ghosts.remove(caller, parent, &name);
        let content = content_of(node);
        let command = Create::new(parent, name, mode, content);
        self.submit_for_entry(caller, Door::Name, command, reply);
    }

    pub(in crate::tree) fn unlink_name(
        &self,
        caller: &Caller,
        parent: Ino,
        name: FileName,
        reply: Reply<()>,
    ) {
        if Computed::of(parent).is_some() {
            // The second half of a claim by copy, by the name that `ready/` had for it.
            let is_gone = self.ghosts.remove(caller, parent, &name);
            let answer = if is_gone { Ok(()) } else { Err(Rule::ReadOnly.errno(Door::Name)) };
            return reply.send(answer);
        }
        let refused = self.refuse_computed(caller, Dentry::of(parent, &name), "unlink");
        if let Err(errno) = refused.and_then(|()| self.refuse_cleanup(caller, parent, &name)) {
            return reply.send(Err(errno));
        }
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let command = Remove { parent, name: name.clone(), what: RemoveWhat::File };
        let (caller, context) = (*caller, self.context(caller, Door::Name));
        self.engine.submit(context, command, move |result| {
            reply.send(match result {
                Ok(()) => Ok(()),
                // The second half of a claim by copy: the name is gone already.
                Err(refusal)
                    if refusal.rule == Rule::Absent && me.ghosts.remove(&caller, parent, &name) =>
                {
                    Ok(())
                }
                Err(refusal) if refusal.rule == Rule::Absent && name.as_bytes() == NEXT => {
                    me.forget_next(&caller, parent)
                }
                Err(refusal) => Err(refusal.rule.errno(Door::Name)),
            });
        });
    }

    pub(in crate::tree) fn remove_dir(
        &self,
        caller: &Caller,
        parent: Ino,
        name: FileName,
        reply: Reply<()>,
    ) {
        if Computed::of(parent).is_some() {
            return reply.send(Err(Rule::ReadOnly.errno(Door::Name)));
        }
        match self.goes_with_its_workspace(caller, Dentry::of(parent, &name)) {
            // Nothing is stored that could be removed: `rm -r` and rmtree go on to the workspace itself.
            Ok(true) if self.context(caller, Door::Name).may_change().is_ok() => {
                return reply.send(Ok(()));
            }
            Ok(_) => {}
            Err(errno) => return reply.send(Err(errno)),
        }
        if let Err(errno) = self.refuse_computed(caller, Dentry::of(parent, &name), "rmdir") {
            return reply.send(Err(errno));
        }
        let command = Remove { parent, name, what: RemoveWhat::Directory };
        self.submit(caller, Door::Name, command, reply, |()| ());
    }

    pub(in crate::tree) fn link_name(
        &self,
        caller: &Caller,
        ino: Ino,
        parent: Ino,
        name: FileName,
        reply: Reply<Entry>,
    ) {
        if Computed::of(parent).is_some() || Computed::of(ino).is_some() {
            return reply.send(Err(Rule::ReadOnly.errno(Door::Name)));
        }
        // Whether it goes or stays is not known yet, and a refusal could take but one name away. A draft
        // is refused a second one by itself, and one that got a plain name is none any more.
        let is_draft =
            |read: &dyn Read| Ok(read.node(ino)?.is_some_and(|n| n.class == Class::Draft));
        if self.engine.config().files().has_checks()
            && self.unborn.has(ino)
            && !self.read(is_draft).unwrap_or(true)
        {
            let refusal = Refusal::new(
                Rule::OneName,
                format!("`{name}` would be a second name of a new file that was not judged yet"),
                "close the file first: it is judged then",
            );
            let about = About::Name(Dentry::of(parent, name));
            let refuse = Refuse { operation: "link", about, refusal };
            return self.refuse_and_answer(caller, refuse, reply);
        }
        let command = Link { ino, parent, name };
        self.submit_for_entry(caller, Door::Name, command, reply);
    }

    pub(in crate::tree) fn rename_name(
        &self,
        caller: &Caller,
        from: Dentry,
        to: Dentry,
        mode: RenameMode,
        reply: Reply<()>,
    ) {
        match (Computed::of(from.dir), Computed::of(to.dir)) {
            (None, None) => {}
            (Some(Computed::Ready(dir)), None) => {
                return self.rename_ready(caller, Dentry::of(dir, from.name), to, mode, reply);
            }
            _ => return reply.send(Err(Rule::ReadOnly.errno(Door::Rename))),
        }
        for at in [&from, &to] {
            if let Err(errno) = self.refuse_computed(caller, at.as_ref(), "rename") {
                return reply.send(Err(errno));
            }
        }
        // Something is being written somewhere: is it this one?
        let written = if self.busy.is_idle() {
            None
        } else {
            self.read(|read| self.written_by_rename(read, &from, &to)).ok().flatten()
        };
        let Some((of, name)) = written else {
            return self.rename_now(caller, from, to, mode, reply);
        };
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let by = *caller;
        let go_on = move |saved: Result<(), Errno>| {
            if let Err(errno) = saved {
                return reply.send(Err(errno));
            }
            let then = Arc::clone(&me);
            let change = move |busy| match busy {
                true => then.refuse_busy(&by, name, reply),
                false => then.rename_now(&by, from, to, mode, reply),
            };
            me.busy.when_idle(of, Box::new(change));
        };
        self.save_own_checked(caller, of.0, Reply::new(go_on));
    }

    /// Whether this is the `ready/` of a workspace in which nothing else is left.
    fn goes_with_its_workspace(
        &self,
        caller: &Caller,
        at: Dentry<&FileName>,
    ) -> Result<bool, Errno> {
        let (config, root) = (self.engine.config(), self.root(caller));
        if !is_computed_name(&config, at.name) {
            return Ok(false);
        }
        self.read(|read| {
            if read.lookup(at.dir, at.name)?.is_some() || read.count_names(at.dir, 1)? > 0 {
                return Ok(false);
            }
            let found = computed::lookup(read, &config, &self.pasts, root, at)?;
            Ok(matches!(found, Some(Computed::Ready(_))))
        })
    }

    /// Refuses to move, replace or remove what is computed beside stored names.
    fn refuse_computed(
        &self,
        caller: &Caller,
        at: Dentry<&FileName>,
        operation: &'static str,
    ) -> Result<(), Errno> {
        let (config, root) = (self.engine.config(), self.root(caller));
        if at.dir != root && !is_computed_name(&config, at.name) {
            return Ok(());
        }
        let found = self.read(|read| {
            if !self.is_at_root(caller, at) && read.lookup(at.dir, at.name)?.is_some() {
                return Ok(None);
            }
            let found = computed::lookup(read, &config, &self.pasts, root, at)?;
            // It goes with its workspace, of which it is all that is left for `rm -r`.
            let goes =
                matches!(found, Some(Computed::Ready(dir)) if read.count_names(dir, 1)? == 0);
            Ok(found.filter(|_| !goes))
        })?;
        if found.is_none() {
            return Ok(());
        }
        let about = About::Name(at.to_owned());
        let refuse = Refuse { operation, about, refusal: only_shown(at.name) };
        Err(self.refuse(caller, Door::Name, refuse))
    }

    /// The file that a rename would take while it is being written, and its name: its own, or that
    /// of the record whose text it brings to another state.
    fn written_by_rename(
        &self,
        read: &dyn Read,
        from: &Dentry,
        to: &Dentry,
    ) -> Result<Option<(Of, Dentry)>, StoreError> {
        if let Some(of) = self.written_at(read, from.dir, &from.name)? {
            return Ok(Some((of, from.clone())));
        }
        let Slot::Record(home) = slot(read, &self.engine.config(), to.dir, &to.name)? else {
            return Ok(None);
        };
        Ok(self.written_elsewhere(read, &home)?.map(|of| (of, to.clone())))
    }

    /// The file of the record that a text at `home` would move, if it is being written.
    pub(in crate::tree) fn written_elsewhere(
        &self,
        read: &dyn Read,
        home: &Home,
    ) -> Result<Option<Of>, StoreError> {
        let moved = moved_by_copy(read, home)?;
        let written = moved.filter(|(record, file)| self.busy.is_written(*file, Some(record)));
        Ok(written.map(|(record, file)| (file, Some(record.key))))
    }

    /// The file under this name, if it is being written.
    fn written_at(
        &self,
        read: &dyn Read,
        dir: Ino,
        name: &FileName,
    ) -> Result<Option<Of>, StoreError> {
        let Some(node) = read.lookup(dir, name)? else { return Ok(None) };
        let record = if node.class == Class::Record { read.record_at(node.ino)? } else { None };
        let of = (node.ino, record.as_ref().map(|record| record.key));
        Ok(self.busy.is_written(node.ino, record.as_ref()).then_some(of))
    }

    /// A handle that wrote the record is still open.
    pub(in crate::tree) fn refuse_busy(&self, caller: &Caller, at: Dentry, reply: Reply<()>) {
        let refusal = Refusal::being_written(&at.name);
        let command = Refuse { operation: "rename", about: About::Name(at), refusal };
        self.submit(caller, Door::Rename, command, reply, |()| ());
    }

    fn rename_now(
        &self,
        caller: &Caller,
        from: Dentry,
        to: Dentry,
        mode: RenameMode,
        reply: Reply<()>,
    ) {
        self.ghosts.remove(caller, to.dir, &to.name);
        let sight = self.sight(caller);
        let command = Rename { from, to, mode, sight };
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let (caller, context) = (*caller, self.context(caller, Door::Rename));
        self.engine.submit(context, command, move |result| {
            reply.send(match result {
                Ok(made) => {
                    if let Some(made) = made {
                        me.note_made(&caller, made);
                    }
                    Ok(())
                }
                Err(refusal) => Err(refusal.rule.errno(Door::Rename)),
            });
        });
    }

    pub(in crate::tree) fn set_xattr(
        &self,
        caller: &Caller,
        ino: Ino,
        name: &OsStr,
        value: &[u8],
        mode: XattrMode,
        reply: Reply<()>,
    ) {
        if let Err(errno) = self.takes_xattrs(ino, name) {
            return reply.send(Err(errno));
        }
        let name = name.as_bytes().to_vec();
        let command = SetXattr { ino, name, value: value.to_vec(), mode };
        self.submit(caller, Door::Name, command, reply, |()| ());
    }

    pub(in crate::tree) fn remove_xattr(
        &self,
        caller: &Caller,
        ino: Ino,
        name: &OsStr,
        reply: Reply<()>,
    ) {
        if let Err(errno) = require_user_attribute(name) {
            return reply.send(Err(errno));
        }
        let command = RemoveXattr { ino, name: name.as_bytes().to_vec() };
        self.submit(caller, Door::Name, command, reply, |()| ());
    }

    /// Whether the node can have this attribute: `user.` only on files and directories, and no
    /// access control lists, which would promise rights that nobody checks.
    fn takes_xattrs(&self, ino: Ino, name: &OsStr) -> Result<(), Errno> {
        // Asked first: what copies permissions (`cp -a`) tries access control lists, and goes on without them
        // where they are not supported, but nowhere else.
        require_user_attribute(name)?;
        if Computed::of(ino).is_some() {
            return Err(Rule::ReadOnly.errno(Door::Name));
        }
        if name.as_bytes().starts_with(b"user.") {
            let node = self.read(|read| read.node(ino))?.ok_or(Errno::ENOENT)?;
            if !matches!(node.node_type, NodeType::File | NodeType::Directory) {
                return Err(Errno::EPERM);
            }
        }
        Ok(())
    }
}

/// Refuses attributes of other name spaces than `user.` and `trusted.`, without a look at the
/// store: access control lists and security labels would promise rights that nobody checks, and
/// `ls -l` asks for them once a run where the answer is "not supported", else for every file.
/// A name space alone names nothing (`xattr_resolve_name` of the kernel, which FUSE leaves to us).
pub(in crate::tree) fn require_user_attribute(name: &OsStr) -> Result<(), Errno> {
    let name = name.as_bytes();
    match name.strip_prefix(b"user.").or_else(|| name.strip_prefix(b"trusted.")) {
        Some(b"") => Err(Rule::BadName.errno(Door::Name)),
        Some(_) => Ok(()),
        None => Err(Rule::Unsupported.errno(Door::Name)),
    }
}
