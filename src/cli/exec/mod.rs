//! `workfs exec`: a mount for one command, which goes with it.
//!
//! What must stay true: whatever ends the command or this process, no mount, no directory and no
//! daemon that would not be there otherwise is left, as soon as nobody uses them; the command's
//! exit code is this process's. Deliberately not here: what a mount shows, and how it is served.

pub(super) mod child;
mod space;

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use rustix::fs::Access;

use super::Global;
use super::asked::{Asked, Flags, role};
use super::exit::Exit;
use super::here::MOUNT_VARIABLE;
use super::mount::{answers, at_daemon, closes, made, told};
use super::output::{Output, Stop};
use crate::daemon::{
    self, Answer, Ask, Client, Covers, Failure, LOOK_AGAIN, MountAsk, MountInfo, Options,
    OwnOptions, StorePaths, UnmountAsk, Unmounting,
};
use crate::kind::Role;
use crate::limits::{DAEMON_END_WAIT, MOUNT_DIRS_MAX};
use crate::names::Shown;
use crate::store::Durability;
use crate::store::sqlite::is_held;

/// See `workfs exec --help`.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// The agent that the command acts for [default: the user who calls]
    #[arg(long, env = "WORKFS_AGENT", value_name = "NAME")]
    agent: Option<String>,
    /// Its role [default: the one that is registered, else agent]
    #[arg(long, value_name = "ROLE", value_parser = role(), requires = "agent")]
    role: Option<Role>,
    /// Show only this directory of the tree
    #[arg(long, value_name = "PATH")]
    root: Option<String>,
    /// Options of the mount, as of `workfs mount`
    #[arg(short, long = "options", value_name = "OPTIONS")]
    options: Vec<String>,
    /// The command and its arguments; it runs in the mount
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Runs it; the command's end is this process's.
pub fn run(args: &ExecArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let flags = Flags {
        options: &args.options,
        agent: args.agent.as_deref(),
        role: args.role,
        root: args.root.as_deref(),
        sync: None,
        dead: None,
    };
    let Asked { text, own, paths, sync, agent } = Asked::of(&flags, global)?;
    let options = Options { paths, sync: sync.unwrap_or(Durability::Power), linger: false };
    let wanted = MountAsk {
        options: text,
        agent,
        role: args.role.map(|role| role.to_string()),
        root: args.root.clone(),
        hold: true,
        temporary: true,
        private: space::is_allowed(),
        ..MountAsk::default()
    };
    // What is refused in any case starts no daemon and makes no store.
    daemon::expect_possible(&wanted)?;
    let place = OwnDir::expect_place()?;
    if wanted.private {
        expect_in_sight(&place)?;
    }
    // Where somebody serves one that was removed, that daemon says so.
    let is_new = !options.paths.exists() && Client::connect(&options.paths)?.is_none();
    closes(&options.paths, output)?;
    let mounted = at_daemon(&options, |client| {
        child::hold_signals();
        let dir = OwnDir::make()?;
        let dir_name = dir.0.to_str().unwrap_or_default().to_owned();
        let ask = MountAsk { dir: dir_name, ..wanted.clone() };
        let mounted = mount(client, &ask, &own, &options.paths, output).inspect_err(|_| {
            if ask.private {
                // A directory goes only when nothing is mounted on it.
                space::unmount(&dir.0);
            }
        });
        let mounted = mounted.map_err(of_own_directory)?;
        Ok(mounted.map(|(client, info)| Mounted { client, info, dir }))
    });
    let mounted = mounted.inspect_err(|_| {
        if is_new {
            await_end(&options.paths);
        }
    })?;
    if is_new {
        output.note(&made(&options.paths));
    }
    let ended = child::run(&args.command, mounted.dir(), &mounted.variables(&options.paths));
    mounted.take_away(&options.paths);
    Err(Stop::ended(ended?.status))
}

/// Fails where the directory that is to be mounted on would lie in a mount: in a name space of its own the command
/// sees no other.
fn expect_in_sight(place: &Path) -> Result<(), Stop> {
    let Some(mount) = daemon::mounted_around(place).filter(|mount| mount.is_workfs()) else {
        return Ok(());
    };
    let (place, mount) = (place.shown(), mount.dir.shown());
    let reason =
        format!("no directory to mount on can be made in {place}: it lies in the mount {mount}");
    Err(Stop::failed(Exit::Usage, reason, "set TMPDIR to a directory outside of mounts of workfs"))
}

/// Waits, not without end, until a daemon has gone that was started in vain, and has taken along what it
/// made.
fn await_end(paths: &StorePaths) {
    let begin = Instant::now();
    while is_held(paths.store()) && begin.elapsed() < DAEMON_END_WAIT {
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Mounts; `None` if the daemon was just ending.
fn mount(
    mut client: Client,
    ask: &MountAsk,
    own: &OwnOptions,
    paths: &StorePaths,
    output: &Output,
) -> Result<Option<(Client, MountInfo)>, Stop> {
    let dir = Path::new(&ask.dir);
    let answer = match client.ask(&Ask::Mount(ask.clone()))? {
        None => return Ok(None),
        Some(Answer::SendConnection) => {
            let mut kernel = own.kernel()?;
            if !own.names_source() {
                kernel.fs_name = paths.source();
            }
            let connection = space::mount(dir, &kernel)?;
            client.send_connection(connection.as_fd())?
        }
        Some(answer) => answer,
    };
    let info = told(answer, output)?;
    answers(dir)?;
    if ask.private {
        space::expect_owners(dir)?;
    }
    Ok(Some((client, info)))
}

/// The same where the way out is another directory: the one that `exec` makes is the caller's own.
fn of_own_directory(stop: Stop) -> Stop {
    match stop {
        Stop::Failed(mut failed) if failed.remedy == daemon::MOUNT_ON_OWN => {
            failed.remedy =
                "a container needs CAP_SYS_ADMIN; else set TMPDIR to a directory of another file \
                             system, or call it as root"
                    .to_owned();
            Stop::Failed(failed)
        }
        other => other,
    }
}

/// A directory that was made to be mounted on.
struct OwnDir(PathBuf);

impl OwnDir {
    /// Where they lie, if one can be made there.
    fn expect_place() -> Result<PathBuf, Stop> {
        // To `std::env::temp_dir` a variable that is set to nothing would name a directory.
        let named = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
        let base = daemon::resolve(named.as_deref().map_or(Path::new("/tmp"), Path::new))?;
        let may = rustix::fs::access(&base, Access::WRITE_OK | Access::EXEC_OK);
        match may.map_err(std::io::Error::from).and_then(|()| base.metadata()) {
            Ok(found) if found.is_dir() => Ok(base),
            Ok(_) => Err(no_place(&base, &std::io::ErrorKind::NotADirectory.into())),
            Err(error) => Err(no_place(&base, &error)),
        }
    }

    fn make() -> Result<OwnDir, Stop> {
        let base = OwnDir::expect_place()?;
        let pid = std::process::id();
        for number in 0..MOUNT_DIRS_MAX {
            let dir = base.join(format!("workfs-{pid}-{number}"));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok(OwnDir(dir)),
                // Left by a process of the same number that was killed together with its daemon.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(no_place(&dir, &error)),
            }
        }
        let reason = format!("{} is full of directories of ours", base.shown());
        Err(Stop::failed(Exit::Busy, reason, "remove `workfs-*` there that nobody uses"))
    }
}

impl Drop for OwnDir {
    fn drop(&mut self) {
        // Not there any more where the daemon was faster.
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn no_place(dir: &Path, error: &std::io::Error) -> Stop {
    let remedy = "set TMPDIR to a directory in which you may make one";
    let failure = Failure::io(format!("a directory to mount on: {}", dir.shown()), error);
    Failure { remedy: remedy.to_owned(), ..failure }.into()
}

/// A mount for a command.
struct Mounted {
    /// Held as long as the mount is wanted.
    client: Client,
    info: MountInfo,
    dir: OwnDir,
}

impl Mounted {
    fn dir(&self) -> &Path {
        &self.dir.0
    }

    /// What tells the command where it is, and who.
    fn variables(&self, paths: &StorePaths) -> Vec<(&'static str, OsString)> {
        let agent = self.info.agent.as_ref();
        let mut variables = vec![
            ("WORKFS_STORE", paths.store().into()),
            (MOUNT_VARIABLE, self.dir().into()),
            ("WORKFS_ROLE", self.info.role.clone().into()),
        ];
        variables.extend(agent.map(|agent| ("WORKFS_AGENT", agent.into())));
        variables
    }

    /// Unmounts. Where processes of the command are left that use the mount, they keep it until
    /// they end, and nobody else finds it. A daemon that ends with its last mount is waited for.
    fn take_away(mut self, paths: &StorePaths) {
        if self.info.private {
            if space::unmount(self.dir()) {
                self.client.await_unmounted();
            }
            return;
        }
        let ask = UnmountAsk { dir: self.info.dir.clone(), lazy: true };
        if let Ok(Some(mut client)) = Client::connect(paths)
            && let Ok(Some(Answer::Unmounted { ending })) = client.ask(&Ask::Unmount(ask))
        {
            if ending {
                client.await_end();
            }
            return;
        }
        // Its daemon was killed, and left it dead. One that only does not answer keeps it.
        if let Err(failure) =
            daemon::clean_up(self.dir(), &Covers::kept_in(paths.covers()), Unmounting::Lazily)
        {
            tracing::warn!(%failure, "a dead mount stays");
        }
    }
}
