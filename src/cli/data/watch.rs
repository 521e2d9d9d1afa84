//! `workfs watch`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::reader::end_with_reader;
use super::super::{Global, store};
use super::ask::{Missing, each_reply, no_daemon, no_store};
use crate::daemon::Client;
use crate::names::{TreePath, path_of_json};
use crate::numbers::G;
use crate::service::{self, Part, Reply, Request};
use crate::units;

/// See `workfs watch --help`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Which files, from the root of the mount: 'scratchpad/**', 'work/inbox/*.yaml'
    glob: String,
    /// End after this: 90s, 10m, 2h; exit code 3 if nothing happened
    #[arg(long, value_name = "TIME", value_parser = units::patience)]
    timeout: Option<Duration>,
    /// End after so many events
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Begin after this event [default: with the next one]
    #[arg(long, value_name = "G", value_parser = super::number)]
    since: Option<u64>,
    /// Run this by `sh -c` for each event, with WORKFS_EVENT, WORKFS_PATH (from the root of the
    /// mount), WORKFS_G and WORKFS_ACTOR; the next event waits for its end
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
}

/// Runs it.
pub fn run(args: &WatchArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    if Client::connect(&paths)?.is_none() {
        return Err(if paths.exists() { no_daemon(&paths) } else { no_store(&paths) });
    }
    let request = Request::Watch(service::WatchArgs {
        glob: args.glob.clone(),
        timeout_s: args.timeout.map(|timeout| timeout.as_secs()),
        count: args.count,
        since: args.since.map(G),
        json: output.json || args.exec.is_some(),
    });
    if args.exec.is_none() {
        end_with_reader();
    }
    let here = Here::new(paths, output);
    let part = here.part()?;
    let mut exit = Exit::Failed;
    each_reply(&here, request, Missing::Refuse, &mut |reply| {
        match reply {
            Reply::Line(line) => {
                if let Some(command) = &args.exec {
                    execute(command, (&part, output), &line)?;
                }
                if output.json || args.exec.is_none() {
                    output.line(&line)?;
                    output.flush()?;
                }
            }
            Reply::Report(report) => exit = report.exit().into(),
            Reply::Error(failure) => return Err(failure.into()),
            Reply::Idle | Reply::Part(_) | Reply::Progress { .. } => {}
        }
        Ok(())
    })?;
    Ok(exit)
}

/// Runs the command for one event. How it ends is its own business. What is told in the environment is
/// for the command and not the ledger's: a path is one of the part that is in sight.
fn execute(command: &str, (part, output): (&Part, &Output), line: &str) -> Result<(), Stop> {
    let event: Value = serde_json::from_str(line).unwrap_or_default();
    let text = |at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let g = event.get("g").and_then(Value::as_u64).unwrap_or(0);
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("WORKFS_EVENT", text("/event"));
    // The environment carries any bytes.
    let named = path_of_json(&text("/payload/path"));
    let path = match TreePath::parse(&named) {
        Ok(path) => part.show(&path).as_bytes().to_vec(),
        Err(_) => named,
    };
    shell.env("WORKFS_PATH", OsString::from_vec(path)).env("WORKFS_ACTOR", text("/actor"));
    shell.env("WORKFS_G", g.to_string());
    if output.json {
        // What is printed is JSON and nothing else.
        shell.stdout(io::stderr());
    }
    match shell.status() {
        Ok(_) => Ok(()),
        Err(error) => {
            let reason = format!("sh cannot be run: {error}");
            Err(Stop::failed(Exit::Failed, reason, "see that it is in PATH"))
        }
    }
}
