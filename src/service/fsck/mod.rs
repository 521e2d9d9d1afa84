//! Checks that what must stay true is true: the tree, the records, the ledger.
//!
//! What must stay true: it only reads, from one snapshot, and goes on after a problem. Problems
//! are named with the thing and not mended here.

mod files;
mod ledger;
mod quotas;
mod records;
mod tree;

use serde::{Deserialize, Serialize};

use crate::numbers::G;
use crate::store::{Read, Readers};

use super::{Exit, Failure, Reply, Sink};

/// Problems that are listed; all are counted.
const LISTED_MAX: usize = 1000;

/// Things between two replies about progress.
const PROGRESS_EVERY: u64 = 1024;

/// Something that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What it is about: `node 17`, `event 4`, `record work:X`.
    pub thing: String,
    /// What is wrong with it.
    pub what: String,
}

/// See [`super::Request::Fsck`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsckReport {
    /// Nodes that were checked.
    pub nodes: u64,
    /// Names.
    pub entries: u64,
    /// Records.
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
    /// Its hash: noted elsewhere, it shows later whether the ledger's end was cut off.
    pub last_hash: String,
    /// Problems in all.
    pub count: u64,
    /// The first of them.
    pub problems: Vec<Problem>,
    /// The client went away before the end.
    pub interrupted: bool,
}

impl FsckReport {
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
        let found = match self.count {
            0 => "clean".to_owned(),
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        out.push_str(&format!(
            "{found}: {} nodes, {} names, {} records, {} drafts, {} versions, {} versions of \
             files, {} events",
            self.nodes,
            self.entries,
            self.records,
            self.drafts,
            self.versions,
            self.file_versions,
            self.events,
        ));
        if self.events > 0 {
            out.push_str(&format!("\nledger: event {} has hash {}", self.last_g, self.last_hash));
        }
        if self.count > 0 {
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

/// A check under way.
struct Check<'s> {
    report: FsckReport,
    sink: Sink<'s>,
    ticks: u64,
}

impl Check<'_> {
    fn problem(&mut self, thing: impl Into<String>, what: impl Into<String>) {
        self.report.count += 1;
        if self.report.problems.len() < LISTED_MAX {
            self.report.problems.push(Problem { thing: thing.into(), what: what.into() });
        }
    }

    /// Counts one thing; false when nobody waits for the result any more.
    fn tick(&mut self, done: u64, total: u64, what: &str) -> bool {
        self.ticks += 1;
        if self.ticks.is_multiple_of(PROGRESS_EVERY) {
            let what = what.to_owned();
            self.report.interrupted |= !(self.sink)(Reply::Progress { done, total, what });
        }
        !self.report.interrupted
    }
}

/// Checks a store.
///
/// # Errors
/// A store that cannot be read at all.
pub fn fsck(readers: &dyn Readers, sink: Sink<'_>) -> Result<FsckReport, Failure> {
    super::ask(readers, |read| {
        let mut check = Check { report: FsckReport::default(), sink, ticks: 0 };
        for what in read.integrity()? {
            check.problem("store", what);
        }
        let last = ledger::check(read, &mut check)?;
        if !check.report.interrupted {
            let nodes = tree::check(read, &mut check)?;
            quotas::check(read, &nodes, &mut check)?;
            records::check(read, &nodes, &last, &mut check)?;
            files::check(read, &nodes, &last, &mut check)?;
        }
        Ok(check.report)
    })
}

/// A path for a message: that of a directory, or the number where there is none.
fn shown(read: &dyn Read, ino: crate::numbers::Ino) -> String {
    match crate::engine::path_of_dir(read, ino) {
        Ok(path) if !path.names().is_empty() => format!("directory {path} ({})", ino.0),
        _ => format!("node {}", ino.0),
    }
}
