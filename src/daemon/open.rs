//! Opening a store: its lock, its configuration, its engine.
//!
//! What must stay true: the lock is held as long as the engine lives. Deliberately not here: what
//! the store is opened for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::failure::{Cause, Failure};
use super::logging::is_own_log;
use super::paths::StorePaths;
use super::setup::{self, Setup};
use super::socket;
use crate::config::{CONFIG_KEY, Config};
use crate::engine::{self, Audience, Doors, Engine};
use crate::limits::{DAEMON_END_WAIT, LOCK_LEFT_WAIT};
use crate::names::Shown;
use crate::service::{Caller, Listed, Service, make_rows};
use crate::store::sqlite::{NEW_BYTES, Sqlite, remove_files, remove_lock, write_protection};
use crate::store::{Durability, Identity, Readers, StoreError, Writer, is_made, or_too_long};

/// The environment variable that ends the process at a named point, for crash tests.
pub const FAULT_VARIABLE: &str = "WORKFS_FAULT";

/// An engine on an open store.
pub struct OpenStore {
    /// The engine.
    pub engine: Engine,
    /// Its writer's thread, which ends when the last clone of the engine is gone.
    pub writer: JoinHandle<()>,
    /// The store was made just now, or its making was broken off: it is to be set up.
    pub is_new: bool,
    /// Its file was made when this was opened.
    is_made: bool,
    /// Which file it is: another may have its name by the time that this one is closed.
    identity: Identity,
}

/// A store's file: whoever has it open has it also when its name is gone, or another's.
#[derive(Clone, Debug)]
pub struct StoreFile {
    identity: Identity,
    path: PathBuf,
}

impl StoreFile {
    /// Whether it has its name no more.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        !self.identity.has_name(&self.path)
    }
}

/// Opens the store, making it where there is none; only for reading where it cannot be written.
/// `config` is used in place of the one it keeps. Where it fails nothing is left of what was made.
///
/// # Errors
/// Held by another process, newer, damaged, not readable, or its configuration is wrong.
pub fn open(
    paths: &StorePaths,
    sync: Durability,
    config: Option<Arc<Config>>,
    audience: Arc<dyn Audience>,
) -> Result<OpenStore, Failure> {
    let is_there = is_made(paths.store());
    let opened = open_or_make(paths, sync, config, audience);
    opened.map_err(|failure| if is_there { failure } else { of_new(paths, failure) })
}

/// The same failure of a store that is only made: want of room says where, and how much it takes.
fn of_new(paths: &StorePaths, failure: Failure) -> Failure {
    match failure.cause {
        Cause::NoSpace => Failure { reason: no_room_for_new(paths), ..failure },
        _ => failure,
    }
}

/// What is said where a new store has not the room that it takes.
#[must_use]
pub fn no_room_for_new(paths: &StorePaths) -> String {
    let megabytes = NEW_BYTES as f64 / 1e6;
    let shown = paths.store().shown();
    or_too_long(&format!(
        "no space left for the new store {shown}: it needs {megabytes:.1} MB there"
    ))
}

fn open_or_make(
    paths: &StorePaths,
    sync: Durability,
    config: Option<Arc<Config>>,
    audience: Arc<dyn Audience>,
) -> Result<OpenStore, Failure> {
    let (path, doors) = (paths.store(), doors()?);
    let start = |readers: Arc<dyn Readers>, writer, identity, is_made| {
        let config = match &config {
            Some(config) => Arc::clone(config),
            None => Arc::new(kept_config(&*readers)?),
        };
        // One that cannot be written is read as it is.
        let is_new = readers.write_protection().is_none() && setup::is_unfinished(&*readers)?;
        let (doors, audience) = (doors.clone(), Arc::clone(&audience));
        match engine::start(writer, readers, config, sync, doors, audience) {
            // There is a log, as after a kill, and it takes nothing.
            Err(StoreError::Full(why)) if !is_new => Ok(Err(why)),
            started => started
                .map(|(engine, writer)| Ok(OpenStore { engine, writer, is_new, is_made, identity }))
                .map_err(Failure::from),
        }
    };
    let started = |(store, writer): Opened| {
        let identity = store.identity().map_err(|error| Failure::io(path.shown(), &error))?;
        let is_made = store.is_made();
        let readers: Arc<dyn Readers> = Arc::new(store);
        // With it the store's lock is held.
        let held = Arc::clone(&readers);
        start(readers, writer, identity, is_made).inspect_err(|_| {
            if is_made {
                remove_all(path, || drop(held));
            }
        })
    };
    match started(open_store(path)?)? {
        Ok(store) => Ok(store),
        Err(why) => started(open_full(path, why)?)?.map_err(|why| StoreError::Full(why).into()),
    }
}

/// Removes a store that nobody has used; `let_go` closes it, which has the lock until then. SQLite leaves
/// alone what lies beside a file that is gone. False if it stays.
fn remove_all(path: &Path, let_go: impl FnOnce()) -> bool {
    let removed = remove_files(path);
    let_go();
    match &removed {
        Ok(()) => {
            let begin = Instant::now();
            // A thread of ours that ends just now may have it still, or what it takes to look.
            while !remove_lock(path) && begin.elapsed() < LOCK_LEFT_WAIT {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Err(error) => tracing::warn!(%error, "a store that nobody has used stays"),
    }
    removed.is_ok()
}

/// Takes away the store that a daemon, process `pid`, made and broke off with, unless somebody has done
/// anything to it since. Its log stays: it tells why.
pub(super) fn take_back(paths: &StorePaths, pid: u32) {
    let path = paths.store();
    if !paths.exists() {
        return;
    }
    // Whoever has it by now goes on with it.
    let Ok((store, writer)) = Sqlite::open(path) else { return };
    if !matches!(setup::is_as_made(&store, pid), Ok(true)) {
        return;
    }
    if let Err(error) = socket::remove_stale(&paths.socket()) {
        tracing::warn!(%error, "the socket stays behind");
    }
    remove_all(path, || drop((writer, store)));
}

/// A store, and who sits at its desk.
type Opened = (Sqlite, Box<dyn Writer>);

fn open_store(path: &Path) -> Result<Opened, StoreError> {
    if let Some(why) = write_protection(path) {
        return protected(path, why, StoreError::ReadOnly);
    }
    match Sqlite::open(path) {
        // Not even a log has room.
        Err(StoreError::Full(why)) => open_full(path, why),
        opened => opened.map(|(store, writer)| (store, Box::new(writer) as _)),
    }
}

/// A store whose disk takes not even what each daemon writes first: what is there can be read all the same.
fn open_full(path: &Path, why: String) -> Result<Opened, StoreError> {
    protected(path, why.clone(), StoreError::Full).map_err(|_| StoreError::Full(why))
}

fn protected(
    path: &Path,
    why: String,
    refusal: fn(String) -> StoreError,
) -> Result<Opened, StoreError> {
    let opened = Sqlite::open_protected(path, why, refusal);
    opened.map(|(store, writer)| (store, Box::new(writer) as _))
}

/// A store that no engine can be started on, since it is damaged: to be read, and not to be changed.
///
/// # Errors
/// Held by another process, or so damaged that nothing of it can be read.
pub fn open_to_check(paths: &StorePaths) -> Result<Sqlite, Failure> {
    let why = "it is damaged".to_owned();
    let opened = Sqlite::open_protected(paths.store(), why, StoreError::Impossible);
    opened.map(|(store, _)| store).map_err(|error| match error {
        // Of others `fsck` is the way out; itself it has no more to say.
        StoreError::Impossible(_) => {
            let remedy = "nothing of it can be read, by `fsck` either: restore a backup (`workfs restore FILE \
                          --force`), which keeps this one";
            Failure::new(Cause::Store, error.to_string(), remedy)
        }
        other => other.into(),
    })
}

/// A store that is only to be looked at: nothing is written, and nothing of it made anew.
///
/// # Errors
/// Held by another process, or not to be read.
pub fn open_to_look(paths: &StorePaths) -> Result<Sqlite, Failure> {
    let why = "it is only looked at".to_owned();
    let opened = Sqlite::open_protected(paths.store(), why, StoreError::ReadOnly);
    Ok(opened.map(|(store, _)| store)?)
}

/// The configuration that a store keeps, else the default.
fn kept_config(readers: &dyn Readers) -> Result<Config, Failure> {
    let text = crate::store::read(readers, |snapshot| snapshot.meta(CONFIG_KEY))?;
    let kept = Config::kept(text.as_deref()).map_err(|error| {
        let reason = format!("the store's configuration is wrong: {error}");
        Failure::new(Cause::Store, reason, "set another with `workfs init --layout FILE`")
    })?;
    if let Some(why) = Config::would_be_refused(text.as_deref()) {
        tracing::warn!(%why, "a former version took this configuration, and none takes it any more");
    }
    Ok(kept)
}

/// Removes the log of a store that is not there; what was in the way was told to whoever asked.
pub(super) fn remove_log(paths: &StorePaths) {
    if is_own_log(&paths.log())
        && let Err(error) = std::fs::remove_file(paths.log())
    {
        tracing::debug!(%error, "there is no log");
    }
}

fn doors() -> Result<Doors, Failure> {
    let mut doors = Doors::default();
    if let Some(setting) = std::env::var_os(FAULT_VARIABLE).filter(|it| !it.is_empty()) {
        doors.fault = setting.to_str().and_then(engine::kill_at).ok_or_else(|| {
            let reason = format!("{FAULT_VARIABLE} is not of the form `point:nth`");
            Failure::new(Cause::Usage, reason, "it is for crash tests; unset it")
        })?;
    }
    Ok(doors)
}

impl OpenStore {
    /// Makes what a new store begins with, where this is one.
    ///
    /// # Errors
    /// A refusal or a failure of the store; whoever opens it next sets it up then.
    pub fn set_up(&self, paths: &StorePaths, setup: &Setup) -> Result<(), Failure> {
        if self.is_new {
            let set_up = setup::set_up(&self.engine, setup);
            let finished = set_up.and_then(|_| setup::finish(&self.engine));
            finished.map_err(|failure| of_new(paths, failure))?;
        }
        // Where `init` was broken off. What cannot be made now the next who opens it makes.
        let (caller, mut left) = (Caller::this_process(), Listed::default());
        if let Err(failure) = make_rows(&self.engine, &caller, &mut left, &mut |_, _| ()) {
            tracing::warn!(%failure, "rows of another layout stay");
        }
        for one in &left.listed {
            tracing::warn!(path = %one.path, why = one.why, "a row of another layout stays");
        }
        Ok(())
    }

    /// Whether it was made when this was opened, and nothing was done to it since.
    #[must_use]
    pub fn is_as_made(&self) -> bool {
        let as_made = || setup::is_as_made(&**self.engine.readers(), std::process::id());
        let begin = Instant::now();
        self.is_made
            && loop {
                match as_made() {
                    // What begins or ends beside this, as the chores, may have what it takes to look.
                    Err(StoreError::NoDescriptors(_)) if begin.elapsed() < DAEMON_END_WAIT => {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    looked => break looked.unwrap_or(false),
                }
            }
    }

    /// What serves requests on it, where it is not mounted.
    #[must_use]
    pub fn service(&self, paths: &StorePaths) -> Service {
        Service::new(self.engine.clone(), paths.store(), self.identity)
    }

    /// Which file it is, and its name.
    #[must_use]
    pub fn file(&self, paths: &StorePaths) -> StoreFile {
        StoreFile { identity: self.identity, path: paths.store().to_owned() }
    }

    /// Ends the engine, and removes the store with what lies beside it: one that was made for what
    /// could not be done, and that nobody has used.
    pub fn discard(self, paths: &StorePaths, patience: Duration) {
        if !self.identity.has_name(paths.store()) {
            // What lies there now is somebody else's.
            return self.close(patience);
        }
        if remove_all(paths.store(), || self.close(patience)) {
            remove_log(paths);
        }
    }

    /// Ends the engine; what was queued is done. Waits at most `patience` for that: a clone of the
    /// engine may live in a mount that somebody still uses.
    pub fn close(self, patience: Duration) {
        // Whoever lets go of the last connection moves the log into the store, and takes it away.
        let readers = Arc::clone(self.engine.readers());
        drop(self.engine);
        let begin = Instant::now();
        while !self.writer.is_finished() {
            if begin.elapsed() >= patience {
                tracing::warn!("the writer is still in use; what was acknowledged is kept");
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        if self.writer.join().is_err() {
            tracing::error!("the writer's thread panicked");
        }
        // A thread that ends beside this may be about to.
        while Arc::strong_count(&readers) > 1 && begin.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
