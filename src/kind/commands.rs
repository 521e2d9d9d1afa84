//! What `workfs done`, `fail` and `release` do to a record of a kind.
//!
//! What must stay true: a command does what a program could do with files: it moves a record, or saves
//! it with another status. Deliberately not here: whether that is allowed; the lifecycle says so.

use super::Kind;
use super::field_path::FieldPath;
use super::state::StateIx;

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
pub(super) struct KindCommands {
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
}
