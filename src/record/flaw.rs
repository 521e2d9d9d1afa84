//! What is wrong with a text, where, and what to do about it.
//!
//! What must stay true: a flaw never shows a field's value, only names and places, because
//! reasons go into logs.

use granit_parser::{ErrorKind, Marker, ScanError};

use crate::limits::RECORD_DEPTH_MAX;
use crate::refusal::{Refusal, Rule, TextPlace};

/// A flaw in a record's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The rule that it breaks.
    pub rule: Rule,
    /// What is wrong.
    pub reason: String,
    /// The way out.
    pub remedy: String,
    /// Where.
    pub place: Option<TextPlace>,
    /// The text ends too early: more bytes might mend it.
    pub at_end: bool,
}

impl From<Flaw> for Refusal {
    fn from(flaw: Flaw) -> Refusal {
        let Flaw { rule, reason, remedy, place, at_end: _ } = flaw;
        Refusal { rule, reason, remedy, place }
    }
}

/// A parser's place, counted from 1.
pub(super) fn text_place(marker: &Marker) -> TextPlace {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    TextPlace { line: count(marker.line()), column: count(marker.col().saturating_add(1)) }
}

/// A key as it may be shown in a message: printable and not long.
pub(super) fn shown(key: &str) -> String {
    let short: String = key.chars().take(60).collect();
    let rest = if short.len() < key.len() { "…" } else { "" };
    format!("`{}{rest}`", crate::names::printable(short.as_bytes()))
}

impl Flaw {
    /// A flaw that is not at one place.
    pub(super) fn new(rule: Rule, reason: impl Into<String>, remedy: impl Into<String>) -> Flaw {
        Flaw { rule, reason: reason.into(), remedy: remedy.into(), place: None, at_end: false }
    }

    /// [`Rule::Syntax`], at a place.
    pub(super) fn syntax(
        marker: &Marker,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Flaw {
        let place = Some(text_place(marker));
        Flaw { place, ..Flaw::new(Rule::Syntax, reason, remedy) }
    }

    /// The same at a byte of `text`.
    pub(super) fn at_byte(self, text: &[u8], byte: usize) -> Flaw {
        Flaw { place: Some(place_of_byte(text, byte)), ..self }
    }

    /// More is open at once than may be.
    pub(super) fn too_deep(marker: &Marker) -> Flaw {
        let (reason, remedy) = too_deep();
        Flaw::syntax(marker, reason, remedy)
    }

    /// A tab is used as indentation.
    pub(super) fn tab(marker: &Marker) -> Flaw {
        let (reason, remedy) = TAB;
        Flaw::syntax(marker, reason, remedy)
    }

    /// What the parser found in `text`.
    pub(super) fn scan(error: &ScanError, text: &str) -> Flaw {
        let (reason, remedy) = explain(error.kind());
        let rest = error.marker().byte_offset().and_then(|at| text.get(at..));
        let at_end = match error.kind() {
            // A key of which the colon is not there yet.
            ErrorKind::SimpleKeyExpected | ErrorKind::ExpectedBlockMappingKey => {
                rest.is_some_and(|rest| !rest.contains(['\n', '\r']))
            }
            kind => is_unclosed(kind) || rest.is_some_and(|rest| rest.trim().is_empty()),
        };
        let flaw = Flaw { at_end, ..Flaw::syntax(error.marker(), reason, remedy) };
        // Of a tab in the middle of a value the parser says where that begins.
        let tab = is_of_a_tab(error.kind()).then(|| error.marker().byte_offset()).flatten();
        match tab.and_then(|from| tab_from(text, from)) {
            Some(tab) => flaw.at_byte(text.as_bytes(), tab),
            None => flaw,
        }
    }
}

/// The first tab in the indentation of a line, from the line of this byte on.
fn tab_from(text: &str, from: usize) -> Option<usize> {
    let mut begin = text.get(..from)?.rfind('\n').map_or(0, |at| at + 1);
    for line in text[begin..].split_inclusive('\n') {
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = line[..indentation].find('\t') {
            return Some(begin + tab);
        }
        begin += line.len();
    }
    None
}

fn is_of_a_tab(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabInIndentation
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabNotAllowed
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar
    )
}

/// Line and column of a byte; a byte that is inside a character counts as its first.
pub(super) fn place_of_byte(text: &[u8], byte: usize) -> TextPlace {
    let before = text.get(..byte).unwrap_or(text);
    let before = before.strip_prefix(b"\xef\xbb\xbf").unwrap_or(before);
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let column = before[line_start..].iter().filter(|&&b| b & 0xc0 != 0x80).count() + 1;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    TextPlace { line: count(line), column: count(column) }
}

fn is_unclosed(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnclosedQuotedScalar
            | ErrorKind::UnclosedFlowCollection { .. }
            | ErrorKind::UnclosedVerbatimTag
            | ErrorKind::UnexpectedEofFlowSequence
            | ErrorKind::UnexpectedEofFlowMapping
            | ErrorKind::UnexpectedEofImplicitFlowMapping
            | ErrorKind::UnexpectedEofBlockSequence
            | ErrorKind::UnexpectedEofBlockMapping
            | ErrorKind::UnexpectedEof
    )
}

/// What is said of a tab as indentation.
const TAB: (&str, &str) = ("a tab is used where YAML wants spaces", "indent with spaces");

/// What is said of a text that has too much open at once.
fn too_deep() -> (String, String) {
    let reason = format!("the text is nested deeper than {RECORD_DEPTH_MAX} levels");
    (reason, "nest less deeply, or put the content into a file of its own".into())
}

/// The parser's words are for people who know the YAML specification; these are for the others.
fn explain(kind: &ErrorKind) -> (String, String) {
    let (reason, remedy) = match kind {
        kind if is_of_a_tab(kind) => TAB,
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
            "a `:` with a space behind it stands inside a value",
            "put the whole value in quotes, or each key on a line of its own",
        ),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => {
            ("a quote is opened and never closed", "close the quote")
        }
        ErrorKind::InvalidQuotedScalarIndent => (
            "a quoted value goes on at the start of a line",
            "close the quote, or indent the lines that belong to the value",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "text follows a closing quote",
            "quote the whole value; in '…' write '' for one quote, in \"…\" write \\\"",
        ),
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidUnicodeEscape => (
            "an unknown escape stands between double quotes",
            "write \\\\ for a backslash, or use single quotes",
        ),
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping => {
            ("a `[` or `{` is opened and never closed", "close it, or quote the value")
        }
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::ExpectedFlowSequenceSeparator => {
            ("`,` or a closing bracket is missing", "separate the entries with `,` and close them")
        }
        ErrorKind::MismatchedFlowCollectionEnd { .. } | ErrorKind::MisplacedFlowCollectionEnd => {
            ("a closing bracket matches no opening one", "match the brackets, or quote the value")
        }
        ErrorKind::UnknownAnchor => (
            "an alias names no anchor that stands before it",
            "quote the value if the `*` is meant as text",
        ),
        ErrorKind::RecursionLimitExceeded => return too_deep(),
        ErrorKind::SimpleKeyExpected | ErrorKind::ExpectedBlockMappingKey => (
            "a line is neither `key: value` nor part of the value above it",
            "write `key: value`, or indent the line so that it belongs to the value above",
        ),
        ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::InvalidBlockScalarIndent
        | ErrorKind::InvalidFlowScalarIndent => (
            "the indentation fits neither the lines above nor a new level",
            "indent entries of one level with the same number of spaces",
        ),
        ErrorKind::DirectiveDisallowed => {
            ("a directive (`%…`) is not taken", "take the line that begins with `%` out")
        }
        ErrorKind::UnexpectedCharacter { character } => {
            let reason = format!("a value cannot start with {}", shown(&character.to_string()));
            return (reason, "quote the value".into());
        }
        other => {
            let reason = format!("not well-formed YAML: {other}");
            return (reason, "correct the text at this place; quotes around a value help".into());
        }
    };
    (reason.into(), remedy.into())
}
