//! What the words of the command line are in the tree.
//!
//! What must stay true: the rule of `docs/cli.md`, "Records", stands here only, and every request
//! goes through it. Deliberately not here: which store is meant (`store`), and what is found there
//! (`service`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use super::exit::Exit;
use super::here::Here;
use super::mounts::working_mount;
use super::output::Stop;
use crate::daemon::{MountLine, canonical, from_root, mounted_around};
use crate::names::{Shown, TreePath, json_path, path_of_json, path_of_text, printable};
use crate::service::{
    ClaimArgs, DoneArgs, ExportArgs, FailArgs, HeartbeatArgs, ImportArgs, ListArgs, LogArgs,
    ONLY_SHOWN, Part, ReadyArgs, ReleaseArgs, Request, RewindArgs, ShowArgs, WhyArgs,
};

/// The request with what it names as ids and as paths from the root of what is in sight.
pub fn in_tree(mut request: Request, here: &Here<'_>) -> Result<Request, Stop> {
    match &mut request {
        Request::Show(ShowArgs { what, .. })
        | Request::Done(DoneArgs { what, .. })
        | Request::Fail(FailArgs { what, .. })
        | Request::Release(ReleaseArgs { what, .. })
        | Request::Rewind(RewindArgs { what, .. }) => *what = thing(what, here)?,
        Request::Log(LogArgs { what, .. })
        | Request::Why(WhyArgs { what, .. })
        | Request::Heartbeat(HeartbeatArgs { what, .. })
        | Request::List(ListArgs { workspace: what, .. })
        | Request::Ready(ReadyArgs { workspace: what, .. }) => each(what, here, thing)?,
        Request::Claim(ClaimArgs { what, workspace, .. }) => {
            each(what, here, thing)?;
            each(workspace, here, thing)?;
        }
        Request::Import(ImportArgs { to, .. }) => *to = path(to, here)?,
        Request::Export(ExportArgs { path: part, .. }) => each(part, here, entry)?,
        Request::Watch(_)
        | Request::Agents
        | Request::AgentAdd(_)
        | Request::AgentRemove(_)
        | Request::Status
        | Request::Metrics
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
    here: &Here<'_>,
    rule: fn(&str, &Here<'_>) -> Result<String, Stop>,
) -> Result<(), Stop> {
    if let Some(given) = given {
        *given = rule(given, here)?;
    }
    Ok(())
}

/// A record, a file or a workspace: a bare word is a file of the working directory, if that lies
/// in a mount and has one of that name, else an id. All else is a path.
fn thing(given: &str, here: &Here<'_>) -> Result<String, Stop> {
    let is_word = !given.contains('/') && !has_extension(given) && given != "." && given != "..";
    if is_word && !is_here(&host_path(given), here)? {
        return Ok(given.to_owned());
    }
    path(given, here)
}

/// What a word of a request is to the host.
fn host_path(given: &str) -> PathBuf {
    OsString::from_vec(path_of_json(given)).into()
}

/// The place of a path as commands print it, from the root of what is in sight: where the working
/// directory, in a mount, has nothing of its first name, and the root has.
fn printed(given: &Path, here: &Here<'_>) -> Result<Option<PathBuf>, Stop> {
    let Ok(dir) = std::env::current_dir() else { return Ok(None) };
    let Some(Component::Normal(first)) = given.components().next() else { return Ok(None) };
    if given.components().nth(1).is_none() && !given.as_os_str().as_bytes().ends_with(b"/") {
        return Ok(None);
    }
    let Some(mount) = working_mount() else { return Ok(None) };
    let Some(root) = root_of(&mount, here)? else { return Ok(None) };
    let is_there = |place: PathBuf| place.symlink_metadata().is_ok();
    if is_there(dir.join(first)) {
        return Ok(None);
    }
    // In text output names may have escapes.
    let given = given.as_os_str().as_bytes();
    let escaped = std::str::from_utf8(given).ok().and_then(path_of_text);
    for bytes in std::iter::once(given.to_vec()).chain(escaped) {
        let Ok(printed) = TreePath::parse(bytes) else { continue };
        let Some(below) = here.part()?.join(&printed).below(&root) else { continue };
        let mut names = below.names().iter().map(|name| OsStr::from_bytes(name.as_bytes()));
        if let Some(name) = names.next()
            && is_there(mount.dir.join(name))
        {
            return Ok(Some(names.fold(mount.dir.join(name), |place, name| place.join(name))));
        }
    }
    Ok(None)
}

/// The directory of the tree that is a mount's root; `None` if the mount is another store's.
fn root_of(mount: &MountLine, here: &Here<'_>) -> Result<Option<TreePath>, Stop> {
    Ok(match here.shown(mount)? {
        Some(root) => Some(root),
        // Its daemon is gone, or sees it elsewhere.
        None if mount.source == here.paths().store() => Some(TreePath::root()),
        None => None,
    })
}

/// Such a word is a file's name also where that file is not there any more.
fn has_extension(name: &str) -> bool {
    [".yaml", ".yml", ".json", ".md"].iter().any(|extension| name.ends_with(extension))
}

/// Whether the working directory lies in a mount of the store and has something of this name.
fn is_here(name: &Path, here: &Here<'_>) -> Result<bool, Stop> {
    let Ok(dir) = std::env::current_dir() else { return Ok(false) };
    let Some(mount) = working_mount() else { return Ok(false) };
    Ok(root_of(&mount, here)?.is_some() && dir.join(name).symlink_metadata().is_ok())
}

/// A path: one that lies in a mount, from the working directory or from the root of the host, is
/// what the mount shows there; any other is one from the root of the tree, if it is relative.
fn path(word: &str, here: &Here<'_>) -> Result<String, Stop> {
    placed(word, here, true)
}

/// The same, where a link at the end is meant itself, unless a slash follows.
fn entry(word: &str, here: &Here<'_>) -> Result<String, Stop> {
    placed(word, here, word.ends_with('/'))
}

fn placed(word: &str, here: &Here<'_>, follow: bool) -> Result<String, Stop> {
    let given = host_path(word);
    if let Some(place) = printed(&given, here)? {
        let found = followed(&place, &given, here, follow).ok().flatten();
        return Ok(found.unwrap_or_else(|| word.to_owned()));
    }
    let Ok(place) = from_root(&given) else { return Ok(word.to_owned()) };
    // Of a path in a mount the daemon was asked first: the mount of one that is stopped would hang.
    let direct = within(&place, &given, here)?;
    let found = followed(&place, &given, here, follow);
    let found = if direct.is_some() { found.ok().flatten().or(direct) } else { found? };
    if found.is_none() && given.is_absolute() {
        let shown = printable(given.as_os_str().as_bytes());
        let reason = format!("`{shown}` lies in no mount of {}", here.paths().store().shown());
        let within = Some(shown.trim_start_matches('/')).filter(|rest| !rest.is_empty());
        let within = within.unwrap_or(".");
        let remedy = format!("a path from the root of the tree begins without a slash: `{within}`");
        return Err(Stop::failed(Exit::Usage, reason, remedy));
    }
    Ok(found.unwrap_or_else(|| word.to_owned()))
}

/// What a place of the host is in the tree when its symbolic links are followed, as by open(2); the last
/// one is meant itself where it leads to nothing in the tree, or is not to be followed.
fn followed(
    place: &Path,
    given: &Path,
    here: &Here<'_>,
    follow: bool,
) -> Result<Option<String>, Stop> {
    let itself = match (place.parent(), place.file_name()) {
        (Some(dir), Some(name)) => within(&canonical(dir).join(name), given, here),
        _ => Ok(None),
    };
    let is_in_tree = matches!(itself, Ok(Some(_)));
    if is_in_tree && !follow {
        return itself;
    }
    match within(&canonical(place), given, here) {
        Ok(None) | Err(_) if is_in_tree => itself,
        found => found,
    }
}

/// What a place of the host is in the tree, if it lies in a mount.
fn within(place: &Path, given: &Path, here: &Here<'_>) -> Result<Option<String>, Stop> {
    let Some(mount) = mounted_around(place).filter(MountLine::is_workfs) else { return Ok(None) };
    let wrong = |why: String, remedy: &str| {
        let reason = format!("`{}` {why}", printable(given.as_os_str().as_bytes()));
        Stop::failed(Exit::Usage, reason, remedy)
    };
    let Some(root) = root_of(&mount, here)? else {
        let source = printable(mount.source.as_encoded_bytes());
        let why = format!("lies in a mount of {source}, not of {}", here.paths().store().shown());
        return Err(wrong(why, "leave --store out: a mount tells its store"));
    };
    let below = place.strip_prefix(&mount.dir).unwrap_or(place);
    let inside = mount.bound.strip_prefix("/").unwrap_or(&mount.bound).join(below);
    if inside.starts_with(".workfs/txn") {
        let remedy = "use files there, or call it outside of the transaction";
        return Err(wrong("lies in a transaction, of which commands see nothing".into(), remedy));
    }
    if inside.starts_with(".workfs") {
        return Err(wrong(ONLY_SHOWN.into(), "read the file"));
    }
    let Ok(below) = TreePath::parse(below.as_os_str().as_bytes()) else { return Ok(None) };
    let path = Part::below(root).join(&below);
    let Some(seen) = path.below(here.part()?.root()) else {
        let reason = format!(
            "`{}` is not in what this mount shows",
            printable(given.as_os_str().as_bytes())
        );
        return Err(Stop::failed(Exit::Absent, reason, "`workfs list` shows what there is"));
    };
    Ok(Some(json_path(&seen.to_bytes())))
}
