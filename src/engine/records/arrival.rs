//! How a text arrives where a file is to be a record: as a new one, or as a record that was parked and comes back.
//!
//! Deliberately not here: whether it is valid, and what it becomes (`save`).

use std::sync::Arc;

use super::sight::Sight;
use super::whereabouts::is_parked_at;
use crate::engine::places::governed::Home;
use crate::engine::{Stop, Text, Turn};
use crate::store::{Record, Standing};

/// What the text of a file that is to be a record is to the one that has its id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The text of a record that is new here.
    Anew,
    /// The next version of one whose name went to a backup, and comes back.
    Next,
    /// The text that such a one had.
    AsItWas,
}

/// How a text arrives at `home`, where the record that has its id has no file.
pub(super) fn arrival(
    turn: &mut Turn<'_>,
    known: Option<&Record>,
    home: &Home,
    (sight, text): (&Sight, &Text),
) -> Result<Arrival, Stop> {
    let Some(record) = known else { return Ok(Arrival::Anew) };
    if is_parked_at(record, home) {
        let refuse = |refusal| Stop::rejected(refusal, home.file_path(), Arc::clone(&text.bytes));
        turn.revives(record, home).map_err(refuse)?;
        // Who gives it its own file back needs to have read nothing.
        if turn.content(record)?[..] == text.bytes[..] && !record.is_lapsed() {
            return Ok(Arrival::AsItWas);
        }
        sight.require_current(record, home).map_err(refuse)?;
        return Ok(Arrival::Next);
    }
    if let Standing::Parked { dir } = record.standing {
        let lay = turn.path_of_parked(record, dir, home)?;
        turn.require_made_of(record, (&lay, home), (sight, text))?;
    }
    Ok(Arrival::Anew)
}
