//! What a transaction looks like from inside: the tree as it is now, and over it what was changed.
//!
//! What must stay true: nothing here reaches the store; each change is noted as a step, in order, so
//! that the commit makes the same changes again; what a step rests on is noted when it is first used.
//! Deliberately not here: rules of kinds. Inside, a record is a file; the commit judges.

mod below;
mod changes;
mod places;
mod root;
mod used;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use workfs_mount::{Attr, OpenFlags, WriteAt};

use crate::engine::{Step, Stop, TxnName, TxnNode, Used, UsedWhat, read_plain};
use crate::limits::{TXN_BYTES_MAX, TXN_STEPS_MAX};
use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::NodeType;
use crate::tree::handles::pins::Charge;
use crate::tree::handles::read::part;
use crate::tree::saves::unsaved::Unsaved;

pub use below::Below;
use below::gone;
pub use root::READ;

/// What the transaction knows better than the store.
struct Own {
    attr: Attr,
    /// A file's content, from the first write on.
    content: Option<Arc<Vec<u8>>>,
    /// Where a link leads that was made here.
    target: Option<Vec<u8>>,
    /// What was written that no step has yet.
    unsaved: Unsaved,
}

/// A step, the node it is about, and that one's path then.
struct Noted {
    step: Step,
    about: TxnNode,
    path: TreePath,
}

/// A transaction's view.
pub struct View {
    root: TxnNode,
    /// The root's path in the tree.
    path: TreePath,
    /// Names that were made or taken away, by directory.
    names: HashMap<TxnNode, BTreeMap<FileName, Option<TxnNode>>>,
    nodes: HashMap<TxnNode, Own>,
    /// How many of its names each node has lost.
    lost: HashMap<TxnNode, u32>,
    /// Where each node was found last, for as long as that is remembered (see `places`).
    places: HashMap<TxnNode, TxnName>,
    made: u32,
    /// Bytes that were written, or copied to be written.
    held: u64,
    /// They count with what else its maker keeps in memory.
    charge: Charge,
    steps: Vec<Noted>,
    /// Steps that are to come of what was written and is not saved yet: there is room for each.
    owed: usize,
    used: HashMap<UsedWhat, Used>,
    /// The limit that was told of last.
    told: Option<String>,
    /// Its changes are being made: no more of them.
    pub committing: bool,
}

/// The way out where a transaction is too large.
const IN_PARTS: &str = "throw it away, and make the changes in several transactions";

impl View {
    /// A new one over the directory `root`, which has this path.
    pub fn new(root: Ino, path: TreePath, charge: Charge) -> View {
        View {
            root: TxnNode::Stored(root),
            path,
            names: HashMap::new(),
            nodes: HashMap::new(),
            lost: HashMap::new(),
            places: HashMap::new(),
            made: 0,
            held: 0,
            charge,
            steps: Vec::new(),
            owed: 0,
            used: HashMap::new(),
            told: None,
            committing: false,
        }
    }

    /// Its root.
    pub fn root(&self) -> TxnNode {
        self.root
    }

    /// Whether this limit was not the last that was told of: a program may try a thousand times.
    pub fn is_news(&mut self, reason: &str) -> bool {
        if self.told.as_deref() == Some(reason) {
            return false;
        }
        self.told = Some(reason.to_owned());
        true
    }

    /// Attributes of a node, but for its number.
    pub fn attr(&self, below: &Below<'_>, node: TxnNode) -> Result<Attr, Stop> {
        let mut found = self.attr_with_all_names(below, node)?;
        found.nlink = match (self.lost.get(&node), found.node_type) {
            (Some(_), NodeType::Directory) => 0,
            (lost, _) => found.nlink.saturating_sub(lost.copied().unwrap_or(0)),
        };
        if let Some(content) = self.content(node) {
            found.size = content.len() as u64;
            found.blocks = found.size.div_ceil(512);
        }
        Ok(found)
    }

    fn attr_with_all_names(&self, below: &Below<'_>, node: TxnNode) -> Result<Attr, Stop> {
        match (self.nodes.get(&node), node) {
            (Some(own), _) => Ok(own.attr),
            (None, TxnNode::Stored(ino)) => {
                Ok(below.tree.shown(below.read, below.caller, &below.node(ino)?)?)
            }
            (None, TxnNode::Made(_)) => Err(gone().into()),
        }
    }

    fn content(&self, node: TxnNode) -> Option<&Arc<Vec<u8>>> {
        self.nodes.get(&node)?.content.as_ref()
    }

    /// What a name stands for.
    pub fn find(
        &mut self,
        below: &Below<'_>,
        dir: TxnNode,
        name: &FileName,
    ) -> Result<Option<TxnNode>, Stop> {
        if self.is_outside(dir, name) {
            return Ok(None);
        }
        let found = match (self.names.get(&dir).and_then(|names| names.get(name)), dir) {
            (Some(here), _) => *here,
            (None, TxnNode::Stored(ino)) => {
                below.lookup(ino, name)?.map(|node| TxnNode::Stored(node.ino))
            }
            (None, TxnNode::Made(_)) => None,
        };
        if let Some(node) = found {
            self.note_place(below, node, TxnName { dir, name: name.clone() })?;
        }
        Ok(found)
    }

    /// Whether a name is one that the mount's root has for workfs's own: whatever is stored under it is seen
    /// in other mounts only.
    fn is_outside(&self, dir: TxnNode, name: &FileName) -> bool {
        dir == self.root && name.is_computed()
    }

    /// The names of a directory.
    pub fn list(&self, below: &Below<'_>, dir: TxnNode) -> Result<Vec<TxnEntry>, Stop> {
        let mut all = BTreeMap::new();
        if let TxnNode::Stored(ino) = dir {
            below.read.list(ino, None, &mut |(name, node)| {
                let is_hidden = below.tree.is_hidden(&node.kind(), below.caller);
                if !is_hidden && !self.is_outside(dir, &name) {
                    all.insert(name, TxnNode::Stored(node.ino));
                }
                true
            })?;
        }
        for (name, here) in self.names.get(&dir).into_iter().flatten() {
            match here {
                Some(node) => all.insert(name.clone(), *node),
                None => all.remove(name),
            };
        }
        Ok(all.into_iter().collect())
    }

    /// Where a link leads.
    pub fn target(&self, below: &Below<'_>, node: TxnNode) -> Result<Vec<u8>, Stop> {
        let own = self.nodes.get(&node).and_then(|own| own.target.clone());
        match (own, node) {
            (Some(target), _) => Ok(target),
            (None, TxnNode::Stored(ino)) => Ok(below.read.symlink(ino)?.ok_or_else(gone)?),
            (None, TxnNode::Made(_)) => Err(gone().into()),
        }
    }

    /// Opens a file, and notes that it was used, and whether it is read. Gives what a reader keeps until it closes it.
    pub fn open(
        &mut self,
        below: &Below<'_>,
        node: TxnNode,
        flags: OpenFlags,
    ) -> Result<Option<Arc<[u8]>>, Stop> {
        self.use_file(below, node)?;
        // What was written over here before is no text of others any more.
        let reads = flags.read && !flags.truncate && self.content(node).is_none();
        if let TxnNode::Stored(ino) = node
            && let Some(used) = self.used.get_mut(&UsedWhat::File(ino))
        {
            used.read |= reads;
        }
        if flags.truncate {
            self.resize(below, node, 0)?;
        }
        match node {
            TxnNode::Stored(ino) if self.content(node).is_none() => {
                below.governed(&below.named(ino)?)
            }
            _ => Ok(None),
        }
    }

    /// The size of a file to who reads it by a handle, which `pinned` was at `open`.
    pub fn size(&self, node: TxnNode, pinned: Option<&[u8]>) -> Option<u64> {
        pinned.filter(|_| self.content(node).is_none()).map(|pinned| pinned.len() as u64)
    }

    /// Up to `size` bytes at `offset`; `pinned` is what was there at `open`.
    pub fn read(
        &self,
        below: &Below<'_>,
        node: TxnNode,
        pinned: Option<&[u8]>,
        (offset, size): (u64, usize),
    ) -> Result<Vec<u8>, Stop> {
        let bytes = self.content(node).map(|content| content.as_slice()).or(pinned);
        match (bytes, node) {
            (Some(bytes), _) => Ok(part(bytes, offset, size)),
            (None, TxnNode::Stored(ino)) => {
                Ok(read_plain(below.read, &below.node(ino)?, offset, size)?)
            }
            (None, TxnNode::Made(_)) => Ok(Vec::new()),
        }
    }

    /// Writes; `files` is the writer's table of open files.
    pub fn write(
        &mut self,
        below: &Below<'_>,
        (node, files): (TxnNode, Option<u64>),
        at: WriteAt,
        data: &[u8],
    ) -> Result<(), Stop> {
        let end = self.attr(below, node)?.size;
        let at = match at {
            WriteAt::Offset(offset) => offset,
            WriteAt::End => end,
        };
        let stop = at.saturating_add(data.len() as u64);
        let content = self.content_of_size(below, node, stop.max(end))?;
        // In memory, so both fit.
        content[at as usize..stop as usize].copy_from_slice(data);
        self.own(below, node)?.unsaved.note_write(files);
        Ok(())
    }

    /// Cuts or lengthens a file.
    pub fn resize(&mut self, below: &Below<'_>, node: TxnNode, size: u64) -> Result<(), Stop> {
        self.content_of_size(below, node, size).map(|_| ())
    }

    /// The content of a file, to be changed, with this size.
    fn content_of_size(
        &mut self,
        below: &Below<'_>,
        node: TxnNode,
        size: u64,
    ) -> Result<&mut Vec<u8>, Stop> {
        let (there, is_copied) = match (self.content(node), node) {
            // What a step holds stays as it is.
            (Some(content), _) => (content.len() as u64, Arc::strong_count(content) > 1),
            (None, TxnNode::Stored(ino)) => (below.node(ino)?.size.min(size), true),
            (None, TxnNode::Made(_)) => (0, false),
        };
        // Asked now: of `close`, which would make the step, shells hear nothing.
        let is_first = !self.nodes.get(&node).is_some_and(|own| own.unsaved.is_any());
        if is_first {
            self.require_room(1)?;
        }
        let copied = if is_copied { there } else { 0 };
        self.hold(size.saturating_sub(there).saturating_add(copied))?;
        let loaded = match (self.content(node), node) {
            (None, TxnNode::Stored(ino)) if there > 0 => {
                let governed = below.governed(&below.node(ino)?)?;
                self.read(below, node, governed.as_deref(), (0, there as usize))?
            }
            _ => Vec::new(),
        };
        self.own(below, node)?;
        self.owed += usize::from(is_first);
        let own = self.own(below, node)?;
        (own.attr.mtime_ns, own.attr.ctime_ns) = (below.now.0, below.now.0);
        own.unsaved.note_change();
        let content = Arc::make_mut(own.content.get_or_insert_with(|| Arc::new(loaded)));
        content.resize(size as usize, 0);
        Ok(content)
    }

    /// Counts bytes that are to be held in memory. Those that are let go are not counted back.
    fn hold(&mut self, bytes: u64) -> Result<(), Refusal> {
        let held = self.held.saturating_add(bytes);
        if held > TXN_BYTES_MAX {
            let mib = TXN_BYTES_MAX >> 20;
            let reason =
                format!("a transaction writes at most {mib} MiB, with what it copies for that");
            return Err(Refusal::new(Rule::TooLarge, reason, IN_PARTS));
        }
        self.charge.raise(usize::try_from(held).unwrap_or(usize::MAX))?;
        self.held = held;
        Ok(())
    }

    /// A descriptor of a file was closed in this table of open files.
    pub fn close(&mut self, node: TxnNode, files: Option<u64>) {
        if self.nodes.get(&node).is_some_and(|own| own.unsaved.is_ended_by(files)) {
            self.save(node);
        }
    }

    /// What was written to a file is a step now.
    pub fn save(&mut self, node: TxnNode) {
        let is_unsaved = |own: &&mut Own| own.unsaved.is_any();
        let Some(own) = self.nodes.get_mut(&node).filter(is_unsaved) else { return };
        own.unsaved.clear();
        self.owed -= 1;
        let Some(content) = own.content.clone() else { return };
        if !self.is_named(node) {
            return;
        }
        self.drop_outdated_save(node);
        self.note_step(Step::Save { node, bytes: content }, node);
    }

    /// The save before goes where the one that comes now says all that it said, and the order of steps
    /// stays: where no name went in between by which a record may be another's or elsewhere. An empty text
    /// goes always: shells close a descriptor before they write, and nobody meant that for a save.
    fn drop_outdated_save(&mut self, node: TxnNode) {
        let last = self.steps.iter().rposition(|noted| noted.about == node);
        let Some((last, Step::Save { bytes, .. })) = last.map(|nth| (nth, &self.steps[nth].step))
        else {
            return;
        };
        let goes = |noted: &Noted| self.takes_name_of(noted, node);
        if bytes.is_empty() || !self.steps[last..].iter().any(goes) {
            self.steps.remove(last);
        }
    }

    /// Whether something was done since the last step about a file under a name like its own: a copy of its
    /// record goes by what was saved before.
    fn is_followed(&self, node: TxnNode) -> bool {
        let Some(own) = self.places.get(&node) else { return true };
        let since = self.steps.iter().rev().take_while(|noted| noted.about != node);
        let names = since.filter_map(|noted| noted.path.split_last());
        names.into_iter().any(|(_, name)| beginning(name) == beginning(&own.name))
    }

    /// Whether a step takes or moves a name that may be one of the same record as a file's: one like it, or
    /// any beside it, which may be its backup's, or a directory with such names.
    fn takes_name_of(&self, noted: &Noted, node: TxnNode) -> bool {
        let Some(own) = self.places.get(&node) else { return true };
        let may_be =
            |at: &TxnName| at.dir == own.dir || beginning(&at.name) == beginning(&own.name);
        match &noted.step {
            Step::Remove { at, .. } => may_be(at),
            Step::Rename { from, to, .. } => {
                may_be(from) || may_be(to) || self.is_directory(noted.about)
            }
            Step::Create { .. } | Step::Save { .. } | Step::Set { .. } => false,
        }
    }

    /// Whether what was moved is a directory: of those only the names are used.
    fn is_directory(&self, moved: TxnNode) -> bool {
        match moved {
            TxnNode::Stored(ino) => !self.used.contains_key(&UsedWhat::File(ino)),
            TxnNode::Made(_) => {
                let own = self.nodes.get(&moved);
                own.is_none_or(|own| own.attr.node_type == NodeType::Directory)
            }
        }
    }

    /// Whether a file that was written to has a name left: it may have several, also such as nobody
    /// asked for in the transaction.
    fn is_named(&self, node: TxnNode) -> bool {
        let lost = self.lost.get(&node).copied().unwrap_or(0);
        self.nodes.get(&node).is_some_and(|own| own.attr.nlink > lost)
    }

    /// The steps, what they rest on, and the files that are not closed yet.
    pub fn finished(&self) -> (Vec<(Step, TreePath)>, Vec<Used>, Vec<TreePath>) {
        let unsaved = self.nodes.iter();
        let unsaved = unsaved.filter(|(node, own)| own.unsaved.is_any() && self.is_named(**node));
        let unsaved = unsaved.map(|(node, _)| self.path_of(*node)).collect();
        let mut used: Vec<Used> = self.used.values().cloned().collect();
        used.sort_by(|a, b| a.path.cmp(&b.path));
        let steps = self.steps.iter().map(|noted| (noted.step.clone(), noted.path.clone()));
        (steps.collect(), used, unsaved)
    }

    fn own(&mut self, below: &Below<'_>, node: TxnNode) -> Result<&mut Own, Stop> {
        let attr = self.attr_with_all_names(below, node)?;
        let new = || Own { attr, content: None, target: None, unsaved: Unsaved::default() };
        Ok(self.nodes.entry(node).or_insert_with(new))
    }

    /// A name of a node is gone.
    fn lose_name(&mut self, node: TxnNode) {
        *self.lost.entry(node).or_default() += 1;
    }

    fn name(&mut self, TxnName { dir, name }: TxnName, node: Option<TxnNode>) {
        self.names.entry(dir).or_default().insert(name, node);
    }

    /// There is room for so many steps more, beside those that are owed.
    fn require_room(&self, steps: usize) -> Result<(), Refusal> {
        if self.steps.len() + self.owed + steps > TXN_STEPS_MAX {
            let reason = format!(
                "a transaction makes at most {TXN_STEPS_MAX} changes (a new file is two: it is made, \
                 and saved)"
            );
            return Err(Refusal::new(Rule::TooLarge, reason, IN_PARTS));
        }
        Ok(())
    }

    fn push(&mut self, step: Step, about: TxnNode) -> Result<(), Stop> {
        self.require_room(1)?;
        self.note_step(step, about);
        Ok(())
    }

    fn note_step(&mut self, step: Step, about: TxnNode) {
        let path = self.path_of(about);
        self.steps.push(Noted { step, about, path });
    }
}

/// A name up to its first dot: the names that a record's file may have begin all alike.
fn beginning(name: &FileName) -> &[u8] {
    name.as_bytes().split(|byte| *byte == b'.').next().unwrap_or_default()
}

/// A name in a directory, and what it stands for.
pub type TxnEntry = (FileName, TxnNode);
