//! Taking a record for an agent, by the same change that `mv` makes.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Config;
use crate::engine::{Base, ClaimFirst, Rename, RenameMode, Sight};
use crate::kind::{Kind, StateIx, Transition};
use crate::names::{AgentName, FileName};
use crate::numbers::{Attempt, G, Ino, Version};
use crate::record::Document;
use crate::refusal::Rule;
use crate::store::{Class, Read, Record, VersionRow, WorkspaceRow};

use super::find::{FoundRecord, path_of, record, state_dirs, workspace};
use super::{Caller, ClaimArgs, Exit, Failure, Service, lane};

/// The event of the transition that gives a record its owner.
const CLAIMED: &str = "claimed";

/// Candidates that go into one change: more can hardly be taken by others meanwhile.
const CANDIDATES_MAX: usize = 64;

/// How often the whole choice is made anew where others took all candidates.
const ROUNDS_MAX: usize = 64;

/// Ranks that are remembered; they are found again when they were forgotten.
const RANKS_MAX: usize = 200_000;

/// See [`super::Request::Claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimReport {
    /// The record.
    pub id: String,
    /// Where it lies now.
    pub path: String,
    /// Its workspace.
    pub workspace: String,
    /// Whose it is.
    pub owner: AgentName,
    /// Its version.
    pub version: Version,
    /// How often it has been claimed: the fencing token.
    pub attempt: Attempt,
}

impl ClaimReport {
    /// One line with the path.
    #[must_use]
    pub fn human(&self) -> String {
        format!("claimed {}", self.path)
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Priority and age of a text, the least first; `None` if a claim of it would be refused.
type Rank = Option<(i64, i64)>;

/// Ranks by the event that made the version. A version's text never changes, so that what is
/// remembered here stays true.
#[derive(Default)]
pub(super) struct Ranks(Mutex<Known>);

/// What is known under one configuration, which says what a claim needs.
#[derive(Default)]
struct Known {
    under: Option<Arc<Config>>,
    ranks: HashMap<G, Rank>,
}

impl Ranks {
    /// Forgets what is known under another configuration than this.
    fn under(&self, config: &Arc<Config>) {
        let mut known = self.0.lock();
        if !known.under.as_ref().is_some_and(|under| Arc::ptr_eq(under, config)) {
            *known = Known { under: Some(Arc::clone(config)), ranks: HashMap::new() };
        }
    }

    fn of(
        &self,
        g: G,
        kind: &Kind,
        claim: &Transition,
        version: impl FnOnce() -> Result<Option<VersionRow>, Failure>,
    ) -> Result<Rank, Failure> {
        if let Some(rank) = self.0.lock().ranks.get(&g) {
            return Ok(*rank);
        }
        let rank = version()?.and_then(|version| rank(kind, claim, &version));
        let mut known = self.0.lock();
        if known.ranks.len() >= RANKS_MAX {
            known.ranks.clear();
        }
        known.ranks.insert(g, rank);
        Ok(rank)
    }
}

fn rank(kind: &Kind, claim: &Transition, version: &VersionRow) -> Rank {
    let document = Document::parse(&version.content).ok()?;
    kind.judge_entry(claim, document.value()).ok()?;
    let priority = match document.field("priority") {
        // A number: the higher comes first.
        Some(Value::Number(number)) => number.as_i64().map_or(0, |n| n.saturating_neg()),
        Some(Value::String(word)) => match word.to_ascii_lowercase().as_str() {
            "critical" => -2,
            "high" => -1,
            "low" => 1,
            _ => 0,
        },
        _ => 0,
    };
    let written = document.text("created_at").and_then(|text| {
        let form = &time::format_description::well_known::Rfc3339;
        let at = time::OffsetDateTime::parse(text, form).ok()?;
        i64::try_from(at.unix_timestamp_nanos()).ok()
    });
    Some((priority, written.unwrap_or(version.at.0)))
}

/// Claims.
///
/// # Errors
/// [`Exit::Nothing`] if nobody was named and nothing is to be had; [`Exit::Lost`] if somebody has
/// the one that was named; what the lifecycle refuses.
pub(super) fn claim(
    service: &Service,
    caller: &Caller,
    args: &ClaimArgs,
) -> Result<ClaimReport, Failure> {
    match &args.what {
        Some(what) => claim_named(service, caller, what, &args.agent),
        None => claim_best(service, caller, args),
    }
}

/// The transition that claims a record of this state.
fn claim_of(kind: &Kind, from: StateIx) -> Option<&Transition> {
    kind.transitions().iter().find(|way| way.from == from && way.event == CLAIMED)
}

fn claim_named(
    service: &Service,
    caller: &Caller,
    what: &str,
    agent: &AgentName,
) -> Result<ClaimReport, Failure> {
    let config = service.engine.config();
    let (found, kind, from) = service.read(|read| {
        let found = record(read, &config, what)?;
        let governed = found.governed(read, &config)?;
        let kind = governed.binding.kind.clone();
        let from = kind.state_named(found.record.state.as_str());
        Ok((found, kind, from))
    })?;
    let Some(claim) = from.and_then(|from| claim_of(&kind, from)) else {
        return Err(not_to_be_had(&found));
    };
    let names = lane::names(&kind, claim.to, Some(agent), service.engine.now())?;
    let (parent, name) = found.entry()?;
    let new_parent = lane::make(service, caller, &found.workspace, &names)?;
    let rename = rename(parent, &name, new_parent);
    match service.engine.run(caller.context(), rename) {
        Ok(_) => report(service, &found.workspace, &found.record, agent),
        Err(refusal) if refusal.rule == Rule::Absent => {
            let now = service.read(|read| record(read, &config, found.record.id.as_str()));
            Err(now.map_or_else(|_| refusal.into(), |now| not_to_be_had(&now)))
        }
        Err(refusal) => Err(refusal.into()),
    }
}

fn rename(parent: Ino, name: &FileName, new_parent: Ino) -> Rename {
    Rename {
        parent,
        name: name.clone(),
        new_parent,
        new_name: name.clone(),
        mode: RenameMode::NoReplace,
        sight: Sight::Known(Base::Unseen),
    }
}

/// It is not where it could be claimed from.
fn not_to_be_had(found: &FoundRecord) -> Failure {
    let record = &found.record;
    let place = found.path.as_ref().map_or_else(|| "gone".to_owned(), ToString::to_string);
    let remedy = "claim another one; without an id `workfs claim` takes the first that is free";
    match &record.owner {
        Some(owner) => {
            let reason = format!("{owner} has `{}`: it is `{place}`", record.id);
            Failure { rule: Some(Rule::Absent), ..Failure::new(Exit::Lost, reason, remedy) }
        }
        None => {
            let reason = format!("`{}` is in {} and cannot be claimed", record.id, record.state);
            Failure { rule: Some(Rule::Transition), ..Failure::new(Exit::Refused, reason, remedy) }
        }
    }
}

/// A record that could be claimed.
struct Candidate {
    rank: (i64, i64),
    record: Record,
    dir: Ino,
    name: FileName,
    workspace: WorkspaceRow,
    lane: Vec<FileName>,
}

fn claim_best(
    service: &Service,
    caller: &Caller,
    args: &ClaimArgs,
) -> Result<ClaimReport, Failure> {
    let config = service.engine.config();
    service.ranks.under(&config);
    for _ in 0..ROUNDS_MAX {
        let mut candidates = service.read(|read| candidates(service, read, &config, args))?;
        if candidates.is_empty() {
            break;
        }
        candidates.sort_by_key(|one| (one.rank, one.record.key));
        // One change is of one lane: that of the best one's workspace.
        let best = candidates[0].workspace.key;
        candidates.retain(|one| one.workspace.key == best);
        candidates.truncate(CANDIDATES_MAX);
        let lane = lane::make(service, caller, &candidates[0].workspace, &candidates[0].lane)?;
        let renames = candidates.iter().map(|one| rename(one.dir, &one.name, lane)).collect();
        match service.engine.run(caller.context(), ClaimFirst { candidates: renames }) {
            Ok(at) => {
                let taken = &candidates[at];
                return report(service, &taken.workspace, &taken.record, &args.agent);
            }
            Err(refusal) if refusal.rule == Rule::Absent => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Err(Failure::new(
        Exit::Nothing,
        "nothing to claim",
        "`workfs list` shows what there is, and what is wrong with drafts",
    ))
}

/// The valid records that lie in the initial states.
fn candidates(
    service: &Service,
    read: &dyn Read,
    config: &Config,
    args: &ClaimArgs,
) -> Result<Vec<Candidate>, Failure> {
    let workspaces = match &args.workspace {
        Some(path) => vec![workspace(read, path)?],
        None => read.workspaces()?,
    };
    let mut found = Vec::new();
    for workspace in workspaces.iter().filter(|row| row.dir.is_some()) {
        let Some(binding) = config.bind(&workspace.path) else { continue };
        let kind = &binding.kind;
        let Some(way) = claim_of(kind, kind.initial()) else { continue };
        let lane = lane::names(kind, way.to, Some(&args.agent), service.engine.now())?;
        for place in state_dirs(read, config, workspace)? {
            if place.state != kind.initial() {
                continue;
            }
            let mut files = Vec::new();
            read.list(place.dir, None, &mut |(name, node)| {
                if node.class == Class::Record {
                    files.push((name, node.ino));
                }
                true
            })?;
            for (name, ino) in files {
                let Some(record) = read.record_at(ino)?.filter(Record::is_valid) else { continue };
                let g = record.version_g;
                let rank = service.ranks.of(g, kind, way, || Ok(read.version(g)?))?;
                if let Some(rank) = rank {
                    let (workspace, lane) = (workspace.clone(), lane.clone());
                    found.push(Candidate { rank, record, dir: place.dir, name, workspace, lane });
                }
            }
        }
    }
    Ok(found)
}

fn report(
    service: &Service,
    workspace: &WorkspaceRow,
    record: &Record,
    agent: &AgentName,
) -> Result<ClaimReport, Failure> {
    service.read(|read| {
        let now = read.record_named(workspace.key, &record.id)?;
        let now = now.as_ref().unwrap_or(record);
        let path = path_of(read, now)?.map_or_else(String::new, |path| path.to_string());
        Ok(ClaimReport {
            id: now.id.to_string(),
            path,
            workspace: workspace.path.to_string(),
            owner: agent.clone(),
            version: now.version,
            attempt: now.attempt,
        })
    })
}
