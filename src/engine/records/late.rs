//! Refusing the beginning of a text that comes too late, or under an id in use, before the whole is
//! there.
//!
//! An agent that lost a record, and writes it again in its lane without having read what it says
//! now, does not claim it by that; and who never read a record cannot take it back into a directory
//! that is no agent's (`sight`). The whole text is judged by these rules at `close`. But a shell
//! does not look at `close`, so what no further byte can mend is refused at once: the text is not
//! the one that the record has, or it says a status that cannot be there. What must stay true:
//! whatever is refused here would be refused of the whole, too.

use std::sync::Arc;

use super::draft::leave_draft;
use super::save::{home_of, require_not_theirs};
use super::sight::{Sight, is_blind, no_text_of};
use super::whereabouts::is_parked_at;
use crate::engine::change::stop::{Refused, gone};
use crate::engine::places::governed::Home;
use crate::engine::{Command, Slot, Stop, Terms, Turn};
use crate::numbers::Ino;
use crate::record::place_in;
use crate::refusal::Refusal;
use crate::store::{Record, Standing};

/// Refuses what a program begins to write to a draft, where it comes too late.
#[derive(Clone, Debug)]
pub struct RefuseLate {
    /// The file.
    pub ino: Ino,
    /// What the writer saw.
    pub sight: Sight,
    /// What is written so far.
    pub bytes: Arc<[u8]>,
    /// The status that it says.
    pub status: Option<String>,
}

/// What is known of a text of which the beginning is written.
#[derive(Debug)]
pub enum Late {
    /// It may become the record's.
    InTime,
    /// So far it is how the record's own text begins, which decides nothing: the next write may.
    SoFar,
    /// It cannot, and this is why.
    Refused(Refusal),
}

impl From<Option<Refusal>> for Late {
    fn from(wrong: Option<Refusal>) -> Self {
        wrong.map_or(Late::InTime, Late::Refused)
    }
}

impl Command for RefuseLate {
    type Out = Late;

    fn operation(&self) -> &'static str {
        "write"
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Late, Stop> {
        let node = turn.txn.node(self.ino)?.filter(|node| node.nlink > 0).ok_or_else(gone)?;
        let Some(draft) = turn.txn.draft(node.ino)? else { return Ok(Late::InTime) };
        let Slot::Record(home) = turn.slot(draft.dir, &draft.name)? else {
            return Ok(Late::InTime);
        };
        let known = turn.txn.record_named(home.governed.workspace, &home.id)?;
        let wrong = self.wrong_status(turn, &home, known.as_ref());
        let late = match known.filter(|record| !is_parked_at(record, &home)) {
            Some(record) => self.lateness(turn, &record, &home, wrong)?,
            None => wrong.into(),
        };
        let Late::Refused(refusal) = late else { return Ok(late) };
        leave_draft(turn, node, draft, &home, &refusal, &self.bytes)?;
        let (path, rejected) = (home.file_path(), Some(self.bytes));
        turn.keep(Refused { refusal: refusal.clone(), path, rejected, kept: true })?;
        Ok(Late::Refused(refusal))
    }
}

impl RefuseLate {
    /// Judges the beginning of a text for `home` of a record that lies elsewhere. `wrong` is what is wrong
    /// with its status: that it comes too late weighs more.
    fn lateness(
        &self,
        turn: &Turn<'_>,
        record: &Record,
        home: &Home,
        wrong: Option<Refusal>,
    ) -> Result<Late, Stop> {
        let (lies, theirs) = match &record.standing {
            Standing::Live { .. } => {
                let lies = home_of(turn, record)?;
                (lies.file_path(), require_not_theirs(record, &lies, home).err())
            }
            Standing::Parked { dir } => (turn.path_of_parked(record, *dir, home)?, None),
            Standing::Gone => return Ok(wrong.into()),
        };
        let base = self.sight.of(record.key);
        if base.knows(record) {
            return Ok(wrong.map(|wrong| theirs.unwrap_or(wrong)).into());
        }
        if turn.content(record)?.starts_with(&self.bytes) {
            return Ok(wrong.map_or(Late::SoFar, Late::Refused));
        }
        Ok(Late::Refused(match (theirs, turn.late_by(record, home.owner.as_ref())?) {
            (Some(late), _) | (None, Some(late)) => late,
            _ if is_blind(record, home, base) => no_text_of(&lies, home),
            // A shell that was overtaken takes a copy for made, and unlinks what it was made of.
            _ => match base.require_current(record, home) {
                Err(stale) => stale,
                Ok(()) => return Ok(wrong.into()),
            },
        }))
    }

    /// What is wrong with the status that is said so far.
    fn wrong_status(
        &self,
        turn: &Turn<'_>,
        home: &Home,
        known: Option<&Record>,
    ) -> Option<Refusal> {
        let (kind, role, said) = (home.kind(), turn.context.role, self.status.as_deref());
        let judged = match known {
            Some(record) if is_parked_at(record, home) => {
                kind.judge_status_so_far(home.state, record.status.as_deref(), said, role)
            }
            known => {
                let lives = |record: &&Record| matches!(record.standing, Standing::Live { .. });
                let carried = known.filter(lives).and_then(|record| record.status.as_deref());
                kind.judge_new_status_so_far(home.state, carried, said, role)
            }
        };
        let policy = home.governed.binding.policy;
        let fault = judged.err().filter(|fault| !policy.takes(fault.rule))?;
        let place = place_in(&self.bytes, &fault.pointer);
        Some(Refusal { place, ..Refusal::from(fault) })
    }
}
