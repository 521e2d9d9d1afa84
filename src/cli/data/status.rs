//! `workfs status`.

use clap::Args;
use serde_json::json;

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask, each_reply};
use crate::daemon::{StorePaths, is_dead, of_workfs};
use crate::names::printable;
use crate::service::{Reply, Request};
use crate::units::counted;

/// Its arguments.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print what `.workfs/metrics` says, in the text format of Prometheus
    #[arg(long)]
    metrics: bool,
}

/// Runs it.
pub fn run(args: &StatusArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    let here = Here::new(paths, output);
    if args.metrics {
        return ask(&here, Request::Metrics, Missing::Refuse);
    }
    let served = here.daemon()?;
    let mut exit = Exit::Failed;
    each_reply(&here, Request::Status, Missing::Refuse, &mut |reply| match reply {
        Reply::Report(report) => {
            exit = report.exit().into();
            if output.json {
                let mut value = report.json();
                value["daemon"] = json!(served.map(|(daemon, _)| daemon));
                value["mounts"] = json!(served.map(|(_, mounts)| mounts));
                return output.value(&value);
            }
            output.line(&report.human())?;
            output.line(&match &served {
                Some((daemon, mounts)) => {
                    let count = counted(mounts.len(), "mount");
                    let served = format!("served by process {}, {count}", daemon.pid);
                    match daemon.expect_store() {
                        Ok(()) => served,
                        Err(failure) => format!("{served}\n{}: {}", failure.reason, failure.remedy),
                    }
                }
                None => unserved(here.paths()),
            })
        }
        Reply::Error(failure) => Err(failure.into()),
        Reply::Progress { .. } | Reply::Line(_) | Reply::Part(_) | Reply::Idle => Ok(()),
    })?;
    Ok(exit)
}

/// What there is of mounts where there is no daemon.
fn unserved(paths: &StorePaths) -> String {
    let own = of_workfs().into_iter().filter(|mount| mount.source == *paths.source());
    let dead = own.filter(|mount| is_dead(&mount.dir));
    let dead: Vec<String> =
        dead.map(|mount| printable(mount.dir.as_os_str().as_encoded_bytes())).collect();
    match dead.len() {
        0 => "no daemon, not mounted".to_owned(),
        _ => format!("no daemon; dead mounts, which `workfs mount` replaces: {}", dead.join(", ")),
    }
}
