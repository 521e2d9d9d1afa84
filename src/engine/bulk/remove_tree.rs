//! Removing a directory with all that is in it, some names a change, and letting go of versions.

use crate::engine::{About, Command, Remove, RemoveWhat, Stop, Terms, Turn, path_of, retention};
use crate::limits::{SWEPT_AT_ONCE, SWEPT_HISTORIES_AT_ONCE};
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, History, NodeType, Read, StoreError};

/// The files by which it was decided that something goes. What goes in several changes goes on only while
/// they are what they were: somebody may have thought better of it meanwhile.
#[derive(Clone, Debug)]
pub struct Witness {
    dir: Ino,
    files: Vec<(FileName, Option<Look>)>,
}

/// By what a file that was read is known.
type Look = (Ino, UnixNanos, u64);

impl Witness {
    /// The files of these names in `dir`, or their absence, as they are read just now.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn new(read: &dyn Read, dir: Ino, names: Vec<FileName>) -> Result<Self, StoreError> {
        let look = |name| look(read, dir, &name).map(|look| (name, look));
        Ok(Witness { dir, files: names.into_iter().map(look).collect::<Result<_, _>>()? })
    }

    fn has_name(&self, name: &FileName) -> bool {
        self.files.iter().any(|(own, _)| own == name)
    }

    fn has_changed(&self, read: &dyn Read) -> Result<bool, StoreError> {
        for (name, was) in &self.files {
            if look(read, self.dir, name)? != *was {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn look(read: &dyn Read, dir: Ino, name: &FileName) -> Result<Option<Look>, StoreError> {
    let file = read.lookup(dir, name)?.filter(|node| node.node_type != NodeType::Directory);
    Ok(file.map(|node| (node.ino, node.mtime, node.size)))
}

/// How far a removal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Whole,
    /// There is more to remove.
    InPart,
    /// The witness has changed: nothing more goes.
    Stopped,
}

/// Removes `parent/name` with all that is in it; records and drafts in it are no rubbish.
#[derive(Clone, Debug)]
pub struct RemoveTree {
    /// The directory that it lies in.
    pub parent: Ino,
    /// Its name.
    pub name: FileName,
    /// It goes while this is as it was. Files of these names in it go with it, in the last change: who is
    /// interrupted finds them.
    pub witness: Witness,
}

impl Command for RemoveTree {
    type Out = Removal;

    fn operation(&self) -> &'static str {
        "gc"
    }

    fn about(&self) -> About {
        About::Name(Dentry::of(self.parent, self.name.clone()))
    }

    fn terms(&self) -> Terms {
        Terms { needs_no_room: true, ..Terms::USUAL }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Removal, Stop> {
        if self.witness.has_changed(turn.txn)? {
            return Ok(Removal::Stopped);
        }
        let mut left = SWEPT_AT_ONCE;
        let node = turn.existing(self.parent, &self.name)?;
        let mut others = Vec::new();
        turn.txn.list(node.ino, None, &mut |(name, _)| {
            if !self.witness.has_name(&name) {
                others.push(name);
            }
            others.len() <= SWEPT_AT_ONCE
        })?;
        for name in others {
            if !remove(turn, node.ino, &name, &mut left)? {
                return Ok(Removal::InPart);
            }
        }
        if left <= self.witness.files.len() {
            return Ok(Removal::InPart);
        }
        let is_gone = remove(turn, self.parent, &self.name, &mut left)?;
        Ok(if is_gone { Removal::Whole } else { Removal::InPart })
    }
}

/// Removes a name with all that is in it, the deepest first, as long as any are `left` to be removed; says
/// whether it is gone. It goes down without recursion: how deep a tree is says who made it.
fn remove(
    turn: &mut Turn<'_>,
    parent: Ino,
    name: &FileName,
    left: &mut usize,
) -> Result<bool, Stop> {
    let mut way = vec![One::find(turn, parent, name.clone())?];
    while let Some(one) = way.last() {
        if *left == 0 {
            return Ok(false);
        }
        if let Some(inner) = one.first_in(turn)? {
            let below = One::find(turn, one.ino, inner)?;
            way.push(below);
            continue;
        }
        let what = if one.is_directory { RemoveWhat::Directory } else { RemoveWhat::File };
        Remove { parent: one.parent, name: one.name.clone(), what }.run(turn)?;
        *left -= 1;
        way.pop();
    }
    Ok(true)
}

/// A name that is to go.
struct One {
    parent: Ino,
    name: FileName,
    ino: Ino,
    is_directory: bool,
}

impl One {
    fn find(turn: &Turn<'_>, parent: Ino, name: FileName) -> Result<One, Stop> {
        let node = turn.existing(parent, &name)?;
        if node.class != Class::Plain || turn.txn.parked_by(node.ino)?.is_some() {
            let refusal = Refusal::new(
                Rule::InUse,
                format!("`{name}` is a record, its backup, or a draft"),
                "move it out first: what a workspace holds is not removed by age",
            );
            return Err(Stop::kept(refusal, path_of(turn.txn, parent, &name)?));
        }
        let is_directory = node.node_type == NodeType::Directory;
        Ok(One { parent, name, ino: node.ino, is_directory })
    }

    /// A name in it, if there is any.
    fn first_in(&self, turn: &Turn<'_>) -> Result<Option<FileName>, StoreError> {
        let mut first = None;
        if self.is_directory {
            turn.txn.list_names(self.ino, None, &mut |(name, _)| {
                first = Some(name);
                false
            })?;
        }
        Ok(first)
    }
}

/// Lets go of versions: of all of a path and below, or of those that retention no longer keeps.
#[derive(Clone, Debug)]
pub struct PruneVersions {
    /// Where to begin: pasts of paths after this one.
    pub after: Option<TreePath>,
    /// All versions of what lies at or below this path, while the witness is as it was; else what is too old
    /// or too much.
    pub all_of: Option<(TreePath, Witness)>,
}

/// What a [`PruneVersions`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Versions that are gone.
    pub versions: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where to go on, if there is more.
    pub last: Option<TreePath>,
}

impl Command for PruneVersions {
    type Out = Pruned;

    fn operation(&self) -> &'static str {
        "gc"
    }

    fn terms(&self) -> Terms {
        Terms { needs_no_room: true, ..Terms::USUAL }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Pruned, Stop> {
        let is_kept = self.all_of.is_none();
        let above = match self.all_of {
            Some((_, witness)) if witness.has_changed(turn.txn)? => return Ok(Pruned::default()),
            Some((path, _)) => path,
            None => TreePath::root(),
        };
        let mut batch: Vec<History> = Vec::new();
        turn.txn.histories(&above, self.after.as_ref(), &mut |history| {
            batch.push(history);
            batch.len() < SWEPT_HISTORIES_AT_ONCE
        })?;
        let mut pruned = Pruned::default();
        if batch.len() == SWEPT_HISTORIES_AT_ONCE {
            pruned.last = batch.last().map(|history| history.path.clone());
        }
        for mut history in batch {
            let (versions, bytes) = (history.versions, history.bytes);
            let keep = is_kept.then(|| retention(turn.config, &history.path)).flatten();
            turn.prune(&mut history, keep.as_ref())?;
            if history.versions != versions {
                turn.txn.update_history(&history)?;
                pruned.versions += versions - history.versions;
                pruned.bytes += bytes - history.bytes;
            }
        }
        Ok(pruned)
    }
}
