//! Escalation: for a record that does not go on, a line is written where people look, and an event
//! says so.

use super::chore::{Chore, is_unchanged};
use super::past::{Told, UNLOGGED, last_activity};
use crate::engine::change::happening::Happening;
use crate::engine::past::when::time_of;
use crate::engine::places::governed::{Home, path_of};
use crate::engine::plain_files::files::Saved;
use crate::engine::plain_files::plain;
use crate::engine::records::save::home_of;
use crate::engine::{About, Command, Create, Effect, NewContent, Refused, Stop, Text, Turn};
use crate::kind::Statuses;
use crate::ledger::{EventName, Field, Payload};
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Node, Record};

/// So much of why its last attempt failed is told: a text may say a million bytes, and its line stays in the
/// file for good.
const REASON_CHARS_MAX: usize = 500;

/// Tells of a record to which nothing has happened since it was found.
pub(super) struct Escalate {
    /// The workspace's directory.
    pub dir: Ino,
    /// The file in it that gets the line.
    pub file: FileName,
    pub record: Record,
}

impl Chore for Escalate {
    /// What can be in its way is in the way of the line.
    fn about(&self) -> About {
        About::Name(Dentry::of(self.dir, self.file.clone()))
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let record = turn.txn.record(self.record.key)?;
        let Some(mut record) = record.filter(|now| is_unchanged(now, self.record.last_g)) else {
            return Ok(false);
        };
        let home = home_of(turn, &record)?;
        let (last, told) = last_activity(turn.txn, record.last_g)?;
        let since = time_of(turn.txn, last)?.rfc3339_seconds();
        let path = home.file_path().to_string();
        // A status that the state does not care about says nothing of it.
        let listed = matches!(home.kind().state(home.state).status, Statuses::Listed(_));
        let status = record.status.clone().filter(|_| listed);
        let status = status.unwrap_or_else(|| record.state.to_string());
        let mut line = format!(
            "{} escalated {path}: {} since {since}",
            turn.now.rfc3339_seconds(),
            crate::names::printable(status.as_bytes()),
        );
        if let Some(reason) = reason(turn, &record, &home)? {
            line.push_str(&format!(" ({reason})"));
        }
        let is_logged = append_line(turn, self.dir, &self.file, &line)?;
        if !is_logged {
            let refused = in_the_way(turn, self.dir, &self.file)?;
            if told != Told::Not {
                return Err(Stop::Refused(Box::new(refused)));
            }
            if refused.kept {
                turn.keep(refused)?;
            }
        }

        let expected = record.expected();
        let payload = Payload::of(&[
            ("attempt", Field::Integer(record.attempt.0.cast_signed())),
            ("owner", Field::from(record.owner.as_ref())),
            ("path", Field::Text(&path)),
            ("since", Field::Text(&since)),
            ("state", Field::Text(record.state.as_str())),
            ("status", Field::Text(&status)),
            (UNLOGGED, if is_logged { Field::Absent } else { Field::Flag(true) }),
        ]);
        let (before, after) = (Some(record.version), Some(record.version));
        let happening =
            Happening { before, after, ..home.happening(EventName::ESCALATED, payload) };
        record.last_g = turn.append(Some(&record), happening)?;
        turn.put_record(&record, &expected)?;
        Ok(true)
    }
}

/// Why its last attempt failed, where it says so.
fn reason(turn: &Turn<'_>, record: &Record, home: &Home) -> Result<Option<String>, Stop> {
    let Some(field) = &home.kind().fields().reason else { return Ok(None) };
    let text = Text::new(turn.content(record)?);
    let said = text.parsed.as_ref().ok().and_then(|document| document.value().get(field));
    let said = said.and_then(serde_json::Value::as_str);
    Ok(said.map(|said| {
        let said = said.trim();
        match said.char_indices().nth(REASON_CHARS_MAX) {
            Some((end, _)) => {
                let begin = crate::names::printable(&said.as_bytes()[..end]);
                format!("{begin}…: its `{field}` says the rest")
            }
            None => crate::names::printable(said.as_bytes()),
        }
    }))
}

/// What is told where something else has the file's name: the event alone tells of the record then,
/// until the line can be written.
fn in_the_way(turn: &Turn<'_>, dir: Ino, name: &FileName) -> Result<Refused, Stop> {
    let path = path_of(turn.txn, dir, name)?;
    let reason = format!("`{path}` is no plain file, so no line tells of what does not go on");
    let refusal = Refusal::new(Rule::Taken, reason, format!("give `{path}` another name"));
    Ok(turn.leave_undone(path, refusal, false)?)
}

/// Appends a line to a plain file, which is made where it is missing. False where something else has
/// its name.
fn append_line(turn: &mut Turn<'_>, dir: Ino, name: &FileName, line: &str) -> Result<bool, Stop> {
    let mut node = match turn.txn.lookup(dir, name)? {
        Some(node) if node.is_plain_file() => node,
        Some(_) => return Ok(false),
        None => {
            let (name, content) = (name.clone(), NewContent::File);
            Create::new(dir, name, 0o644, content).run(turn)?
        }
    };
    let begin = if ends_in_a_line(turn, &node)? { "" } else { "\n" };
    let end = node.size;
    plain::put(turn, &mut node, end, format!("{begin}{line}\n").as_bytes())?;
    (node.mtime, node.ctime) = (turn.now, turn.now);
    turn.txn.update_node(&node)?;
    turn.effect(Effect::Data(node.ino));
    turn.file_changed(Dentry::of(dir, name), &node, Saved::by(None))?;
    Ok(true)
}

fn ends_in_a_line(turn: &Turn<'_>, node: &Node) -> Result<bool, Stop> {
    let Some(last) = node.size.checked_sub(1) else { return Ok(true) };
    Ok(plain::read(turn.txn, node, last, 1)? == b"\n")
}
