//! Assignment: a record that names a registered agent goes to its lane.

use crate::engine::nodes::rename::Rename;
use crate::engine::records::save::home_of;
use crate::engine::{Command, Stop, Text, Turn};
use crate::names::Dentry;
use crate::numbers::{Attempt, RecordKey};
use crate::store::{Record, When};

/// Whether nobody had it yet: one that was claimed before names the agent who gave it back, or lost it.
pub(super) fn is_new(record: &Record) -> bool {
    record.attempt == Attempt(0)
}

/// Gives a ready record to the agent that it names; one whose text was just saved, whoever else writes it.
pub(super) fn assign(
    turn: &mut Turn<'_>,
    record: RecordKey,
    is_just_saved: bool,
) -> Result<bool, Stop> {
    let record = turn.txn.record(record)?;
    let Some(record) = record.filter(|record| is_new(record) && record.readiness.when == When::Now)
    else {
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
    if let Some(ino) = record.ino().filter(|_| !is_just_saved) {
        turn.require_unwritten(&lies.name, (ino, Some(&record)))?;
    }
    Rename::to_free(Dentry::of(lies.dir, lies.name.clone()), Dentry::of(lane, lies.name))
        .run(turn)?;
    Ok(true)
}
