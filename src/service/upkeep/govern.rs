//! Taking over directories that lie where the configuration wants a workspace, and that were plain
//! ones until now.
//!
//! What must stay true: doing it again changes nothing; a directory is taken over with its files, or
//! left as it was with the reason. Deliberately not here: what becomes of a file (`engine::Govern`).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::engine::{
    Engine, Govern, GovernRoot, Governed, Placed, governed, home_of_parked, is_plain,
    path_of_backup, would_be_governed,
};
use crate::kind::Place;
use crate::names::{FileName, ShownPath, TreePath};
use crate::numbers::{Ino, ROOT};
use crate::service::import::{Correction, DraftReason, Listed, Unreadable, ends_all, show_lists};
use crate::service::{Caller, Failure};
use crate::store::{Class, NodeType, Read, Standing, StoreError};
use crate::units::counted;

/// What was taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GovernReport {
    /// Directories that are a workspace's now.
    pub directories: Listed<ShownPath>,
    /// Files that are records now, the corrected ones among them.
    pub records: u64,
    /// Records that were changed because they contradicted their directory.
    pub corrected: Listed<Correction>,
    /// Files that are drafts now.
    pub drafts: Listed<DraftReason>,
    /// What was left as it was.
    pub left: Listed<Unreadable>,
}

impl GovernReport {
    /// What was taken over, then the lists; nothing if there was nothing.
    #[must_use]
    pub fn human(&self) -> Option<String> {
        if self.directories.count == 0 && self.left.count == 0 {
            return None;
        }
        let mut out = format!(
            "took over {} that {} there: {} ({} corrected), {}",
            counted(self.directories.count, "directory"),
            if self.directories.count == 1 { "was" } else { "were" },
            counted(self.records, "record"),
            self.corrected.count,
            counted(self.drafts.count, "draft"),
        );
        show_lists(&mut out, &self.corrected, &self.drafts, &self.left);
        Some(out)
    }
}

/// What there is in a directory.
#[derive(Default)]
struct Below {
    /// The directories.
    all: Vec<(Ino, TreePath)>,
    /// Those of them that are to be taken over.
    plain: Vec<(FileName, TreePath)>,
    /// It is a workspace's, and has files that came while no configuration said so.
    has_strays: bool,
    /// It is a workspace, and this hides the directory that shows what is ready.
    hides: Option<TreePath>,
    /// How many records and drafts it has that are not what the configuration would make of them.
    homeless: u64,
}

/// Takes over what the configuration in force wants; `progress` hears how many directories are done,
/// and of how many that are known so far.
///
/// # Errors
/// A failure of the store. What is wrong with single directories is in the report.
pub fn govern(
    engine: &Engine,
    caller: &Caller,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<GovernReport, Failure> {
    let config = engine.config();
    let mut report = GovernReport::default();
    let take_over = |report: &mut GovernReport, parent, name, path: &TreePath| {
        match engine.run(caller.context(), Govern { parent, name }) {
            Ok(placed) => report.note(path, placed),
            Err(refusal) if ends_all(&refusal) => return Err(refusal),
            Err(refusal) => {
                let why = format!("{refusal}: {}", refusal.remedy);
                report.left.push(Unreadable { path: path.into(), why });
            }
        }
        Ok(())
    };
    engine.run(caller.context(), GovernRoot { root: ROOT })?;
    let mut dirs = VecDeque::from([(ROOT, ROOT, TreePath::root())]);
    let mut done = 0;
    while let Some((parent, dir, path)) = dirs.pop_front() {
        let below =
            crate::store::read(&**engine.readers(), |read| look(read, &config, dir, &path))?;
        if below.has_strays
            && let Some((_, name)) = path.split_last()
        {
            take_over(&mut report, parent, name.clone(), &path)?;
        }
        if let Some(path) = below.hides {
            let why = "it hides what shows here what is ready: move it elsewhere".to_owned();
            report.left.push(Unreadable { path: (&path).into(), why });
        }
        for (name, path) in below.plain {
            take_over(&mut report, dir, name, &path)?;
        }
        dirs.extend(below.all.into_iter().map(|(ino, path)| (dir, ino, path)));
        done += 1;
        progress(done, done + dirs.len() as u64);
    }
    for path in crate::store::read(&**engine.readers(), |read| in_the_way(read, &config))? {
        let why =
            "it lies where a workspace has a directory: move it elsewhere, and run this again";
        report.left.push(Unreadable { path: (&path).into(), why: why.to_owned() });
    }
    Ok(report)
}

/// What of the tree a configuration does not fit.
#[derive(Debug, Default)]
pub struct Unfit {
    /// Directories in which something is not as it wants it, and which `govern` names: those that it leaves
    /// as they were, what lies where one is to be, and what hides a workspace's ready records.
    pub left: Vec<TreePath>,
    /// Directories whose records and drafts would belong to no workspace, or be in other states or of other
    /// owners than they are, and how many they have. Nobody, or not who should, could move, save or remove them.
    pub homeless: Vec<(TreePath, u64)>,
}

/// Looks for it.
///
/// # Errors
/// A failure of the store.
pub fn unfit(read: &dyn Read, config: &Config) -> Result<Unfit, StoreError> {
    let mut found = Unfit::default();
    let mut dirs = vec![(ROOT, TreePath::root())];
    while let Some((dir, path)) = dirs.pop() {
        let below = look(read, config, dir, &path)?;
        found.left.extend(below.hides);
        found.left.extend(below.plain.into_iter().map(|(_, path)| path));
        if below.has_strays {
            found.left.push(path.clone());
        }
        if below.homeless > 0 {
            found.homeless.push((path, below.homeless));
        }
        dirs.extend(below.all);
    }
    found.left.extend(in_the_way(read, config)?);
    for path in parked_elsewhere(read, config)? {
        match found.homeless.iter_mut().find(|(dir, _)| *dir == path) {
            Some((_, count)) => *count += 1,
            None => found.homeless.push((path, 1)),
        }
    }
    found.left.sort();
    found.homeless.sort();
    Ok(found)
}

/// The directories in which records are parked that could not come back as what they were.
fn parked_elsewhere(read: &dyn Read, config: &Config) -> Result<Vec<TreePath>, StoreError> {
    let mut parked = Vec::new();
    for workspace in read.workspaces()? {
        read.records(workspace.key, &mut |record| {
            if matches!(record.standing, Standing::Parked { .. }) {
                parked.push(record);
            }
            true
        })?;
    }
    let mut found = Vec::new();
    for record in parked {
        if home_of_parked(read, config, &record)?.is_none()
            && let Some(backup) = path_of_backup(read, &record)?
            && let Some((dir, _)) = backup.split_last()
        {
            found.push(dir);
        }
    }
    Ok(found)
}

/// What lies where the configuration names a directory, and is none.
fn in_the_way(read: &dyn Read, config: &Config) -> Result<Vec<TreePath>, StoreError> {
    let mut found = Vec::new();
    for dir in config.directories() {
        let (mut at, mut path) = (ROOT, TreePath::root());
        for name in dir.names() {
            let Some(node) = read.lookup(at, name)? else { break };
            path = path.join(name.clone());
            if node.node_type != NodeType::Directory {
                if !found.contains(&path) {
                    found.push(path);
                }
                break;
            }
            at = node.ino;
        }
    }
    Ok(found)
}

/// Whether the file `ino` of a directory is what the configuration makes of it. What is said of one record
/// holds for all in its directory.
fn is_at_home(read: &dyn Read, here: Option<&Governed>, ino: Ino) -> Result<bool, StoreError> {
    let Some(here) = here else { return Ok(false) };
    let Place::State { state, owner } = &here.place else { return Ok(false) };
    let record = read.record_at(ino)?;
    let state = &here.binding.kind.state(*state).name;
    // Without a lane nothing would take it back from its owner; with another's it would be nobody's to move.
    Ok(record.is_none_or(|record| {
        let is_same = record.state == *state && record.owner == *owner;
        record.workspace == here.workspace && is_same
    }))
}

fn look(read: &dyn Read, config: &Config, dir: Ino, path: &TreePath) -> Result<Below, StoreError> {
    let here = governed(read, config, dir)?;
    let hides = |name: &FileName| here.as_ref().is_some_and(|here| here.is_order_dir(name));
    let state = here.as_ref().filter(|here| here.place.is_state());
    let is_record_like =
        |name: &FileName| state.is_some_and(|state| state.binding.kind.record_id(name).is_some());
    let (mut below, mut found) = (Below::default(), Vec::new());
    let (mut record, mut draft, mut count) = (None, None, 0);
    read.list_names(dir, None, &mut |(name, kind)| {
        if hides(&name) {
            below.hides = Some(path.join(name.clone()));
        }
        match (kind.node_type, kind.class) {
            (NodeType::Directory, _) => found.push((kind.ino, name)),
            (NodeType::File, Class::Plain) => below.has_strays |= is_record_like(&name),
            (NodeType::File, class) => {
                let first = if class == Class::Record { &mut record } else { &mut draft };
                first.get_or_insert(kind.ino);
                below.homeless += u64::from(!is_record_like(&name));
                count += 1;
            }
            _ => {}
        }
        true
    })?;
    if let Some(file) = record.or(draft)
        && !is_at_home(read, here.as_ref(), file)?
    {
        below.homeless = count;
    }
    for (ino, name) in found {
        let path = path.join(name.clone());
        if is_plain(read, config, ino)? && would_be_governed(read, config, dir, &path)? {
            below.plain.push((name, path.clone()));
        }
        below.all.push((ino, path));
    }
    Ok(below)
}

impl GovernReport {
    fn note(&mut self, dir: &TreePath, placed: Vec<(FileName, Placed)>) {
        self.directories.push(dir.into());
        for (name, placed) in placed {
            let path = ShownPath::from(&dir.join(name));
            match placed {
                Placed::Record(_, corrected) => {
                    self.records += 1;
                    if let Some(one) = corrected {
                        self.corrected.push(Correction::new(path, one));
                    }
                }
                Placed::Draft(_, refusal) => self.drafts.push(DraftReason::new(path, refusal)),
                Placed::Plain(_) | Placed::Unchanged(_) | Placed::MovedOn(_) | Placed::Left(_) => {}
            }
        }
    }
}
