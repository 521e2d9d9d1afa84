//! Changing top-level fields and nothing else.
//!
//! What must stay true: the result differs from the input only in [`Splice`]s at the edited
//! fields, and reads as the same mapping but for those fields. There are two ways to find the
//! places. [`lines`] reads plain block mappings line by line, in a microsecond, and gives up at
//! whatever it is not sure of; it is right by construction and by test. [`entries`] reads the
//! parser's events, copes with everything else, and what it makes is read again before it counts.
//! Deliberately not here: writing a mapping anew.

mod entries;
mod lines;
mod nested;

pub use nested::patch_at;
use serde_json::Value;

use super::document::Document;
use super::flaw::Flaw;
use super::source;
use crate::refusal::Rule;

/// A top-level field and the text it is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    /// The field's name.
    pub field: &'a str,
    /// Its new value, which reads back as this text; quotes are added where they are needed.
    pub value: &'a str,
}

/// Behind the first of these that is there on a line of its own, a missing field is added.
const NEIGHBOURS: [&str; 3] = ["status", "agent", "id"];

/// Longest text for [`lines`]: without aliases each value takes two bytes at least, so that it does not
/// come near [`super::RECORD_NODES_MAX`] values, and what is added never makes a record one that is refused.
const LINES_BYTES_MAX: usize = 16 * 1024;

/// Changes only the edited fields' bytes in the text of a record, which must be one that
/// [`Document::parse`] took. Of two edits of one field the later holds.
///
/// # Errors
/// Where the text is none, or is written so that the fields cannot be changed in place: a field
/// that holds a list or mapping, an anchor that an alias uses.
pub fn patch(bytes: &[u8], edits: &[Edit<'_>]) -> Result<Vec<u8>, Flaw> {
    source::check_size(bytes)?;
    let is_last = |at: usize| edits[at + 1..].iter().all(|later| later.field != edits[at].field);
    let edits: Vec<Edit<'_>> =
        (0..edits.len()).filter(|&at| is_last(at)).map(|at| edits[at]).collect();
    match by_lines(bytes, &edits) {
        // Neither can this outgrow the limit on a record's size.
        Some(splices) => Ok(apply(bytes, splices)),
        None => by_events(bytes, &edits),
    }
}

/// The quick way, where it is sure of the places and nothing that is added is too much.
fn by_lines(bytes: &[u8], edits: &[Edit<'_>]) -> Option<Vec<Splice>> {
    let is_few = bytes.len() <= LINES_BYTES_MAX && !may_have_aliases(bytes);
    is_few.then(|| lines::splices(bytes, edits))?
}

/// By an alias a few bytes are a thousand values. It has an asterisk, and an anchor to which it leads: an
/// ampersand with a name right behind it.
fn may_have_aliases(bytes: &[u8]) -> bool {
    let names = |two: &[u8]| two[0] == b'&' && !two[1].is_ascii_whitespace();
    bytes.contains(&b'*') && bytes.windows(2).any(names)
}

/// The slow way, and the proof that it came out right.
fn by_events(bytes: &[u8], edits: &[Edit<'_>]) -> Result<Vec<u8>, Flaw> {
    let mut wanted = Document::parse(bytes)?.into_fields();
    for edit in edits {
        wanted.insert(edit.field.to_owned(), Value::from(edit.value));
    }
    let result = apply(bytes, entries::splices(source::text(bytes)?, edits)?);
    source::check_size(&result)?;
    match Document::parse(&result) {
        Ok(document) if document.value().as_object() == Some(&wanted) => Ok(result),
        Err(flaw) if flaw.rule == Rule::TooLarge => Err(flaw),
        _ => Err(unpatchable(edits)),
    }
}

fn unpatchable(edits: &[Edit<'_>]) -> Flaw {
    let fields: Vec<String> = edits.iter().map(|edit| super::flaw::shown(edit.field)).collect();
    let fields = fields.join(", ");
    Flaw::new(
        Rule::Syntax,
        format!("the text is written so that {fields} cannot be changed in place"),
        format!("write {fields} as `key: value`, each on a line of its own"),
    )
}

/// `start..end` of the text becomes `text`.
#[derive(Debug, PartialEq, Eq)]
struct Splice {
    start: usize,
    end: usize,
    text: String,
}

impl Splice {
    fn insert(at: usize, text: String) -> Splice {
        Splice { start: at, end: at, text }
    }
}

fn apply(bytes: &[u8], mut splices: Vec<Splice>) -> Vec<u8> {
    // Stable: what is inserted at one place keeps its order.
    splices.sort_by_key(|splice| splice.start);
    let added: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let mut out = Vec::with_capacity(bytes.len() + added);
    let mut done = 0;
    for splice in splices {
        out.extend_from_slice(bytes.get(done..splice.start).unwrap_or_default());
        out.extend_from_slice(splice.text.as_bytes());
        done = splice.end.max(done);
    }
    out.extend_from_slice(bytes.get(done..).unwrap_or_default());
    out
}

/// A new line with `key: value` at `at`, which is the start of a line or the end of the text.
fn new_line(bytes: &[u8], at: usize, indent: usize, entry: &str) -> Splice {
    let eol = line_end(bytes);
    let indent = " ".repeat(indent);
    let ended = matches!(bytes.get(..at).and_then(<[u8]>::last), None | Some(b'\n' | b'\r'));
    let ended = ended || bytes.get(..at) == Some(b"\xef\xbb\xbf");
    let text =
        if ended { format!("{indent}{entry}{eol}") } else { format!("{eol}{indent}{entry}") };
    Splice::insert(at, text)
}

/// The line end that the text's first line has.
fn line_end(bytes: &[u8]) -> &'static str {
    match bytes.iter().position(|&b| b == b'\n' || b == b'\r') {
        Some(at) if bytes[at] == b'\n' => "\n",
        Some(at) if bytes.get(at + 1) == Some(&b'\n') => "\r\n",
        Some(_) => "\r",
        None => "\n",
    }
}

/// Whether the quick way is taken, for figures.
#[cfg(test)]
pub(super) fn patch_is_by_lines(bytes: &[u8], edits: &[Edit<'_>]) -> bool {
    by_lines(bytes, edits).is_some()
}
