//! Ending work on a record: done, failed, given back.

use serde::{Deserialize, Serialize};

use super::lane;
use crate::engine::{Base, IntoLane, Rename, Save, SaveAndMove, Saved, Sight, Text};
use crate::kind::{Becomes, EndCommand, Ending, FieldPath, Kind, State, StateIx};
use crate::names::{AgentName, Dentry, ShownPath};
use crate::numbers::Version;
use crate::record::{Document, Edit, patch, patch_at};
use crate::refusal::{Refusal, Rule};
use crate::service::find::{FoundRecord, path_of, record};
use crate::service::request::permitted::expect_takeable;
use crate::service::{Caller, DoneArgs, Exit, FailArgs, Failure, ReleaseArgs, Service};

/// How often an edit is made anew where somebody else saved the record meanwhile.
const TRIES: usize = 4;

/// What a record's end looks like: see [`crate::service::Request::Done`], `Fail` and `Release`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveReport {
    /// `done`, `failed` or `released`.
    pub what: String,
    /// The record.
    pub id: String,
    /// Where it lies now.
    pub path: ShownPath,
    /// Its workspace.
    pub workspace: ShownPath,
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

fn present(service: &Service, caller: &Caller, what: &str) -> Result<Present, Failure> {
    let config = service.engine.config();
    service.read(|read| {
        let found = record((service, read), &config, caller, what)?;
        caller.part.expect_all_of(&found.workspace)?;
        expect_takeable((service, read), caller, &found)?;
        let kind = found.governed(read, &config)?.binding.kind.clone();
        let state = &found.record.state;
        let from = kind.state_named(state.as_str()).ok_or_else(|| {
            let reason = format!("the kind {} has no state `{state}` any more", kind.name());
            Failure::new(Exit::Refused, reason, "give the kind that state back")
        })?;
        let version = read.version(found.record.version_g)?;
        let content = version.map(|version| version.content).unwrap_or_default();
        Ok(Present { found, kind, from, content })
    })
}

/// What a caller says of a record that it lets go of.
struct End<'a> {
    command: EndCommand,
    what: &'a str,
    agent: Option<&'a AgentName>,
    text: Option<&'a str>,
}

/// Finishes a record, with the summary where one is given.
///
/// # Errors
/// What the lifecycle refuses, such as a missing summary; nothing is changed then.
pub(in crate::service) fn done(
    service: &Service,
    caller: &Caller,
    args: &DoneArgs,
) -> Result<MoveReport, Failure> {
    let DoneArgs { what, summary, agent } = args;
    let (agent, text) = (agent.as_ref(), summary.as_deref());
    end(service, caller, &End { command: EndCommand::Done, what, agent, text })
}

/// Says that a record cannot be finished, and why.
///
/// # Errors
/// What the lifecycle refuses; nothing is changed then.
pub(in crate::service) fn fail(
    service: &Service,
    caller: &Caller,
    args: &FailArgs,
) -> Result<MoveReport, Failure> {
    let FailArgs { what, message, agent } = args;
    let (agent, text) = (agent.as_ref(), message.as_deref());
    end(service, caller, &End { command: EndCommand::Fail, what, agent, text })
}

/// Gives a record back.
///
/// # Errors
/// What the lifecycle refuses; nothing is changed then.
pub(in crate::service) fn release(
    service: &Service,
    caller: &Caller,
    args: &ReleaseArgs,
) -> Result<MoveReport, Failure> {
    let ReleaseArgs { what, agent } = args;
    let agent = agent.as_ref();
    end(service, caller, &End { command: EndCommand::Release, what, agent, text: None })
}

/// Does what the record's kind says of the command.
fn end(service: &Service, caller: &Caller, end: &End<'_>) -> Result<MoveReport, Failure> {
    again(|| {
        let look = || present(service, caller, end.what);
        let mut present = look()?;
        if matches!(present.ending(end.command)?.becomes, Becomes::State(_)) {
            present = service.unwritten(look, |present| &present.found.record)?;
        }
        let ending = present.ending(end.command)?;
        if end.command == EndCommand::Fail
            && end.text.is_none()
            && let Some(field) = &ending.text
        {
            let field = field.first_way().join(".");
            let reason = format!("`fail` says in `{field}` what went wrong");
            return Err(Failure::new(Exit::Usage, reason, "give it: --message TEXT"));
        }
        let text = end.text.map(|text| present.told(end.command, ending, text)).transpose()?;
        match &ending.becomes {
            Becomes::State(to) => {
                let owner = present.found.record.owner.clone().or_else(|| end.agent.cloned());
                let text = text.map(Text::new);
                let gone = go(service, caller, &present, *to, owner.as_ref(), text);
                gone.map_err(|failure| present.or_by_text(end, ending, failure))?;
            }
            Becomes::Status(status) => {
                present.expect_to_have(status)?;
                let content = text.as_deref().unwrap_or(&present.content);
                save_status(service, caller, &present, status, content)?;
            }
        }
        report(service, caller, &present, end.command)
    })
}

impl Present {
    fn ending(&self, command: EndCommand) -> Result<&Ending, Failure> {
        self.kind.ending(command).ok_or_else(|| {
            let (kind, command) = (self.kind.name(), command.name());
            let reason = format!("the kind `{kind}` does not say what `{command}` does");
            let remedy = format!(
                "move or edit `{}` as the kind wants it; `commands: {command}` in its definition \
                 would say it",
                self.found.record.id
            );
            Failure::by(Rule::Transition, reason, remedy)
        })
    }

    /// Refuses a status that no record of its state has: what a save would be told helps no command.
    fn expect_to_have(&self, status: &str) -> Result<(), Failure> {
        if self.kind.state(self.from).status.contains(status) {
            return Ok(());
        }
        let (kind, id) = (self.kind.name(), &self.found.record.id);
        let field = self.kind.fields().status.as_deref().unwrap_or("status");
        let reason = format!(
            "`{id}` is in {}, where no {kind} is `{field}: {status}`",
            self.found.record.state
        );
        let has = |state: &State| state.status.contains(status);
        let claim = self.kind.claim().filter(|claim| claim.from == self.from);
        let remedy = if claim.is_some_and(|claim| has(self.kind.state(claim.to))) {
            "claim it first".to_owned()
        } else {
            let having = self.kind.states().filter(|(_, state)| has(state));
            let having: Vec<String> = having.map(|(_, state)| state.shown(None)).collect();
            format!("that is for {kind}s in {}", having.join(", "))
        };
        Err(Failure::by(Rule::StatusDiffers, reason, remedy))
    }

    /// Of a record that lacks what its end requires: also by which option a field of it is given.
    fn or_by_text(&self, end: &End<'_>, ending: &Ending, failure: Failure) -> Failure {
        let is_lacking = |field: &&FieldPath| {
            let document = Document::parse(&self.content);
            document.is_ok_and(|document| !field.is_in(document.value()))
        };
        let field = ending.text.as_ref().filter(is_lacking);
        match field {
            Some(field)
                if failure.rule == Some(Rule::Required)
                    && end.command == EndCommand::Done
                    && end.text.is_none() =>
            {
                let remedy = format!("{}; `--summary TEXT` writes `{field}`", failure.remedy);
                Failure { remedy, ..failure }
            }
            _ => failure,
        }
    }

    /// The text with the field that the command's own text is for.
    fn told(&self, command: EndCommand, ending: &Ending, said: &str) -> Result<Vec<u8>, Failure> {
        let command = command.name();
        let Some(field) = &ending.text else {
            let reason = format!("the kind `{}` has no field for the text", self.kind.name());
            let remedy =
                format!("leave it out; `text` in the kind's `commands: {command}` would name one");
            return Err(Failure::new(Exit::Usage, reason, remedy));
        };
        let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{85}');
        if said.chars().any(steers) {
            let field = field.first_way().join(".");
            let reason = format!("the text for `{field}` has a control character");
            return Err(Failure::new(Exit::Usage, reason, "leave it out"));
        }
        let edited = patch_at(&self.content, field.first_way(), said);
        edited.map_err(|flaw| Failure::from(Refusal::from(flaw)))
    }
}

/// Saves a record where it lies, with another status.
fn save_status(
    service: &Service,
    caller: &Caller,
    present: &Present,
    status: &str,
    content: &[u8],
) -> Result<(), Failure> {
    let field = present.kind.fields().status.as_deref();
    let edits: Vec<Edit<'_>> =
        field.map(|field| Edit { field, value: status }).into_iter().collect();
    let content = patch(content, &edits).map_err(|flaw| Failure::from(Refusal::from(flaw)))?;
    let Dentry { dir, name } = present.found.entry()?;
    let node = service.read(|read| Ok(read.lookup(dir, &name)?))?;
    let Some(node) = node else { return Err(moved_meanwhile(present)) };
    let sight = Sight::Known(Base::Seen(present.found.record.version));
    let save = Save::of(node.ino, sight, Text::new(content));
    match service.engine.run(caller.context(), save)? {
        Saved::Kept(_) => Ok(()),
        Saved::Refused(refusal) => Err(refusal.into()),
    }
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
) -> Result<(), Failure> {
    // A command that is given twice has nothing to do, whoever may move what has ended, and wherever to.
    if present.from == to {
        return Err(nothing_to_do(service, caller, present)?);
    }
    let names = lane::names(&present.kind, to, owner, service.engine.now())?;
    let Dentry { dir: parent, name } = present.found.entry()?;
    let above = lane::above(&present.found.workspace)?;
    // Until the lane is made it stands for it.
    let new_parent = above;
    let moved = match text {
        Some(text) => {
            let seen = present.found.record.version;
            let command = SaveAndMove { parent, name, seen, text, new_parent };
            let command = IntoLane { above, names, command };
            service.engine.run(caller.context(), command).map(|_| ())
        }
        None => {
            let command =
                Rename::to_free(Dentry::of(parent, name.clone()), Dentry::of(new_parent, name));
            let command = IntoLane { above, names, command };
            service.engine.run(caller.context(), command).map(|_| ())
        }
    };
    match moved {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.rule == Rule::Absent => Err(moved_meanwhile(present)),
        Err(refusal) => Err(refusal.into()),
    }
}

/// It is where it would go, as after a command that was given twice.
fn nothing_to_do(
    service: &Service,
    caller: &Caller,
    present: &Present,
) -> Result<Failure, Failure> {
    let record = &present.found.record;
    let path = service.read(|read| path_of(read, record))?;
    let shown =
        path.map_or_else(|| record.id.to_string(), |path| caller.part.show(&path).to_string());
    let reason = format!("`{shown}` is in {} already: there is nothing to do", record.state);
    let remedy =
        format!("`workfs log {}` says since when; its text can be edited there", record.id);
    Ok(Failure::new(Exit::Lost, reason, remedy))
}

fn moved_meanwhile(present: &Present) -> Failure {
    let id = &present.found.record.id;
    let remedy = format!("`workfs log {id}` says by whom");
    let failure = Failure::new(Exit::Lost, format!("`{id}` was moved meanwhile"), remedy);
    Failure { rule: Some(Rule::Absent), ..failure }
}

fn report(
    service: &Service,
    caller: &Caller,
    present: &Present,
    command: EndCommand,
) -> Result<MoveReport, Failure> {
    let what = match command {
        EndCommand::Done => "done",
        EndCommand::Fail => "failed",
        EndCommand::Release => "released",
    };
    let FoundRecord { record, workspace, .. } = &present.found;
    service.read(|read| {
        let now = read.record_named(workspace.key, &record.id)?;
        let now = now.as_ref().unwrap_or(record);
        Ok(MoveReport {
            what: what.to_owned(),
            id: now.id.to_string(),
            path: path_of(read, now)?.map(|path| caller.part.show(&path)).unwrap_or_default(),
            workspace: caller.part.show(&workspace.path),
            state: now.state.to_string(),
            owner: now.owner.clone(),
            version: now.version,
        })
    })
}
