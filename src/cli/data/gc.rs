//! `workfs gc`.

use clap::Args;

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask};
use crate::service::{self, Request};

/// See `workfs gc --help`.
#[derive(Debug, Args)]
pub struct GcArgs {
    /// Only projects of which nothing was changed for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    older_than: u64,
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
        older_than_s: args.older_than.saturating_mul(86_400),
        status: args.status.clone(),
        delete: args.delete && !args.dry_run,
        agent: None,
    });
    ask(&Here::new(paths, output), request, Missing::Refuse)
}
