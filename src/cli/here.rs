//! Where a command runs: in which mount of its store, for whom that acts, and what it shows.
//!
//! What must stay true: the daemon is asked for its mounts once a command, and only where one of them
//! may matter; it is asked before its mount is, since one that hangs would hold us. What a mount shows
//! is what a command in it sees: a convenience, and no right, since the socket knows users alone.
//! Deliberately not here: what the words of the command line mean there (`place`).

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::exit::Exit;
use super::mounts::{self, read_only, untold, working_mount};
use super::output::{Output, Stop};
use crate::daemon::{
    DaemonInfo, MountInfo, MountLine, StorePaths, is_dead_mount, mounted_around, part_of,
};
use crate::kind::Role;
use crate::names::{AgentName, Shown, TreePath, printable};
use crate::service::{Effect, Part, Properties, Request};

/// What names the agent that commands act for.
const AGENT_VARIABLE: &str = "WORKFS_AGENT";

/// What names the mount that `exec` made for a command.
pub const MOUNT_VARIABLE: &str = "WORKFS_MOUNT";

/// The agent that the environment names.
pub fn named_agent(name: &OsStr) -> Result<AgentName, Stop> {
    AgentName::new(name.to_string_lossy()).map_err(|why| {
        let reason = format!("{AGENT_VARIABLE} names no agent: `{}`: {why}", name.shown());
        Stop::failed(Exit::Usage, reason, "mend it, or unset it")
    })
}

/// Where a command runs.
pub struct Here<'o> {
    paths: StorePaths,
    output: &'o Output,
    asked: OnceCell<Option<(DaemonInfo, Vec<MountInfo>)>>,
    said: Cell<bool>,
}

impl<'o> Here<'o> {
    /// The working directory, for a command about this store.
    pub fn new(paths: StorePaths, output: &'o Output) -> Self {
        Here { paths, output, asked: OnceCell::new(), said: Cell::new(false) }
    }

    /// The store.
    pub fn paths(&self) -> &StorePaths {
        &self.paths
    }

    /// How the command prints.
    pub fn output(&self) -> &'o Output {
        self.output
    }

    /// What the store's daemon says of itself and of its mounts; `None` if there is none.
    pub fn daemon(&self) -> Result<Option<&(DaemonInfo, Vec<MountInfo>)>, Stop> {
        let asked = match self.asked.get() {
            Some(asked) => asked,
            None => {
                let asked = mounts::ask(&self.paths)?;
                self.asked.get_or_init(|| asked)
            }
        };
        Ok(asked.as_ref())
    }

    /// The request, with whom it acts for: who is named, else the agent of the environment, else that
    /// of the mount that one is in. Where all are silent it is the user's, as operator.
    pub fn on_behalf(&self, mut request: Request) -> Result<Request, Stop> {
        if let Some(open) = request.agent_left_open() {
            *open = match std::env::var_os(AGENT_VARIABLE) {
                Some(name) if !name.is_empty() => Some(named_agent(&name)?),
                _ => self.agent()?,
            };
        }
        Ok(request)
    }

    /// Whether the request acts for an agent in whose own mount one can only read. At the socket one that
    /// is not registered any more would be one that never was. `exec` names that of its mount, so that
    /// the one who is named is looked at, too.
    pub fn observes(&self, request: &Request) -> bool {
        let Some(agent) = request.agent() else { return false };
        self.mount().ok().flatten().is_some_and(|here| {
            here.agent.as_deref() == Some(agent.as_str()) && here.role == Role::Observer.as_str()
        })
    }

    /// The agent of the mount that one is in.
    fn agent(&self) -> Result<Option<AgentName>, Stop> {
        let here = self.mount()?.and_then(|here| here.agent);
        Ok(here.and_then(|name| AgentName::new(name).ok()))
    }

    /// The mount that one is in, if it is one of this store; refused where that cannot be told.
    fn mount(&self) -> Result<Option<MountInfo>, Stop> {
        let Some(line) = working_mount() else { return Ok(None) };
        let found = self.known(&line)?;
        if found.is_none() && !self.is_another_store_s(&line) {
            return Err(untold(&line, &format!("name the agent ({AGENT_VARIABLE})")));
        }
        Ok(found)
    }

    /// What the daemon says of a mount; `None` if it is none of its mounts, or the daemon is gone.
    fn known(&self, line: &MountLine) -> Result<Option<MountInfo>, Stop> {
        let known = self.daemon()?.map(|(_, mounts)| mounts.clone()).unwrap_or_default();
        Ok(mounts::same(line, known))
    }

    fn is_another_store_s(&self, line: &MountLine) -> bool {
        Path::new(&line.source).is_absolute() && line.source != *self.paths.source()
    }

    /// The mount that a command is called through: the one that one is in, else the one that `exec` made
    /// for the command.
    fn through(&self) -> Option<MountLine> {
        let made = || {
            let dir = PathBuf::from(std::env::var_os(MOUNT_VARIABLE)?);
            mounted_around(&dir).filter(MountLine::is_workfs)
        };
        working_mount().filter(|line| !self.is_another_store_s(line)).or_else(made)
    }

    /// Refuses what would change something where the mount is read-only: what is looked at through it
    /// is not to be changed through it.
    pub fn mind_the_mount(&self, request: &Request) -> Result<(), Stop> {
        let Properties { name, effect: Effect::Changes, .. } = request.properties() else {
            return Ok(());
        };
        let is_it = |line: &MountLine| line.read_only && !self.is_another_store_s(line);
        match self.through().filter(is_it) {
            Some(line) => Err(read_only(name, &line)),
            None => Ok(()),
        }
    }

    /// What of the tree is in sight.
    pub fn part(&self) -> Result<Part, Stop> {
        let Some(line) = self.through() else { return Ok(Part::default()) };
        if let Some(root) = self.shown(&line)? {
            return Ok(Part::below(root));
        }
        // A mount whose daemon is gone shows nothing any more. One that lives, of which the store's daemon knows
        // nothing, is of a store that has this path elsewhere, as in a container.
        if line.source != *self.paths.source() || self.daemon()?.is_none() && is_dead_mount(&line) {
            return Ok(Part::default());
        }
        let reason = format!("it cannot be told what {} shows of the tree", line.dir.shown());
        Err(Stop::failed(Exit::Denied, reason, "change to another directory"))
    }

    /// The directory of the tree that is a mount's root; `None` if the daemon does not know the mount.
    pub fn shown(&self, line: &MountLine) -> Result<Option<TreePath>, Stop> {
        let Some(served) = self.known(line)? else { return Ok(None) };
        let root = part_of(&served.root).unwrap_or_default().root().clone();
        let bound = line.bound.strip_prefix("/").unwrap_or(&line.bound);
        if bound.starts_with(".workfs") {
            return Ok(Some(root));
        }
        let bound = TreePath::parse(bound.as_os_str().as_bytes()).unwrap_or_default();
        Ok(Some(Part::below(root).join(&bound)))
    }

    /// A transaction is a mount's, and the store knows nothing of it: what would change something is
    /// refused in one, and of all else it is told what it tells.
    pub fn mind_the_transaction(&self, request: &Request) -> Result<(), Stop> {
        let Some(name) = transaction() else { return Ok(()) };
        let command = request.properties().name;
        match request.properties().effect {
            Effect::Changes => {
                let reason = format!(
                    "`{command}` would change what is committed, and not the transaction {name}"
                );
                let remedy = "move and write files there, or call it outside of the transaction";
                return Err(Stop::failed(Exit::Usage, reason, remedy));
            }
            Effect::Reads | Effect::Follows | Effect::Makes => {
                if !self.said.replace(true) {
                    self.output.note(&format!(
                        "`{command}` tells what is committed: nothing of the transaction {name}"
                    ));
                }
            }
            Effect::Renews => {}
        }
        Ok(())
    }
}

/// The transaction that the working directory lies in, or lay in before it was removed.
fn transaction() -> Option<String> {
    let mount = working_mount()?;
    let here = std::fs::read_link("/proc/self/cwd").ok()?;
    let bound = mount.bound.strip_prefix("/").unwrap_or(&mount.bound);
    let inside = bound.join(here.strip_prefix(&mount.dir).ok()?);
    let name = inside.strip_prefix(".workfs/txn").ok()?.components().next()?;
    Some(printable(name.as_os_str().as_bytes()))
}
