//! What an import did.

use serde::{Deserialize, Serialize};

use crate::engine::Corrected;
use crate::names::{ShownPath, printable};
use crate::refusal::{Refusal, Rule, TextPlace};
use crate::units::counted;

use super::super::{Exit, Failure};
use crate::service::reply::text::placed;

/// Entries of one kind that are listed; all are counted.
const LISTED_MAX: usize = 2000;

/// A field that was changed because it contradicted the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// Where the record lies.
    pub path: ShownPath,
    /// The field.
    pub field: String,
    /// What it said.
    pub from: String,
    /// What it says.
    pub to: String,
}

impl Correction {
    pub(in crate::service) fn new(path: ShownPath, corrected: Corrected) -> Self {
        let Corrected { field, from, to } = corrected;
        Correction { path, field, from, to }
    }
}

/// A file that became a draft, and why it is no record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftReason {
    /// Where it lies.
    pub path: ShownPath,
    /// The rule that it breaks.
    pub rule: Rule,
    /// What is wrong.
    pub reason: String,
    /// Where.
    pub place: Option<TextPlace>,
    /// The way out.
    pub remedy: String,
}

impl DraftReason {
    pub(in crate::service) fn new(path: ShownPath, refusal: Refusal) -> Self {
        let Refusal { rule, reason, remedy, place } = refusal;
        DraftReason { path, rule, reason, place, remedy }
    }
}

/// Something that was not taken in, or was left alone, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Its path: in the imported directory, or in the tree for what was left alone.
    pub path: ShownPath,
    /// Why.
    pub why: String,
}

/// Things of one kind: all counted, not all listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub listed: Vec<T>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Listed { count: 0, listed: Vec::new() }
    }
}

impl<T> Listed<T> {
    pub(in crate::service) fn push(&mut self, one: T) {
        self.count += 1;
        if self.listed.len() < LISTED_MAX {
            self.listed.push(one);
        }
    }
}

/// See [`super::super::Request::Import`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// The directory.
    pub from: String,
    /// Where it went.
    pub to: ShownPath,
    /// What lies in it but for directories: taken, there before, left alone or told of as not to be read.
    pub files: u64,
    /// Directories that were made.
    pub directories: u64,
    /// Files that are records now, the corrected ones among them.
    pub records: u64,
    /// Files and links that are ordinary ones now.
    pub plain: u64,
    /// Records that were changed because they contradicted their directory.
    pub corrected: Listed<Correction>,
    /// Files that are drafts now.
    pub drafts: Listed<DraftReason>,
    /// Files that are called like records, and are ordinary ones, since their directory would be a lane and has
    /// no agent's name, or since records lie only in the directories beside them.
    #[serde(default)]
    pub no_lane: Listed<Unreadable>,
    /// Files in directories of records that are ordinary ones, since they are called as no id can be.
    #[serde(default)]
    pub no_id: Listed<Unreadable>,
    /// Files that were imported before, or are there with the same content.
    pub unchanged: u64,
    /// Records that were left alone: they have moved on since they were imported.
    pub moved_on: Listed<Unreadable>,
    /// What was not taken, since something else is there, or since it may not be there.
    #[serde(default)]
    pub left_alone: Listed<Unreadable>,
    /// What could not be read.
    pub unreadable: Listed<Unreadable>,
    /// The client went away before the end: the rest was not looked at.
    pub interrupted: bool,
    /// What ended it before the rest was taken: a quota or a disk that is full, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl ImportReport {
    /// What was taken, then the lists.
    #[must_use]
    pub fn human(&self) -> String {
        let mut out = format!(
            "imported {} into {}/: {}\n  taken: {} ({} corrected), {}, {}, {}\n  unchanged: {}",
            printable(self.from.as_bytes()),
            self.to,
            counted(self.files, "file"),
            counted(self.records, "record"),
            self.corrected.count,
            counted(self.plain, "other file"),
            counted(self.drafts.count, "draft"),
            counted(self.directories, "directory"),
            self.unchanged,
        );
        section(&mut out, "moved on since they were imported", &self.moved_on, |one| {
            format!("{}: {}", one.path, one.why)
        });
        show_lists(&mut out, &self.corrected, &self.drafts, &self.left_alone);
        section(
            &mut out,
            "no records: rename their directories, or move them into one, and import again",
            &self.no_lane,
            |one| format!("{}: {}", one.path, one.why),
        );
        section(&mut out, "no records: rename them and import again", &self.no_id, |one| {
            format!("{}: {}", one.path, one.why)
        });
        section(&mut out, "could not be read", &self.unreadable, |one| {
            format!("{}: {}", one.path, one.why)
        });
        if self.interrupted {
            out.push_str("\ninterrupted: import again to take the rest");
        } else if self.failure.is_some() {
            out.push_str("\nit failed before the rest: import again to take that");
        }
        out
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if let Some(failure) = &self.failure {
            return failure.exit;
        }
        let is_all = self.unreadable.count == 0 && self.left_alone.count == 0;
        if is_all && !self.interrupted { Exit::Done } else { Exit::Problems }
    }
}

/// What was corrected, what is a draft, and what was left alone.
pub(in crate::service) fn show_lists(
    out: &mut String,
    corrected: &Listed<Correction>,
    drafts: &Listed<DraftReason>,
    left: &Listed<Unreadable>,
) {
    section(out, "corrected: the directory wins", corrected, |one| {
        // What a text says may have a line's end in it.
        let [from, to] = [&one.from, &one.to].map(|text| printable(text.as_bytes()));
        format!("{}: {}: {from} → {to}", one.path, one.field)
    });
    let title = "drafts: they can be read and mended, and not be claimed or moved until then";
    section(out, title, drafts, |one| {
        let reason = placed(&one.reason, one.place);
        format!("{}\n    {reason} [{}]\n    {}", one.path, one.rule.code(), one.remedy)
    });
    section(out, "left alone", left, |one| format!("{}: {}", one.path, one.why));
}

fn section<T>(out: &mut String, title: &str, list: &Listed<T>, show: impl Fn(&T) -> String) {
    if list.count == 0 {
        return;
    }
    out.push_str(&format!("\n{title} ({}):", list.count));
    for one in &list.listed {
        out.push_str(&format!("\n  {}", show(one)));
    }
    let more = list.count - list.listed.len() as u64;
    if more > 0 {
        out.push_str(&format!("\n  and {more} more"));
    }
}
