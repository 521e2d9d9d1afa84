//! `workfs txn -- COMMAND`: a transaction around a command.
//!
//! It does what a shell could do in `.workfs/`, also where no socket is to be reached. Deliberately not here:
//! what a transaction is (`tree/txn`).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use clap::Args;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::process::Signal;

use super::exec::child::{self, Asked, Ended};
use super::exit::Exit;
use super::mounts::{self, dead, read_only, working_mount};
use super::output::{Failed, Output, Place, Stop};
use crate::daemon::{MountLine, StorePaths, is_dead_mount};
use crate::names::Shown;
use crate::refusal::Rule;
use crate::service;
use crate::store::StoreError;

/// See `workfs txn --help`.
#[derive(Debug, Args)]
pub struct TxnArgs {
    /// The command, run in the transaction where it would be run in the mount
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs it.
pub fn run(args: &TxnArgs, output: &Output) -> Result<Exit, Stop> {
    let (control, place) = control()?;
    // What ends the transaction goes by this: under the path there may be no mount any more by then, or another.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = rustix::fs::open(&control, flags, Mode::empty());
    let held = held.map_err(|errno| failed("beginning the transaction", &errno.into()))?;
    let dir = begin(&control.join("txn"))?;
    // From here on a signal that would end us is the command's, so that what was begun is thrown away. Whoever
    // waits for a daemon that does not answer, before and after, can be ended.
    child::hold_signals();
    let inside = dir.join(&place);
    if !inside.is_dir() {
        throw_away(&held, &dir).map_err(|error| failed("ending the transaction", &error))?;
        let reason = format!("there is no {} in a transaction", place.shown());
        let remedy = "change to a directory of files: what is computed is not in it";
        return Err(Stop::failed(Exit::Usage, reason, remedy));
    }
    let ended = child::run(&args.command, &inside, &[]);
    let late = child::release_signals();
    let ended = ended.map(|ended| late.unwrap_or_else(|| outcome(&ended, output)));
    let result = match &ended {
        Ok(status) if status.success() => commit(&control, &held, &dir),
        _ => Ok(()),
    };
    let committed = result.is_ok() && ended.as_ref().is_ok_and(ExitStatus::success);
    if !committed
        && let Err(error) = throw_away(&held, &dir)
        // With its daemon it is gone.
        && !is_end(&error)
    {
        output.note(&format!("{} is still there: {error}", dir.shown()));
    }
    result?;
    let status = ended?;
    if committed { Ok(Exit::Done) } else { Err(Stop::ended(status)) }
}

/// What a command's end says of its transaction. One that was told to end has most likely not done all it was to
/// do, and many programs end with 0 then; a key of the terminal is the command's own affair (an editor goes on).
fn outcome(ended: &Ended, output: &Output) -> ExitStatus {
    let Ended { status, asked: Asked { signal: Some(signal), by_key } } = ended else {
        return ended.status;
    };
    if !status.success() {
        return *status;
    }
    let name = signal_name(*signal);
    if *by_key {
        output.note(&format!("the command went on after {name} and ended with 0: committing"));
        return *status;
    }
    output.note(&format!("the command ended with 0 upon {name}: nothing is committed"));
    ExitStatus::from_raw(signal.as_raw())
}

fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::HUP => "SIGHUP",
        Signal::INT => "SIGINT",
        Signal::QUIT => "SIGQUIT",
        _ => "SIGTERM",
    }
}

/// `.workfs` of the mount that the working directory lies in, and where in the mount that is.
fn control() -> Result<(PathBuf, PathBuf), Stop> {
    let here = std::env::current_dir().map_err(|error| failed("the working directory", &error))?;
    let mount = working_mount();
    // Below the mount's root a directory of that name is anybody's.
    let is_own = |dir: &&Path| {
        let root = mount.as_ref().map(|mount| mount.dir.as_path());
        root.is_none_or(|root| *dir == root || !dir.starts_with(root))
    };
    let mut found = here.ancestors().filter(is_own).map(|dir| dir.join(".workfs"));
    if let Some(mount) = &mount {
        expect_answers(mount)?;
        if is_dead_mount(mount) {
            return Err(dead(mount, ""));
        }
        if mount.read_only {
            return Err(read_only("txn", mount));
        }
    }
    let control = found.find(|control| control.join("txn").is_dir()).ok_or_else(|| {
        let reason = format!("{} does not lie in a mount", here.shown());
        Stop::failed(Exit::Absent, reason, "change to a directory of a mount")
    })?;
    // It would commit at once what is to come with the outer one, or with nothing.
    if here.starts_with(control.join("txn")) {
        let reason = format!("{} lies in a transaction already", here.shown());
        let remedy = "run the command without `workfs txn`: it is part of that one";
        return Err(Stop::failed(Exit::Usage, reason, remedy));
    }
    let mount = control.parent().unwrap_or(&control);
    let place = here.strip_prefix(mount).map(Path::to_owned).unwrap_or_default();
    Ok((control, place))
}

/// Fails where the daemon whose mount this is says nothing, since it is stopped, say: whatever is done in the
/// mount would wait for it. One that cannot be asked may serve the mount all the same.
fn expect_answers(mount: &MountLine) -> Result<(), Stop> {
    let store = Path::new(&mount.source);
    let paths = Some(store).filter(|store| store.is_absolute()).map(StorePaths::of);
    match paths.and_then(Result::ok).map(|paths| mounts::ask(&paths)) {
        Some(Err(Stop::Failed(failed))) if failed.exit == Exit::Busy => Err(Stop::Failed(failed)),
        _ => Ok(()),
    }
}

/// Makes a transaction under a name that is free. What commands like this one have left that were killed
/// goes first: a mount has room for few.
fn begin(txns: &Path) -> Result<PathBuf, Stop> {
    let space = name_space();
    if let Some(space) = space {
        throw_away_left(txns, space);
    }
    let (space, pid) = (space.unwrap_or_default(), std::process::id());
    let names = (0..).map(|nth: u32| format!("workfs-{space}-{pid}-{nth}"));
    for dir in names.map(|name| txns.join(name)) {
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("beginning the transaction", &error)),
        }
    }
    Err(Stop::failed(Exit::Busy, "no name is free for a transaction", "remove some"))
}

/// The number of the name space in which this process has its id.
fn name_space() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|space| space.ino())
}

/// Removes the transactions of processes of this name space that have ended.
fn throw_away_left(txns: &Path, space: u64) {
    let Ok(entries) = fs::read_dir(txns) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(own) = name.to_str().and_then(|name| name.strip_prefix("workfs-")) else {
            continue;
        };
        let mut parts = own.split('-');
        let is_here = parts.next().and_then(|part| part.parse().ok()) == Some(space);
        let maker = parts.next().and_then(|part| part.parse::<u32>().ok());
        if is_here && maker.is_some_and(workfs_mount::has_ended) {
            // Another one may be at it, or it is not ours to remove.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Throws away what was begun.
fn throw_away(held: &OwnedFd, dir: &Path) -> io::Result<()> {
    let name = Path::new("txn").join(dir.file_name().unwrap_or_default());
    Ok(rustix::fs::unlinkat(held, name, AtFlags::REMOVEDIR)?)
}

/// Whether this says that the daemon has ended.
fn is_end(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED))
}

/// Commits, or says why not.
fn commit(control: &Path, held: &OwnedFd, dir: &Path) -> Result<(), Stop> {
    let name = dir.file_name().unwrap_or_default();
    let [from, to] = ["txn", "commit"].map(|above| Path::new(above).join(name));
    rustix::fs::renameat(held, from, held, to).map_err(|errno| {
        let error = io::Error::from(errno);
        let exit = match error.raw_os_error() {
            Some(libc::EBUSY) => Exit::Conflict,
            Some(libc::EPERM | libc::EACCES | libc::EROFS) => Exit::Denied,
            // `why` tells of what is noted in the store, and so of others than these.
            Some(libc::ENOSPC) => return failed("committing", &error),
            _ if is_end(&error) => return failed("committing", &error),
            Some(libc::EDQUOT) => Exit::Busy,
            _ => Exit::Failed,
        };
        let why = fs::read_to_string(control.join("why")).unwrap_or_default();
        let told = Told::parse(why.split("\n\n").next().unwrap_or_default());
        // Whichever errno a rule has.
        let exit = match exit {
            Exit::Failed if told.rule.is_some() => Exit::Denied,
            exit => exit,
        };
        let mut reason = format!("nothing was committed: {error}");
        let mut remedy = "all of `why`: cat .workfs/why".to_owned();
        if !told.why.is_empty() {
            reason = format!("{reason}: {}: {}", told.path, told.why);
            // The transaction is thrown away here: what to do with it by hand is no way out any more.
            let way = match told.rule {
                Some(Rule::Conflict) => "run the command again, on what is there now",
                _ => told.remedy,
            };
            remedy = format!("{way}; {remedy}");
        }
        let (rule, place) = (told.rule.map(Rule::code), told.place);
        Stop::Failed(Box::new(Failed { exit, reason, remedy, rule, place }))
    })
}

/// What `.workfs/why` tells of one refusal (`tree::why` writes it).
#[derive(Debug, Default)]
struct Told<'w> {
    path: &'w str,
    why: String,
    remedy: &'w str,
    rule: Option<Rule>,
    place: Option<Place>,
}

impl<'w> Told<'w> {
    fn parse(text: &'w str) -> Told<'w> {
        let mut told = Told::default();
        let mut lines = text.lines();
        // `TIME OPERATION PATH ERRNO [CODE TITLE]`, and the path may have spaces.
        if let Some((head, rule)) = lines.next().and_then(|line| line.rsplit_once(" [")) {
            let code = rule.split(' ').next().unwrap_or_default();
            told.rule = Rule::of_code(code);
            let path = head.splitn(3, ' ').nth(2).and_then(|rest| rest.rsplit_once(' '));
            told.path = path.map_or("", |(path, _)| path);
        }
        for line in lines {
            let Some((key, value)) = line.trim_start().split_once(':') else { continue };
            let value = value.trim_start();
            match key {
                "why" => value.clone_into(&mut told.why),
                "do" => told.remedy = value,
                "where" => told.place = place(value),
                _ => {}
            }
        }
        told
    }
}

/// Reads `line 3, column 1`.
fn place(text: &str) -> Option<Place> {
    let (line, column) = text.strip_prefix("line ")?.split_once(", column ")?;
    Some(Place { line: line.parse().ok()?, column: column.parse().ok() })
}

fn failed(what: &str, error: &io::Error) -> Stop {
    let (exit, remedy) = match error.raw_os_error() {
        Some(libc::ENOSPC) => {
            return service::Failure::from(StoreError::Full(what.to_owned())).into();
        }
        Some(libc::EMFILE) => (
            Exit::Busy,
            "too many are open: `rmdir` yours in .workfs/txn/ that are not in use (an operator, anybody's)",
        ),
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
            (Exit::Denied, "for the reason: cat .workfs/why")
        }
        _ if is_end(error) => (Exit::Mount, "the daemon has ended: mount the store again"),
        _ => (Exit::Failed, ""),
    };
    Stop::failed(exit, format!("{what}: {error}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_why_tells_is_read() {
        let text = "2026-11-21T10:30:00Z txn a b/x.yaml EINVAL [W012 does not fit the schema]\n  \
                    why:    `status`: no\n  where:  line 3, column 1\n  do:     mend it\n  number: 7";
        let told = Told::parse(text);
        assert_eq!((told.path, &*told.why, told.remedy), ("a b/x.yaml", "`status`: no", "mend it"));
        assert_eq!(told.rule.map(Rule::code), Some("W012"));
        assert_eq!(told.place, Some(Place { line: 3, column: Some(1) }));
        assert_eq!(Told::parse("").rule, None);
    }
}
