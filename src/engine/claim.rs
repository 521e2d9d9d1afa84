//! Taking the first of several records that is still to be had: the choice is made inside the
//! transaction, so that callers who come at once get different records.

use crate::refusal::{Refusal, Rule};

use super::{Command, Rename, Stop, Turn};

/// Makes the first of these renames whose source is a valid record that is still there.
#[derive(Clone, Debug)]
pub struct ClaimFirst {
    /// The renames, the best first.
    pub candidates: Vec<Rename>,
}

impl Command for ClaimFirst {
    /// Which one it was.
    type Out = usize;

    fn operation(&self) -> &'static str {
        "claim"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<usize, Stop> {
        for (at, rename) in self.candidates.into_iter().enumerate() {
            let Some(node) = turn.txn.lookup(rename.parent, &rename.name)? else { continue };
            if turn.txn.record_at(node.ino)?.is_some_and(|record| record.is_valid()) {
                return rename.run(turn).map(|_| at);
            }
        }
        // No line in `why`: nobody asked for a certain one.
        let remedy = "look again";
        Err(Refusal::new(Rule::Absent, "all of them were taken meanwhile", remedy).into())
    }
}
