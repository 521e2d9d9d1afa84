//! Assignment: a record that names a registered agent goes to its lane.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::names::TreePath;
use crate::numbers::Attempt;
use crate::numbers::RecordKey;
use crate::store::{Read, StoreError, When};

use super::super::rename::{Rename, RenameMode};
use super::super::save::home_of;
use super::super::sight::{Base, Sight};
use super::super::{About, Command, Context, Stop, Text, Turn};
use super::round::{Chore, undone};

/// The name of the operation, by which `why` remembers what could not be done.
const ASSIGN: &str = "assign";

/// The records that an earlier daemon could not assign, as far as `why` remembers, and that may still
/// have to be.
pub(super) fn left_by_others(
    read: &dyn Read,
    config: &Config,
) -> Result<BTreeSet<RecordKey>, StoreError> {
    let daemon = Context::daemon().actor.name;
    let mut paths = Vec::new();
    read.refusals(&mut |row| {
        if row.operation == ASSIGN && row.actor == daemon {
            paths.extend(TreePath::parse(&row.path).ok());
        }
        true
    })?;
    let mut found = BTreeSet::new();
    let workspaces = if paths.is_empty() { Vec::new() } else { read.workspaces()? };
    for path in &paths {
        // Of nested ones it is in the innermost.
        let around = workspaces.iter().filter(|workspace| path.below(&workspace.path).is_some());
        let Some(workspace) = around.max_by_key(|one| one.path.names().len()) else { continue };
        let Some(binding) = config.bind(&workspace.path) else { continue };
        let id = path.names().last().and_then(|name| binding.kind.record_id(name));
        let record = id.map(|id| read.record_named(workspace.key, &id)).transpose()?.flatten();
        found.extend(record.filter(|record| record.attempt == Attempt(0)).map(|record| record.key));
    }
    Ok(found)
}

/// Gives a ready record to the agent that it names.
pub(super) struct Assign {
    pub record: RecordKey,
}

impl Command for Assign {
    type Out = ();

    fn operation(&self) -> &'static str {
        ASSIGN
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let about = Chore::about(&self);
        Chore::run(self, turn).map(drop).map_err(|stop| undone(turn, about, stop))
    }
}

impl Chore for Assign {
    fn about(&self) -> About {
        About::Record(self.record)
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let record = turn.txn.record(self.record)?;
        let Some(record) = record.filter(|record| record.readiness.when == When::Now) else {
            return Ok(false);
        };
        let lies = home_of(turn, &record)?;
        let kind = lies.governed.binding.kind.clone();
        let Some(claim) = kind.claim().filter(|_| lies.governed.binding.chores.assign) else {
            return Ok(false);
        };
        let text = Text::new(turn.content(&record)?);
        let Some(agent) = kind.owner_named(text.document()?.value()) else { return Ok(false) };
        if !turn.is_registered(&lies, &agent)? {
            return Ok(false);
        }
        let Some(lane) = turn.state_dir(&lies.governed, claim.to, Some(&agent))? else {
            return Ok(false);
        };
        let rename = Rename {
            parent: lies.dir,
            name: lies.name.clone(),
            new_parent: lane,
            new_name: lies.name,
            mode: RenameMode::NoReplace,
            sight: Sight::Known(Base::Unseen),
        };
        rename.run(turn).map(|_| true)
    }
}
