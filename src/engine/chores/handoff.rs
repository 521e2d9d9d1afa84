//! Handoff: a finished record that names the next agent makes the record with which it goes on.

use crate::engine::places::governed::Home;
use crate::engine::records::save::{Save, Saved, home_of};
use crate::engine::records::sight::{Base, Sight};
use crate::engine::{Command, Create, NewContent, Stop, Text, Turn};
use crate::limits::{FOLLOW_UPS_MAX, RECORD_ID_BYTES_MAX};
use crate::names::{AgentName, FileName, RecordId};
use crate::numbers::{Ino, RecordKey, UnixNanos};
use crate::record;
use crate::refusal::{Refusal, Rule};

/// Makes the follow-up of a record, if it names an agent for it and none was made yet.
pub(super) fn hand_over(turn: &mut Turn<'_>, record: RecordKey) -> Result<bool, Stop> {
    let done = turn.txn.record(record)?.filter(|record| record.ino().is_some());
    let Some(done) = done else { return Ok(false) };
    let lies = home_of(turn, &done)?;
    if !hands_over(&lies) {
        return Ok(false);
    }
    let kind = lies.governed.binding.kind.clone();
    let text = Text::new(turn.content(&done)?);
    let said = text.document()?.value();
    let agent = match kind.next_agent(said) {
        None => return Ok(false),
        Some(Ok(agent)) => agent,
        // No room and no time makes it one: it is told of, and does not wait.
        Some(Err(named)) => {
            let refused = turn.told_once(lies.file_path(), no_agent(&named))?;
            if refused.kept {
                turn.keep(refused)?;
            }
            return Ok(false);
        }
    };
    if turn.txn.is_followed_up(lies.governed.workspace, &done.id, &agent)? {
        return Ok(false);
    }
    // Who is no agent yet can become one; of who is known it is known what it may.
    turn.is_registered(&lies, &agent)?;
    // Where records begin in a lane, in that of who goes on.
    let Some(dir) = turn.state_dir(&lies.governed, kind.initial(), Some(&agent))? else {
        return Ok(false);
    };
    let (id, name) = free(turn, &lies, dir, &agent)?;
    let next = kind.follow_up((&id, &agent), (&done.id, said), turn.now);
    let text = Text::new(next.map(|next| record::write(&next)).unwrap_or_default());
    // Whoever may not read the finished one is told nothing of it by what it hands on.
    let finished = done.ino().map(|ino| turn.txn.node(ino)).transpose()?.flatten();
    let mode = finished.map_or(0o600, |finished| finished.mode & 0o666);
    let create = Create::new(dir, name, mode, NewContent::File);
    let ino = create.run(turn)?.ino;
    let sight = Sight::Known(Base::Unseen);
    // What cannot be a record is not made: the whole command is undone.
    match Save::of(ino, sight, text).run(turn)? {
        Saved::Kept(_) => Ok(true),
        Saved::Refused(refusal) => Err(Stop::kept(not_valid(refusal), lies.file_path())),
    }
}

/// Whether what lies here hands over.
pub(super) fn hands_over(home: &Home) -> bool {
    home.governed.binding.chores.handoff && home.kind().hands_over(home.state)
}

/// Nobody ever sees the text that was refused: its places and the way to mend it are no help.
fn not_valid(refusal: Refusal) -> Refusal {
    let reason = format!("the record that would go on from here is not valid: {}", refusal.reason);
    let remedy = "mend what this one hands on (`copy` in the kind's `chores.handoff` says from which \
                  fields), or make the next record yourself";
    Refusal { reason, remedy: remedy.into(), place: None, ..refusal }
}

fn no_agent(named: &str) -> Refusal {
    let named = crate::names::printable(named.as_bytes());
    let reason = format!("`{named}` is no agent's name, so no record goes on from here");
    let remedy = "make the next record yourself, or correct the name (one of digits alone needs quotes) and finish \
                  again";
    Refusal::new(Rule::BadName, reason, remedy)
}

/// A free id and file name for the follow-up.
fn free(
    turn: &Turn<'_>,
    done: &Home,
    dir: Ino,
    agent: &AgentName,
) -> Result<(RecordId, FileName), Stop> {
    let extension = done.kind().usual_extension();
    let begin = format!("{}-{agent}-followup-{}", minute(turn.now), done.id);
    for number in 1..=FOLLOW_UPS_MAX {
        let end = if number == 1 { String::new() } else { format!("-{number}") };
        let mut id = begin.clone();
        id.truncate(RECORD_ID_BYTES_MAX - end.len());
        let Ok(id) = RecordId::new(id + &end) else { break };
        let Ok(name) = FileName::new(format!("{id}.{extension}")) else { break };
        let known = turn.txn.record_named(done.governed.workspace, &id)?.is_some();
        if !known && turn.txn.lookup(dir, &name)?.is_none() {
            return Ok((id, name));
        }
    }
    let reason = format!("all names that begin with `{begin}` are taken");
    let remedy = "make the next record yourself; each minute has names of its own";
    Err(Refusal::new(Rule::Taken, reason, remedy).into())
}

/// `2026-11-22T1030`, as the names of records begin by custom.
fn minute(now: UnixNanos) -> String {
    let mut text = now.rfc3339_seconds();
    text.truncate("2026-11-22T10:30".len());
    text.replace(':', "")
}
