//! `workfs daemon`: what `workfs mount` starts in the background.

use clap::Args;

use super::Global;
use super::exit::Exit;
use super::output::{Output, Stop};
use crate::daemon::{self, Cause, Failure, Options, Patience, Readiness, StorePaths};

/// See `workfs daemon --help`.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// What an acknowledged change survives
    #[arg(long, default_value = "full", value_parser = ["full", "normal"])]
    sync: String,
    /// Go on without mounts
    #[arg(long)]
    linger: bool,
}

/// Runs it. Whoever started it reads one line from its standard output.
pub fn run(args: &DaemonArgs, global: &Global, _: &Output) -> Result<Exit, Stop> {
    daemon::detach_from_caller();
    let mut said = false;
    serve(args, global, &mut said).map(|()| Exit::Done).map_err(|failure| {
        if !said {
            daemon::ready_line(&Readiness::Failed(failure.clone()));
        }
        failure.into()
    })
}

fn serve(args: &DaemonArgs, global: &Global, said: &mut bool) -> Result<(), Failure> {
    let store = global
        .store
        .as_deref()
        .ok_or_else(|| Failure::new(Cause::Usage, "no store is named", "name one with --store"))?;
    let (paths, sync) = (StorePaths::of(store)?, daemon::durability(&args.sync)?);
    let patience = Patience::begin(i32::from(Exit::Interrupted.code()))?;
    daemon::start_log(&paths)?;
    daemon::run(&Options { paths, sync, linger: args.linger }, &patience, |_| {
        *said = true;
        if daemon::ready_line(&Readiness::Serves) {
            return Ok(());
        }
        let reason = "whoever started this daemon is gone";
        Err(Failure::new(Cause::Other, reason, "start it again"))
    })
}
