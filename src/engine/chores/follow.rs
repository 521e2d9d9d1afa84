//! What follows from a change to a record: a finished one hands over, one that is ready is assigned.
//!
//! What must stay true: it decides on what is there in its own turn, so that doing it again does nothing;
//! what is in its way is told of at the record, and each round tries it again until it is done or need not
//! be any more. Deliberately not here: how each is done.

use std::collections::BTreeSet;

use super::chore::{Chore, attempt};
use super::{assign, handoff};
use crate::config::Config;
use crate::engine::{About, Command, Context, Stop, Turn};
use crate::names::TreePath;
use crate::numbers::RecordKey;
use crate::store::{Read, StoreError};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Duty {
    /// A record that names a registered agent goes to its lane.
    Assign,
    /// The same in the transaction in which its text was saved: whoever else is writing it has lost already.
    AssignSaved,
    /// A finished record that names the next agent makes the record with which it goes on.
    HandOver,
}

impl Duty {
    const ALL: [Duty; 2] = [Duty::Assign, Duty::HandOver];

    /// The name of the operation, by which `why` remembers what could not be done.
    fn operation(self) -> &'static str {
        match self {
            Duty::Assign | Duty::AssignSaved => "assign",
            Duty::HandOver => "handoff",
        }
    }
}

/// Does it for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Follow {
    pub record: RecordKey,
    pub duty: Duty,
}

impl Follow {
    /// The same in a later transaction.
    pub(super) fn later(self) -> Follow {
        let duty = if self.duty == Duty::AssignSaved { Duty::Assign } else { self.duty };
        Follow { duty, ..self }
    }
}

impl Command for Follow {
    type Out = ();

    fn operation(&self) -> &'static str {
        self.duty.operation()
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        attempt(self, turn).map(drop)
    }
}

impl Chore for Follow {
    fn about(&self) -> About {
        About::Record(self.record)
    }

    /// The same whoever tries it: the next daemon knows by it what is still to be done.
    fn operation(&self) -> &'static str {
        self.duty.operation()
    }

    fn is_recalled(&self) -> bool {
        true
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        match self.duty {
            Duty::Assign => assign::assign(turn, self.record, false),
            Duty::AssignSaved => assign::assign(turn, self.record, true),
            Duty::HandOver => handoff::hand_over(turn, self.record),
        }
    }
}

/// What an earlier daemon could not do, as far as `why` remembers; whether it must still be done is found
/// when it is tried.
pub(super) fn left_by_others(
    read: &dyn Read,
    config: &Config,
) -> Result<BTreeSet<Follow>, StoreError> {
    let daemon = Context::daemon().actor.name;
    let mut told = Vec::new();
    read.refusals(&mut |row| {
        let duty = Duty::ALL.into_iter().find(|duty| row.operation == duty.operation());
        if row.actor == daemon {
            told.extend(duty.zip(TreePath::parse(&row.path).ok()));
        }
        true
    })?;
    let mut found = BTreeSet::new();
    let workspaces = if told.is_empty() { Vec::new() } else { read.workspaces()? };
    for (duty, path) in &told {
        // Of nested ones it is in the innermost.
        let around = workspaces.iter().filter(|workspace| path.below(&workspace.path).is_some());
        let Some(workspace) = around.max_by_key(|one| one.path.names().len()) else { continue };
        let Some(binding) = config.bind(&workspace.path) else { continue };
        let id = path.names().last().and_then(|name| binding.kind.record_id(name));
        let record = id.map(|id| read.record_named(workspace.key, &id)).transpose()?.flatten();
        found.extend(record.map(|record| Follow { record: record.key, duty: *duty }));
    }
    Ok(found)
}
