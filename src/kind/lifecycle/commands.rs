//! What `workfs done`, `fail` and `release` do to a record of a kind, and how somebody finishes one.
//!
//! What must stay true: a command does what a program could do with files: it moves a record, or saves
//! it with another status. Deliberately not here: whether that is allowed; the lifecycle says so.

use super::state::{OnExpiry, StateIx, Statuses, Transition};
use crate::kind::field_path::FieldPath;
use crate::kind::{Kind, Role};

/// A command by which somebody lets go of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCommand {
    /// `workfs done`: it is finished.
    Done,
    /// `workfs fail`: it cannot be finished.
    Fail,
    /// `workfs release`: somebody else may have it.
    Release,
}

impl EndCommand {
    /// Its name, on the command line and in a definition.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EndCommand::Done => "done",
            EndCommand::Fail => "fail",
            EndCommand::Release => "release",
        }
    }
}

/// What a kind says of the commands; what leads back it always does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kind) struct KindCommands {
    pub done: Option<Ending>,
    pub fail: Option<Ending>,
    pub release: Ending,
}

/// What such a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// What becomes of the record.
    pub becomes: Becomes,
    /// The field that takes what the command says of it.
    pub text: Option<FieldPath>,
}

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Becomes {
    /// It goes to this state.
    State(StateIx),
    /// It stays where it is, with this status.
    Status(String),
}

impl Kind {
    /// What a command does to a record of this kind, if anything.
    #[must_use]
    pub fn ending(&self, command: EndCommand) -> Option<&Ending> {
        match command {
            EndCommand::Done => self.commands.done.as_ref(),
            EndCommand::Fail => self.commands.fail.as_ref(),
            EndCommand::Release => Some(&self.commands.release),
        }
    }

    /// The transition by which this role finishes a record of a state: where `done` leads, else to
    /// where records count as done, else the first that neither gives it back nor gives it up.
    #[must_use]
    pub fn finish_from(&self, from: StateIx, role: Role) -> Option<&Transition> {
        let onward = |way: &&Transition| {
            way.from == from && way.to != from && way.to != self.initial && way.by.contains(&role)
        };
        let ways: Vec<&Transition> = self.transitions.iter().filter(onward).collect();
        let said = self.commands.done.as_ref().map(|ending| &ending.becomes);
        let by_command = |way: &&&Transition| said == Some(&Becomes::State(way.to));
        let counts = |way: &&&Transition| self.order.done.iter().any(|(done, _)| *done == way.to);
        let goes_well = |way: &&&Transition| !self.is_setback_state(from, way.to);
        let mut found = ways.iter().find(by_command);
        found = found.or_else(|| ways.iter().find(counts));
        found.or_else(|| ways.iter().find(goes_well)).copied()
    }

    /// Whether a record of a state goes to this one when it could not be finished.
    fn is_setback_state(&self, from: StateIx, to: StateIx) -> bool {
        let state = self.state(from);
        let failed = self.commands.fail.as_ref().map(|ending| &ending.becomes);
        failed == Some(&Becomes::State(to))
            || state.lease.as_ref().is_some_and(|one| one.on_expiry == OnExpiry::State(to))
            || state.retries.as_ref().is_some_and(|retries| retries.exhausted == to)
    }

    /// Whether this status of a state says that its record does not go on, as far as the kind tells:
    /// `fail` or a lease's end sets it, it wants an explanation, or it is told of.
    #[must_use]
    pub fn is_setback(&self, state: StateIx, status: &str) -> bool {
        let is = |becomes: &Becomes| matches!(becomes, Becomes::Status(set) if set == status);
        let of = self.state(state);
        let ends = |end: &OnExpiry| matches!(end, OnExpiry::Status(set) if set == status);
        self.commands.fail.as_ref().is_some_and(|ending| is(&ending.becomes))
            || of.lease.as_ref().is_some_and(|lease| ends(&lease.on_expiry))
            || of.status_requires.iter().any(|(when, _)| when == status)
            || self.chores.escalate.iter().flat_map(|escalate| &escalate.stuck).any(|stuck| {
                let listed = matches!(stuck.status, Statuses::Listed(_));
                stuck.state == state && listed && stuck.status.contains(status)
            })
    }
}
