//! Drafts that nobody mends are put aside: as plain files, so that nothing is lost.

use super::as_directory;
use super::chore::Chore;
use crate::engine::nodes::rename::Rename;
use crate::engine::places::governed::path_of;
use crate::engine::{About, Command, Create, NewContent, Slot, Stop, Turn};
use crate::ledger::{EventName, Field, Payload};
use crate::limits::PUT_ASIDE_MAX;
use crate::names::{Dentry, FileName};
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::{Refusal, Rule};

/// Puts a draft of a workspace aside that nobody has written to since then.
pub(super) struct PutAside {
    pub ino: Ino,
    pub since: UnixNanos,
    /// The workspace's directory.
    pub dir: Ino,
    /// The directory in it.
    pub into: FileName,
}

impl Chore for PutAside {
    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let node = turn.txn.node(self.ino)?.filter(|node| node.mtime <= self.since);
        let Some((_, draft)) = node.zip(turn.txn.draft(self.ino)?) else { return Ok(false) };
        let Slot::Record(home) = turn.slot(draft.dir, &draft.name)? else { return Ok(false) };
        let workspace = turn.txn.workspace(home.governed.workspace)?;
        if workspace.and_then(|workspace| workspace.dir) != Some(self.dir) {
            return Ok(false);
        }
        turn.require_unwritten(&draft.name, (self.ino, None))?;
        let into = match turn.txn.lookup(self.dir, &self.into)? {
            Some(node) => as_directory(&node, &self.into)?,
            None => {
                let (name, content) = (self.into, NewContent::Directory);
                Create::new(self.dir, name, 0o755, content).run(turn)?.ino
            }
        };
        let new_name = free(turn, into, &draft.name)?.ok_or_else(|| {
            let reason = format!("all names that `{}` could have there are taken", draft.name);
            Refusal::new(Rule::Taken, reason, "remove what nobody needs from where drafts are put")
        })?;
        Rename::to_free(Dentry::of(draft.dir, draft.name), Dentry::of(into, new_name.clone()))
            .run(turn)?;
        let (from, to) = (home.file_path().to_string(), path_of(turn.txn, into, &new_name)?);
        let to = to.to_string();
        // Not the reason: it may quote content, which the ledger tells everybody.
        let why = draft.why.map(|why| why.rule.code());
        let payload = Payload::of(&[
            ("path", Field::Text(&from)),
            ("rule", why.into()),
            ("to_path", Field::Text(&to)),
        ]);
        turn.append(None, home.happening(EventName::PUT_ASIDE, payload))?;
        Ok(true)
    }
}

/// A name that is free there: its own, or with a number.
fn free(turn: &Turn<'_>, dir: Ino, name: &FileName) -> Result<Option<FileName>, Stop> {
    for number in 1..=PUT_ASIDE_MAX {
        let mut bytes = name.as_bytes().to_vec();
        if number > 1 {
            bytes.extend_from_slice(format!(".{number}").as_bytes());
        }
        let Ok(name) = FileName::new(bytes) else { return Ok(None) };
        if turn.txn.lookup(dir, &name)?.is_none() {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
