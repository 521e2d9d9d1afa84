//! The coordinator's chores: what the daemon does by itself where the configuration says so.
//!
//! Two follow from a change and are made in its transaction: a finished record hands over, a record
//! that is ready is assigned. What follows is an ordinary command at the front of the batch, in
//! a savepoint of its own, so that nothing that goes wrong with it undoes what it follows from. The
//! others a clock brings (`round`).
//!
//! What must stay true: each chore decides in its own transaction, on what is there then, so that
//! doing one again does nothing; one that cannot be done stops no other, and is told of (`undone`).
//! Deliberately not here: what a chore takes from a content (`kind`).

mod archive;
mod assign;
mod chore;
mod drafts;
mod escalate;
mod follow;
mod handoff;
mod offer;
mod past;
mod round;
mod undone;

pub use offer::offer;
pub use round::Chores;
pub use undone::Undone;

use std::sync::Arc;

use crate::engine::change::queued::Queued;
use crate::engine::places::governed::{Governed, Home};
use crate::engine::{Command, Context, Create, NewContent, Registry, Stop, Turn};
use crate::kind::{Holding, StateIx, role_names};
use crate::names::{AgentName, FileName};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Node, NodeType, Record, StoreError};
use assign::is_new;
use follow::{Duty, Follow};
use handoff::hands_over;

impl Turn<'_> {
    /// Makes `command` next, in the same transaction; files that it makes belong to whoever made
    /// the change that it follows from.
    pub(in crate::engine) fn follow(&mut self, command: impl Command) {
        self.follow_and(command, || ());
    }

    /// Does what follows from a change to a record; each round tries it again if it cannot be done.
    fn owe(&mut self, follow: Follow) {
        let undone = Arc::clone(self.undone);
        self.follow_and(follow, move || undone.try_later(follow.later()));
    }

    /// Makes `command` next; does that if it could not be made.
    fn follow_and(&mut self, command: impl Command, failed: impl FnOnce() + Send + 'static) {
        let mut context = Context::daemon();
        context.actor.uid = self.context.actor.uid;
        context.gid = self.context.gid;
        let answer = move |ran: Result<_, Refusal>| ran.map(drop).unwrap_or_else(|_| failed());
        let follow = Queued::new(context, command, answer);
        self.follows.push(Queued { trace: self.trace, ..follow });
    }

    /// What follows from a record's reaching the state of `home`.
    pub(super) fn reached(&mut self, record: &Record, home: &Home) {
        if hands_over(home) {
            self.owe(Follow { record: record.key, duty: Duty::HandOver });
        }
    }

    /// What follows from a record's being ready, where it was not or has a new text.
    pub(super) fn found_ready(&mut self, record: &Record, is_new_text: bool) {
        if is_new(record) && self.config.assigns() {
            let duty = if is_new_text { Duty::AssignSaved } else { Duty::Assign };
            self.owe(Follow { record: record.key, duty });
        }
    }

    /// Refuses to take from under somebody what is being written.
    fn require_unwritten(
        &self,
        name: &FileName,
        (ino, record): (Ino, Option<&Record>),
    ) -> Result<(), Refusal> {
        match self.audience.is_written(ino, record) {
            true => Err(Refusal::being_written(name)),
            false => Ok(()),
        }
    }

    /// Notes that the new record at `home` goes on where another one ended, if it says so.
    pub(super) fn note_previous(
        &mut self,
        home: &Home,
        said: &serde_json::Value,
    ) -> Result<(), StoreError> {
        let kind = home.kind();
        if let Some(previous) = kind.previous(said)
            && let Some(agent) = kind.owner_named(said)
        {
            self.txn.put_follow_up(home.governed.workspace, &previous, &agent)?;
        }
        Ok(())
    }

    /// Refuses to give a record to a registered agent whose role may not work on what it has, nor give it
    /// back, such as an observer: there it would lie. Says whether the agent is registered.
    fn is_registered(&self, lies: &Home, agent: &AgentName) -> Result<bool, Stop> {
        let Some(known) = Registry::load(self.txn)?.get(agent) else { return Ok(false) };
        let kind = lies.kind();
        let own = kind.rights().of(Holding::Own);
        if own.contains(&known.role) {
            return Ok(true);
        }
        let (name, role, who) = (kind.name(), known.role.with_article(), role_names(own));
        let reason = format!("{agent} is {role}, who may have no {name}: that is for {who}");
        let remedy = "name another agent, or give it another role (`workfs agent add`)";
        Err(Stop::kept(Refusal::new(Rule::Forbidden, reason, remedy), lies.file_path()))
    }

    /// The directory of a state in a workspace, made where it is missing; `None` where there is no
    /// place for it.
    pub(super) fn state_dir(
        &mut self,
        governed: &Governed,
        state: StateIx,
        owner: Option<&AgentName>,
    ) -> Result<Option<Ino>, Stop> {
        let names = governed.binding.kind.directory(state, owner, self.now);
        let workspace = self.txn.workspace(governed.workspace)?;
        let (Some(names), Some(mut at)) = (names, workspace.and_then(|found| found.dir)) else {
            return Ok(None);
        };
        for name in names {
            at = match self.txn.lookup(at, &name)? {
                Some(node) => as_directory(&node, &name)?,
                None => {
                    self.require_room(at)?;
                    let (content, mode) = (NewContent::Directory, 0o755);
                    Create::new(at, name, mode, content).run(self)?.ino
                }
            };
        }
        self.require_state_dir(governed.workspace, at)?;
        Ok(Some(at))
    }
}

/// The directory that has this name, or what is in its place.
fn as_directory(node: &Node, name: &FileName) -> Result<Ino, Stop> {
    if node.node_type == NodeType::Directory {
        return Ok(node.ino);
    }
    let reason = format!("`{name}`, where it would go, is no directory");
    Err(Refusal::new(Rule::NotDirectory, reason, format!("give `{name}` another name")).into())
}
