//! What a check found.

use serde::{Deserialize, Serialize};

use super::super::Exit;
use crate::numbers::G;
use crate::units::counted;

/// Something that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What it is about: `node 17`, `event 4`, `record work:X`.
    pub thing: String,
    /// What is wrong with it.
    pub what: String,
    /// Power loss took a part of a file, and damaged nothing else.
    #[serde(default)]
    pub lost: bool,
}

/// See [`crate::service::Request::Fsck`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsckReport {
    /// Nodes that were checked.
    pub nodes: u64,
    /// Names.
    pub entries: u64,
    /// Records that are there.
    pub records: u64,
    /// Drafts.
    pub drafts: u64,
    /// Versions of records.
    pub versions: u64,
    /// Versions of plain files.
    #[serde(default)]
    pub file_versions: u64,
    /// Events.
    pub events: u64,
    /// The last event whose chain holds.
    pub last_g: G,
    /// Its hash: noted elsewhere, it shows later whether the ledger's end was cut off. None of a check that
    /// was interrupted before that end.
    pub last_hash: String,
    /// Problems in all.
    pub count: u64,
    /// How many of them are files of which power loss took a part; all else is what it was.
    #[serde(default)]
    pub lost: u64,
    /// The first of them.
    pub problems: Vec<Problem>,
    /// The client went away before the end: what is counted was checked, and nothing else.
    pub interrupted: bool,
    /// How far it came then, as in `2048 of 9000 events`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<String>,
}

impl FsckReport {
    /// The first problem that is none of those files.
    #[must_use]
    pub fn first_damage(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| !problem.lost).or_else(|| self.problems.first())
    }

    /// The same of a store that no engine starts on, for this reason: it is not clean, whatever was compared.
    #[must_use]
    pub fn of_unopened(mut self, why: &str) -> Self {
        if self.count == 0 && !self.interrupted {
            self.count = 1;
            let (thing, what) = ("store".to_owned(), format!("cannot be opened: {why}"));
            self.problems.push(Problem { thing, what, lost: false });
        }
        self
    }

    /// The problems, then what was checked.
    #[must_use]
    pub fn human(&self) -> String {
        let mut out = String::new();
        for problem in &self.problems {
            out.push_str(&format!("{}: {}\n", problem.thing, problem.what));
        }
        if self.count > self.problems.len() as u64 {
            out.push_str(&format!("and {} more\n", self.count - self.problems.len() as u64));
        }
        if self.interrupted {
            let reached = self.reached.as_deref().unwrap_or("nothing");
            out.push_str(&format!("interrupted at {reached}, the rest was not checked: "));
        }
        let found = match self.count {
            // Of the rest nobody knows.
            0 if self.interrupted => "no problem so far".to_owned(),
            0 => "clean".to_owned(),
            count => counted(count, "problem"),
        };
        out.push_str(&format!(
            "{found}: {}, {}, {}, {}, {}, {} of files, {}",
            counted(self.nodes, "node"),
            counted(self.entries, "name"),
            counted(self.records, "record"),
            counted(self.drafts, "draft"),
            counted(self.versions, "version"),
            counted(self.file_versions, "version"),
            counted(self.events, "event"),
        ));
        if self.events > 0 && !self.interrupted {
            out.push_str(&format!("\nledger: event {} has hash {}", self.last_g, self.last_hash));
        }
        if self.count > self.lost {
            out.push_str("\nrestore a backup (workfs restore), or export what is whole");
        }
        out
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.count > 0 || self.interrupted { Exit::Problems } else { Exit::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // P5.2
    #[test]
    fn a_store_that_does_not_open_is_not_clean() {
        let report = FsckReport::default().of_unopened("the store is damaged: why");
        assert!(report.exit() == Exit::Problems && report.count == 1);
        assert!(report.human().starts_with("store: cannot be opened: the store is damaged: why\n"));
        // What was found says why.
        let again = report.clone().of_unopened("another reason");
        assert_eq!(again, report);
        let interrupted = FsckReport { interrupted: true, ..FsckReport::default() };
        assert_eq!(interrupted.of_unopened("why").count, 0);
    }
}
