//! Bringing back what a plain file was: one change, one event.
//!
//! What must stay true: what comes back is read by nobody who could not read it before. Versions say
//! neither mode nor owner, so a file that is gone is made for who asks, alone.

use crate::ledger::EventName;
use crate::names::FileName;
use crate::numbers::{G, Ino};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, NewNode, Node, NodeType};

use super::files::Saved;
use super::{About, Command, Effect, Stop, Turn, plain};

/// Makes `content` the content of the plain file `parent/name`, which is made if it is gone.
#[derive(Clone, Debug)]
pub struct RestoreFile {
    /// The directory.
    pub parent: Ino,
    /// The name.
    pub name: FileName,
    /// The event that made the version.
    pub from_g: G,
    /// Its content.
    pub content: Vec<u8>,
}

impl Command for RestoreFile {
    /// Whether it was made anew.
    type Out = bool;

    fn operation(&self) -> &'static str {
        "restore"
    }

    fn about(&self) -> About {
        About::Name(self.parent, self.name.clone())
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let parent = turn.directory(self.parent)?;
        turn.require_lane(self.parent, &self.name)?;
        turn.require_content(self.parent, &self.name, &self.content)?;
        let there = turn.txn.lookup(self.parent, &self.name)?;
        let is_new = there.is_none();
        let mut node = match there {
            Some(node) if node.node_type == NodeType::File && node.class == Class::Plain => node,
            Some(_) => {
                let reason = format!("`{}` is no plain file now", self.name);
                let remedy = "move it away first";
                return Err(Refusal::new(Rule::Taken, reason, remedy).into());
            }
            None => {
                let quota = parent.quota;
                turn.touch_dir(parent, 0)?;
                self.make(turn, quota)?
            }
        };
        plain::replace(turn, &mut node, &self.content)?;
        node.mtime = turn.now;
        node.ctime = turn.now;
        turn.txn.update_node(&node)?;
        turn.effect(Effect::Attr { ino: node.ino, also_origin: true });
        turn.effect(Effect::Data(node.ino));
        let from_g = Some(self.from_g);
        let saved = Saved { event: EventName::RESTORED, from_g, ..Saved::by(None) };
        turn.file_saved(self.parent, &self.name, &node, saved)?;
        Ok(is_new)
    }
}

impl RestoreFile {
    fn make(&self, turn: &mut Turn<'_>, quota: Option<Ino>) -> Result<Node, Stop> {
        let new = NewNode {
            node_type: NodeType::File,
            class: Class::Plain,
            mode: 0o600,
            uid: turn.context.actor.uid,
            gid: turn.context.gid,
            rdev: 0,
            nlink: 1,
            size: 0,
            at: turn.now,
            parent: self.parent,
            quota,
        };
        let ino = turn.txn.insert_node(&new)?;
        turn.txn.insert_entry(self.parent, &self.name, ino)?;
        turn.name_file(self.parent, &self.name, ino)?;
        let (parent, name) = (self.parent, self.name.clone());
        turn.effect(Effect::Appeared { parent, name, node_type: NodeType::File });
        turn.txn.node(ino)?.ok_or_else(|| super::setattr::gone().into())
    }
}
