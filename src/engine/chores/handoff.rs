//! Handoff: a finished record that names the next agent makes the record with which it goes on.

use crate::limits::{FOLLOW_UPS_MAX, RECORD_ID_BYTES_MAX};
use crate::names::{AgentName, FileName, RecordId};
use crate::numbers::{Ino, RecordKey, UnixNanos};
use crate::record;
use crate::refusal::{Refusal, Rule};

use super::super::governed::Home;
use super::super::save::{Save, Saved, home_of};
use super::super::sight::{Base, Sight};
use super::super::{Command, Create, NewContent, Stop, Text, Turn};

/// Makes the follow-up of a record, if it names an agent for it and none was made yet.
pub(super) struct HandOver {
    pub record: RecordKey,
}

impl Command for HandOver {
    type Out = ();

    fn operation(&self) -> &'static str {
        "handoff"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let Some(done) = turn.txn.record(self.record)? else { return Ok(()) };
        let lies = home_of(turn, &done)?;
        let kind = lies.governed.binding.kind.clone();
        let text = Text::new(turn.content(&done)?);
        let said = text.document()?.value();
        let agent = match kind.next_agent(said) {
            None => return Ok(()),
            Some(Ok(agent)) => agent,
            Some(Err(named)) => return Err(Stop::kept(no_agent(&named), lies.file_path())),
        };
        if turn.txn.is_followed_up(lies.governed.workspace, &done.id, &agent)? {
            return Ok(());
        }
        // Who is no agent yet can become one; of who is known it is known what it may.
        turn.is_registered(&lies, &agent)?;
        let dir = turn.state_dir(&lies.governed, kind.initial(), None)?;
        let Some((dir, id, name)) =
            dir.map(|dir| free(turn, &lies, dir, &agent)).transpose()?.flatten()
        else {
            return Ok(());
        };
        let next = kind.follow_up((&id, &agent), (&done.id, said), turn.now);
        let text = Text::new(next.map(|next| record::write(&next)).unwrap_or_default());
        let create =
            Create { parent: dir, name, mode: 0o644, content: NewContent::File, on_draft: None };
        let ino = create.run(turn)?.ino;
        let sight = Sight::Known(Base::Unseen);
        // What cannot be a record is not made: the whole command is undone.
        match Save::of(ino, sight, text).run(turn)? {
            Saved::Kept(_) => Ok(()),
            Saved::Refused(refusal) => Err(Stop::kept(refusal, lies.file_path())),
        }
    }
}

fn no_agent(named: &str) -> Refusal {
    let named = crate::names::printable(named.as_bytes());
    let reason = format!("`{named}` is no agent's name, so no record goes on from here");
    let remedy = "make the next record yourself, or correct the name and finish again";
    Refusal::new(Rule::BadName, reason, remedy)
}

/// A free id and file name for the follow-up.
fn free(
    turn: &Turn<'_>,
    done: &Home,
    dir: Ino,
    agent: &AgentName,
) -> Result<Option<(Ino, RecordId, FileName)>, Stop> {
    let extension = done.kind().usual_extension();
    let begin = format!("{}-{agent}-followup-{}", minute(turn.now), done.id);
    for number in 1..=FOLLOW_UPS_MAX {
        let end = if number == 1 { String::new() } else { format!("-{number}") };
        let mut id = begin.clone();
        id.truncate(RECORD_ID_BYTES_MAX - end.len());
        let Ok(id) = RecordId::new(id + &end) else { return Ok(None) };
        let Ok(name) = FileName::new(format!("{id}.{extension}")) else { return Ok(None) };
        let known = turn.txn.record_named(done.governed.workspace, &id)?.is_some();
        if !known && turn.txn.lookup(dir, &name)?.is_none() {
            return Ok(Some((dir, id, name)));
        }
    }
    Ok(None)
}

/// `2026-11-22T1030`, as the names of records begin by custom.
fn minute(now: UnixNanos) -> String {
    let mut text = now.rfc3339_seconds();
    text.truncate("2026-11-22T10:30".len());
    text.replace(':', "")
}
