//! Setting a store up: its configuration, the directories of its workspaces, its root's owner.
//!
//! What must stay true: every change is an engine command; doing it twice changes nothing more; a new
//! store says that it is whole only when all of it is there, so that one whose making was broken off at any
//! moment is set up by whoever opens it next.
//! Deliberately not here: the form of a configuration (`config`).

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use crate::config::{CONFIG_KEY, Config};
use crate::engine::{Command, Context, Create, Engine, NewContent, SetAttributes, Stop, Turn};
use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::Refusal;
use crate::service::{Caller, PARTS, SCRATCHPAD};
use crate::store::{MAKING_BEGUN, MAKING_DONE, MAKING_KEY, Read, Readers, StoreError};

/// What a store is to become.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// A configuration to keep; `None` leaves what is there (or the default).
    pub config: Option<Arc<Config>>,
    /// No directories are made.
    pub bare: bool,
    /// The scratchpad's directories are made, too.
    pub scratchpad: bool,
}

/// What was set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Directories that were made.
    pub made: Vec<String>,
    /// Directories that were there.
    pub there: Vec<String>,
}

/// Reads a layout, as `workfs init --layout` is given it.
///
/// # Errors
/// If it cannot be read or is wrong; the reason names file and line.
pub fn layout(file: &Path) -> Result<Config, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let remedy = "give a layout file that you may read: `workfs init --layout FILE`";
        Failure { remedy: remedy.into(), ..Failure::io(file.display(), &error) }
    })?;
    let dir = file.parent().unwrap_or(Path::new("."));
    let load = |name: &str| {
        let beside = dir.join(name);
        std::fs::read_to_string(&beside).map_err(|error| format!("{}: {error}", beside.display()))
    };
    Ok(Config::from_layout(&file.display().to_string(), &text, &load)?)
}

/// Says that a new store is whole. Until then whoever opens it sets it up, as if it had just been made.
///
/// # Errors
/// A refusal or a failure of the store.
pub fn finish(engine: &Engine) -> Result<(), Failure> {
    Ok(engine.run(Caller::this_process().context(), Finish)?)
}

/// Whether what a new store begins with is missing, since its making was broken off or has just begun.
///
/// # Errors
/// A failure of the store.
pub(super) fn is_unfinished(readers: &dyn Readers) -> Result<bool, StoreError> {
    let said = crate::store::read(readers, |read| read.meta(MAKING_KEY))?;
    Ok(said.as_deref() == Some(MAKING_BEGUN))
}

/// Sets a store up. The engine must have been started with the configuration that is to be kept.
///
/// # Errors
/// A refusal or a failure of the store.
pub fn set_up(engine: &Engine, setup: &Setup) -> Result<Made, Failure> {
    let caller = Caller::this_process();
    let context = caller.context();
    if let Some(config) = &setup.config {
        let keep = KeepConfig { text: config.to_yaml() };
        engine.run(context.clone(), keep)?;
    }
    let root = crate::store::read(&**engine.readers(), |read| read.node(workfs_mount::ROOT))?;
    if root.is_some_and(|root| root.uid != caller.uid && root.nlink <= 2) {
        // The schema makes the root root's.
        engine.run(context.clone(), own_root(&caller))?;
    }
    let mut made = Made::default();
    if setup.bare {
        return Ok(made);
    }
    let config = engine.config();
    let scratchpad = if setup.scratchpad { scratchpad(&config) } else { Vec::new() };
    for path in directories(&config).into_iter().chain(scratchpad) {
        let existed = make_path(engine, &context, &path)?;
        if existed { &mut made.there } else { &mut made.made }.push(path.to_string());
    }
    Ok(made)
}

fn own_root(caller: &Caller) -> SetAttributes {
    SetAttributes {
        ino: workfs_mount::ROOT,
        mode: None,
        uid: Some(caller.uid),
        gid: Some(caller.gid),
        is_chown: false,
        size: None,
        atime: None,
        mtime: None,
    }
}

/// The directories that a configuration names outright: no globs, no owners, no months.
#[must_use]
pub fn directories(config: &Config) -> Vec<TreePath> {
    let mut all = Vec::new();
    for binding in config.bindings() {
        let Some(root) = binding.path.literal() else { continue };
        all.push(root.clone());
        for (_, state) in binding.kind.states() {
            for dir in &state.dirs {
                all.extend(literal_start(&root, dir));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|path| seen.insert(path.clone()));
    all
}

/// The scratchpad's directories, where what is saved there is kept.
fn scratchpad(config: &Config) -> Vec<TreePath> {
    let Ok(root) = TreePath::parse(SCRATCHPAD) else { return Vec::new() };
    if config.files().scope(&root).is_none() {
        return Vec::new();
    }
    PARTS.iter().filter_map(|part| FileName::new(part).ok()).map(|part| root.join(part)).collect()
}

/// The longest path that the pattern surely begins with; `None` if it begins with a variable.
fn literal_start(root: &TreePath, dir: &crate::kind::Pattern) -> Option<TreePath> {
    let mut path = root.clone();
    for component in dir.components() {
        let crate::kind::Component::Literal(name) = component else { break };
        path = path.join(name.clone());
    }
    (path != *root).then_some(path)
}

/// Makes a directory and those above it; says whether it was there.
fn make_path(engine: &Engine, context: &Context, path: &TreePath) -> Result<bool, Refusal> {
    let mut at = workfs_mount::ROOT;
    let mut existed = true;
    for name in path.names() {
        (at, existed) = make_directory(engine, context, at, name)?;
    }
    Ok(existed)
}

fn make_directory(
    engine: &Engine,
    context: &Context,
    parent: Ino,
    name: &FileName,
) -> Result<(Ino, bool), Refusal> {
    let find = |read: &dyn Read| read.lookup(parent, name);
    if let Some(node) = crate::store::read(&**engine.readers(), find)? {
        return Ok((node.ino, true));
    }
    let content = NewContent::Directory;
    let create = Create { parent, name: name.clone(), mode: 0o755, content, on_draft: None };
    Ok((engine.run(context.clone(), create)?.ino, false))
}

/// Keeps a configuration in the store.
struct KeepConfig {
    text: String,
}

impl Command for KeepConfig {
    type Out = ();

    fn operation(&self) -> &'static str {
        "init"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        Ok(turn.txn.put_meta(CONFIG_KEY, &self.text)?)
    }
}

/// Notes that nothing of a new store is missing.
struct Finish;

impl Command for Finish {
    type Out = ();

    fn operation(&self) -> &'static str {
        "init"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        Ok(turn.txn.put_meta(MAKING_KEY, MAKING_DONE)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_directories_are_those_of_tasks() {
        let all: Vec<String> =
            directories(&Config::default()).iter().map(ToString::to_string).collect();
        assert_eq!(all[..5], ["work", "work/inbox", "work/assigned", "work/done", "work/dead"]);
        assert_eq!(all[5..7], ["work/fridge", "work/archive"]);
        assert!(all.contains(&"work/collaboration/inbox".to_owned()));
        let globs =
            Config::parse("layout", "workspaces: [{path: 'x/*/work', kind: task}]\n").unwrap();
        assert!(directories(&globs).is_empty());
    }
}
