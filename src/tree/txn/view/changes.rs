//! Changes of names and attributes in a transaction, as POSIX has them.

use std::sync::Arc;

use workfs_mount::{Attr, SetAttr};

use crate::engine::{
    self, NewContent, RemoveWhat, RenameMode, SetAttributes, Step, Stop, TimeOrNow, TxnName,
    TxnNode, absent, taken,
};
use crate::names::FileName;
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::NodeType;
use crate::tree::nodes::set_attr::time_of;
use crate::tree::saves::unsaved::Unsaved;

use super::root::CHANGE;
use super::{Below, Own, View};

impl View {
    /// Makes a node.
    pub fn create(
        &mut self,
        below: &Below<'_>,
        at: TxnName,
        mode: u32,
        content: NewContent,
    ) -> Result<TxnNode, Stop> {
        self.require_not_outside(at.dir, &at.name)?;
        let (node_type, target) = match &content {
            NewContent::Directory => (NodeType::Directory, None),
            NewContent::File => (NodeType::File, None),
            NewContent::Symlink(target) => (NodeType::Symlink, Some(target.clone())),
            NewContent::Special(..) => {
                return Err(unsupported("a transaction makes files, directories and links").into());
            }
        };
        if self.find(below, at.dir, &at.name)?.is_some() {
            return Err(taken(&at.name).into());
        }
        self.require_bits(below, at.dir, CHANGE)?;
        self.use_name(below, at.dir, &at.name)?;
        let node = TxnNode::Made(self.made);
        let size = target.as_ref().map_or(0, |target| target.len() as u64);
        let now = below.now.0;
        let attr = Attr {
            ino: Ino(0),
            node_type,
            mode: mode & 0o7777,
            nlink: if node_type == NodeType::Directory { 2 } else { 1 },
            uid: below.caller.uid,
            gid: below.caller.gid,
            rdev: 0,
            size,
            blocks: size.div_ceil(512),
            atime_ns: now,
            mtime_ns: now,
            ctime_ns: now,
            is_fixed: false,
        };
        // An empty file is saved, too: as one that a program makes and closes outside.
        let is_file = node_type == NodeType::File;
        self.require_room(1 + usize::from(is_file))?;
        self.note_place(below, node, at.clone())?;
        self.push(Step::Create { at: at.clone(), mode, content, made: self.made }, node)?;
        self.made += 1;
        let mut unsaved = Unsaved::default();
        if is_file {
            unsaved.note_change();
            self.owed += 1;
        }
        let own = Own { attr, content: is_file.then(Arc::default), target, unsaved };
        self.nodes.insert(node, own);
        self.name(at, Some(node));
        Ok(node)
    }

    /// Removes a name.
    pub fn remove(&mut self, below: &Below<'_>, at: TxnName, what: RemoveWhat) -> Result<(), Stop> {
        let node = self.find(below, at.dir, &at.name)?.ok_or_else(|| absent(&at.name))?;
        self.require_taking(below, at.dir, node)?;
        let is_dir = self.attr(below, node)?.node_type == NodeType::Directory;
        match what {
            RemoveWhat::File if is_dir => return Err(of_another_type(Rule::IsDirectory).into()),
            RemoveWhat::Directory if !is_dir => {
                return Err(of_another_type(Rule::NotDirectory).into());
            }
            RemoveWhat::Directory => self.require_empty(below, node)?,
            RemoveWhat::File => self.use_file(below, node)?,
        }
        self.use_name(below, at.dir, &at.name)?;
        self.require_room(1)?;
        self.lose_name(node);
        // Nobody is to see what a new file said that is gone again: a bad one is in nobody's way.
        if matches!(node, TxnNode::Made(_)) && !self.is_named(node) && !self.is_followed(node) {
            self.drop_outdated_save(node);
        }
        self.push(Step::Remove { at: at.clone(), what }, node)?;
        self.name(at, None);
        Ok(())
    }

    /// Renames.
    pub fn rename(
        &mut self,
        below: &Below<'_>,
        from: TxnName,
        to: TxnName,
        mode: RenameMode,
    ) -> Result<(), Stop> {
        if mode == RenameMode::Exchange {
            return Err(unsupported("a transaction does not exchange names").into());
        }
        self.require_not_outside(to.dir, &to.name)?;
        let target = self.find(below, to.dir, &to.name)?;
        let source = self.find(below, from.dir, &from.name)?.ok_or_else(|| absent(&from.name))?;
        if target == Some(source) && mode == RenameMode::Replace {
            return Ok(());
        }
        self.require_taking(below, from.dir, source)?;
        self.require_bits(below, to.dir, CHANGE)?;
        if let Some(target) = target {
            self.require_taking(below, to.dir, target)?;
        }
        self.recall(below, to.dir)?;
        if self.way_up(to.dir).any(|dir| dir == source) {
            return Err(engine::below_itself(&from.name).into());
        }
        if let Some(target) = target {
            self.require_replaceable(below, source, target, (mode, &to.name))?;
            self.use_file(below, target)?;
        }
        self.use_file(below, source)?;
        self.use_name(below, from.dir, &from.name)?;
        self.use_name(below, to.dir, &to.name)?;
        // A program may rename what it has not closed yet: what it wrote comes first.
        self.save(source);
        self.require_room(1)?;
        if let Some(target) = target {
            self.lose_name(target);
            // What replaces it says all that was to be saved, as the next save of it would.
            if !self.is_named(target) {
                self.drop_outdated_save(target);
            }
        }
        self.push(Step::Rename { from: from.clone(), to: to.clone(), mode }, source)?;
        self.name(from, None);
        self.place(source, to.clone());
        self.name(to, Some(source));
        Ok(())
    }

    fn require_replaceable(
        &self,
        below: &Below<'_>,
        source: TxnNode,
        target: TxnNode,
        (mode, name): (RenameMode, &FileName),
    ) -> Result<(), Stop> {
        if mode == RenameMode::NoReplace {
            return Err(taken(name).into());
        }
        let is_dir = |node| Ok::<_, Stop>(self.attr(below, node)?.node_type == NodeType::Directory);
        match (is_dir(source)?, is_dir(target)?) {
            (true, false) => Err(of_another_type(Rule::NotDirectory).into()),
            (false, true) => Err(of_another_type(Rule::IsDirectory).into()),
            (true, true) => self.require_empty(below, target),
            (false, false) => Ok(()),
        }
    }

    /// Refuses a name that the mount's root has for workfs's own.
    fn require_not_outside(&self, dir: TxnNode, name: &FileName) -> Result<(), Refusal> {
        if !self.is_outside(dir, name) {
            return Ok(());
        }
        let reason = format!("`{name}` is workfs's own, and is in no transaction");
        Err(Refusal::new(Rule::Unsupported, reason, "choose another name"))
    }

    fn require_empty(&self, below: &Below<'_>, dir: TxnNode) -> Result<(), Stop> {
        if self.list(below, dir)?.is_empty() {
            return Ok(());
        }
        Err(Refusal::new(Rule::NotEmpty, "the directory is not empty", "empty it first").into())
    }

    /// Sets attributes.
    pub fn set(&mut self, below: &Below<'_>, node: TxnNode, set: SetAttr) -> Result<(), Stop> {
        self.require_owner(below, node, &set)?;
        self.use_attributes(below, node)?;
        if let Some(size) = set.size {
            self.resize(below, node, size)?;
        }
        let SetAttr { mode, uid, gid, atime, mtime, .. } = set;
        let (atime, mtime) = (atime.map(time_of), mtime.map(time_of));
        if mode.is_none() && uid.is_none() && gid.is_none() && atime.is_none() && mtime.is_none() {
            return Ok(());
        }
        // A time that is set after a write stays.
        self.save(node);
        let ino = Ino(0);
        let step = SetAttributes { mode, uid, gid, atime, mtime, ..SetAttributes::none(ino) };
        self.push(Step::Set { node, set: step }, node)?;
        let now = below.now.0;
        let attr = &mut self.own(below, node)?.attr;
        attr.mode = mode.map_or(attr.mode, |mode| mode & 0o7777);
        (attr.uid, attr.gid) = (uid.unwrap_or(attr.uid), gid.unwrap_or(attr.gid));
        let time = |time: Option<TimeOrNow>, old| match time {
            Some(TimeOrNow::At(at)) => at.0,
            Some(TimeOrNow::Now) => now,
            None => old,
        };
        (attr.atime_ns, attr.mtime_ns) = (time(atime, attr.atime_ns), time(mtime, attr.mtime_ns));
        attr.ctime_ns = now;
        Ok(())
    }
}

/// The refusal for what cannot be done inside a transaction.
fn unsupported(reason: &str) -> Refusal {
    Refusal::new(Rule::Unsupported, reason, "do it outside, before or after")
}

fn of_another_type(rule: Rule) -> Refusal {
    Refusal::new(rule, rule.title(), "look at what is there")
}
