//! What a directory or a name is to a workspace: asked here and nowhere else.

use std::sync::Arc;

use super::quota::charge_dir;
use crate::config::{Binding, Config};
use crate::engine::change::happening::Happening;
use crate::engine::{Stop, Turn};
use crate::kind::{Place, StateIx};
use crate::ledger::{EventName, Field, Payload};
use crate::names::{AgentName, FileName, KindName, RecordId, TreePath};
use crate::numbers::{Ino, WorkspaceKey};
use crate::refusal::{Refusal, Rule};
use crate::store::{PlaceRow, Read, Result, WorkspaceRow};

/// A directory of a workspace.
#[derive(Clone, Debug)]
pub struct Governed {
    /// The workspace.
    pub workspace: WorkspaceKey,
    /// The workspace's path from the root of the tree.
    pub path: TreePath,
    /// The directory's path from there.
    pub relative: Vec<FileName>,
    /// Kind and policy.
    pub binding: Arc<Binding>,
    /// What the kind makes of the directory.
    pub place: Place,
}

impl Governed {
    /// Whether `name` stands in it for the directory that shows what is ready, which is computed.
    #[must_use]
    pub fn is_order_dir(&self, name: &FileName) -> bool {
        self.place == Place::Root && self.binding.kind.order().dir == *name
    }

    /// The path from the workspace to what is called `name` in it.
    #[must_use]
    pub fn relative_of(&self, name: &FileName) -> Vec<FileName> {
        self.relative.iter().chain([name]).cloned().collect()
    }

    /// What the kind makes of a directory that is called `name` in it.
    #[must_use]
    pub fn place_of(&self, name: &FileName) -> Place {
        self.binding.kind.place(&self.relative_of(name))
    }

    /// The directory's path from the root of the tree.
    #[must_use]
    pub fn dir_path(&self) -> TreePath {
        self.path.names().iter().chain(&self.relative).cloned().collect()
    }

    /// Whether the record `id` of this workspace would lie at `path` in one of its states.
    #[must_use]
    pub fn names(&self, path: &[u8], id: &RecordId) -> bool {
        let Ok(path) = TreePath::parse(path) else { return false };
        let Some((name, dirs)) = path.names().split_last() else { return false };
        let Some(relative) = dirs.strip_prefix(self.path.names()) else { return false };
        let kind = &self.binding.kind;
        kind.place(relative).is_state() && kind.record_id(name).as_ref() == Some(id)
    }
}

/// Where a record of a certain id lies or would lie.
#[derive(Clone, Debug)]
pub struct Home {
    /// The state directory.
    pub governed: Governed,
    /// Its state.
    pub state: StateIx,
    /// Its owner, where it is a lane.
    pub owner: Option<AgentName>,
    /// The id that the name stands for.
    pub id: RecordId,
    /// The directory's inode.
    pub dir: Ino,
    /// The file's name.
    pub name: FileName,
}

impl Home {
    /// The record's path from the root of the tree.
    #[must_use]
    pub fn file_path(&self) -> TreePath {
        self.governed.dir_path().join(self.name.clone())
    }

    /// Refuses to move the record that lives here to a place of another workspace.
    pub(in crate::engine) fn require_same_workspace(
        &self,
        to: &Home,
    ) -> std::result::Result<(), Refusal> {
        if self.governed.workspace == to.governed.workspace {
            return Ok(());
        }
        Err(Refusal::new(
            Rule::Transition,
            format!("`{}` belongs to another workspace", self.file_path()),
            "copy its text to a new record there",
        ))
    }

    /// The kind of record that lives here.
    #[must_use]
    pub fn kind(&self) -> &crate::kind::Kind {
        &self.governed.binding.kind
    }

    /// What happened to what has its place here, and to no version of it.
    #[must_use]
    pub fn happening(&self, name: EventName, payload: Payload) -> Happening<'_> {
        let (kind, workspace) = (Some(self.kind().name()), Some(&self.governed.path));
        Happening { kind, workspace, ..Happening::of(name, payload) }
    }
}

/// What a file of a certain name in a certain directory is.
#[derive(Clone, Debug)]
pub enum Slot {
    /// An ordinary file.
    Plain,
    /// Record-like: a record or a draft.
    Record(Box<Home>),
}

/// What directory `dir` is to a workspace, if anything.
///
/// # Errors
/// A failure of the store.
pub fn governed(read: &dyn Read, config: &Config, dir: Ino) -> Result<Option<Governed>> {
    let Some(row) = read.place(dir)? else { return Ok(None) };
    // A binding that the configuration no longer has leaves its files as they are.
    let Some(binding) = config.bind(&row.path) else { return Ok(None) };
    let place = binding.kind.place(&row.relative);
    let PlaceRow { workspace, path, relative } = row;
    Ok(Some(Governed { workspace, path, relative, binding, place }))
}

/// The name of the kind of a workspace: that of the present layout, which may have made it one of another kind than it
/// was made for.
#[must_use]
pub fn kind_of(config: &Config, workspace: &WorkspaceRow) -> String {
    let binding = config.bind(&workspace.path);
    binding.map_or_else(|| workspace.kind.clone(), |binding| binding.kind.name().to_string())
}

/// How many records of a workspace have no name, since theirs went to a backup.
///
/// # Errors
/// A failure of the store.
pub fn parked_records(read: &dyn Read, workspace: &WorkspaceRow) -> Result<u64> {
    let mut parked = 0;
    read.parked(workspace.key, &mut |_| {
        parked += 1;
        true
    })?;
    Ok(parked)
}

/// Whether directory `dir` is none of a workspace's: no row says so, or the row of one that the configuration has
/// makes nothing of it any more.
///
/// # Errors
/// A failure of the store.
pub fn is_plain(read: &dyn Read, config: &Config, dir: Ino) -> Result<bool> {
    Ok(governed(read, config, dir)?.is_none_or(|here| here.place == Place::Outside))
}

/// What the name `name` in directory `dir` stands for.
///
/// # Errors
/// A failure of the store.
pub fn slot(read: &dyn Read, config: &Config, dir: Ino, name: &FileName) -> Result<Slot> {
    let Some(governed) = governed(read, config, dir)? else { return Ok(Slot::Plain) };
    let Place::State { state, owner } = governed.place.clone() else { return Ok(Slot::Plain) };
    let Some(id) = governed.binding.kind.record_id(name) else { return Ok(Slot::Plain) };
    Ok(Slot::Record(Box::new(Home { governed, state, owner, id, dir, name: name.clone() })))
}

/// Whose a directory at a path is.
enum Belongs {
    /// To nobody.
    Nowhere,
    /// It is a workspace of its own.
    Itself(Arc<Binding>),
    /// To the workspace of the directory above it, of which it is this.
    Above(Governed),
}

fn belongs(read: &dyn Read, config: &Config, parent: Ino, path: &TreePath) -> Result<Belongs> {
    if let Some(binding) = config.bind(path) {
        return Ok(Belongs::Itself(binding));
    }
    let (Some(above), Some((_, name))) = (governed(read, config, parent)?, path.split_last())
    else {
        return Ok(Belongs::Nowhere);
    };
    match above.place_of(name) {
        Place::Outside => Ok(Belongs::Nowhere),
        place => {
            let relative = above.relative_of(name);
            Ok(Belongs::Above(Governed { relative, place, ..above }))
        }
    }
}

/// Whether a directory in `parent` would be a workspace's, if it were made at `path` now.
///
/// # Errors
/// A failure of the store.
pub fn would_be_governed(
    read: &dyn Read,
    config: &Config,
    parent: Ino,
    path: &TreePath,
) -> Result<bool> {
    Ok(!matches!(belongs(read, config, parent, path)?, Belongs::Nowhere))
}

/// The path of directory `dir` from the root, found by climbing.
///
/// # Errors
/// A failure of the store.
pub fn path_of_dir(read: &dyn Read, dir: Ino) -> Result<TreePath> {
    Ok(climb(read, dir, None)?.0)
}

/// The path of directory `dir` from the directory `root`; `None` where it does not lie there, or where
/// either is no more.
///
/// # Errors
/// A failure of the store.
pub fn path_below(read: &dyn Read, dir: Ino, root: Ino) -> Result<Option<TreePath>> {
    let (path, top) = climb(read, dir, Some(root))?;
    Ok((top == root).then_some(path))
}

/// The way from directory `dir` up to `root`, or as far as there are names, and where that is.
fn climb(read: &dyn Read, dir: Ino, root: Option<Ino>) -> Result<(TreePath, Ino)> {
    let mut names = Vec::new();
    let mut at = dir;
    while Some(at) != root
        && let Some(name) = read.dir_name(at)?
    {
        names.push(name);
        match read.node(at)? {
            Some(node) if names.len() <= 4096 => at = node.parent,
            _ => break,
        }
    }
    Ok((names.into_iter().rev().collect(), at))
}

/// The path of `name` in directory `dir`.
///
/// # Errors
/// A failure of the store.
pub fn path_of(read: &dyn Read, dir: Ino, name: &FileName) -> Result<TreePath> {
    Ok(path_of_dir(read, dir)?.join(name.clone()))
}

impl Turn<'_> {
    /// [`slot`] in this turn.
    pub(in crate::engine) fn slot(&self, dir: Ino, name: &FileName) -> Result<Slot> {
        slot(self.txn, self.config, dir, name)
    }

    /// Refuses a directory that is called like a state's and is not the workspace's: a layout may make it one of
    /// its own, or may not have taken it over. What went there would be no record any more.
    pub(in crate::engine) fn require_state_dir(
        &self,
        workspace: WorkspaceKey,
        dir: Ino,
    ) -> std::result::Result<(), Stop> {
        let here = governed(self.txn, self.config, dir)?;
        if here.is_some_and(|here| here.workspace == workspace && here.place.is_state()) {
            return Ok(());
        }
        let path = path_of_dir(self.txn, dir)?;
        let reason = format!("`{path}` is no directory of the workspace's, by the layout");
        let remedy =
            "give it another name, or have the layout changed (`workfs doctor` tells what it left)";
        Err(Refusal::new(Rule::Transition, reason, remedy).into())
    }

    /// Says what the directory `dir`, just made or moved to `name` in `parent`, is to a workspace.
    pub(in crate::engine) fn settle_dir(
        &mut self,
        parent: Ino,
        name: &FileName,
        dir: Ino,
    ) -> Result<()> {
        self.txn.put_dir_name(dir, name)?;
        charge_dir(self.txn, self.config, parent, name, dir)?;
        let path = path_of(self.txn, parent, name)?;
        match belongs(self.txn, self.config, parent, &path)? {
            Belongs::Nowhere => self.txn.delete_place(dir),
            Belongs::Itself(binding) => self.settle_workspace(path, dir, binding.kind.name()),
            Belongs::Above(Governed { workspace, path: root, relative, binding, place }) => {
                self.must_survive_power_loss();
                let row = PlaceRow { workspace, path: root.clone(), relative };
                self.txn.put_place(dir, &row)?;
                match place {
                    Place::State { .. } => self.register(&root, binding.kind.name(), &path),
                    Place::Root | Place::Prefix | Place::Outside => Ok(()),
                }
            }
        }
    }

    /// Says that the directory `dir` at `path` is a workspace.
    pub(in crate::engine) fn settle_workspace(
        &mut self,
        path: TreePath,
        dir: Ino,
        kind: &KindName,
    ) -> Result<()> {
        let workspace = self.open_workspace(&path, dir, kind)?;
        let place = PlaceRow { workspace, path: path.clone(), relative: Vec::new() };
        self.txn.put_place(dir, &place)?;
        self.register(&path, kind, &path)
    }

    /// The workspace at `path`: a new one, or the one that was there before, with its history.
    fn open_workspace(
        &mut self,
        path: &TreePath,
        dir: Ino,
        kind: &KindName,
    ) -> Result<WorkspaceKey> {
        match self.txn.workspace_at(path)? {
            Some(row) => {
                self.txn.update_workspace(row.key, path, Some(dir), kind.as_str())?;
                Ok(row.key)
            }
            None => self.txn.insert_workspace(path, dir, kind.as_str()),
        }
    }

    fn register(&mut self, workspace: &TreePath, kind: &KindName, dir: &TreePath) -> Result<()> {
        let shown = dir.to_string();
        let payload = Payload::of(&[("path", Field::Text(&shown))]);
        let (kind, workspace) = (Some(kind), Some(workspace));
        let happening =
            Happening { kind, workspace, ..Happening::of(EventName::REGISTERED, payload) };
        self.append(None, happening)?;
        Ok(())
    }

    /// Forgets what a removed directory was.
    pub(in crate::engine) fn unsettle_dir(&mut self, dir: Ino) -> Result<()> {
        if let Some(row) = self.txn.place(dir)? {
            self.must_survive_power_loss();
            self.txn.delete_place(dir)?;
            if row.relative.is_empty()
                && let Some(workspace) = self.txn.workspace(row.workspace)?
            {
                let WorkspaceRow { key, path, kind, .. } = workspace;
                self.txn.update_workspace(key, &path, None, &kind)?;
            }
        }
        Ok(())
    }
}
