//! RENAME_EXCHANGE: two names swap what they stand for, in one step.

use super::filling::require_not_filling;
use super::remove::require_idle;
use super::rename::{Rename, require_not_below};
use crate::engine::places::governed::path_of;
use crate::engine::{Effect, Fate, Slot, Stop, Turn};
use crate::ledger::Via;
use crate::names::{Dentry, FileName};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType};

impl Rename {
    /// Swaps two ordinary nodes. A record's name stays with its record.
    pub(super) fn exchange(self, turn: &mut Turn<'_>, a: Node, b: Node) -> Result<(), Stop> {
        let (old, new) = (self.from.as_ref(), self.to.as_ref());
        require_exchangeable(turn, &a, old, new)?;
        require_exchangeable(turn, &b, new, old)?;
        let (a_ino, b_ino) = (a.ino, b.ino);
        // Where only one of the names counts, its last event is what it stands for now.
        let counts = turn.counts_exchange(old, [&a, &b])?;
        for node in [&a, &b] {
            turn.unsettle_dir(node.ino)?;
        }
        turn.txn.replace_entry(self.from.dir, &self.from.name, b.ino)?;
        turn.txn.replace_entry(self.to.dir, &self.to.name, a.ino)?;
        let moves = |node: &Node| i32::from(node.node_type == NodeType::Directory);
        let shift = if self.from.dir == self.to.dir { 0 } else { moves(&b) - moves(&a) };
        for (mut node, from, to) in [(a, old, new), (b, new, old)] {
            node.ctime = turn.now;
            turn.shift_name(&mut node, from, to)?;
            turn.txn.update_node(&node)?;
            if node.node_type == NodeType::Directory {
                turn.settle_dir(to.dir, to.name, node.ino)?;
                turn.require_quota_of_name(from, to, node.ino)?;
            }
            turn.effect(Effect::Times(node.ino));
        }
        let mut moved = [(old, new, a_ino), (new, old, b_ino)];
        if !counts {
            moved.reverse();
        }
        for (from, to, ino) in moved {
            if let Some(node) = turn.txn.node(ino)? {
                turn.file_moved(from, to, &node, Via::Exchange)?;
                let Dentry { dir: parent, name } = from.to_owned();
                let fate = Fate::Moved { to: to.to_owned(), node_type: node.node_type, over: None };
                turn.effect(Effect::Name { parent, name, ino, also_origin: false, fate });
            }
        }
        let from = turn.directory(self.from.dir)?;
        turn.touch_dir(from, shift)?;
        if self.from.dir != self.to.dir {
            let to = turn.directory(self.to.dir)?;
            turn.touch_dir(to, -shift)?;
        }
        Ok(())
    }
}

/// Refuses what an exchange may not bring to its new name.
fn require_exchangeable(
    turn: &mut Turn<'_>,
    node: &Node,
    Dentry { dir, name }: Dentry<&FileName>,
    to: Dentry<&FileName>,
) -> Result<(), Stop> {
    let governed =
        matches!(turn.slot(dir, name)?, Slot::Record(_)) || turn.parked_by(dir, node)?.is_some();
    if governed || node.class != Class::Plain {
        let refusal = Refusal::new(
            Rule::Transition,
            format!("`{name}` is a record's name and cannot be exchanged"),
            "save or move the record by a plain rename",
        );
        return Err(Stop::kept(refusal, path_of(turn.txn, dir, name)?));
    }
    turn.require_new_lane(to.dir, to.name, node.node_type)?;
    turn.require_checked((node, name), to)?;
    if node.node_type == NodeType::Directory {
        require_not_below(turn, node.ino, to.dir, name)?;
        require_idle(turn, node, name)?;
        require_not_filling(turn, node, name, to.dir, to.name)?;
    }
    Ok(())
}
