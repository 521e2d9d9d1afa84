//! What the words of the command line are in the tree.
//!
//! What must stay true: the rule of `docs/cli.md`, "Records", stands here only, and every request
//! goes through it. Deliberately not here: which store is meant (`store`), and what is found there
//! (`service`).

use std::path::{Component, Path, PathBuf, absolute};

use super::exit::Exit;
use super::output::Stop;
use super::ps;
use crate::daemon::{MountLine, StorePaths, canonical, mounted_around};
use crate::names::printable;
use crate::service::{
    ClaimArgs, DoneArgs, ExportArgs, FailArgs, HeartbeatArgs, ImportArgs, ListArgs, LogArgs,
    ReadyArgs, ReleaseArgs, Request, RewindArgs, ShowArgs, WhyArgs,
};

/// The request with what it names as ids and as paths from the root of the tree.
pub fn in_tree(mut request: Request, paths: &StorePaths) -> Result<Request, Stop> {
    match &mut request {
        Request::Show(ShowArgs { what, .. })
        | Request::Done(DoneArgs { what, .. })
        | Request::Fail(FailArgs { what, .. })
        | Request::Release(ReleaseArgs { what, .. })
        | Request::Rewind(RewindArgs { what, .. }) => *what = thing(what, paths)?,
        Request::Log(LogArgs { what, .. })
        | Request::Why(WhyArgs { what, .. })
        | Request::Heartbeat(HeartbeatArgs { what, .. })
        | Request::List(ListArgs { workspace: what, .. })
        | Request::Ready(ReadyArgs { workspace: what, .. }) => each(what, paths, thing)?,
        Request::Claim(ClaimArgs { what, workspace, .. }) => {
            each(what, paths, thing)?;
            each(workspace, paths, thing)?;
        }
        Request::Import(ImportArgs { to, .. }) => *to = path(to, paths)?,
        Request::Export(ExportArgs { path: part, .. }) => each(part, paths, path)?,
        Request::Watch(_)
        | Request::Agents
        | Request::AgentAdd(_)
        | Request::AgentRemove(_)
        | Request::Status
        | Request::Fsck
        | Request::Doctor
        | Request::Gc(_)
        | Request::ProjectNew(_)
        | Request::Backup(_) => {}
    }
    Ok(request)
}

fn each(
    given: &mut Option<String>,
    paths: &StorePaths,
    rule: fn(&str, &StorePaths) -> Result<String, Stop>,
) -> Result<(), Stop> {
    if let Some(given) = given {
        *given = rule(given, paths)?;
    }
    Ok(())
}

/// A record, a file or a workspace: a bare word is a file of the working directory, if that lies
/// in a mount and has one of that name, else an id. All else is a path.
fn thing(given: &str, paths: &StorePaths) -> Result<String, Stop> {
    let is_word = !given.contains('/') && !has_extension(given) && given != "." && given != "..";
    if is_word && !is_here(given, paths)? {
        return Ok(given.to_owned());
    }
    path(given, paths)
}

/// Whether this is a path as commands print it, from the root of the tree: where the working
/// directory, in a mount, has nothing of its first name, and the root has.
fn is_printed(given: &str, paths: &StorePaths) -> Result<bool, Stop> {
    let Ok(here) = std::env::current_dir() else { return Ok(false) };
    let Some((first, _)) = given.split_once('/').filter(|(first, _)| !first.is_empty()) else {
        return Ok(false);
    };
    let Some(mount) = mounted_around(&here).filter(MountLine::is_workfs) else { return Ok(false) };
    let Some(shown) = shown(&mount, paths)? else { return Ok(false) };
    let root = shown.join(mount.bound.strip_prefix("/").unwrap_or(&mount.bound));
    let Ok(below) = Path::new(given).strip_prefix(root) else { return Ok(false) };
    let is_there = |place: PathBuf| place.symlink_metadata().is_ok();
    let Some(Component::Normal(name)) = below.components().next() else { return Ok(false) };
    Ok(!is_there(here.join(first)) && is_there(mount.dir.join(name)))
}

/// Such a word is a file's name also where that file is not there any more.
fn has_extension(name: &str) -> bool {
    [".yaml", ".yml", ".json", ".md"].iter().any(|extension| name.ends_with(extension))
}

/// Whether the working directory lies in a mount of the store and has something of this name.
fn is_here(name: &str, paths: &StorePaths) -> Result<bool, Stop> {
    let Ok(here) = std::env::current_dir() else { return Ok(false) };
    let Some(mount) = mounted_around(&here).filter(MountLine::is_workfs) else { return Ok(false) };
    // The daemon answers that before its mount is asked anything: one that hangs would hold us.
    Ok(shown(&mount, paths)?.is_some() && here.join(name).symlink_metadata().is_ok())
}

/// A path: one that lies in a mount, from the working directory or from the root of the host, is
/// what the mount shows there; any other is one from the root of the tree, if it is relative.
fn path(given: &str, paths: &StorePaths) -> Result<String, Stop> {
    if is_printed(given, paths)? {
        return Ok(given.to_owned());
    }
    let Ok(place) = absolute(Path::new(given)) else { return Ok(given.to_owned()) };
    let goes_up = place.components().any(|part| part.as_os_str() == "..");
    let place = if goes_up { canonical(&place) } else { place };
    // Links are followed only where the path as given is in no mount: asking one could hang.
    let found = match within(&place, given, paths)? {
        Some(found) => Some(found),
        None => within(&canonical(&place), given, paths)?,
    };
    if found.is_none() && given.starts_with('/') {
        let shown = printable(given.as_bytes());
        let reason = format!("`{shown}` lies in no mount of {}", paths.store().display());
        let within = Some(shown.trim_start_matches('/')).filter(|rest| !rest.is_empty());
        let within = within.unwrap_or(".");
        let remedy = format!("a path from the root of the tree begins without a slash: `{within}`");
        return Err(Stop::failed(Exit::Usage, reason, remedy));
    }
    Ok(found.unwrap_or_else(|| given.to_owned()))
}

/// What a place of the host is in the tree, if it lies in a mount.
fn within(place: &Path, given: &str, paths: &StorePaths) -> Result<Option<String>, Stop> {
    let Some(mount) = mounted_around(place).filter(MountLine::is_workfs) else { return Ok(None) };
    let wrong = |why: String, remedy: &str| {
        let reason = format!("`{}` {why}", printable(given.as_bytes()));
        Stop::failed(Exit::Usage, reason, remedy)
    };
    let Some(shown) = shown(&mount, paths)? else {
        let source = printable(mount.source.as_encoded_bytes());
        let why = format!("lies in a mount of {source}, not of {}", paths.store().display());
        return Err(wrong(why, "leave --store out: a mount tells its store"));
    };
    let below = place.strip_prefix(&mount.dir).unwrap_or(place);
    let inside = mount.bound.strip_prefix("/").unwrap_or(&mount.bound).join(below);
    if inside.starts_with(".workfs/txn") {
        let remedy = "use files there, or call it outside of the transaction";
        return Err(wrong("lies in a transaction, of which commands see nothing".into(), remedy));
    }
    if inside.starts_with(".workfs") {
        return Err(wrong("is what workfs shows, and not in the tree".into(), "read the file"));
    }
    match shown.join(inside).to_str() {
        Some(path) => Ok(Some(path.to_owned())),
        None => Err(wrong("lies where a name is not UTF-8".to_owned(), "rename that first")),
    }
}

/// The directory of the tree that is a mount's root; `None` if the mount is another store's.
fn shown(mount: &MountLine, paths: &StorePaths) -> Result<Option<PathBuf>, Stop> {
    let known = match ps::ask(paths) {
        Ok(asked) => asked.map(|(_, mounts)| mounts).unwrap_or_default(),
        // A user who is bound to an agent is not told of mounts.
        Err(Stop::Failed(failed)) if failed.exit == Exit::Denied => Vec::new(),
        Err(stop) => return Err(stop),
    };
    Ok(match ps::same(mount, known) {
        Some(served) => Some(PathBuf::from(served.root)),
        // Its daemon is gone, sees it elsewhere, or does not tell.
        None if mount.source == paths.store() => Some(PathBuf::new()),
        None => None,
    })
}
