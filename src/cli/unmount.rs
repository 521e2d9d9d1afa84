//! `workfs unmount`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde_json::json;

use super::exit::Exit;
use super::output::{Output, Stop};
use super::{Global, mounts, store};
use crate::daemon::{
    self, Answer, Ask, Cause, Client, Covers, Failure, MountInfo, MountLine, StorePaths,
    UnmountAsk, Unmounting,
};
use crate::names::{Shown, first_few};

/// So many of the mounts that stay are named.
const NAMED_MAX: usize = 5;

/// See `workfs unmount --help`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["dir", "all"]).required(true))]
pub struct UnmountArgs {
    /// The directory
    dir: Option<PathBuf>,
    /// Take it from sight also when it is in use
    #[arg(long, short)]
    lazy: bool,
    /// All mounts of the store, and end its daemon
    #[arg(long)]
    all: bool,
}

/// Runs it.
pub fn run(args: &UnmountArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let how = if args.lazy { Unmounting::Lazily } else { Unmounting::IfUnused };
    match &args.dir {
        None => all(how, global, output),
        Some(dir) => one(dir, how, global, output),
    }
}

fn all(how: Unmounting, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    let served = Client::connect_or_nobody(&paths)?;
    let was_served = served.is_some();
    let mut dirs = served.map(|client| stop(client, &paths, how)).transpose()?.unwrap_or_default();
    dirs.extend(take_dead_away(&paths, how, output)?);
    if output.json {
        tell_done(&dirs, output)?;
    } else if !was_served && dirs.is_empty() {
        output.note(&format!("no daemon serves {}", paths.store().shown()));
    }
    Ok(if was_served || !dirs.is_empty() { Exit::Done } else { Exit::Nothing })
}

/// What daemons of the store left that ended without unmounting. Of what fails the rest is done all
/// the same.
fn take_dead_away(
    paths: &StorePaths,
    how: Unmounting,
    output: &Output,
) -> Result<Vec<String>, Stop> {
    let covers = Covers::kept_in(paths.covers());
    let source = paths.source();
    let mounted = daemon::of_workfs().into_iter().filter(|mount| mount.source == *source);
    let mut left: Vec<PathBuf> = mounted.map(|mount| mount.dir).chain(covers.dirs()).collect();
    left.sort();
    left.dedup();
    // One that lies in another goes first.
    left.reverse();
    let (mut taken, mut failed) = (Vec::new(), None);
    for dir in left {
        match daemon::clean_up(&dir, &covers, how) {
            Ok(Some(note)) => {
                output.note(&note);
                taken.push(dir.to_string_lossy().into_owned());
            }
            Ok(None) => {}
            Err(failure) => {
                failed.get_or_insert(failure);
            }
        }
    }
    taken.sort();
    failed.map_or(Ok(taken), |failure| Err(failure.into()))
}

/// Ends the daemon, and says which mounts it had. Where one is in use, or another mount lies in one, it goes on with
/// that, unless all are to go (lazily).
fn stop(mut client: Client, paths: &StorePaths, how: Unmounting) -> Result<Vec<String>, Stop> {
    let mut mounts = mounts::ask(paths)?.map(|(_, mounts)| mounts).unwrap_or_default();
    mounts.retain(|mount| !mount.detached);
    if how == Unmounting::IfUnused {
        end_unused(&mut client, &mounts)?;
    }
    if client.ask(&Ask::Stop)?.is_some() {
        client.await_end();
    }
    Ok(mounts.into_iter().map(|mount| mount.dir).collect())
}

/// Whoever calls this from inside of a mount is not kept by this very process.
fn step_out() -> Result<(), Failure> {
    std::env::set_current_dir("/").map_err(|error| Failure::io("leaving the directory", &error))
}

/// Unmounts each that nobody uses.
///
/// # Errors
/// The first that stays, and which others do; all else is unmounted all the same.
fn end_unused(client: &mut Client, mounts: &[MountInfo]) -> Result<(), Failure> {
    let (private, seen): (Vec<&MountInfo>, Vec<&MountInfo>) =
        mounts.iter().partition(|mount| mount.private);
    seen.iter().try_for_each(|mount| daemon::expect_nothing_inside(Path::new(&mount.dir)))?;
    step_out()?;
    let of_a_command = private.iter().map(|mount| {
        let agent = mount.agent.as_deref().unwrap_or("an operator");
        let reason = format!("{} is mounted for a command of {agent}", mount.dir.as_str().shown());
        let remedy = "wait for it (`workfs exec`) to end, or end it all the same: `--lazy`";
        (&mount.dir, Failure::new(Cause::Conflict, reason, remedy))
    });
    let kept = seen.iter().filter_map(|mount| {
        let ask = UnmountAsk { dir: mount.dir.clone(), lazy: false };
        // One that is gone meanwhile is not kept.
        let failure =
            client.ask(&Ask::Unmount(ask)).err().filter(|it| it.cause != Cause::Absent)?;
        let mounted = daemon::mounted_at(Path::new(&mount.dir));
        let named = |line| with_users(failure.clone(), line);
        Some((&mount.dir, mounted.as_ref().map_or_else(|| failure.clone(), named)))
    });
    // All are tried before the first is told.
    let kept: Vec<(&String, Failure)> = kept.chain(of_a_command).collect();
    let Some(((_, first), others)) = kept.split_first() else { return Ok(()) };
    let mut first = first.clone();
    if !others.is_empty() {
        let others = others.iter().map(|(dir, _)| dir.as_str().shown());
        first.reason = format!("{}; so stay {}", first.reason, first_few(others, NAMED_MAX));
    }
    Err(first)
}

fn one(dir: &Path, how: Unmounting, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let dir = daemon::resolve(dir)?;
    let mounted = daemon::mounted_at(&dir);
    if let Some(mount) = mounted.as_ref().filter(|mount| !mount.is_workfs()) {
        let reason = format!("{} is a mount of {}, not of workfs", dir.shown(), mount.fs_type);
        return Err(Stop::failed(Exit::Usage, reason, "use umount(8)"));
    }
    if mounted.is_some() && how == Unmounting::IfUnused {
        daemon::expect_nothing_inside(&dir)?;
    }
    // The mount itself tells its store, whichever one is named.
    let paths = match mounted.as_ref().map(told_store).transpose()?.flatten() {
        Some(paths) => paths,
        // That of where one is may be another's.
        None if mounted.is_some() => store::own(global)?,
        None => store::paths(global, &[])?,
    };
    step_out()?;
    // What is mounted there in another name space is none of this one's.
    let asked = mounted.as_ref().map(|_| by_the_daemon(&paths, &dir, how));
    match asked.unwrap_or(Ok(ByDaemon::NotIts)) {
        Ok(ByDaemon::Unmounted) => return done(&dir, output),
        Ok(ByDaemon::StillUsed(daemon)) => {
            output.note(&still_used(&dir, daemon));
            return done(&dir, output);
        }
        // It ended, or the mount is another daemon's or nobody's.
        Ok(ByDaemon::NotIts) => {}
        // One that is stopped sees it when it goes on.
        Err(failure) if how == Unmounting::Lazily && failure.cause == Cause::Busy => {
            output.note(&failure.reason);
            output.note("it stays, with the store, until it goes on or is ended");
            by_the_system(&dir, how)?;
            return done(&dir, output);
        }
        Err(failure) => {
            let named = |mount| with_users(failure.clone(), mount);
            return Err(mounted.as_ref().map_or_else(|| failure.clone(), named).into());
        }
    }
    if mounted.is_none() && mounts::ask(&paths)?.is_some_and(|(_, mounts)| has(&mounts, &dir)) {
        let reason = format!("{} is mounted, but not to be seen here", dir.shown());
        let remedy = "its daemon, or who uses it, is in another mount name space: unmount it there, or end \
                      the daemon (`workfs unmount --all`)";
        return Err(Stop::failed(Exit::Absent, reason, remedy));
    }
    without_daemon(&dir, mounted.as_ref(), &paths, (how, output))?;
    done(&dir, output)
}

/// Takes away what `mounted` says of a directory, where its daemon cannot.
fn without_daemon(
    dir: &Path,
    mounted: Option<&MountLine>,
    paths: &StorePaths,
    (how, output): (Unmounting, &Output),
) -> Result<(), Stop> {
    // A daemon that ended without unmounting left this; the directory below is given back.
    if let Some(note) = daemon::clean_up(dir, &Covers::kept_in(paths.covers()), how)? {
        output.note(&note);
        return Ok(());
    }
    let number = |line: &MountLine| (line.id, line.device);
    match daemon::mounted_at(dir) {
        None if mounted.is_some() => Ok(()),
        None => {
            let reason = format!("nothing is mounted on {}", dir.shown());
            Err(match daemon::left_covered(dir) {
                Some(left) => {
                    Stop::failed(Exit::Absent, format!("{reason}; {}", left.found), left.remedy)
                }
                None => Stop::failed(Exit::Absent, reason, "`workfs ps` tells what is mounted"),
            })
        }
        Some(now) if mounted.map(number) != Some(number(&now)) => {
            let (dir, fs_type) = (dir.shown(), now.fs_type);
            let reason = format!("somebody has mounted on {dir} meanwhile ({fs_type})");
            Err(Stop::failed(Exit::Conflict, reason, "see what it is, then unmount that"))
        }
        Some(_) => by_the_system(dir, how),
    }
}

/// The store that a mount tells, if there is one, or a daemon that has it although it was removed.
fn told_store(mount: &MountLine) -> Result<Option<StorePaths>, Stop> {
    let source = Path::new(&mount.source);
    if !source.is_absolute() {
        return Ok(None);
    }
    if source.is_file() {
        return Ok(Some(StorePaths::of(source)?));
    }
    let is_served =
        |paths: &StorePaths| Client::connect(paths).is_ok_and(|client| client.is_some());
    Ok(StorePaths::of(source).ok().filter(is_served))
}

/// Whether a daemon says that it has a directory mounted for all to see.
fn has(mounts: &[MountInfo], dir: &Path) -> bool {
    let is_it = |one: &MountInfo| !one.detached && !one.private && Path::new(&one.dir) == dir;
    mounts.iter().any(is_it)
}

/// What a store's daemon made of a mount.
enum ByDaemon {
    /// It is gone.
    Unmounted,
    /// It was taken from sight; the daemon, of this process id, stays for who uses it still.
    StillUsed(u32),
    /// It is not the daemon's, or there is none.
    NotIts,
}

/// The store's daemon unmounts it, if it can.
fn by_the_daemon(paths: &StorePaths, dir: &Path, how: Unmounting) -> Result<ByDaemon, Failure> {
    let Some(mut client) = Client::connect(paths)? else { return Ok(ByDaemon::NotIts) };
    let lazy = how == Unmounting::Lazily;
    let ask = UnmountAsk { dir: dir.to_str().unwrap_or_default().to_owned(), lazy };
    match client.ask(&Ask::Unmount(ask)) {
        Ok(Some(Answer::Unmounted { ending: true })) => {
            client.await_end();
            Ok(ByDaemon::Unmounted)
        }
        Ok(Some(Answer::Unmounted { ending: false })) => {
            let Some(Answer::Mounts { daemon, mounts }) = client.ask(&Ask::Ps)? else {
                return Ok(ByDaemon::Unmounted);
            };
            let is_it = |mount: &MountInfo| mount.detached && Path::new(&mount.dir) == dir;
            Ok(match mounts.iter().any(is_it) {
                true => ByDaemon::StillUsed(daemon.pid),
                false => ByDaemon::Unmounted,
            })
        }
        Ok(_) => Ok(ByDaemon::NotIts),
        Err(failure) if failure.cause == Cause::Absent => Ok(ByDaemon::NotIts),
        Err(failure) => Err(failure),
    }
}

/// What is to be known of a mount that was taken from sight while somebody uses it.
fn still_used(dir: &Path, daemon: u32) -> String {
    format!(
        "{} is in use: its daemon, process {daemon}, stays with the store until nobody uses it",
        dir.shown()
    )
}

fn done(dir: &Path, output: &Output) -> Result<Exit, Stop> {
    if output.json {
        tell_done(&[dir.to_string_lossy().into_owned()], output)?;
    }
    Ok(Exit::Done)
}

/// Tells programs what was unmounted.
fn tell_done(dirs: &[String], output: &Output) -> Result<(), Stop> {
    let told = output.value(&json!({"unmounted": dirs}));
    if dirs.is_empty() {
        return told;
    }
    let shown = || dirs.iter().map(Shown::shown).collect::<Vec<_>>().join(", ");
    output.of_done(told, || format!("unmounted {}", shown()))
}

/// A mount whose daemon cannot be asked from here; its session sees its end.
fn by_the_system(dir: &Path, how: Unmounting) -> Result<(), Stop> {
    let own = rustix::process::geteuid();
    let user = daemon::mounted_at(dir).and_then(|mount| mount.user);
    if let Some(user) = user.filter(|user| !own.is_root() && *user != own.as_raw()) {
        let reason = format!("{} is a mount of user {user}", dir.shown());
        return Err(Stop::failed(Exit::Denied, reason, "that user or root can unmount it"));
    }
    // It hears of it a moment later, and gives the directory back.
    let keeper = daemon::Keeper::of(dir).filter(|_| how == Unmounting::IfUnused);
    match daemon::unmount_at(dir, how) {
        Ok(()) => keeper.iter().for_each(daemon::Keeper::await_given_back),
        // Somebody else was faster.
        Err(_) if daemon::mounted_at(dir).is_none() => {}
        Err(failure) => return Err(failure.into()),
    }
    Ok(())
}

/// The same with the names of those who use the mount.
fn with_users(failure: Failure, mount: &MountLine) -> Failure {
    if failure.cause != Cause::Conflict {
        return failure;
    }
    let mut users = daemon::users_of(mount);
    if users.is_empty() {
        return failure;
    }
    users.truncate(8);
    Failure { reason: format!("{}: {}", failure.reason, users.join(", ")), ..failure }
}
