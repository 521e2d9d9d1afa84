//! Setting attributes: chmod, chown, utimensat, truncate of a plain file.

use crate::engine::actors::privileges::{clear_privileges, drop_privileges, has_privileges};
use crate::engine::change::stop::gone;
use crate::engine::plain_files::plain::resize;
use crate::engine::{About, Command, Effect, Stop, Terms, Turn};
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType};

/// A time to set.
#[derive(Clone, Copy, Debug)]
pub enum TimeOrNow {
    /// This time.
    At(UnixNanos),
    /// The engine's clock.
    Now,
}

/// Sets attributes; `None` leaves one as it is.
#[derive(Clone, Copy, Debug)]
pub struct SetAttributes {
    /// The node.
    pub ino: Ino,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// It is a change of owner also where both stay: set-user-id goes.
    pub is_chown: bool,
    /// Size of a plain file, in bytes.
    pub size: Option<u64>,
    /// Access time.
    pub atime: Option<TimeOrNow>,
    /// Modification time.
    pub mtime: Option<TimeOrNow>,
}

impl SetAttributes {
    /// Nothing to set yet.
    #[must_use]
    pub fn none(ino: Ino) -> Self {
        SetAttributes {
            ino,
            mode: None,
            uid: None,
            gid: None,
            is_chown: false,
            size: None,
            atime: None,
            mtime: None,
        }
    }
}

impl Command for SetAttributes {
    type Out = Node;

    fn operation(&self) -> &'static str {
        "setattr"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    /// What a larger size adds is a hole.
    fn terms(&self) -> Terms {
        Terms { needs_no_room: self.size.is_some(), ..Terms::UNFLUSHED }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Node, Stop> {
        let found = turn.txn.node(self.ino)?;
        let mut node = found.ok_or_else(gone)?;
        turn.require_node(&node)?;
        if let Some(size) = self.size {
            if !node.is_plain_file() {
                let reason = "this size can only be set by a save";
                return Err(Refusal::new(Rule::Unsupported, reason, "write the file").into());
            }
            resize(turn, &mut node, size)?;
            // Since it was asked whether it is checked it may have got another name.
            turn.require_still_valid(&node)?;
            node.mtime = turn.now;
            drop_privileges(turn, &mut node);
        }
        // It also comes before somebody writes who may do no more (`file_remove_privs` of the kernel), and was asked
        // for no right. The write itself takes set-user-id away.
        let is_owners = [0, node.uid].contains(&turn.context.actor.uid);
        if self.is_chown && !is_owners && has_privileges(&node) {
            return Ok(node);
        }
        let rights = |node: &Node| (node.uid, node.gid, node.mode & 0o7000);
        let before = rights(&node);
        if self.uid.is_some() || self.gid.is_some() || self.is_chown {
            node.uid = self.uid.unwrap_or(node.uid);
            node.gid = self.gid.unwrap_or(node.gid);
            // Linux does so for root, too: who owns a program now is not who gave it its rights.
            if node.node_type != NodeType::Directory {
                clear_privileges(&mut node);
            }
        }
        if let Some(mode) = self.mode {
            node.mode = mode & 0o7777;
        }
        if rights(&node) != before {
            turn.effect(Effect::Rights { ino: node.ino, also_origin: false });
        }
        let time = |time: Option<TimeOrNow>, old: UnixNanos| match time {
            Some(TimeOrNow::At(at)) => at,
            Some(TimeOrNow::Now) => turn.now,
            None => old,
        };
        node.atime = time(self.atime, node.atime);
        node.mtime = time(self.mtime, node.mtime);
        node.ctime = turn.now;
        turn.txn.update_node(&node)?;
        // Times are not: `touch` is a sign of life, made often.
        if node.class != Class::Plain && (self.mode, self.uid, self.gid) != (None, None, None) {
            turn.must_survive_power_loss();
        }
        // A touch, or a change of what is in it; who may read it is no sign of its holder's life.
        if self.size.is_some() || self.atime.is_some() || self.mtime.is_some() {
            turn.renew_own_lock(&node)?;
        }
        turn.effect(Effect::Attr { ino: node.ino, also_origin: false });
        if node.class == Class::Record
            && let Some(record) = turn.txn.record_at(node.ino)?
        {
            // `touch` is a sign of life.
            turn.note_life(&record)?;
        }
        if self.size.is_some() {
            turn.effect(Effect::Data(node.ino));
        }
        Ok(node)
    }
}
