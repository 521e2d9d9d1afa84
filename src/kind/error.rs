//! Why a definition is not a kind, and why content is not a record.

use crate::names::{Shown, printable};
use crate::refusal::{Refusal, Rule};

/// Why a definition is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", where_and_why(&self.file, self.line, &self.reason))]
pub struct KindError {
    /// The file that is wrong: the definition's name, or the schema's.
    pub file: String,
    /// The line in it, where it is known.
    pub line: Option<u32>,
    /// What is wrong, naming the thing.
    pub reason: String,
}

/// `file:line: reason`, or without the line where none is known.
pub(crate) fn where_and_why(file: &str, line: Option<u32>, reason: &str) -> String {
    // A layout may call its files as it likes.
    let file = file.shown();
    match line {
        Some(line) => format!("{file}:{line}: {reason}"),
        None => format!("{file}: {reason}"),
    }
}

/// A rule that content breaks. The caller adds line and column from the pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} [{}]", rule.code())]
pub struct Fault {
    /// The rule.
    pub rule: Rule,
    /// JSON pointer of the field, or of the nearest thing around it that exists; empty is the
    /// whole.
    pub pointer: String,
    /// What is wrong, naming the field.
    pub reason: String,
    /// The way out.
    pub remedy: String,
}

impl From<Fault> for Refusal {
    /// The same refusal, its place still unknown. A kind and its schema may call things as they like, and
    /// `.workfs/why` is read on a terminal.
    fn from(fault: Fault) -> Refusal {
        let [reason, remedy] = [fault.reason, fault.remedy].map(|text| printable(text.as_bytes()));
        Refusal::new(fault.rule, reason, remedy)
    }
}
