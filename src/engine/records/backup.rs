//! The backup of a record: the file that its name went to when it was parked.
//!
//! What must stay true: while a record is parked its backup lies in the directory that the record lay in,
//! and has one name. Where it goes for good, the record goes with it, as if that had been removed or
//! moved itself, and by whoever might do that. Deliberately not here: how a record is parked (`nodes/rename`),
//! and when it comes back (`save`).

use super::record::Step;
use super::whereabouts::{is_parked_at, name_of_parked};
use crate::config::Policy;
use crate::engine::nodes::remove::retire;
use crate::engine::places::governed::{governed, path_of};
use crate::engine::{Home, Stop, Text, Turn};
use crate::ledger::{EventName, Via};
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::Rule;
use crate::store::{Node, Record, Result, Standing};

/// A parked record lies at `home` in `node` again, as it was.
pub(super) fn come_back(
    turn: &mut Turn<'_>,
    mut record: Record,
    home: &Home,
    node: &mut Node,
) -> std::result::Result<Record, Stop> {
    let text = Text::new(turn.content(&record)?);
    // A flagged text is no valid one by that.
    let flags = home.governed.binding.policy == Policy::Flag;
    let valid = !flags || turn.flaw(&record)?.is_none();
    let links = if flags && valid { turn.links(home, &text)? } else { None };
    if valid {
        record.status = text.status(home);
    }
    let (via, links) = (Some(Via::Backup), links.as_ref());
    let step = Step { valid, via, links, ..Step::of(EventName::RENAMED) };
    node.size = text.bytes.len() as u64;
    Ok(turn.step(record, home, node, step)?)
}

/// What is refused leaves the name as free as it was. If it is a record's that went to a backup, as
/// `sed -i.bak` does it, the way out is to take that back; where it is the backup itself that is not right any
/// more, as after another layout, that can be mended.
pub(in crate::engine) fn tell_of_backup(
    turn: &Turn<'_>,
    home: &Home,
    file: &Node,
    stop: Stop,
) -> Stop {
    let Stop::Refused(mut why) = stop else { return stop };
    let is_of_text = matches!(
        why.refusal.rule,
        Rule::Syntax
            | Rule::Schema
            | Rule::IdDiffers
            | Rule::StatusDiffers
            | Rule::Required
            | Rule::TooLarge
            | Rule::Cycle
    );
    let remedy = why.refusal.remedy.trim_end_matches('.').to_owned();
    match turn.txn.parked_by(file.ino) {
        Ok(Some(record)) if is_parked_at(&record, home) => {
            if is_of_text {
                why.refusal.remedy = format!(
                    "{remedy}; do it in the backup, and write into that file (an editor that renames a new one \
                     over it removes the record), then rename it again"
                );
            }
            return Stop::Refused(why);
        }
        Ok(_) => {}
        Err(error) => return Stop::Store(error),
    }
    match turn.txn.record_named(home.governed.workspace, &home.id) {
        Ok(Some(Record { standing: Standing::Parked { .. }, .. })) => {
            why.refusal.remedy = format!(
                "{remedy}. The record has no file now, its text is in the backup that was made of it: \
                 rename that to `{}` first",
                home.name
            );
            Stop::Refused(why)
        }
        Ok(_) => Stop::Refused(why),
        Err(error) => Stop::Store(error),
    }
}

impl Turn<'_> {
    /// The parked record whose backup a file of directory `dir` is, and where it would lie.
    pub(in crate::engine) fn parked_by(
        &self,
        dir: Ino,
        file: &Node,
    ) -> Result<Option<(Record, Home)>> {
        if !file.is_plain_file() {
            return Ok(None);
        }
        let Some(governed) = governed(self.txn, self.config, dir)? else { return Ok(None) };
        if !governed.place.is_state() {
            return Ok(None);
        }
        let Some(record) = self.txn.parked_by(file.ino)? else { return Ok(None) };
        let kind = &governed.binding.kind;
        let state = kind.state_named(record.state.as_str());
        let name = name_of_parked(self.txn, kind, &record)?;
        let (Some(state), Some(name)) = (state, name) else {
            return Ok(None);
        };
        let (owner, id) = (record.owner.clone(), record.id.clone());
        Ok(Some((record, Home { governed, state, owner, id, dir, name })))
    }

    /// Where a record lay that is parked in `dir`, and is asked for at `home`.
    pub(super) fn path_of_parked(
        &self,
        record: &Record,
        dir: Ino,
        home: &Home,
    ) -> Result<TreePath> {
        let name = name_of_parked(self.txn, home.kind(), record)?;
        path_of(self.txn, dir, name.as_ref().unwrap_or(&home.name))
    }

    /// A file of directory `dir` loses its name there, or goes `to` another directory. If it is the
    /// backup of a parked record, that is removed, or leaves its workspace.
    ///
    /// # Errors
    /// Who may not do that to the record may not do it to its backup.
    pub(in crate::engine) fn lose_backup(
        &mut self,
        dir: Ino,
        file: &Node,
        to: Option<Dentry<&FileName>>,
    ) -> std::result::Result<(), Stop> {
        let Some((record, home)) = self.parked_by(dir, file)? else { return Ok(()) };
        self.require_own(&record, &home)?;
        self.must_survive_power_loss();
        match to {
            None => retire(self, record, &home, Standing::Gone, EventName::REMOVED, None)?,
            Some(Dentry { dir, name }) => {
                self.require_leave(&home)?;
                let to = path_of(self.txn, dir, name)?.to_string();
                retire(self, record, &home, Standing::Gone, EventName::LEFT, Some(&to))?
            }
        };
        Ok(())
    }
}
