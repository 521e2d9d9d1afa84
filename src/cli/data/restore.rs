//! `workfs restore`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask, tell_done};
use crate::names::{Shown, json_path};
use crate::service::{Reply, Report, Request, RewindArgs, restore};

/// See `workfs restore --help`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup's file; with --at a record or a plain file
    what: PathBuf,
    /// Make WHAT what it was after this event or at this time (2026-11-21T10:30:00Z)
    #[arg(long, value_name = "G|TIME")]
    at: Option<String>,
    /// Also where the store is not empty; it is kept beside the restored one
    #[arg(long, conflicts_with = "at")]
    force: bool,
}

/// Runs it.
pub fn run(args: &RestoreArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    if let Some(at) = &args.at {
        return rewind(&args.what, at, global, output);
    }
    let paths = store::paths(global, &[])?;
    let here = Here::new(paths.clone(), output);
    here.part()?.expect_whole("restore")?;
    if let Some((daemon, _)) = here.daemon()? {
        let reason = format!("{} is served by process {}", daemon.store.shown(), daemon.pid);
        return Err(Stop::failed(Exit::Held, reason, "unmount it first (`workfs unmount --all`)"));
    }
    let backup = store::outside(&args.what)?;
    let patience = super::ask::patience()?;
    let restored = restore(paths.store(), &backup, args.force, &mut |reply| {
        if let Reply::Progress { done, total, what } = reply {
            output.progress(done, total, &what);
        }
        !patience.is_over()
    });
    let report = match restored {
        Err(failure) if patience.is_over() => return Err(Stop::from(failure).interrupted()),
        restored => restored?,
    };
    let report = Report::Restore(report);
    tell_done(&report, output)?;
    Ok(report.exit().into())
}

/// One record or file of the past, through whoever serves the store.
fn rewind(what: &Path, at: &str, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let hint = (what.components().count() > 1).then_some(what);
    let paths = store::paths(global, hint.as_slice())?;
    let word = json_path(what.as_os_str().as_bytes());
    let rewind = RewindArgs { what: word, at: at.to_owned(), agent: None };
    let asked = ask(&Here::new(paths, output), Request::Rewind(rewind), Missing::Refuse);
    asked.map_err(|stop| super::gone(stop, what))
}
