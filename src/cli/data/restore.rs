//! `workfs restore`.

use std::path::PathBuf;

use clap::Args;

use super::super::exit::Exit;
use super::super::output::{Output, Stop};
use super::super::{Global, ps, store};
use super::ask::print;
use crate::service::{Reply, Report, restore};

/// See `workfs restore --help`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup's file
    backup: PathBuf,
    /// Also where the store is not empty; it is kept beside the restored one
    #[arg(long)]
    force: bool,
}

/// Runs it.
pub fn run(args: &RestoreArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    if let Some((daemon, _)) = ps::ask(&paths)? {
        let reason = format!("{} is served by process {}", daemon.store, daemon.pid);
        return Err(Stop::failed(Exit::Held, reason, "unmount it first (`workfs unmount --all`)"));
    }
    let backup = store::outside(&args.backup)?;
    let report = restore(paths.store(), &backup, args.force, &mut |reply| {
        if let Reply::Progress { done, total, what } = reply {
            output.progress(done, total, &what);
        }
        true
    })?;
    let report = Report::Restore(report);
    print(&report, output)?;
    Ok(report.exit().into())
}
