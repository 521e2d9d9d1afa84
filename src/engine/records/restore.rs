//! Bringing back what a record or a plain file was: one change, one event.
//!
//! What must stay true: what comes back is read by nobody who could not read it before. Versions say
//! neither mode nor owner, so a file that is gone is made for who asks, alone.

use super::save::{home_of, next_version};
use super::sight::{Base, Sight};
use crate::engine::change::stop::gone;
use crate::engine::plain_files::files::Saved;
use crate::engine::plain_files::plain;
use crate::engine::{About, Command, Effect, Slot, Stop, Text, Turn};
use crate::ledger::EventName;
use crate::names::{Dentry, FileName};
use crate::numbers::{G, Ino, RecordKey, Version};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, NewNode, Node, NodeType};

/// Makes the text of an old version the next one of the record that it is of.
#[derive(Clone, Debug)]
pub struct RestoreRecord {
    /// The record.
    pub record: RecordKey,
    /// The version that it has now, as its restorer saw it.
    pub seen: Version,
    /// The event that made the old version.
    pub from_g: G,
    /// Its text.
    pub text: Text,
}

impl Command for RestoreRecord {
    type Out = ();

    fn operation(&self) -> &'static str {
        "restore"
    }

    fn about(&self) -> About {
        About::Record(self.record)
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let record = turn.txn.record(self.record)?.ok_or_else(gone)?;
        let home = home_of(turn, &record)?;
        let mut node = turn.existing(home.dir, &home.name)?;
        node.mtime = turn.now;
        let sight = Sight::Known(Base::Seen(self.seen));
        let (text, from_g) = ((&sight, &self.text), Some(self.from_g));
        next_version(turn, record, &home, &mut node, text, from_g)?;
        Ok(())
    }
}

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
        About::Name(Dentry::of(self.parent, self.name.clone()))
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let parent = turn.directory(self.parent)?;
        turn.require_lane(self.parent, &self.name)?;
        let there = turn.txn.lookup(self.parent, &self.name)?;
        let is_new = there.is_none();
        let mut node = match there {
            Some(node) if node.is_plain_file() => node,
            Some(_) => {
                let reason = format!("`{}` is no plain file now", self.name);
                let remedy = "move it away first";
                return Err(Refusal::new(Rule::Taken, reason, remedy).into());
            }
            None => {
                turn.require_not_computed(self.parent, &self.name)?;
                self.require_name(turn)?;
                let quota = parent.quota;
                turn.touch_dir(parent, 0)?;
                self.make(turn, quota)?
            }
        };
        node.mtime = turn.now;
        plain::save(turn, &mut node, &self.content)?;
        turn.effect(Effect::Attr { ino: node.ino, also_origin: true });
        let from_g = Some(self.from_g);
        let saved = Saved { event: EventName::RESTORED, from_g, ..Saved::by(None) };
        turn.file_changed(Dentry::of(self.parent, &self.name), &node, saved)?;
        Ok(is_new)
    }
}

impl RestoreFile {
    /// The name may not be the caller's to make, or a record's by now, since another layout counts.
    fn require_name(&self, turn: &Turn<'_>) -> Result<(), Stop> {
        turn.require_new_lane(self.parent, &self.name, NodeType::File)?;
        let Slot::Record(home) = turn.slot(self.parent, &self.name)? else { return Ok(()) };
        let (path, g) = (home.file_path(), self.from_g);
        let reason = format!("`{}` is a record's name now", self.name);
        let to = path.in_shell();
        let remedy = format!("save it there, which judges it: cp .workfs/history/{to}/{g} {to}");
        Err(Stop::kept(Refusal::new(Rule::Transition, reason, remedy), path))
    }

    fn make(&self, turn: &mut Turn<'_>, quota: Option<Ino>) -> Result<Node, Stop> {
        let made = turn.txn.insert_node(&NewNode {
            mode: 0o600,
            uid: turn.context.actor.uid,
            gid: turn.context.gid,
            ..NewNode::empty(NodeType::File, Class::Plain, self.parent, quota, turn.now)
        })?;
        turn.txn.insert_entry(self.parent, &self.name, made.ino)?;
        turn.name_file(Dentry::of(self.parent, &self.name), made.ino)?;
        let (parent, name) = (self.parent, self.name.clone());
        turn.effect(Effect::Appeared { parent, name, node_type: NodeType::File });
        Ok(made)
    }
}
