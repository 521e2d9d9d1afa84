//! Making records' rows anew when the rules that made them have changed, as after another layout:
//! what the texts say about when records are ready and what they wait for, whether a lease runs,
//! and whether they are flagged.
//!
//! What must stay true: it changes no text and no place, and the only event is that a flag ends
//! (`mended`); doing it again changes nothing; a lease that runs goes on as it was made, and gets
//! no longer. Deliberately not here: which rules hold (`rules`).

use super::rules::note_rows;
use super::save::home_of;
use super::whereabouts::name_of_parked;
use crate::engine::claims::circle::{Said, links_of};
use crate::engine::places::governed::path_of;
use crate::engine::{Command, Stop, Terms, Text, Turn};
use crate::names::TreePath;
use crate::numbers::RecordKey;
use crate::refusal::Refusal;
use crate::store::{Record, Standing};

/// Makes the rows of these records anew.
#[derive(Clone, Debug)]
pub struct MakeRows {
    /// The records.
    pub records: Vec<RecordKey>,
}

/// Notes that all rows are those of the present rules.
#[derive(Clone, Copy, Debug)]
pub struct RowsMade;

impl Command for MakeRows {
    /// Those that would wait for themselves by what they say now, and why. They go on waiting for what they
    /// waited for before.
    type Out = Vec<(RecordKey, (TreePath, Refusal))>;

    fn operation(&self) -> &'static str {
        "init"
    }

    /// It is done again after a crash.
    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Self::Out, Stop> {
        turn.require_operator("make rows anew", &self)?;
        let mut circles = Vec::new();
        for key in self.records {
            if let Some(record) = turn.txn.record(key)? {
                circles.extend(turn.make_row(record)?.map(|circle| (key, circle)));
            }
        }
        Ok(circles)
    }
}

impl Command for RowsMade {
    type Out = ();

    fn operation(&self) -> &'static str {
        "init"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        turn.require_operator("make rows anew", &self)?;
        Ok(note_rows(turn.txn, turn.config)?)
    }
}

impl Turn<'_> {
    /// Makes the row of one record anew; gives the circle that its text would close, and where it lies.
    fn make_row(&mut self, mut record: Record) -> Result<Option<(TreePath, Refusal)>, Stop> {
        let workspace = self.txn.workspace(record.workspace)?;
        let Some(binding) = workspace.and_then(|workspace| self.config.bind(&workspace.path))
        else {
            return Ok(None);
        };
        let kind = &binding.kind;
        let lies = match &record.standing {
            Standing::Live { dir, name, .. } => Some((*dir, name.clone())),
            Standing::Parked { dir } => {
                name_of_parked(self.txn, kind, &record)?.map(|name| (*dir, name))
            }
            Standing::Gone => return Ok(None),
        };
        if let Standing::Live { ino, valid: false, .. } = record.standing
            && self.flaw(&record)?.is_none()
            && let Some(mut node) = self.txn.node(ino)?
        {
            let (home, text) = (home_of(self, &record)?, Text::new(self.content(&record)?));
            self.unflag(record, &home, &mut node, &text)?;
            return Ok(None);
        }
        let expected = record.expected();
        let text = Text::new(self.content(&record)?);
        let (mut links, mut circle) = (None, None);
        // What a flagged text says counts for nothing.
        if text.parsed.is_ok() && !matches!(record.standing, Standing::Live { valid: false, .. }) {
            record.status = text.status_in(kind);
            let of = (record.workspace, &record.id);
            match links_of(self.txn, of, kind, &text, Some(self.ranks))? {
                Said::Nothing => {}
                Said::Links(wanted) => links = Some(wanted),
                Said::Circle(refusal) => circle = Some(refusal),
            }
        }
        if let Some(links) = &links {
            self.age_anew(&mut record, links)?;
        }
        let turned = self.put_in_order(&mut record, kind, links.as_ref())?;
        self.lease_anew(&record, kind)?;
        self.put_record(&record, &expected)?;
        if turned {
            self.tell_dependants(&record, kind)?;
        }
        let Some((circle, (dir, name))) = circle.zip(lies) else { return Ok(None) };
        Ok(Some((path_of(self.txn, dir, &name)?, circle)))
    }
}
