//! `workfs project`.

use clap::{Args, Subcommand};

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask};
use crate::service::{ProjectNewArgs, Request};

/// See `workfs project --help`.
#[derive(Debug, Args)]
pub struct ProjectArgs {
    #[command(subcommand)]
    command: ProjectCommand,
}

#[derive(Debug, Subcommand)]
enum ProjectCommand {
    /// Make a project's directories in scratchpad/ and print its id
    New {
        /// Its id [default: the next free number, 001 …]
        id: Option<String>,
    },
}

/// Runs it.
pub fn run(args: &ProjectArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    let ProjectCommand::New { id } = &args.command;
    let request = Request::ProjectNew(ProjectNewArgs { id: id.clone(), agent: None });
    ask(&Here::new(paths, output), request, Missing::Refuse)
}
