//! `workfs doctor`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, each_reply, print};
use crate::daemon::{Covers, answered, left_covered};
use crate::names::{printable, shell_word};
use crate::service::{DoctorReport, Finding, Health, Reply, Report, Request, doctor};

/// Runs it: also where the store is missing or cannot be opened, which it then says.
pub fn run(global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    // A daemon that hangs does not answer this either, and that is not waited for without end.
    let here = Here::new(paths, output);
    let part = here.part();
    if let Ok(part) = &part {
        part.expect_whole("doctor")?;
    }
    let mut told = None;
    let asked = part.and_then(|_| here.daemon()).and_then(|_| {
        each_reply(&here, Request::Doctor, Missing::Refuse, &mut |reply| match reply {
            Reply::Report(report) => {
                told = Some(*report);
                Ok(())
            }
            Reply::Error(failure) => Err(failure.into()),
            Reply::Progress { done, total, what } => {
                output.progress(done, total, &what);
                Ok(())
            }
            Reply::Line(_) | Reply::Part(_) | Reply::Idle => Ok(()),
        })
    });
    let mut report = match asked {
        Ok(()) => told.unwrap_or_else(|| Report::Doctor(DoctorReport { findings: Vec::new() })),
        Err(Stop::Failed(failed)) => {
            let why = (&*failed.reason, &*failed.remedy);
            Report::Doctor(doctor(here.paths().store(), Err(why), &mut |_| true))
        }
        Err(other) => return Err(other),
    };
    if let Report::Doctor(report) = &mut report {
        report.findings.extend(removed(&here));
        report.findings.extend(left_closed(&here));
        report.findings.extend(working_directory());
    }
    print(&report, output)?;
    Ok(report.exit().into())
}

/// That the store's file is gone under its daemon.
fn removed(here: &Here<'_>) -> Option<Finding> {
    let (daemon, _) = here.daemon().ok().flatten()?;
    let failure = daemon.expect_store().err()?;
    let (what, found) = ("daemon".to_owned(), failure.reason);
    Some(Finding { what, health: Health::Bad, found, remedy: Some(failure.remedy) })
}

/// Directories that mounts of the store left read-only.
fn left_closed(here: &Here<'_>) -> Vec<Finding> {
    let served = here.daemon().ok().flatten().map_or(&[][..], |(_, mounts)| mounts);
    let is_served = |dir: &Path| served.iter().any(|mount| Path::new(&mount.dir) == dir);
    let left = Covers::kept_in(here.paths().covers()).left();
    let finding = |dir: PathBuf| {
        let shown = printable(dir.as_os_str().as_bytes());
        Finding {
            what: "directory".to_owned(),
            health: Health::Warn,
            found: format!("{shown} is read-only: so a daemon left it that was killed"),
            remedy: Some(format!(
                "`workfs unmount {}` gives it back, `workfs mount` takes it",
                shell_word(dir.as_os_str().as_bytes())
            )),
        }
    };
    left.into_iter().filter(|dir| !is_served(dir)).map(finding).collect()
}

/// The directory that one is in, where it does not answer, or a mount left it read-only: the daemon does not
/// know which that is.
fn working_directory() -> Option<Finding> {
    let dir = std::env::current_dir().ok()?;
    let (found, remedy) = match answered(&dir.clone(), move || left_covered(&dir)) {
        Ok(left) => left.map(|left| (left.found, left.remedy))?,
        Err(failure) => (failure.reason, failure.remedy),
    };
    let what = "working directory".to_owned();
    Some(Finding { what, health: Health::Warn, found, remedy: Some(remedy) })
}
