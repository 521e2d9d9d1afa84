//! The mounts of a store, as its daemon tells them, and the one that the working directory lies in.
//!
//! What must stay true: a daemon is asked, never one of its mounts, which may not answer. Deliberately not here: what a
//! command sees there (`here`).

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::exit::Exit;
use super::output::Stop;
use crate::daemon::{
    Answer, Ask, Client, Covers, DaemonInfo, MountInfo, MountLine, StorePaths, is_dead_mount,
    mounted_here, of_workfs,
};
use crate::names::{Shown, printable, shell_word, unsteering};
use crate::refusal::Rule;
use crate::service;

/// What the store's daemon says of itself; `None` if there is none.
pub fn ask(paths: &StorePaths) -> Result<Option<(DaemonInfo, Vec<MountInfo>)>, Stop> {
    let Some(client) = Client::connect(paths)? else { return Ok(None) };
    ask_it(client)
}

/// The same, of a daemon that one is connected to.
pub fn ask_it(mut client: Client) -> Result<Option<(DaemonInfo, Vec<MountInfo>)>, Stop> {
    match client.ask(&Ask::Ps)? {
        Some(Answer::Mounts { daemon, mounts }) => Ok(Some((daemon, mounts))),
        _ => Ok(None),
    }
}

/// Which of the daemon's mounts a mount is, wherever it is bound to: the mounts of one device are one.
/// Of a device that the daemon does not see, the mount on its directory is looked for here.
pub fn same(mount: &MountLine, known: Vec<MountInfo>) -> Option<MountInfo> {
    let places = of_workfs().into_iter().filter(|place| place.device == mount.device);
    let places: Vec<MountLine> = places.collect();
    let is_it = |known: &MountInfo| match known.device {
        Some(device) => device == mount.device,
        None => places.iter().any(|place| Path::new(&known.dir) == place.dir),
    };
    known.into_iter().find(is_it)
}

/// The mount of workfs that the working directory lies in.
pub fn working_mount() -> Option<MountLine> {
    mounted_here().filter(MountLine::is_workfs)
}

/// The failure of a command in a mount of which nothing tells whose it is; `named` is what would.
pub fn untold(line: &MountLine, named: &str) -> Stop {
    if is_dead_mount(line) {
        return dead(line, &format!(", or {named}"));
    }
    let reason = match line.is_seen() {
        true => format!("it cannot be told whose mount {} is", line.dir.shown()),
        false => {
            let why = why_unseen();
            format!("it cannot be told whose mount the working directory lies in: {why}")
        }
    };
    let remedy = format!("{named}, or change to another directory");
    Stop::failed(Exit::Denied, reason, remedy)
}

/// Why nothing is known of the mount that the working directory lies in.
fn why_unseen() -> &'static str {
    match Path::new("/proc/self").exists() {
        true => "it was taken from sight",
        false => "/proc, which would tell, is not there",
    }
}

/// The failure of a command that a mount would have had to serve whose daemon is gone; `or` is another way
/// out, if there is one.
pub fn dead(line: &MountLine, or: &str) -> Stop {
    if !line.is_seen() {
        let why = why_unseen();
        let reason = format!(
            "the daemon of the mount in which the working directory lies has ended ({why})"
        );
        return Stop::failed(Exit::Mount, reason, format!("change to another directory{or}"));
    }
    let shown = printable(line.dir.as_os_str().as_bytes());
    let reason = format!("{shown} is a dead mount: its daemon has ended without unmounting it");
    let remedy = match Covers::words_of(line) {
        Some(words) => format!("mount it again (`workfs mount {}`){or}", unsteering(&words)),
        None => {
            let word = shell_word(line.dir.as_os_str().as_bytes());
            format!("mount it again as it was mounted (`workfs mount … {word}`){or}")
        }
    };
    Stop::failed(Exit::Mount, reason, remedy)
}

/// The failure of a command that would change something in a mount that is read-only.
pub fn read_only(command: &str, mount: &MountLine) -> Stop {
    let shown = match mount.is_seen() {
        true => printable(mount.dir.as_os_str().as_bytes()),
        false => "the working directory".to_owned(),
    };
    let reason = format!("`{command}` would change something, and {shown} is read-only");
    let remedy = "call it outside of this mount, or ask who made it; `workfs why` says if it is the store \
                  that cannot be written";
    let remedy = remedy.to_owned();
    let (exit, rule, place) = (service::Exit::Denied, Some(Rule::ReadOnly), None);
    service::Failure { exit, rule, reason, remedy, place }.into()
}
