//! Judging a text of which only the beginning is written.
//!
//! What must stay true: the beginning of a text that is valid as a whole is never refused, so a
//! program may write in pieces of any size. The proof: the parser reads from left to right, and
//! what it did before it looked at the end of the text it will do again whatever follows
//! ([`super::watched`]). The other way round nothing is promised: what is not found here is found
//! when the whole is judged.

use std::cell::Cell;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

use super::compose::{Composer, not_a_mapping, scalar};
use super::document::Document;
use super::flaw::Flaw;
use super::source;
use super::watched::Watched;

/// Longest beginning that is read with the parser. Above it only size, encoding and control
/// characters are checked: what writes this much sees the error of `close`.
pub const PREFIX_BYTES_MAX: usize = 64 * 1024;

/// The beginning of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefix {
    /// What is said so far. A scalar can no longer become another valid one (but the last: see below);
    /// lists and mappings may get longer.
    pub said: Map<String, Value>,
    /// Where the text without quotes on the last line is, as a JSON pointer: a continuation line could
    /// still make it longer.
    pub last: Option<String>,
}

/// Judges the text written so far.
///
/// # Errors
/// A flaw that no further byte can mend.
pub fn prefix(bytes: &[u8]) -> Result<Prefix, Flaw> {
    let (text, _) = source::text_so_far(bytes)?;
    if text.len() > PREFIX_BYTES_MAX {
        return Ok(Prefix::default());
    }
    // The parser holds back what is in brackets at the top, which could still be a key until its line
    // is ended. After that a text that is whole can get nothing more to say.
    if text.starts_with('{')
        && text.ends_with('\n')
        && let Ok(whole) = Document::parse(text.as_bytes())
    {
        let said = whole.value().as_object().cloned().unwrap_or_default();
        return Ok(Prefix { said, last: None });
    }
    let (said, last) = read_so_far(text, Composer::of_record(text))?;
    let said = match said {
        Some(Value::Object(said)) => said,
        _ => Map::new(),
    };
    Ok(Prefix { said, last })
}

/// Reads what is written of a text; and where its last scalar is, if that could still get longer.
pub(super) fn read_so_far(
    text: &str,
    mut composer: Composer,
) -> Result<(Option<Value>, Option<String>), Flaw> {
    let ended = Cell::new(false);
    let mut parser = Parser::with_options(Watched::new(text, &ended), source::parser_options());
    while let Some(next) = parser.next_event() {
        let (event, span) = match next {
            Err(error) if !ended.get() => {
                return Err(Flaw { at_end: false, ..Flaw::scan(&error, text) });
            }
            Err(_) => break,
            Ok(next) => next,
        };
        // What the parser did after it looked at the end may come out otherwise with more.
        if ended.get() && matches!(event, Event::DocumentStart(..)) {
            continue;
        }
        if ended.get() {
            let Some((value, may_grow)) = last_scalar(text, &composer, event, &span)? else {
                break;
            };
            let last = composer.awaited().filter(|_| may_grow);
            return Ok((composer.so_far(Some(value)), last));
        }
        composer.take(event, &span)?;
    }
    Ok((composer.so_far(None), None))
}

/// The first node after the parser saw the end. A scalar is final if its line is ended: quotes
/// are closed, and a key must have its `:` on the same line. Without quotes it may still get longer.
fn last_scalar(
    text: &str,
    composer: &Composer,
    event: Event<'_>,
    span: &Span,
) -> Result<Option<(Value, bool)>, Flaw> {
    let Event::Scalar(content, style, _, tag) = event else { return Ok(None) };
    let is_flow_scalar =
        matches!(style, ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    if !is_flow_scalar || span.is_empty() || !line_is_ended(text, span) {
        return Ok(None);
    }
    if composer.is_at_root() {
        return Err(not_a_mapping(&span.start));
    }
    // What is wrong with it (an integer that is too long) a continuation line may still mend.
    let value = composer.awaited().and(scalar(&content, style, tag.as_deref(), span).ok());
    Ok(value.map(|value| (value, style == ScalarStyle::Plain)))
}

/// Whether only blanks, a comment and a line end follow `span`.
fn line_is_ended(text: &str, span: &Span) -> bool {
    // The watched input gives no byte offsets; this happens once a prefix, so walking is cheap.
    let mut rest = text.chars().skip(span.end.index());
    let mut after_blank = false;
    loop {
        match rest.next() {
            Some('\n') => return true,
            Some(' ' | '\t') => after_blank = true,
            Some('\r') => {}
            Some('#') if after_blank => return rest.any(|c| c == '\n'),
            Some(_) | None => return false,
        }
    }
}
