//! Giving a file another name.

use crate::engine::change::stop;
use crate::engine::change::stop::taken;
use crate::engine::places::governed::path_of;
use crate::engine::{About, Command, Effect, Slot, Stop, Terms, Turn};
use crate::limits::LINKS_MAX;
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType};

/// Adds a name to a node.
#[derive(Clone, Debug)]
pub struct Link {
    /// The node.
    pub ino: Ino,
    /// The directory of the new name.
    pub parent: Ino,
    /// The new name.
    pub name: FileName,
}

impl Command for Link {
    type Out = Node;

    fn operation(&self) -> &'static str {
        "link"
    }

    fn about(&self) -> About {
        About::Name(Dentry::of(self.parent, self.name.clone()))
    }

    /// Of plain files, as on other file systems: `fsync` flushes.
    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Node, Stop> {
        let parent = turn.directory(self.parent)?;
        turn.require_lane(self.parent, &self.name)?;
        let found = turn.txn.node(self.ino)?.filter(|node| node.nlink > 0);
        let mut node = found.ok_or_else(|| stop::absent(&self.name))?;
        if turn.txn.lookup(self.parent, &self.name)?.is_some() {
            return Err(taken(&self.name).into());
        }
        let governed = matches!(turn.slot(self.parent, &self.name)?, Slot::Record(_))
            || turn.parked_by(node.parent, &node)?.is_some();
        if node.node_type == NodeType::Directory || node.class != Class::Plain || governed {
            let refusal = Refusal::new(
                Rule::OneName,
                format!("`{}` would be a second name of a record or draft", self.name),
                "copy the file, or move it",
            );
            return Err(Stop::kept(refusal, path_of(turn.txn, self.parent, &self.name)?));
        }
        if node.nlink >= LINKS_MAX {
            let reason = format!("this file has {LINKS_MAX} names");
            return Err(Refusal::new(Rule::TooManyLinks, reason, "copy it and link to that").into());
        }
        turn.require_new_lane(self.parent, &self.name, node.node_type)?;
        turn.require_not_computed(self.parent, &self.name)?;
        turn.require_checked((&node, &self.name), Dentry::of(self.parent, &self.name))?;
        node.nlink += 1;
        node.ctime = turn.now;
        turn.txn.update_node(&node)?;
        turn.txn.insert_entry(self.parent, &self.name, self.ino)?;
        turn.txn.insert_further_name(self.ino, self.parent, &self.name)?;
        turn.touch_dir(parent, 0)?;
        turn.effect(Effect::Attr { ino: self.ino, also_origin: false });
        turn.file_linked(&node, Dentry::of(self.parent, &self.name))?;
        let (parent, name) = (self.parent, self.name.clone());
        turn.effect(Effect::Appeared { parent, name, node_type: node.node_type });
        Ok(node)
    }
}
