//! `workfs gc`.

use std::time::Duration;

use clap::Args;

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask};
use crate::service::{self, Request};
use crate::units;

/// See `workfs gc --help`.
#[derive(Debug, Args)]
pub struct GcArgs {
    /// Only projects of which nothing was changed for so long: 12h, 30d; a bare number is days
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = units::age)]
    older_than: Duration,
    /// Only projects of this status; may be given more than once
    #[arg(long, value_name = "STATUS", default_values = ["completed", "archived"])]
    status: Vec<String>,
    /// Only say what would go (this is what happens without --delete, too)
    #[arg(long, conflicts_with = "delete")]
    dry_run: bool,
    /// Remove them, their versions, and versions that nothing keeps any more
    #[arg(long)]
    delete: bool,
}

/// Runs it.
pub fn run(args: &GcArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    let request = Request::Gc(service::GcArgs {
        older_than_s: args.older_than.as_secs(),
        status: args.status.clone(),
        delete: args.delete && !args.dry_run,
        agent: None,
    });
    ask(&Here::new(paths, output), request, Missing::Refuse)
}
