//! `workfs claim`.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask};
use crate::names::AgentName;
use crate::refusal::Rule;
use crate::service::{self, Request};
use crate::units;

/// As long as anybody waits.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// How often `--wait` looks again where no daemon lets it wait.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// See `workfs claim --help`.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// An id, or a path in a mount or from the root of the tree [default: --next]
    #[arg(value_parser = super::word())]
    what: Option<String>,
    /// The best that can be claimed: by priority, then by age
    #[arg(long, conflicts_with = "what")]
    next: bool,
    /// For whom [default: the agent of the mount one is in, else the user]
    #[arg(long, env = "WORKFS_AGENT", value_name = "NAME", value_parser = super::agent)]
    agent: Option<AgentName>,
    /// The best of this workspace
    #[arg(long, value_name = "PATH", value_parser = super::word(), conflicts_with = "what")]
    workspace: Option<String>,
    /// Wait until there is one
    #[arg(long, conflicts_with = "what")]
    wait: bool,
    /// Wait no longer than this: 90s, 10m, 2h [default: for ever]
    #[arg(
        long, value_name = "TIME", requires = "wait", conflicts_with = "what",
        value_parser = units::patience
    )]
    timeout: Option<Duration>,
}

/// Runs it.
pub fn run(args: &ClaimArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let hints = [&args.what, &args.workspace].into_iter().flatten().map(Path::new);
    let hints: Vec<&Path> = hints.filter(|path| path.components().count() > 1).collect();
    let paths = store::paths(global, &hints)?;
    let timeout = args.timeout.unwrap_or(FOR_EVER).min(FOR_EVER);
    let until = args.wait.then(|| Instant::now() + timeout);
    let mut claim = service::ClaimArgs {
        what: args.what.clone(),
        agent: args.agent.clone(),
        workspace: args.workspace.clone(),
        wait_ms: None,
    };
    let mut is_told = false;
    loop {
        // Whose mount this is, and what may be done in it, may change while one waits.
        let here = Here::new(paths.clone(), output);
        claim.wait_ms = until.map(|until| {
            u64::try_from(until.saturating_duration_since(Instant::now()).as_millis())
                .unwrap_or(u64::MAX)
        });
        let asked = ask(&here, Request::Claim(claim.clone()), Missing::Refuse);
        // A daemon lets wait. Where there is none, or it is full, or another command has the store, one looks again.
        let (exit, passed) = match &asked {
            Err(Stop::Failed(failed)) => {
                let rule = failed.rule.and_then(Rule::of_code);
                let passed = rule.filter(|rule| rule.passes_over());
                (failed.exit, passed.map(|_| failed.reason.clone()))
            }
            _ => return asked,
        };
        let waits_on = exit == Exit::Nothing || passed.is_some();
        let comes_later = matches!(exit, Exit::Busy | Exit::Held);
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        match (exit, left) {
            (_, Some(Duration::ZERO)) if waits_on => {
                return Err(service::waited_in_vain(passed.as_deref()).into());
            }
            (_, Some(left)) if (waits_on || comes_later) && !left.is_zero() => {
                if exit == Exit::Held
                    && let Err(Stop::Failed(failed)) = &asked
                    && !std::mem::replace(&mut is_told, true)
                {
                    output.note(&format!("{}: waiting until it is free", failed.reason));
                }
                std::thread::sleep(LOOK_EVERY.min(left));
            }
            _ => return asked,
        }
    }
}
