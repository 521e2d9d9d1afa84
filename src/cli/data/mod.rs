//! The commands on what the store holds: arguments to a request, the answers to text.
//!
//! What must stay true: each works with a daemon (over its socket) and without one (in this
//! process), and prints the same. Deliberately not here: what they do (`service`).

mod agent;
mod ask;
mod backup;
mod claim;
mod doctor;
mod export;
mod finish;
mod gc;
mod heartbeat;
mod import;
mod list;
mod log;
mod project;
mod ready;
mod restore;
mod show;
mod status;
mod watch;
mod why;

use std::path::Path;

use clap::Subcommand;

use super::Global;
use super::exit::Exit;
use super::output::{Output, Stop};
use super::store;
use crate::daemon::{MountInfo, MountLine, StorePaths, mounted_around};
use crate::kind::Role;
use crate::names::AgentName;
use crate::service::Request;
use ask::{Missing, ask};

/// The commands.
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Counts and sizes, and what serves the store
    Status,
    /// Print a record: its text, state, owner, version and history
    Show(show::ShowArgs),
    /// List records and drafts
    List(list::ListArgs),
    /// List what can be claimed now, best first
    Ready(ready::ReadyArgs),
    /// Claim a record for an agent
    Claim(claim::ClaimArgs),
    /// Finish a record
    Done(finish::DoneArgs),
    /// Mark a record as failed; it stays with its owner
    Fail(finish::FailArgs),
    /// Give a claimed record back
    Release(finish::ReleaseArgs),
    /// Show that one still works on what one has: renew its lease
    Heartbeat(heartbeat::HeartbeatArgs),
    /// Register agents, list them
    Agent(agent::AgentArgs),
    /// Print the ledger
    Log(log::LogArgs),
    /// Print changes as they happen
    Watch(watch::WatchArgs),
    /// Say why something was refused or is a draft
    Why(why::WhyArgs),
    /// Remove old projects, or say which would go
    Gc(gc::GcArgs),
    /// Projects in the scratchpad
    Project(project::ProjectArgs),
    /// Take a directory of files in
    Import(import::ImportArgs),
    /// Write what the store holds to a plain directory
    Export(export::ExportArgs),
    /// Check this machine and the store
    Doctor,
    /// Check the tree, the records and the ledger
    Fsck,
    /// Copy the store while it is in use
    Backup(backup::BackupArgs),
    /// Make a store of a backup; with --at: a record or a file what it was
    Restore(restore::RestoreArgs),
}

/// Runs one.
pub fn run(command: &DataCommand, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let (request, hint, missing) = match command {
        DataCommand::Status => return status::run(global, output),
        DataCommand::Claim(args) => return claim::run(args, global, output),
        DataCommand::Log(args) => return log::run(args, global, output),
        DataCommand::Watch(args) => return watch::run(args, global, output),
        DataCommand::Doctor => return doctor::run(global, output),
        DataCommand::Gc(args) => return gc::run(args, global, output),
        DataCommand::Project(args) => return project::run(args, global, output),
        DataCommand::Restore(args) => return restore::run(args, global, output),
        DataCommand::Show(args) => (args.request(), Some(args.hint()), Missing::Refuse),
        DataCommand::Ready(args) => (args.request(), args.hint(), Missing::Refuse),
        DataCommand::List(args) => (args.request()?, args.hint(), Missing::Refuse),
        DataCommand::Done(args) => (args.request()?, Some(args.hint()), Missing::Refuse),
        DataCommand::Fail(args) => (args.request()?, Some(args.hint()), Missing::Refuse),
        DataCommand::Release(args) => (args.request()?, Some(args.hint()), Missing::Refuse),
        DataCommand::Heartbeat(args) => (args.request(), args.hint(), Missing::Refuse),
        DataCommand::Agent(args) => (args.request(), None, args.missing()),
        DataCommand::Why(args) => (args.request(), args.hint(), Missing::Refuse),
        DataCommand::Import(args) => (args.request()?, Some(args.hint()), Missing::Make),
        DataCommand::Export(args) => (args.request()?, None, Missing::Refuse),
        DataCommand::Fsck => (Request::Fsck, None, Missing::Refuse),
        DataCommand::Backup(args) => (args.request()?, None, Missing::Refuse),
    };
    // A single name says nothing about where it lies.
    let hint = hint.filter(|hint| hint.components().count() > 1);
    let paths = store::paths(global, hint.as_slice())?;
    ask(&paths, request, missing, output)
}

/// An agent's name from the command line.
fn agent(name: &str) -> Result<AgentName, String> {
    AgentName::new(name).map_err(|why| why.to_string())
}

/// What names the agent that commands act for.
const AGENT_VARIABLE: &str = "WORKFS_AGENT";

/// The request, with whom it acts for: who is named, else the agent of the environment, else that of
/// the mount that one is in. Where all are silent it is the user's, as operator.
fn on_behalf(mut request: Request, paths: &StorePaths) -> Result<Request, Stop> {
    if let Some(open) = request.agent_left_open() {
        *open = match std::env::var(AGENT_VARIABLE) {
            Ok(name) => Some(agent(&name).map_err(|why| {
                let reason = format!("{AGENT_VARIABLE} names no agent: {why}");
                Stop::failed(Exit::Usage, reason, "mend it, or unset it")
            })?),
            Err(_) => agent_of_mount(paths)?,
        };
    }
    // At the socket an agent that is not registered any more would be one that never was. `exec` names
    // that of its mount, so that the one who is named is looked at, too.
    if let Some(agent) = request.agent()
        && let Ok(Some(here)) = mount_here(paths)
        && here.agent.as_deref() == Some(agent.as_str())
        && here.role == Role::Observer.as_str()
    {
        let reason = format!("{agent}, whose mount this is, may only read");
        return Err(Stop::failed(Exit::Denied, reason, "ask an operator for another role"));
    }
    Ok(request)
}

/// The agent of the mount that one is in.
fn agent_of_mount(paths: &StorePaths) -> Result<Option<AgentName>, Stop> {
    let here = mount_here(paths)?.and_then(|here| here.agent);
    Ok(here.and_then(|name| AgentName::new(name).ok()))
}

/// The mount that one is in, if it is one of this store; refused where that cannot be told.
fn mount_here(paths: &StorePaths) -> Result<Option<MountInfo>, Stop> {
    let here = std::env::current_dir().ok().and_then(|dir| mounted_around(&dir));
    let Some(here) = here.filter(MountLine::is_workfs) else { return Ok(None) };
    let mounts = match super::ps::ask(paths) {
        // Its daemon is gone: nobody knows any more whose it was.
        Ok(asked) => asked.map(|(_, mounts)| mounts).unwrap_or_default(),
        // A user who is bound to an agent is not told; the daemon knows him by his user id.
        Err(Stop::Failed(failed)) if failed.exit == Exit::Denied => return Ok(None),
        Err(stop) => return Err(stop),
    };
    let found = super::ps::same(&here, mounts);
    if found.is_none() {
        let tells_another_store =
            Path::new(&here.source).is_absolute() && here.source != *paths.source();
        if tells_another_store {
            return Ok(None);
        }
        let reason = format!("it cannot be told whose mount {} is", here.dir.display());
        let remedy = format!("name the agent ({AGENT_VARIABLE}), or change to another directory");
        return Err(Stop::failed(Exit::Denied, reason, remedy));
    }
    Ok(found)
}
