//! Assignment: a record that names a registered agent goes to its lane.

use crate::numbers::RecordKey;
use crate::store::When;

use super::super::rename::{Rename, RenameMode};
use super::super::save::home_of;
use super::super::sight::{Base, Sight};
use super::super::{Command, Stop, Text, Turn};

/// Gives a ready record to the agent that it names.
pub(super) struct Assign {
    pub record: RecordKey,
}

impl Command for Assign {
    type Out = ();

    fn operation(&self) -> &'static str {
        "assign"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let record = turn.txn.record(self.record)?;
        let Some(record) = record.filter(|record| record.readiness.when == When::Now) else {
            return Ok(());
        };
        let lies = home_of(turn, &record)?;
        let kind = lies.governed.binding.kind.clone();
        let Some(claim) = kind.claim().filter(|_| lies.governed.binding.chores.assign) else {
            return Ok(());
        };
        let text = Text::new(turn.content(&record)?);
        let Some(agent) = kind.owner_named(text.document()?.value()) else { return Ok(()) };
        if !turn.txn.agents()?.iter().any(|known| known.name == agent) {
            return Ok(());
        }
        let Some(lane) = turn.state_dir(&lies.governed, claim.to, Some(&agent))? else {
            return Ok(());
        };
        let rename = Rename {
            parent: lies.dir,
            name: lies.name.clone(),
            new_parent: lane,
            new_name: lies.name,
            mode: RenameMode::NoReplace,
            sight: Sight::Known(Base::Unseen),
        };
        rename.run(turn).map(drop)
    }
}
