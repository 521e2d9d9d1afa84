//! Ending work on a record: done, failed, given back.

use serde::{Deserialize, Serialize};

use crate::engine::{Base, Rename, RenameMode, Save, SaveAndMove, Saved, Sight, Text};
use crate::kind::{Kind, StateIx};
use crate::names::AgentName;
use crate::numbers::Version;
use crate::record::{Edit, patch, patch_at};
use crate::refusal::{Refusal, Rule};

use super::find::{FoundRecord, path_of, record};
use super::{Caller, DoneArgs, Exit, FailArgs, Failure, ReleaseArgs, Service, lane};

/// How often an edit is made anew where somebody else saved the record meanwhile.
const TRIES: usize = 4;

/// What a record's end looks like: see [`super::Request::Done`], `Fail` and `Release`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveReport {
    /// `done`, `failed` or `released`.
    pub what: String,
    /// The record.
    pub id: String,
    /// Where it lies now.
    pub path: String,
    /// Its workspace.
    pub workspace: String,
    /// Its state.
    pub state: String,
    /// Whose it is.
    pub owner: Option<AgentName>,
    /// Its version.
    pub version: Version,
}

impl MoveReport {
    /// One line with the path.
    #[must_use]
    pub fn human(&self) -> String {
        format!("{} {}", self.what, self.path)
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// A record as it is, with its kind and its text.
struct Present {
    found: FoundRecord,
    kind: std::sync::Arc<Kind>,
    from: StateIx,
    content: Vec<u8>,
}

fn present(service: &Service, what: &str, agent: Option<&AgentName>) -> Result<Present, Failure> {
    let config = service.engine.config();
    let present = service.read(|read| {
        let found = record(read, &config, what)?;
        let kind = found.governed(read, &config)?.binding.kind.clone();
        let state = &found.record.state;
        let from = kind.state_named(state.as_str()).ok_or_else(|| {
            let reason = format!("the kind {} has no state `{state}` any more", kind.name());
            Failure::new(Exit::Refused, reason, "give the kind that state back")
        })?;
        let version = read.version(found.record.version_g)?;
        let content = version.map(|version| version.content).unwrap_or_default();
        Ok(Present { found, kind, from, content })
    })?;
    let owner = present.found.record.owner.as_ref();
    if let (Some(agent), Some(owner)) = (agent, owner)
        && agent != owner
    {
        let id = &present.found.record.id;
        let remedy = "name its owner, or leave --agent out";
        let failure =
            Failure::new(Exit::Refused, format!("{owner} has `{id}`, not {agent}"), remedy);
        return Err(Failure { rule: Some(Rule::Forbidden), ..failure });
    }
    Ok(present)
}

impl Present {
    /// Where a transition of one of these names leads; the first that there is.
    fn way(&self, events: &[&str]) -> Option<StateIx> {
        let leads = |event: &&str| {
            let mut ways = self.kind.transitions().iter();
            ways.find(|way| way.from == self.from && way.event == **event).map(|way| way.to)
        };
        events.iter().find_map(leads)
    }

    /// The text with the field `parent.child` set to what came from a command line.
    fn nested(&self, parent: &str, child: &str, value: &str) -> Result<Vec<u8>, Failure> {
        let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{85}');
        if value.chars().any(steers) {
            let reason = format!("the text for `{parent}.{child}` has a control character");
            return Err(Failure::new(Exit::Usage, reason, "leave it out"));
        }
        let edited = patch_at(&self.content, &[parent, child], value);
        edited.map_err(|flaw| Failure::from(Refusal::from(flaw)))
    }
}

/// Moves to where finished records lie, with the summary where one is given.
///
/// # Errors
/// What the lifecycle refuses, such as a missing summary; nothing is changed then.
pub(super) fn done(
    service: &Service,
    caller: &Caller,
    args: &DoneArgs,
) -> Result<MoveReport, Failure> {
    again(|| {
        let mut present = present(service, &args.what, args.agent.as_ref())?;
        let to = present.way(&["completed", "closed"]).or(present.kind.state_named("done"));
        let Some(to) = to else {
            let reason = format!("a {} cannot be done", present.kind.name());
            return Err(Failure::new(Exit::Refused, reason, "move it with mv"));
        };
        let mut text = None;
        if let Some(summary) = &args.summary {
            present.content = present.nested("result", "summary", summary)?;
            text = Some(Text::new(present.content.clone()));
        }
        let owner = present.found.record.owner.clone().or_else(|| args.agent.clone());
        go(service, caller, &present, to, owner.as_ref(), text, "done")
    })
}

/// Sets status `error` and the message, in one save.
///
/// # Errors
/// What the lifecycle refuses; nothing is changed then.
pub(super) fn fail(
    service: &Service,
    caller: &Caller,
    args: &FailArgs,
) -> Result<MoveReport, Failure> {
    again(|| {
        let present = present(service, &args.what, args.agent.as_ref())?;
        let mut content = present.nested("error", "message", &args.message)?;
        if let Some(field) = &present.kind.fields().status {
            let edits = [Edit { field, value: "error" }];
            content = patch(&content, &edits).map_err(|flaw| Failure::from(Refusal::from(flaw)))?;
        }
        let (dir, name) = present.found.entry()?;
        let node = service.read(|read| Ok(read.lookup(dir, &name)?))?;
        let Some(node) = node else { return Err(moved_meanwhile(&present)) };
        let base = Base::Seen(present.found.record.version);
        let save = Save {
            ino: node.ino,
            sight: Sight::Known(base),
            text: Text::new(content),
            keeps_time: false,
            fence: None,
        };
        match service.engine.run(caller.context(), save)? {
            Saved::Kept(_) => report(service, &present, "failed"),
            Saved::Refused(refusal) => Err(refusal.into()),
        }
    })
}

/// Moves back to where records wait to be claimed.
///
/// # Errors
/// What the lifecycle refuses; nothing is changed then.
pub(super) fn release(
    service: &Service,
    caller: &Caller,
    args: &ReleaseArgs,
) -> Result<MoveReport, Failure> {
    let present = present(service, &args.what, args.agent.as_ref())?;
    let to = present.way(&["released"]).unwrap_or(present.kind.initial());
    go(service, caller, &present, to, None, None, "released")
}

/// Makes an edit again where somebody else was faster: it is of single fields, and so still meant.
fn again(mut work: impl FnMut() -> Result<MoveReport, Failure>) -> Result<MoveReport, Failure> {
    let mut last = work();
    for _ in 1..TRIES {
        match &last {
            Err(failure) if failure.rule == Some(Rule::Stale) => last = work(),
            _ => break,
        }
    }
    last
}

/// Moves the record to `to`, with a new text where there is one.
fn go(
    service: &Service,
    caller: &Caller,
    present: &Present,
    to: StateIx,
    owner: Option<&AgentName>,
    text: Option<Text>,
    what: &str,
) -> Result<MoveReport, Failure> {
    // What the lifecycle refuses is refused before a directory is made for it.
    let role = caller.context().role;
    let way = present.kind.transition(present.from, to, role).map_err(Failure::from)?;
    let names = lane::names(&present.kind, way.to, owner, service.engine.now())?;
    let (parent, name) = present.found.entry()?;
    let new_parent = lane::make(service, caller, &present.found.workspace, &names)?;
    let moved = match text {
        Some(text) => {
            let seen = present.found.record.version;
            let command = SaveAndMove { parent, name, seen, text, new_parent };
            service.engine.run(caller.context(), command).map(|_| ())
        }
        None => {
            let new_name = name.clone();
            let (mode, base) = (RenameMode::NoReplace, Base::Unseen);
            let command =
                Rename { parent, name, new_parent, new_name, mode, sight: Sight::Known(base) };
            service.engine.run(caller.context(), command).map(|_| ())
        }
    };
    match moved {
        Ok(()) => report(service, present, what),
        Err(refusal) if refusal.rule == Rule::Absent => Err(moved_meanwhile(present)),
        Err(refusal) => Err(refusal.into()),
    }
}

fn moved_meanwhile(present: &Present) -> Failure {
    let id = &present.found.record.id;
    let remedy = format!("`workfs log {id}` says by whom");
    let failure = Failure::new(Exit::Lost, format!("`{id}` was moved meanwhile"), remedy);
    Failure { rule: Some(Rule::Absent), ..failure }
}

fn report(service: &Service, present: &Present, what: &str) -> Result<MoveReport, Failure> {
    let FoundRecord { record, workspace, .. } = &present.found;
    service.read(|read| {
        let now = read.record_named(workspace.key, &record.id)?;
        let now = now.as_ref().unwrap_or(record);
        Ok(MoveReport {
            what: what.to_owned(),
            id: now.id.to_string(),
            path: path_of(read, now)?.map_or_else(String::new, |path| path.to_string()),
            workspace: workspace.path.to_string(),
            state: now.state.to_string(),
            owner: now.owner.clone(),
            version: now.version,
        })
    })
}
