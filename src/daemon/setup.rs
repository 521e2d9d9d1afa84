//! Setting a store up: its configuration, the directories of its workspaces, its root's owner.
//!
//! What must stay true: every change is an engine command; doing it twice changes nothing more; a new
//! store says that it is whole only when all of it is there, so that one whose making was broken off at any
//! moment is set up by whoever opens it next.
//! Deliberately not here: the form of a configuration (`config`).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::failure::{Cause, Failure, LAYOUT_SHOWN};
use crate::config::{CONFIG_KEY, Config};
use crate::engine::{
    Command, Context, Create, Engine, NewContent, SetAttributes, Stop, Turn, inodes_in,
};
use crate::kind::yaml::DEFINITION_BYTES_MAX;
use crate::limits::CONFIG_BYTES_MAX;
use crate::names::{FileName, Shown, ShownPath, TreePath};
use crate::refusal::Refusal;
use crate::service::{Caller, PARTS, SCRATCHPAD};
use crate::store::{
    MAKING_BEGUN, MAKING_DONE, MAKING_KEY, NodeType, Read, Readers, StoreError, wants_descriptors,
};

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
    pub made: Vec<ShownPath>,
    /// Directories that were there.
    pub there: Vec<ShownPath>,
}

/// Reads a layout, as `workfs init --layout` is given it.
///
/// # Errors
/// If it cannot be read or is wrong; the reason names file and line.
pub fn layout(file: &Path) -> Result<Config, Failure> {
    let cannot = |error: &std::io::Error| {
        let remedy = "give a layout file that you may read: `workfs init --layout FILE`";
        let failure = Failure::io(file.shown(), error);
        if failure.cause == Cause::Busy {
            return failure;
        }
        Failure { remedy: remedy.into(), ..failure }
    };
    // It may come by a pipe, too.
    let opened = File::open(file).map_err(|error| cannot(&error))?;
    let text = text_of(opened, CONFIG_BYTES_MAX).map_err(|wrong| match wrong {
        Wrong::Io(error) => cannot(&error),
        Wrong::Text { line, what } => {
            let reason = format!("{}: {what}", file.shown());
            Failure { line, ..Failure::new(Cause::Usage, reason, LAYOUT_SHOWN) }
        }
    })?;
    let dir = file.parent().unwrap_or(Path::new("."));
    let lacking = Cell::new(None);
    let load = |name: &str| {
        let beside = dir.join(name);
        let text = regular(&beside)
            .map_err(Wrong::Io)
            .and_then(|file| text_of(file, DEFINITION_BYTES_MAX));
        text.map_err(|wrong| {
            if let Wrong::Io(error) = &wrong
                && wants_descriptors(error)
            {
                lacking.set(Some(Failure::io(beside.shown(), error)));
            }
            format!("{}: {wrong}", beside.shown())
        })
    };
    let config = Config::from_layout(&file.shown(), &text, &load);
    if let Some(failure) = lacking.take() {
        return Err(failure);
    }
    let config = config?;
    // Told before a store is opened for it, and where it is only looked at, too.
    config.to_keep()?;
    Ok(config)
}

/// Why a file is no layout, nor what one may name.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("{0}")]
    Io(std::io::Error),
    #[error("{what}{}", line.map_or_else(String::new, |line| format!(" in line {line}")))]
    Text { line: Option<u32>, what: String },
}

/// Opens a regular file: to read a device, or a pipe that nobody writes, might never end.
fn regular(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() || meta.is_dir() {
        // What a directory is said to be when it is read names it.
        return Ok(file);
    }
    Err(std::io::Error::other("it is no regular file"))
}

/// Its text, of no more bytes than are read at all.
fn text_of(file: File, bytes_max: usize) -> Result<String, Wrong> {
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(Wrong::Io)?;
    if bytes.len() > bytes_max {
        let what = format!("it has more than {bytes_max} bytes, which is the limit");
        return Err(Wrong::Text { line: None, what });
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Wrong::Text { line: u32::try_from(line).ok(), what: "it is not UTF-8".to_owned() }
    })
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

/// Whether nothing was done to a store since process `pid` made it.
///
/// # Errors
/// A failure of the store.
pub(super) fn is_as_made(readers: &dyn Readers, pid: u32) -> Result<bool, StoreError> {
    crate::store::read(readers, |read| {
        let said = read.meta(MAKING_KEY)?;
        Ok(said.as_deref() == Some(MAKING_BEGUN) || said == Some(as_made(read, pid)?))
    })
}

/// What is noted of a store when it is made: by which process, how many events it has then, and how many
/// inodes.
fn as_made(read: &dyn Read, pid: u32) -> Result<String, StoreError> {
    let events = read.last_event()?.map_or(0, |last| last.g.0);
    Ok(format!("{MAKING_DONE} {pid} {events} {}", read.usage()?.nodes))
}

/// Sets a store up. The engine must have been started with the configuration that is to be kept.
///
/// # Errors
/// A refusal or a failure of the store.
pub fn set_up(engine: &Engine, setup: &Setup) -> Result<Made, Failure> {
    let caller = Caller::this_process();
    let context = caller.context();
    if let Some(config) = &setup.config {
        let keep = KeepConfig { text: config.to_keep()? };
        engine.run(context.clone(), keep)?;
    }
    let root = crate::store::read(&**engine.readers(), |read| read.node(workfs_mount::ROOT))?;
    if root.is_some_and(|root| root.uid == 0 && caller.uid != 0 && root.nlink <= 2) {
        // The schema makes the root root's. Root takes nobody else's.
        engine.run(context.clone(), own_root(&caller))?;
    }
    let mut made = Made::default();
    if setup.bare {
        return Ok(made);
    }
    let config = engine.config();
    let scratchpad = if setup.scratchpad { scratchpad(&config) } else { Vec::new() };
    for path in config.directories().into_iter().chain(scratchpad) {
        match make_path(engine, &context, &path)? {
            Some(true) => made.there.push((&path).into()),
            Some(false) => made.made.push((&path).into()),
            None => {}
        }
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

/// The scratchpad's directories, where what is saved there is kept.
fn scratchpad(config: &Config) -> Vec<TreePath> {
    let Ok(root) = TreePath::parse(SCRATCHPAD) else { return Vec::new() };
    if config.files().scope(&root).is_none() {
        return Vec::new();
    }
    PARTS.iter().filter_map(|part| FileName::new(part).ok()).map(|part| root.join(part)).collect()
}

/// A directory whose quota has no room for the directories that a configuration wants in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowded {
    /// The directory.
    pub name: FileName,
    /// How many files and directories it may hold.
    pub limit: u64,
    /// How many it would have.
    pub wanted: u64,
}

/// The first such directory, in a store, or in one that is still to be made.
///
/// # Errors
/// A failure of the store.
pub fn crowded(read: Option<&dyn Read>, config: &Config) -> Result<Option<Crowded>, StoreError> {
    let limit = |top: &FileName| config.quota(top).and_then(|quota| quota.inodes);
    let mut missing: BTreeMap<FileName, BTreeSet<TreePath>> = BTreeMap::new();
    for path in config.directories().into_iter().chain(scratchpad(config)) {
        let Some(top) = path.names().first().filter(|top| limit(top).is_some()) else { continue };
        let (mut at, mut made) = (read.map(|read| (read, workfs_mount::ROOT)), TreePath::root());
        for name in path.names() {
            made = made.join(name.clone());
            let found = at.map(|(read, dir)| read.lookup(dir, name)).transpose()?.flatten();
            match found {
                // Nothing is made there.
                Some(node) if node.node_type != NodeType::Directory => break,
                Some(node) => at = at.map(|(read, _)| (read, node.ino)),
                None => {
                    at = None;
                    missing.entry(top.clone()).or_default().insert(made.clone());
                }
            }
        }
    }
    for (name, missing) in missing {
        let there = match read {
            Some(read) => {
                let top = read.lookup(workfs_mount::ROOT, &name)?;
                top.map_or(Ok(0), |top| inodes_in(read, &top))?
            }
            None => 0,
        };
        let wanted = there + missing.len() as u64;
        if let Some(limit) = limit(&name).filter(|limit| wanted > *limit) {
            return Ok(Some(Crowded { name, limit, wanted }));
        }
    }
    Ok(None)
}

/// Makes a directory and those above it; says whether it was there. `None` where something that is no
/// directory lies in the way: `doctor` and `init` name it.
fn make_path(engine: &Engine, context: &Context, path: &TreePath) -> Result<Option<bool>, Refusal> {
    let mut at = workfs_mount::ROOT;
    let mut existed = true;
    for name in path.names() {
        let find = |read: &dyn Read| read.lookup(at, name);
        let found = crate::store::read(&**engine.readers(), find)?;
        existed = found.is_some();
        at = match found {
            Some(node) if node.node_type != NodeType::Directory => return Ok(None),
            Some(node) => node.ino,
            None => {
                let (name, content) = (name.clone(), NewContent::Directory);
                let create = Create::new(at, name, 0o755, content);
                engine.run(context.clone(), create)?.ino
            }
        };
    }
    Ok(Some(existed))
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
        // One that cannot be understood any more gave nothing a lease that would still hold.
        let before = Config::kept(turn.txn.meta(CONFIG_KEY)?.as_deref()).unwrap_or_default();
        turn.settle_locks(&before)?;
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
        let as_made = as_made(turn.txn, std::process::id())?;
        Ok(turn.txn.put_meta(MAKING_KEY, &as_made)?)
    }
}
