//! Saving a record and moving it, as one change: nobody sees the one without the other.

use std::sync::Arc;

use super::record::Moving;
use super::save::{home_of, judge_on_the_way};
use super::sight::stale;
use crate::engine::change::stop::{gone, taken};
use crate::engine::{About, Command, Slot, Stop, Text, Turn};
use crate::names::{Dentry, FileName};
use crate::numbers::{Ino, Version};
use crate::refusal::{Refusal, Rule};
use crate::store::Class;

/// Makes `text` the next version of the record `parent/name` and moves it to `new_parent`.
#[derive(Clone, Debug)]
pub struct SaveAndMove {
    /// The directory it is in.
    pub parent: Ino,
    /// Its name there, which it keeps.
    pub name: FileName,
    /// The version that the text was made from.
    pub seen: Version,
    /// The new text. Its status may be the old state's: the transition writes the new one.
    pub text: Text,
    /// The directory it goes to.
    pub new_parent: Ino,
}

impl Command for SaveAndMove {
    type Out = Version;

    fn operation(&self) -> &'static str {
        "finish"
    }

    fn about(&self) -> About {
        About::Name(Dentry::of(self.parent, self.name.clone()))
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Version, Stop> {
        turn.directory(self.new_parent)?;
        let mut node = turn.existing(self.parent, &self.name)?;
        let Slot::Record(home) = turn.slot(self.new_parent, &self.name)? else {
            let reason = format!("`{}` would be no record there", self.name);
            return Err(Refusal::new(Rule::Transition, reason, "name a state's directory").into());
        };
        let bytes = Arc::clone(&self.text.bytes);
        let refuse = |refusal| Stop::rejected(refusal, home.file_path(), Arc::clone(&bytes));
        if node.class != Class::Record {
            return Err(refuse(Refusal::new(
                Rule::Draft,
                format!("`{}` is a draft and cannot change state", self.name),
                "mend it where it is: `workfs why` says what is wrong",
            )));
        }
        let record = turn.txn.record_at(node.ino)?.ok_or_else(gone)?;
        let lies = home_of(turn, &record)?;
        if record.version != self.seen {
            return Err(refuse(stale(&lies, self.seen, record.version)));
        }
        lies.require_same_workspace(&home).map_err(refuse)?;
        if turn.txn.lookup(self.new_parent, &self.name)?.is_some() {
            return Err(refuse(taken(&self.name)));
        }
        turn.require_unflagged(&record, &home)?;
        judge_on_the_way(turn, &record, &lies, &home, &self.text)?;
        node.mtime = turn.now;
        let moved = turn.transition(record, &home, &mut node, Moving::New(&self.text), None)?;
        let from = Dentry::of(self.parent, &self.name);
        let to = Dentry { dir: self.new_parent, ..from };
        turn.relink(from, to, &node, None)?;
        Ok(moved.version)
    }
}
