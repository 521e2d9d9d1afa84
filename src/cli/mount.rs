//! `workfs mount`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::Global;
use super::asked::{Asked, Flags, role};
use super::data::{expect_more, patience};
use super::exit::Exit;
use super::output::{Output, Stop};
use crate::daemon::{
    self, Answer, Ask, Cause, Client, Covers, Failure, HeldWait, LOOK_AGAIN, MountAsk, MountInfo,
    MountLine, Options, Patience, Spawned, StorePaths, UnmountAsk, Unmounting,
};
use crate::kind::Role;
use crate::limits::{DAEMON_START_WAIT, MOUNT_ANSWER_WAIT, MOUNT_END_WAIT, UNMOUNT_PATIENCE};
use crate::names::{Shown, printable, shell_word};
use crate::store::Durability;

/// See `workfs mount --help`.
#[derive(Debug, Args)]
pub struct MountArgs {
    /// The directory to mount on; it must be there
    dir: PathBuf,
    /// Stay in front until it is unmounted; Ctrl-C unmounts it
    #[arg(short, long)]
    foreground: bool,
    /// Options, separated by commas: ro, rw, allow_other, allow_root, default_permissions, uid=, gid=,
    /// umask=, dev, suid, noexec, noatime, fsname=, subtype=, nonempty, agent=, role=, root=, store=,
    /// sync=
    #[arg(short, long = "options", value_name = "OPTIONS")]
    options: Vec<String>,
    /// What an acknowledged change survives: power loss (full) or the end of the daemon (normal)
    #[arg(long, value_name = "LEVEL", value_parser = ["full", "normal"])]
    sync: Option<String>,
    /// The agent that this mount acts for [default: the user who calls]
    #[arg(long, env = "WORKFS_AGENT", value_name = "NAME")]
    agent: Option<String>,
    /// Its role [default: the one that is registered, else agent]
    #[arg(long, value_name = "ROLE", value_parser = role(), requires = "agent")]
    role: Option<Role>,
    /// Show only this directory of the tree
    #[arg(long, value_name = "PATH")]
    root: Option<String>,
    /// Mount although the directory has files, which are then hidden
    #[arg(long)]
    nonempty: bool,
    /// The daemon goes on when its last mount is gone
    #[arg(long)]
    linger: bool,
    /// Do nothing (`mount -f`)
    #[arg(long)]
    fake: bool,
}

/// Runs it.
pub fn run(args: &MountArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let dir = if args.fake { None } else { Some(daemon::resolve(&args.dir)?) };
    let flags = Flags {
        options: &args.options,
        agent: args.agent.as_deref(),
        role: args.role,
        root: args.root.as_deref(),
        sync: args.sync.as_deref(),
        dead: dir.as_deref().filter(|dir| is_dead_mount_of_a_store(dir)),
    };
    let Asked { mut text, paths, sync, agent, .. } = Asked::of(&flags, global)?;
    let Some(dir) = dir else { return Ok(Exit::Done) };
    let options = Options { paths, sync: sync.unwrap_or(Durability::Power), linger: args.linger };
    if args.sync.is_some() {
        // The daemon refuses a level that it does not run with.
        let sync = format!("sync={}", daemon::sync_name(options.sync));
        text = if text.is_empty() { sync } else { format!("{text},{sync}") };
    }
    let ask = MountAsk {
        dir: dir.to_str().unwrap_or_default().to_owned(),
        options: text,
        agent,
        role: args.role.map(|role| role.to_string()),
        root: args.root.clone(),
        nonempty: args.nonempty,
        hold: args.foreground,
        linger: args.linger,
        ..MountAsk::default()
    };
    // Where somebody serves one that was removed, that daemon says so.
    let is_new = !options.paths.exists() && Client::connect(&options.paths)?.is_none();
    if is_new {
        daemon::expect_mountable(&ask)?;
    }
    let made = is_new.then(|| made(&options.paths));
    closes(&options.paths, output)?;
    let tell = |notes: &[String]| made.iter().chain(notes).for_each(|note| output.note(note));
    let mounted = match args.foreground {
        true => in_front(&options, &ask, &tell, output),
        false => behind(&options, &ask, &tell, output),
    };
    mounted.map_err(|stop| stop.of(options.paths.store()))
}

/// Whether what is mounted there is dead, and of a store that there still is.
fn is_dead_mount_of_a_store(dir: &Path) -> bool {
    let is_of_a_store = |line: MountLine| line.is_workfs() && Path::new(&line.source).is_file();
    daemon::mounted_at(dir).is_some_and(is_of_a_store) && daemon::is_dead(dir)
}

/// What is said where a store was made.
pub(super) fn made(paths: &StorePaths) -> String {
    format!("made the store {}", printable(paths.store().as_os_str().as_encoded_bytes()))
}

/// Says that a store is closed to others where it is opened.
pub(super) fn closes(paths: &StorePaths, output: &Output) -> Result<(), Stop> {
    if let Some(note) = paths.closes_to_others()
        && Client::connect(paths)?.is_none()
    {
        output.note(&note);
    }
    Ok(())
}

/// Asks the daemon, starting it where there is none.
fn behind(
    options: &Options,
    ask: &MountAsk,
    tell: &dyn Fn(&[String]),
    output: &Output,
) -> Result<Exit, Stop> {
    let dir = Path::new(&ask.dir);
    let was_dead = daemon::is_dead(dir);
    let asked = at_daemon(options, |mut client| {
        expect_seen(&client, dir)?;
        let Some(answer) = client.ask(&Ask::Mount(ask.clone()))? else { return Ok(None) };
        let already = matches!(answer, Answer::Mounted { already: true, .. });
        let (mount, notes) = mounted(answer)?;
        if let Err(stop) = answers(Path::new(&mount.dir)) {
            if is_unmounted(&mut client, &mount) {
                return Ok(None);
            }
            if !already {
                // What is of no use here is not left behind.
                let _ = client.ask(&Ask::Unmount(UnmountAsk { dir: mount.dir, lazy: true }));
            }
            return Err(stop);
        }
        tell(&notes);
        if output.json {
            let told = output.value(&json!(mount));
            output.of_done(told, || format!("mounted on {}", mount.dir.shown()))?;
        }
        Ok(Some(Exit::Done))
    });
    asked.inspect_err(|stop| {
        // A daemon that broke off may have left one. Where one lay before, nobody can write below it, and it
        // stays until another takes its place.
        let covers = Covers::kept_in(options.paths.covers());
        let said = |reason: &str| matches!(stop, Stop::Failed(said) if said.reason == reason);
        if !was_dead
            && daemon::is_dead(dir)
            && let Err(failure) = daemon::clean_up(dir, &covers, Unmounting::IfUnused)
            && !said(&failure.reason)
        {
            output.note(&failure.reason);
        }
    })
}

/// Whether somebody has taken the mount away meanwhile, perhaps with its daemon: that it is not to be
/// seen is nobody's fault then. The daemon may be about to notice.
fn is_unmounted(client: &mut Client, mount: &MountInfo) -> bool {
    let begin = Instant::now();
    loop {
        match client.ask(&Ask::Ps) {
            Ok(None) => return true,
            Ok(Some(Answer::Mounts { mounts, .. })) => {
                if mounts.iter().all(|one| one.mount != mount.mount) {
                    return true;
                }
            }
            Ok(Some(_)) | Err(_) => return false,
        }
        if begin.elapsed() > UNMOUNT_PATIENCE {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Gives `ask` a connection to the store's daemon, which is started where there is none; again,
/// as long as `ask` says with `None` that the daemon was just ending.
pub(super) fn at_daemon<T>(
    options: &Options,
    mut ask: impl FnMut(Client) -> Result<Option<T>, Stop>,
) -> Result<T, Stop> {
    let (begin, mut wait) = (Instant::now(), HeldWait::of(&options.paths));
    let mut started: Option<Spawned> = None;
    loop {
        if begin.elapsed() > DAEMON_START_WAIT {
            return Err(Stop::failed(
                Exit::Mount,
                "the daemon ends again and again",
                "see its log",
            ));
        }
        if let Some(client) = Client::connect(&options.paths)? {
            match ask(client) {
                Ok(Some(answered)) => return Ok(answered),
                // It was just ending: the next one has its place in a moment.
                Ok(None) => {}
                Err(stop) => {
                    // One that was started for this ends now, and takes along what it made.
                    started.filter(|_| !options.linger).into_iter().for_each(Spawned::await_end);
                    return Err(stop);
                }
            }
        } else if let Some(failure) = started.as_mut().and_then(Spawned::broke_off) {
            return Err(failure.into());
        } else if !daemon::is_held(&options.paths) || !wait.goes_on() {
            match daemon::start(options) {
                Ok(one) => {
                    started = Some(one);
                    continue;
                }
                // Another one was faster and will listen, or a command has the store for a moment.
                Err(failure) if failure.cause == Cause::Held && wait.goes_on() => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Tells what the daemon said about a new mount.
pub(super) fn told(answer: Answer, output: &Output) -> Result<MountInfo, Stop> {
    let (mount, notes) = mounted(answer)?;
    notes.iter().for_each(|note| output.note(note));
    Ok(mount)
}

/// The new mount, and what is to be told of it.
fn mounted(answer: Answer) -> Result<(MountInfo, Vec<String>), Stop> {
    match answer {
        Answer::Mounted { mount, notes, .. } => Ok((mount, notes)),
        other => {
            let reason = format!("the daemon answers with {other:?}");
            Err(Stop::failed(Exit::Mount, reason, "is it of another version? Unmount, mount again"))
        }
    }
}

/// Whether a new mount is to be seen here and answers.
pub(super) fn answers(dir: &Path) -> Result<(), Stop> {
    let Some(mount) = daemon::mounted_at(dir).filter(MountLine::is_workfs) else {
        let reason = format!("the mount on {} is not to be seen here", dir.shown());
        let remedy = "the daemon runs in another mount name space: use `workfs` there, or \
                      another store";
        return Err(Stop::failed(Exit::Mount, reason, remedy));
    };
    let user = mount.user.filter(|user| *user != rustix::process::geteuid().as_raw());
    let io = |error: std::io::Error| match (error.raw_os_error(), user) {
        (Some(libc::EACCES), Some(user)) => {
            let dir = dir.shown();
            let reason = format!(
                "the mount on {dir} is user {user}'s, whose daemon makes it, and not for others"
            );
            let remedy =
                "mount as that user, or with `-o allow_root` (for root) or `-o allow_other`";
            Stop::failed(Exit::Denied, reason, remedy)
        }
        (Some(libc::ENOTCONN | libc::ECONNABORTED), _) => {
            let reason = format!("the mount on {} broke off: its daemon has ended", dir.shown());
            Stop::failed(Exit::Mount, reason, "try again")
        }
        _ => Failure::io(format!("the mount on {}", dir.shown()), &error).into(),
    };
    let place = dir.to_owned();
    let asked = daemon::within(MOUNT_ANSWER_WAIT, move || ask_root(&place));
    let unasked = |error| Failure::start(format!("asking the mount on {}", dir.shown()), &error);
    match asked.map_err(unasked)? {
        Some(answer) => answer.map_err(io),
        None => {
            let reason = format!("the mount on {} does not answer", dir.shown());
            Err(Stop::failed(Exit::Mount, reason, "see the daemon's log beside the store"))
        }
    }
}

/// A `stat` that the kernel cannot answer by itself.
fn ask_root(dir: &Path) -> std::io::Result<()> {
    use rustix::fs::{AtFlags, CWD, StatxFlags};
    let flags = AtFlags::STATX_FORCE_SYNC;
    Ok(rustix::fs::statx(CWD, dir, flags, StatxFlags::BASIC_STATS).map(drop)?)
}

/// Serves the mount in this process, or holds it at the daemon that has the store.
fn in_front(
    options: &Options,
    ask: &MountAsk,
    tell: &dyn Fn(&[String]),
    output: &Output,
) -> Result<Exit, Stop> {
    let (mut wait, patience) = (HeldWait::of(&options.paths), patience()?);
    loop {
        expect_more(&patience)?;
        if let Some(client) = Client::connect(&options.paths)? {
            if let Some(exit) = hold(client, ask, &patience, output)? {
                return Ok(exit);
            }
        } else {
            daemon::start_log(&options.paths)?;
            let served = daemon::run(options, &patience, |started| {
                if let Answer::Mounted { mount, notes, .. } = started.mount(ask)? {
                    tell(&notes);
                    shown(&mount, output);
                }
                Ok(())
            });
            match served {
                Ok(()) => return Ok(Exit::Done),
                Err(failure) if failure.cause == Cause::Held && wait.goes_on() => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        std::thread::sleep(LOOK_AGAIN + Duration::from_millis(30));
    }
}

/// Tells programs of a mount that goes on: who does not hear of it uses it all the same.
fn shown(mount: &MountInfo, output: &Output) {
    if output.json
        && let Err(Stop::Failed(failed)) = output.value(&json!(mount)).and_then(|()| output.flush())
    {
        tracing::warn!(reason = failed.reason, "the mount could not be told of");
    }
}

/// Fails on a directory in a mount that the daemon does not see, such as one that `exec` made: it would say that
/// the directory is not there. (Of one that both see, and only one of them as a mount, it says what there is.)
fn expect_seen(client: &Client, dir: &Path) -> Result<(), Stop> {
    let lies_in_one = |mount: MountLine| mount.is_workfs() && mount.dir != dir;
    if !daemon::mounted_around(dir).is_some_and(lies_in_one) {
        return Ok(());
    }
    let remedy = "mount on a directory outside of it";
    client
        .expect_sees(dir)
        .map_err(|failure| Failure { remedy: remedy.to_owned(), ..failure }.into())
}

/// `None` if the daemon was just ending.
fn hold(
    mut client: Client,
    ask: &MountAsk,
    patience: &Patience,
    output: &Output,
) -> Result<Option<Exit>, Stop> {
    expect_seen(&client, Path::new(&ask.dir))?;
    let connection = client.connection()?;
    // The daemon unmounts when it sees that nobody holds the mount any more, then hangs up.
    patience.when_over(move |_| drop(connection.shutdown(std::net::Shutdown::Write)));
    let Some(answer) = client.ask(&Ask::Mount(ask.clone()))? else { return Ok(None) };
    if let Answer::Mounted { mount, already: true, .. } = &answer {
        let reason = format!("{} is mounted already, in the background", mount.dir.shown());
        return Err(Stop::failed(Exit::Conflict, reason, "unmount it first"));
    }
    let mount = told(answer, output)?;
    let answered = answers(Path::new(&mount.dir));
    // One that has ended meanwhile does not answer either; of its end the daemon tells.
    if answered.is_err() && !client.is_heard_within(MOUNT_END_WAIT)? {
        answered?;
    }
    shown(&mount, output);
    if client.await_answer()?.is_some() {
        return Ok(Some(Exit::Done));
    }
    let reason = format!("the mount on {} broke off: its daemon has ended", mount.dir.shown());
    let remedy = format!("mount it again (`workfs mount {}`)", shell_word(mount.dir.as_bytes()));
    Err(Stop::failed(Exit::Mount, reason, remedy))
}
