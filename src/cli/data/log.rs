//! `workfs log`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::Args;

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::reader::end_with_reader;
use super::super::{Global, store};
use super::ask::{Missing, ask, each_reply};
use crate::daemon::{Client, StorePaths};
use crate::numbers::G;
use crate::service::{self, Reply, Report, Request};
use crate::store::sqlite::last_holder;

/// How often `--follow` looks for a daemon, or for changes of a store that has none.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// See `workfs log --help`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// A record's id, or a path: only what happened to it or below it
    #[arg(value_parser = super::word())]
    what: Option<String>,
    /// Go on with events as they happen
    #[arg(long, short)]
    follow: bool,
    /// Only events after this one
    #[arg(long, value_name = "G", value_parser = super::number)]
    since: Option<u64>,
    /// Only so many, the newest
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = super::number)]
    limit: Option<u64>,
}

impl LogArgs {
    fn request(&self, json: bool) -> service::LogArgs {
        service::LogArgs {
            what: self.what.clone(),
            follow: self.follow,
            since: self.since.map(G),
            limit: self.limit,
            json,
        }
    }
}

/// Runs it.
pub fn run(args: &LogArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let hint = args.what.as_deref().map(Path::new).filter(|path| path.components().count() > 1);
    let paths = store::paths(global, hint.as_slice())?;
    let mut request = args.request(output.json);
    if args.follow {
        end_with_reader();
        until_served(&paths, &mut request, output)?;
    }
    let asked = ask(&Here::new(paths, output), Request::Log(request), Missing::Refuse);
    match &args.what {
        Some(what) => asked.map_err(|stop| super::gone(stop, Path::new(what))),
        None => asked,
    }
}

/// Follows a store that no daemon serves, until one does. Its lock is held only to read what is
/// new: whoever followed with the lock in hand would wait for changes that it keeps others from.
fn until_served(
    paths: &StorePaths,
    request: &mut service::LogArgs,
    output: &Output,
) -> Result<(), Stop> {
    let (mut seen, mut is_told) = (None, false);
    while Client::connect(paths)?.is_none() {
        let (changed, before) = (last_change(paths), last_holder(paths.store()));
        if seen != Some(changed) {
            let page = service::LogArgs { follow: false, ..request.clone() };
            let here = Here::new(paths.clone(), output);
            let told =
                each_reply(&here, Request::Log(page), Missing::Refuse, &mut |reply| match reply {
                    Reply::Line(line) => output.line(&line),
                    Reply::Report(report) => {
                        if let Report::Log(log) = *report {
                            request.since = Some(log.last_g.max(request.since.unwrap_or(G(0))));
                            // It chose among what had happened before.
                            request.limit = None;
                        }
                        Ok(())
                    }
                    Reply::Error(failure) => Err(failure.into()),
                    Reply::Progress { .. } | Reply::Part(_) | Reply::Idle => Ok(()),
                });
            match told {
                // Another command has it for longer: what it does is told when it has ended.
                Err(Stop::Failed(failed)) if failed.exit == Exit::Held => {
                    if !std::mem::replace(&mut is_told, true) {
                        output.note(&format!("{}: waiting until it is free", failed.reason));
                    }
                    continue;
                }
                told => told?,
            }
            output.flush()?;
            // Who has read what was told may have taken all the time, and somebody else had the store meanwhile. (Nobody
            // has left a number where it cannot be written.)
            let changed = last_change(paths);
            let last = last_holder(paths.store());
            let is_ours = last == before || last == Some(std::process::id());
            seen = is_ours.then_some(changed);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn last_change(paths: &StorePaths) -> Option<SystemTime> {
    std::fs::metadata(paths.store()).and_then(|metadata| metadata.modified()).ok()
}
