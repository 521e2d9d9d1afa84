//! The tree as it was after an event: the records, and the plain files of which versions are kept.
//!
//! What must stay true: a file is there only with the content that the ledger says it had; where none of then is
//! kept (any more), it is left out, and so is a directory in which nothing is left. A path that no rule counts is asked
//! for nowhere, whatever a directory has brought there. Deliberately not here: drafts and links, of which the ledger does
//! not tell enough; which rules counted then: the ledger does not tell that, and those of today do.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};

use super::event::{Leaves, PastEvent, event_of_record};
use super::versions::{VersionThen, version_then};
use super::whence::{Elsewhere, Told, Walks, Whence, whence};
use crate::config::Config;
use crate::engine::{counted, path_of_dir};
use crate::kind::Place;
use crate::ledger::path_of_ledger;
use crate::names::{FileName, TreePath};
use crate::numbers::{G, Ino, RecordKey};
use crate::store::{Read, Record, Standing, StoreError, WorkspaceRow, earlier};

/// What lay at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// A directory with something in it.
    Directory,
    /// A file, as the event with this number made it.
    Version(G),
}

/// What a directory had.
pub struct Had {
    /// Directories and plain files.
    pub named: BTreeMap<FileName, Then>,
    /// Records, of which there may be a million; [`AfterEvent::file_of`] tells of each.
    pub records: Vec<RecordKey>,
}

/// Where a record lay.
enum Lay {
    /// Where it lies.
    Here(Ino, FileName),
    /// Where an event says.
    Told(TreePath),
}

/// The tree after an event.
pub struct AfterEvent<'r> {
    read: &'r dyn Read,
    config: &'r Config,
    g: G,
    /// Where directories lie now, in which records lie that did not change since.
    dirs: RefCell<HashMap<Ino, TreePath>>,
    /// The number of the last record that had been made, once it is known.
    last_made: Cell<Option<u64>>,
}

impl<'r> AfterEvent<'r> {
    /// The tree after event `g`, as `read` tells of it; the configuration of today says which names are records'.
    pub fn new(read: &'r dyn Read, config: &'r Config, g: G) -> Self {
        AfterEvent { read, config, g, dirs: RefCell::default(), last_made: Cell::default() }
    }

    /// What lay at `path`. The root is always there.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn at(&self, path: &TreePath) -> Result<Option<Then>, StoreError> {
        if path.names().is_empty() {
            return Ok(Some(Then::Directory));
        }
        if let Some(version) = self.record_at(path)? {
            return Ok(Some(Then::Version(version)));
        }
        if let Some(then) = self.plain_at(path)? {
            return Ok(Some(then));
        }
        for workspace in self.read.workspaces()? {
            if self.may_hold_records(&workspace, path) && self.has_record_below(&workspace, path)? {
                return Ok(Some(Then::Directory));
            }
        }
        Ok(None)
    }

    /// Whether records of a workspace may have lain below `path`: not where a record would lie itself.
    fn may_hold_records(&self, workspace: &WorkspaceRow, path: &TreePath) -> bool {
        let Some(relative) = path.below(&workspace.path) else {
            return workspace.path.below(path).is_some();
        };
        let (binding, name) = (self.config.bind(&workspace.path), relative.names().last());
        !binding.zip(name).is_some_and(|(binding, name)| {
            let place = binding.kind.place(relative.names());
            place == Place::Outside && binding.kind.record_id(name).is_some()
        })
    }

    /// What the directory at `dir` had.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn below(&self, dir: &TreePath) -> Result<Had, StoreError> {
        let (mut named, mut records) = (BTreeMap::new(), Vec::new());
        for workspace in self.read.workspaces()? {
            if let Some(rest) = workspace.path.below(dir)
                && let Some(name) = rest.names().first()
            {
                if self.has_record_below(&workspace, &workspace.path)? {
                    named.insert(name.clone(), Then::Directory);
                }
            } else if dir.below(&workspace.path).is_some() {
                self.records(&workspace, &mut |path, record| {
                    let rest = path.below(dir);
                    match rest.as_ref().map(TreePath::names) {
                        Some([_]) => records.push(record),
                        Some([name, ..]) => drop(named.insert(name.clone(), Then::Directory)),
                        Some([]) | None => {}
                    }
                    true
                })?;
            }
        }
        for name in self.plain_names(dir)? {
            if !named.contains_key(&name)
                && let Some(then) = self.plain_at(&dir.join(name.clone()))?
            {
                named.insert(name, then);
            }
        }
        Ok(Had { named, records })
    }

    /// The name of the file of a record, and its version.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn file_of(&self, record: RecordKey) -> Result<Option<(FileName, G)>, StoreError> {
        let Some(record) = self.read.record(record)? else { return Ok(None) };
        let name = match self.lay(&record)? {
            Some(Lay::Here(_, name)) => Some(name),
            Some(Lay::Told(path)) => path.names().last().cloned(),
            None => None,
        };
        Ok(name.zip(self.version(&record)?))
    }

    fn includes(&self) -> impl Fn(&PastEvent) -> bool + use<> {
        let g = self.g;
        move |event: &PastEvent| event.row.g <= g
    }

    /// What lay at `path` and was no record.
    fn plain_at(&self, path: &TreePath) -> Result<Option<Then>, StoreError> {
        if let Some(version) = self.file_at(path)? {
            return Ok(Some(Then::Version(version)));
        }
        // Else each name in a great directory that was moved where nothing counts would be gone back along, for nothing.
        if !self.config.files().may_keep_below(path) {
            return Ok(None);
        }
        for name in self.plain_names(path)? {
            if self.plain_at(&path.join(name))?.is_some() {
                return Ok(Some(Then::Directory));
            }
        }
        Ok(None)
    }

    /// The version of the plain file that lay at `path`.
    fn file_at(&self, path: &TreePath) -> Result<Option<G>, StoreError> {
        Ok(match self.version_at(path)? {
            VersionThen::Kept(version) => Some(version.g),
            VersionThen::Elsewhere(Elsewhere::Told(other, _)) => match self.version_at(&other)? {
                VersionThen::Kept(version) => Some(version.g),
                VersionThen::Elsewhere(_) | VersionThen::None => None,
            },
            VersionThen::Elsewhere(_) | VersionThen::None => None,
        })
    }

    fn version_at(&self, path: &TreePath) -> Result<VersionThen, StoreError> {
        let counts = counted(self.config);
        if !counts(path) {
            return Ok(VersionThen::None);
        }
        let told = match whence(self.read, path, counts, self.includes())? {
            Whence::Own { before } => Told { path: path.clone(), before },
            Whence::Brought { told: Some(told), .. } => told,
            Whence::Brought { told: None, .. } | Whence::Gone { .. } => {
                return Ok(VersionThen::None);
            }
        };
        version_then(self.read, &told, counts, |g, _| g <= self.g)
    }

    /// The names below `dir` of which events of plain files tell, there or where the directory lay before: all
    /// that was there is among them.
    fn plain_names(&self, dir: &TreePath) -> Result<Vec<FileName>, StoreError> {
        let (mut there, mut names) = (dir.clone(), Vec::new());
        let mut walks = Walks::new(self.read, self.includes());
        loop {
            let depth = there.names().len();
            self.read.histories(&there, None, &mut |history| {
                let name = history.path.names().get(depth);
                // They come in their order, and so those of one directory together.
                if name != names.last() {
                    names.extend(name.cloned());
                }
                true
            })?;
            let turned = walks.turned_from(Some(there.clone()), G(0))?;
            let Some((above, event)) = turned.filter(|(_, event)| !event.is_end) else { break };
            let came = walks.came(&above, &event)?;
            let Some(from) = came.from else { break };
            there = from.join_all(&there.below(&above).unwrap_or_default());
            walks.before = came.before;
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The version of the record that lay at `path`.
    fn record_at(&self, path: &TreePath) -> Result<Option<G>, StoreError> {
        let Some((_, name)) = path.split_last() else { return Ok(None) };
        for workspace in self.read.workspaces()? {
            let binding = self.config.bind(&workspace.path);
            let binding = binding.filter(|_| path.below(&workspace.path).is_some());
            if let Some(id) = binding.and_then(|binding| binding.kind.record_id(name))
                && let Some(record) = self.read.record_named(workspace.key, &id)?
                && self.path_of(&record)?.is_some_and(|lay| lay == *path)
            {
                return self.version(&record);
            }
        }
        Ok(None)
    }

    fn has_record_below(
        &self,
        workspace: &WorkspaceRow,
        path: &TreePath,
    ) -> Result<bool, StoreError> {
        let mut has = false;
        self.records(workspace, &mut |lay, _| {
            has = lay.below(path).is_some();
            !has
        })?;
        Ok(has)
    }

    /// Where each record of a workspace lay.
    fn records(
        &self,
        workspace: &WorkspaceRow,
        visit: &mut dyn FnMut(TreePath, RecordKey) -> bool,
    ) -> Result<(), StoreError> {
        // Each is numbered when it is made: who looks far back looks at few.
        for key in (1..=self.last_made()?).map(RecordKey) {
            if let Some(record) = self.read.record(key)?
                && record.workspace == workspace.key
                && let Some(path) = self.path_of(&record)?
                && !visit(path, key)
            {
                break;
            }
        }
        Ok(())
    }

    /// The number of the last record that had been made.
    fn last_made(&self) -> Result<u64, StoreError> {
        if let Some(last) = self.last_made.get() {
            return Ok(last);
        }
        let numbers = self.read.numbers()?;
        let of_records = numbers.iter().find(|one| one.of == "records");
        // Those up to the first were made, the other is the first that was not.
        let (mut made, mut other) = (0, of_records.map_or(0, |one| one.highest) + 1);
        while other - made > 1 {
            let middle = made + (other - made) / 2;
            let record = self.read.record(RecordKey(middle))?;
            if record.map_or(Ok(G(0)), |record| self.made_by(&record))? <= self.g {
                made = middle;
            } else {
                other = middle;
            }
        }
        self.last_made.set(Some(made));
        Ok(made)
    }

    /// The event that made a record.
    fn made_by(&self, record: &Record) -> Result<G, StoreError> {
        let mut first = record.last_g;
        while let Some(row) = self.read.event(first)?.filter(|row| row.before_g > G(0)) {
            first = earlier(first, row.before_g)?;
        }
        Ok(first)
    }

    fn version(&self, record: &Record) -> Result<Option<G>, StoreError> {
        let mut version = record.version_g;
        while version > self.g {
            let Some(row) = self.read.version(version)? else { return Ok(None) };
            version = earlier(version, row.before_g)?;
        }
        Ok(Some(version).filter(|version| *version > G(0)))
    }

    fn path_of(&self, record: &Record) -> Result<Option<TreePath>, StoreError> {
        let (dir, name) = match self.lay(record)? {
            Some(Lay::Here(dir, name)) => (dir, name),
            Some(Lay::Told(path)) => return Ok(Some(path)),
            None => return Ok(None),
        };
        let known = self.dirs.borrow().get(&dir).cloned();
        let above = match known {
            Some(above) => above,
            None => {
                let above = path_of_dir(self.read, dir)?;
                self.dirs.borrow_mut().insert(dir, above.clone());
                above
            }
        };
        Ok(Some(above.join(name)))
    }

    fn lay(&self, record: &Record) -> Result<Option<Lay>, StoreError> {
        if record.last_g <= self.g {
            let Standing::Live { dir, name, .. } = &record.standing else { return Ok(None) };
            return Ok(Some(Lay::Here(*dir, name.clone())));
        }
        let mut at = record.last_g;
        while let Some(event) = event_of_record(self.read, at)? {
            if event.row.g <= self.g
                && let Some(leaves) = event.leaves()
            {
                return Ok(match leaves {
                    Leaves::At(path) => path_of_ledger(&path).map(Lay::Told),
                    Leaves::Parked(_) | Leaves::Nowhere => None,
                });
            }
            at = event.before;
        }
        Ok(None)
    }
}
