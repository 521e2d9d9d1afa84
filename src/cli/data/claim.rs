//! `workfs claim`.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;

use super::super::exit::Exit;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask};
use crate::daemon::StorePaths;
use crate::names::AgentName;
use crate::service::{self, Caller, Request};

/// How often `--wait` looks again.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// See `workfs claim --help`.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// An id, or a path in a mount or from the root of the tree [default: --next]
    what: Option<String>,
    /// The best that can be claimed: by priority, then by age
    #[arg(long, conflicts_with = "what")]
    next: bool,
    /// For whom [default: the agent of the mount one is in, else the user]
    #[arg(long, env = "WORKFS_AGENT", value_name = "NAME", value_parser = super::agent)]
    agent: Option<AgentName>,
    /// The best of this workspace
    #[arg(long, value_name = "PATH", conflicts_with = "what")]
    workspace: Option<String>,
    /// Wait until there is one, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          default_missing_value = "31536000", conflicts_with = "what")]
    wait: Option<u64>,
}

/// Runs it.
pub fn run(args: &ClaimArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let hints = [&args.what, &args.workspace].into_iter().flatten().map(Path::new);
    let hints: Vec<&Path> = hints.filter(|path| path.components().count() > 1).collect();
    let paths = store::paths(global, &hints)?;
    let claim = service::ClaimArgs {
        what: args.what.as_deref().map(store::in_tree),
        agent: agent(args, &paths)?,
        workspace: args.workspace.as_deref().map(store::in_tree),
    };
    let until = args.wait.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    loop {
        let asked = ask(&paths, Request::Claim(claim.clone()), Missing::Refuse, output);
        let nothing = match &asked {
            Ok(exit) => *exit == Exit::Nothing,
            Err(Stop::Failed(failed)) => failed.exit == Exit::Nothing,
            Err(Stop::NobodyReads | Stop::Interrupted) => false,
        };
        let now = Instant::now();
        match until {
            Some(until) if nothing && now < until => {
                std::thread::sleep(LOOK_EVERY.min(until - now));
            }
            _ => return asked,
        }
    }
}

/// Who claims: whoever is named, else the agent of the mount that one is in, else the user.
fn agent(args: &ClaimArgs, paths: &StorePaths) -> Result<AgentName, Stop> {
    let named = super::agent_here(args.agent.as_ref(), paths)?;
    Ok(named.unwrap_or_else(|| Caller::this_process().name))
}
