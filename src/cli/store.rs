//! Which store is meant.
//!
//! What must stay true: `--store` and `WORKFS_STORE` come first; a mount that a path lies in tells
//! its store, so that inside a mount nothing needs to be said. Deliberately not here: opening it,
//! and what a path is in its tree (`place`).

use std::path::{Path, PathBuf};

use super::Global;
use super::exit::Exit;
use super::mounts::{self, untold, working_mount};
use super::output::Stop;
use crate::daemon::{
    MountLine, StorePaths, answered, await_answer, canonical, from_root, mounted_around,
};
use crate::names::Shown;
use crate::service;

/// The store that is meant: the one that was named, else that of the mount that one of `hints` or
/// the working directory lies in, else the user's own.
pub fn paths(global: &Global, hints: &[&Path]) -> Result<StorePaths, Stop> {
    if global.store.is_some() {
        return own(global);
    }
    let here = working_mount();
    let mut told = hints.iter().copied().filter_map(told_by);
    if let Some(store) = told.next().or_else(|| here.as_ref().and_then(source)) {
        return Ok(StorePaths::of(&store)?);
    }
    let own = own(global)?;
    // One of which nothing is told may be the user's own store's, or any other's.
    if let Some(mount) = here
        && mounts::ask(&own)?.is_none_or(|(_, mounts)| mounts::same(&mount, mounts).is_none())
    {
        return Err(untold(&mount, "name the store (`--store`)"));
    }
    Ok(own)
}

/// The store that is meant where no mount is asked: the one that was named, else the user's own.
pub fn own(global: &Global) -> Result<StorePaths, Stop> {
    let store = global.store.clone().map_or_else(default_store, Ok)?;
    StorePaths::of(&store).map_err(|mut failure| {
        if global.store.is_some() && !global.named.store {
            failure.reason += " (WORKFS_STORE names it)";
        }
        failure.into()
    })
}

/// The store of the mount of workfs that a path lies in, if that tells it.
fn told_by(path: &Path) -> Option<PathBuf> {
    let path = from_root(path).ok()?;
    let ours = |path: &Path| source(&mounted_around(path).filter(MountLine::is_workfs)?);
    // Links are followed only where the path as given is in no mount: asking one could hang.
    ours(&path).or_else(|| ours(&canonical(&path)))
}

/// The store that a mount tells: it may say anything else (`-o fsname=`).
fn source(mount: &MountLine) -> Option<PathBuf> {
    Some(PathBuf::from(&mount.source)).filter(|source| source.is_absolute())
}

fn default_store() -> Result<PathBuf, Stop> {
    let absolute_dir = |variable: &str| {
        let dir = PathBuf::from(std::env::var_os(variable)?);
        dir.is_absolute().then_some(dir)
    };
    let data = absolute_dir("XDG_DATA_HOME")
        .or_else(|| absolute_dir("HOME").map(|home| home.join(".local/share")));
    let data = data.ok_or_else(|| {
        let reason = "no store is named, and HOME is no absolute path";
        Stop::failed(Exit::Usage, reason, "name one with --store")
    })?;
    Ok(data.join("workfs/default.db"))
}

/// A path outside of the tree, absolute and without symbolic links, for the daemon.
pub fn outside(given: &Path) -> Result<PathBuf, Stop> {
    let asked = given.to_owned();
    let found = answered(given, move || {
        let path = canonical(&from_root(&asked)?);
        await_answer(&path);
        Ok::<_, std::io::Error>(path)
    })?;
    let path = found.map_err(|error| {
        let exit = match error.kind() {
            std::io::ErrorKind::InvalidInput => Exit::Usage,
            kind => service::Exit::from(kind).into(),
        };
        let reason = format!("{}: where one is cannot be told: {error}", given.shown());
        Stop::failed(exit, reason, "name it by its whole path, from the root on")
    })?;
    if path.to_str().is_none() {
        let reason = format!("{} is not UTF-8", path.shown());
        return Err(Stop::failed(Exit::Usage, reason, "name another path"));
    }
    Ok(path)
}
