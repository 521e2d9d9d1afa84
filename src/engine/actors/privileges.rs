//! Set-user-id and set-group-id of files: what takes them away.

use crate::engine::{Effect, Turn};
use crate::store::{Node, NodeType};

/// Set-user-id and set-group-id do not survive a change by somebody unprivileged.
pub(in crate::engine) fn drop_privileges(turn: &mut Turn<'_>, node: &mut Node) {
    let before = node.mode;
    if turn.context.actor.uid != 0 {
        clear_privileges(node);
    }
    if node.mode != before {
        // Not what the writer's own kernel expects of its write.
        turn.effect(Effect::Attr { ino: node.ino, also_origin: true });
    }
}

/// Set-group-id without the group's right to run says something else (mandatory locks), and stays.
pub(in crate::engine) fn clear_privileges(node: &mut Node) {
    node.mode &= !0o4000;
    if node.mode & 0o010 != 0 {
        node.mode &= !0o2000;
    }
}

/// Whether that would change anything of a file.
pub(in crate::engine) fn has_privileges(node: &Node) -> bool {
    let mut bare = node.clone();
    clear_privileges(&mut bare);
    node.node_type != NodeType::Directory && bare.mode != node.mode
}
