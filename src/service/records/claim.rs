//! Taking a record for an agent, by the same change that `mv` makes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lane;
use crate::engine::{IntoLane, Rename, RenameMode, Take, Wanted, Wish, best_claimable, best_ready};
use crate::kind::Kind;
use crate::names::{AgentName, Dentry, FileName, ShownPath};
use crate::numbers::{Attempt, Ino, Version, WorkspaceKey};
use crate::refusal::Rule;
use crate::service::find::{FoundRecord, has_moved_on, path_of, record, workspace};
use crate::service::import::is_of_the_store;
use crate::service::request::permitted::{expect_takeable, is_bound, is_closed};
use crate::service::{Caller, ClaimArgs, Exit, Failure, Service};
use crate::store::{OrderKey, Record, WorkspaceRow};

/// How often the whole choice is made anew where others took all candidates.
const ROUNDS_MAX: usize = 64;

/// See [`crate::service::Request::Claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimReport {
    /// The record.
    pub id: String,
    /// Where it lies now.
    pub path: ShownPath,
    /// Its workspace.
    pub workspace: ShownPath,
    /// Whose it is.
    pub owner: AgentName,
    /// Its version.
    pub version: Version,
    /// How often it has been claimed: the fencing token.
    pub attempt: Attempt,
}

impl ClaimReport {
    /// The path, for programs that go on with it.
    #[must_use]
    pub fn human(&self) -> String {
        self.path.to_string()
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Claims.
///
/// # Errors
/// [`Exit::Nothing`] if nobody was named and nothing is to be had; [`Exit::Lost`] if somebody has
/// the one that was named; what the lifecycle refuses.
pub(in crate::service) fn claim(
    service: &Service,
    caller: &Caller,
    args: &ClaimArgs,
) -> Result<ClaimReport, Failure> {
    match &args.what {
        Some(what) => claim_named(service, caller, what),
        None => claim_best(service, caller, args),
    }
}

fn claim_named(service: &Service, caller: &Caller, what: &str) -> Result<ClaimReport, Failure> {
    let config = service.engine.config();
    let look = || {
        service.read(|read| {
            let found = match record((service, read), &config, caller, what) {
                // A loop over a directory's names must tell a race that it lost from a typo.
                Err(failure)
                    if failure.exit == Exit::Absent
                        && has_moved_on(read, &config, &caller.part, what)? =>
                {
                    return Err(Failure { exit: Exit::Lost, ..failure });
                }
                found => found?,
            };
            caller.part.expect_all_of(&found.workspace)?;
            expect_takeable((service, read), caller, &found)?;
            let governed = found.governed(read, &config)?;
            let kind = governed.binding.kind.clone();
            let from = kind.state_named(found.record.state.as_str());
            Ok((found, kind, from))
        })
    };
    let (found, kind, from) = service.unwritten(look, |(found, ..)| &found.record)?;
    let Some(claim) = from.and_then(|from| kind.claim_from(from)) else {
        return Err(not_to_be_had(caller, &found));
    };
    let names = lane::names(&kind, claim.to, Some(&caller.name), service.engine.now())?;
    let Dentry { dir: parent, name } = found.entry()?;
    let above = lane::above(&found.workspace)?;
    // Until the lane is made what is above it stands for it.
    let command = Rename::to_free(Dentry::of(parent, name.clone()), Dentry::of(above, name));
    let claim = IntoLane { above, names, command };
    match service.engine.run(caller.context(), claim) {
        Ok(_) => report(service, caller, &found.workspace, &found.record),
        Err(refusal) if refusal.rule == Rule::Absent => {
            let id = found.record.id.as_str();
            let now = service.read(|read| record((service, read), &config, caller, id));
            Err(now.map_or_else(|_| refusal.into(), |now| not_to_be_had(caller, &now)))
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// It is not where it could be claimed from.
fn not_to_be_had(caller: &Caller, found: &FoundRecord) -> Failure {
    let record = &found.record;
    let place = found.path.as_ref();
    let place = place.map_or_else(|| "gone".to_owned(), |path| caller.part.show(path).to_string());
    let remedy = "claim another one; without an id `workfs claim` takes the best that is ready";
    match &record.owner {
        Some(owner) => {
            let reason = format!("{owner} has `{}`: it is `{place}`", record.id);
            Failure { rule: Some(Rule::Absent), ..Failure::new(Exit::Lost, reason, remedy) }
        }
        None => {
            let reason = format!("`{}` is in {} and cannot be claimed", record.id, record.state);
            Failure::by(Rule::Transition, reason, remedy)
        }
    }
}

/// The workspace in which the best is, and the lane that it is to come to.
struct Best {
    key: OrderKey,
    workspace: WorkspaceRow,
    above: Ino,
    lane: Vec<FileName>,
    /// The lane itself, where it is there; else what is above it.
    to: Ino,
}

fn claim_best(
    service: &Service,
    caller: &Caller,
    args: &ClaimArgs,
) -> Result<ClaimReport, Failure> {
    let (mut passed, mut first) = (Vec::new(), None);
    for _ in 0..ROUNDS_MAX {
        let Some(Best { workspace, above, lane, to, .. }) = best(service, caller, args, &passed)?
        else {
            break;
        };
        let wanted = Wanted::Best(Arc::clone(&service.is_written));
        let take = Take { dir: above, wanted, to, mode: RenameMode::NoReplace };
        let claim = IntoLane { above, names: lane, command: take };
        match service.engine.run(caller.context(), claim) {
            Ok(taken) => return report(service, caller, &workspace, &taken.record),
            Err(refusal) if refusal.rule == Rule::Absent => {}
            Err(refusal) if is_of_the_store(&refusal) => {
                return Err(refusal.into());
            }
            // Something is in the way of all that is ready there, or of this caller: not elsewhere.
            Err(refusal) => {
                passed.push(workspace.key);
                first.get_or_insert(refusal);
            }
        }
    }
    if let Some(refusal) = first {
        return Err(refusal.into());
    }
    Err(Failure::new(
        Exit::Nothing,
        "nothing to claim",
        "`workfs ready --explain` says what waits for what, `workfs list` what is wrong with drafts",
    ))
}

/// Where the best of all workspaces is, but for those that were passed over, and those whose records are others'
/// work, if any are the caller's: one look into the index of each.
fn best(
    service: &Service,
    caller: &Caller,
    args: &ClaimArgs,
    passed: &[WorkspaceKey],
) -> Result<Option<Best>, Failure> {
    let (config, now) = (service.engine.config(), service.engine.now());
    service.read(|read| {
        let workspaces = match &args.workspace {
            Some(path) => vec![workspace(read, &caller.part, path)?],
            None => caller.part.whole_workspaces(read)?,
        };
        let mut best: Option<Best> = None;
        let in_sight = |row: &WorkspaceRow| row.dir.is_some() && caller.part.has(&row.path);
        let workspaces = workspaces.into_iter().filter(in_sight);
        let bound = workspaces.filter_map(|row| config.bind(&row.path).map(|bound| (row, bound)));
        let bound: Vec<_> = bound.collect();
        let has_work = bound.iter().any(|(_, binding)| may_claim(&binding.kind, caller));
        for (workspace, binding) in bound {
            let kind = &binding.kind;
            let is_others = has_work && !may_claim(kind, caller);
            if is_others || passed.contains(&workspace.key) {
                continue;
            }
            let inside = workspace.path.join(kind.order().dir.clone());
            if is_bound(service, caller) && is_closed(read, caller, &inside)? {
                continue;
            }
            let Some(claim) = kind.claim() else { continue };
            let Some(first) = best_ready(read, workspace.key, &*service.is_written)? else {
                continue;
            };
            let key = first.order_key();
            if best.as_ref().is_none_or(|best| key < best.key) {
                let lane = lane::names(kind, claim.to, Some(&caller.name), now)?;
                let above = lane::above(&workspace)?;
                let to = lane::find(read, above, &lane)?.unwrap_or(above);
                best = Some(Best { key, workspace, above, lane, to });
            }
        }
        Ok(best)
    })
}

/// Whether the caller's role may make the claims of a kind.
fn may_claim(kind: &Kind, caller: &Caller) -> bool {
    kind.claim().is_some_and(|claim| claim.by.contains(&caller.role))
}

/// The workspaces for whose records a claim can wait.
///
/// # Errors
/// If there is none of the path that was given, or none in sight.
pub fn claim_wish(service: &Service, caller: &Caller, args: &ClaimArgs) -> Result<Wish, Failure> {
    let part = &caller.part;
    if let Some(path) = &args.workspace {
        let one = service.read(|read| workspace(read, part, path))?;
        return Ok(Some([one.key].into()));
    }
    if part.is_whole() {
        return Ok(None);
    }
    let all = service.read(|read| part.whole_workspaces(read))?;
    Ok(Some(all.iter().map(|row| row.key).collect()))
}

/// Whether a record is just as that claim has made it: nobody has saved or moved it since, or has it by another claim.
///
/// # Errors
/// A failure of the store.
pub fn is_as_claimed(
    service: &Service,
    caller: &Caller,
    claimed: &ClaimReport,
) -> Result<bool, Failure> {
    service.read(|read| {
        let config = service.engine.config();
        match record((service, read), &config, caller, &String::from(claimed.path.clone())) {
            Ok(FoundRecord { record, .. }) => {
                Ok((record.version, record.attempt) == (claimed.version, claimed.attempt))
            }
            Err(failure) if failure.exit == Exit::Absent => Ok(false),
            Err(failure) => Err(failure),
        }
    })
}

/// The workspace that a claim took a record of.
///
/// # Errors
/// If there is none by now, or a failure of the store.
pub fn workspace_of(
    service: &Service,
    caller: &Caller,
    claimed: &ClaimReport,
) -> Result<WorkspaceKey, Failure> {
    let path = String::from(claimed.workspace.clone());
    service.read(|read| Ok(workspace(read, &caller.part, &path)?.key))
}

/// Whether anything is ready in a workspace that nobody writes, and whose text is in nobody's way.
///
/// # Errors
/// A failure of the store.
pub fn is_any_left(service: &Service, workspace: WorkspaceKey) -> Result<bool, Failure> {
    let (config, now) = (service.engine.config(), service.engine.now());
    service.read(|read| {
        let place = (workspace, &*config);
        Ok(best_claimable(read, place, now, &*service.is_written)?.is_some())
    })
}

/// Whether who waits for a record waits on after this: there is none, or something is in the way of all
/// that there are, which is no reason to do without those that come.
#[must_use]
pub fn waits_on(failure: &Failure) -> bool {
    failure.exit == Exit::Nothing || failure.rule.is_some_and(Rule::passes_over)
}

/// What a client hears whose time to wait is over: also why it was passed over what was ready.
#[must_use]
pub fn waited_in_vain(passed: Option<&str>) -> Failure {
    let (reason, remedy) = match passed {
        None => ("nothing became ready in time".to_owned(), "wait longer, or look later"),
        Some(why) => (
            format!("nothing that can be claimed became ready in time; passed over: {why}"),
            "`workfs ready --explain` says what keeps everybody from a record",
        ),
    };
    Failure::new(Exit::TimedOut, reason, remedy)
}

fn report(
    service: &Service,
    caller: &Caller,
    workspace: &WorkspaceRow,
    record: &Record,
) -> Result<ClaimReport, Failure> {
    service.read(|read| {
        let now = read.record_named(workspace.key, &record.id)?;
        let now = now.as_ref().unwrap_or(record);
        let path = path_of(read, now)?.map(|path| caller.part.show(&path)).unwrap_or_default();
        Ok(ClaimReport {
            id: now.id.to_string(),
            path,
            workspace: caller.part.show(&workspace.path),
            owner: caller.name.clone(),
            version: now.version,
            attempt: now.attempt,
        })
    })
}
