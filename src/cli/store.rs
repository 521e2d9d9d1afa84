//! Which store is meant.
//!
//! What must stay true: `--store` and `WORKFS_STORE` come first; a mount that a path lies in tells
//! its store, so that inside a mount nothing needs to be said. Deliberately not here: opening it,
//! and what a path is in its tree (`place`).

use std::path::{Path, PathBuf};

use super::Global;
use super::exit::Exit;
use super::output::Stop;
use crate::daemon::{
    MountLine, StorePaths, answered, await_answer, canonical, from_root, mounted_around,
};

/// The store that is meant: the one that was named, else that of the mount that one of `hints` or
/// the working directory lies in, else the user's own.
pub fn paths(global: &Global, hints: &[&Path]) -> Result<StorePaths, Stop> {
    if let Some(store) = &global.store {
        return Ok(StorePaths::of(store)?);
    }
    let here = std::env::current_dir().ok();
    let places = hints.iter().copied().chain(here.as_deref());
    if let Some(mount) = places.filter_map(own_mount).next() {
        return Ok(StorePaths::of(Path::new(&mount.source))?);
    }
    Ok(StorePaths::of(&default_store()?)?)
}

/// The mount of workfs that a path lies in, if its source tells a store.
fn own_mount(path: &Path) -> Option<MountLine> {
    let path = from_root(path).ok()?;
    let ours = |path: &Path| {
        let mount = mounted_around(path)?;
        (mount.is_workfs() && Path::new(&mount.source).is_absolute()).then_some(mount)
    };
    // Links are followed only where the path as given is in no mount: asking one could hang.
    ours(&path).or_else(|| ours(&canonical(&path)))
}

fn default_store() -> Result<PathBuf, Stop> {
    let absolute_dir = |variable: &str| {
        let dir = PathBuf::from(std::env::var_os(variable)?);
        dir.is_absolute().then_some(dir)
    };
    let data = absolute_dir("XDG_DATA_HOME")
        .or_else(|| absolute_dir("HOME").map(|home| home.join(".local/share")));
    let data = data.ok_or_else(|| {
        Stop::failed(Exit::Usage, "no store is named and HOME is not set", "name one with --store")
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
        Stop::failed(Exit::Usage, format!("{}: {error}", given.display()), "name a path")
    })?;
    if path.to_str().is_none() {
        let reason = format!("{} is not UTF-8", path.display());
        return Err(Stop::failed(Exit::Usage, reason, "name another path"));
    }
    Ok(path)
}
