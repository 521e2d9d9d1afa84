//! Assigning what is ready to an agent that is registered, or has another role: what names it is looked for a page at
//! a time, since the texts must be read, and everybody else's changes wait while one page is.
//!
//! What must stay true: each page decides on what is there in its own turn, so that doing it again does nothing: who
//! is interrupted goes on by registering the agent once more. Deliberately not here: whether a record is assigned.

use crate::limits::{OFFERED_AT_ONCE, OFFERED_BYTES_MAX};
use crate::names::AgentName;
use crate::numbers::WorkspaceKey;
use crate::refusal::Refusal;
use crate::store::{OrderKey, Record, WorkspaceRow};

use super::super::{Command, Context, Engine, Stop, Terms, Turn};
use super::assign::is_new;
use super::follow::{Duty, Follow};

/// Assigns all that is ready and names `agent`.
///
/// # Errors
/// A failure of the store; what is in the way of one record is told of there.
pub fn offer(engine: &Engine, context: &Context, agent: &AgentName) -> Result<(), Refusal> {
    if !engine.config().assigns() {
        return Ok(());
    }
    let mut after = Some(Place::default());
    while let Some(place) = after {
        after = engine.run(context.clone(), Offer { agent: agent.clone(), after: place })?;
    }
    Ok(())
}

/// Up to where records were looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    workspace: WorkspaceKey,
    /// `None`: all records of the workspace.
    record: Option<OrderKey>,
}

/// Looks at one page.
struct Offer {
    agent: AgentName,
    after: Place,
}

impl Command for Offer {
    /// Where the next begins; `None` after the last.
    type Out = Option<Place>;

    fn operation(&self) -> &'static str {
        "assign"
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Option<Place>, Stop> {
        let Place { workspace, record } = self.after;
        let mut all = turn.txn.workspaces()?;
        all.sort_by_key(|row| row.key);
        let binds = |row: &&WorkspaceRow| {
            turn.config.bind(&row.path).is_some_and(|binding| binding.chores.assign)
        };
        let is_left =
            |row: &&WorkspaceRow| row.key > workspace || row.key == workspace && record.is_some();
        let Some(row) = all.iter().filter(is_left).find(binds) else { return Ok(None) };
        let after = record.filter(|_| row.key == workspace);
        let mut page: Vec<Record> = Vec::new();
        turn.txn.ready(row.key, after, &mut |record| {
            page.push(record);
            page.len() < OFFERED_AT_ONCE
        })?;
        let (mut last, mut bytes) = (None, 0);
        for record in &page {
            last = Some(record.order_key());
            if is_new(record) {
                let text = turn.content(record)?;
                bytes += text.len();
                if may_name(&text, &self.agent) {
                    turn.owe(Follow { record: record.key, duty: Duty::Assign });
                }
            }
            if bytes > OFFERED_BYTES_MAX {
                return Ok(Some(Place { workspace: row.key, record: last }));
            }
        }
        let record = last.filter(|_| page.len() == OFFERED_AT_ONCE);
        Ok(Some(Place { workspace: row.key, record }))
    }
}

/// Whether a text may name the agent, by its bytes: most do not, and need not be parsed. A name that is written in
/// escapes of YAML has none of its own bytes, but the mark that begins each.
fn may_name(text: &[u8], agent: &AgentName) -> bool {
    let name = agent.as_str().as_bytes();
    text.contains(&b'\\') || text.windows(name.len()).any(|at| at == name)
}
