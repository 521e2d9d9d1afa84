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

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use clap::Subcommand;
use clap::builder::{OsStringValueParser, TypedValueParser};

use super::Global;
use super::exit::Exit;
use super::here::Here;
use super::mounts::working_mount;
use super::output::{Output, Stop};
use super::store;
use crate::names::{AgentName, Shown as _, json_path};
use crate::service::Request;
use ask::{Missing, ask};
pub(super) use ask::{expect_more, patience};

/// The commands.
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Counts and sizes, and what serves the store
    Status(status::StatusArgs),
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
        DataCommand::Status(args) => return status::run(args, global, output),
        DataCommand::Claim(args) => return claim::run(args, global, output),
        DataCommand::Log(args) => return log::run(args, global, output),
        DataCommand::Watch(args) => return watch::run(args, global, output),
        DataCommand::Doctor => return doctor::run(global, output),
        DataCommand::Gc(args) => return gc::run(args, global, output),
        DataCommand::Project(args) => return project::run(args, global, output),
        DataCommand::Restore(args) => return restore::run(args, global, output),
        DataCommand::Show(args) => (args.request(), Some(args.hint()), Missing::Refuse),
        DataCommand::Ready(args) => (args.request(), args.hint(), Missing::Refuse),
        DataCommand::List(args) => (args.request(), args.hint(), Missing::Refuse),
        DataCommand::Done(args) => (args.request(), Some(args.hint()), Missing::Refuse),
        DataCommand::Fail(args) => (args.request(), Some(args.hint()), Missing::Refuse),
        DataCommand::Release(args) => (args.request(), Some(args.hint()), Missing::Refuse),
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
    let asked = ask(&Here::new(paths, output), request, missing);
    match command {
        DataCommand::Show(args) if args.is_past() => asked.map_err(|stop| gone(stop, args.hint())),
        _ => asked,
    }
}

/// Why nothing of the past was found, with how a file is named that was in the working directory:
/// its bare name counts as an id, since there is no file of this name any more.
fn gone(stop: Stop, what: &Path) -> Stop {
    let is_bare = what.components().count() == 1 && what.symlink_metadata().is_err();
    match stop {
        Stop::Failed(mut failed)
            if failed.exit == Exit::Absent && is_bare && working_mount().is_some() =>
        {
            failed.remedy += &format!("; a file that was here is `./{}`", what.shown());
            Stop::Failed(failed)
        }
        stop => stop,
    }
}

/// What a word of the command line names, whatever bytes it has: as requests have it. A shell's variable that is not
/// set must not mean the whole tree.
fn word() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().try_map(|word| match word.is_empty() {
        true => Err("a path cannot be empty; `.` is where you are, or the root of the tree"),
        false => Ok(json_path(word.as_bytes())),
    })
}

/// A number from the command line.
fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "that is no whole number from 0 on".to_owned())
}

/// An agent's name from the command line.
fn agent(name: &str) -> Result<AgentName, String> {
    AgentName::new(name).map_err(|why| why.to_string())
}
