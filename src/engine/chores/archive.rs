//! Archive: what has ended is put away.

use super::chore::{Chore, is_unchanged};
use crate::engine::nodes::rename::Rename;
use crate::engine::records::save::home_of;
use crate::engine::{About, Command, Stop, Turn};
use crate::kind::StateIx;
use crate::names::Dentry;
use crate::numbers::{G, RecordKey};

/// Puts a record away to which nothing has happened since the event `last_g`.
pub(super) struct PutAway {
    pub record: RecordKey,
    pub last_g: G,
    pub to: StateIx,
}

impl Chore for PutAway {
    fn about(&self) -> About {
        About::Record(self.record)
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<bool, Stop> {
        let record = turn.txn.record(self.record)?;
        let Some(record) = record.filter(|record| is_unchanged(record, self.last_g)) else {
            return Ok(false);
        };
        let lies = home_of(turn, &record)?;
        let Some(dir) = turn.state_dir(&lies.governed, self.to, None)? else { return Ok(false) };
        // By a kind of a former version it may lie where it would go.
        if dir == lies.dir {
            return Ok(false);
        }
        if let Some(ino) = record.ino() {
            turn.require_unwritten(&lies.name, (ino, Some(&record)))?;
        }
        Rename::to_free(Dentry::of(lies.dir, lies.name.clone()), Dentry::of(dir, lies.name))
            .run(turn)?;
        Ok(true)
    }
}
