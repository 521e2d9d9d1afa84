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
use super::flaw::Flaw;
use super::source;
use super::watched::Watched;

/// Longest beginning that is read with the parser. Above it only size, encoding and control
/// characters are checked: what writes this much sees the error of `close`.
pub const PREFIX_BYTES_MAX: usize = 64 * 1024;

/// The beginning of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefix {
    /// Top-level fields with a value that can no longer become another valid one, except that a
    /// text without quotes on the last line could still get longer by a continuation line.
    pub complete: Map<String, Value>,
}

/// Judges the text written so far.
///
/// # Errors
/// A flaw that no further byte can mend.
pub fn prefix(bytes: &[u8]) -> Result<Prefix, Flaw> {
    let (text, _) = source::text_so_far(bytes)?;
    let mut found = Prefix::default();
    if text.len() > PREFIX_BYTES_MAX {
        return Ok(found);
    }
    let ended = Cell::new(false);
    let mut parser = Parser::with_options(Watched::new(text, &ended), source::parser_options());
    let mut composer = Composer::default();
    // The top-level field whose value comes next, or has begun.
    let mut field: Option<String> = None;
    while let Some(next) = parser.next_event() {
        let (event, span) = match next {
            Err(error) if !ended.get() => {
                return Err(Flaw { at_end: false, ..Flaw::scan(&error, text) });
            }
            Err(_) => break,
            Ok(next) => next,
        };
        if ended.get() && matches!(event, Event::DocumentStart(..)) {
            continue;
        }
        if ended.get() {
            last_scalar(text, &composer, event, &span, &mut found)?;
            break;
        }
        if let Some(awaited) = composer.awaited_field() {
            field = Some(awaited.to_owned());
        }
        composer.take(event, &span)?;
        if let Some(value) = field.as_deref().and_then(|field| composer.field(field))
            && let Some(field) = field.take()
        {
            found.complete.insert(field, value.clone());
        }
    }
    Ok(found)
}

/// The first node after the parser saw the end. A scalar is final if its line is ended: quotes
/// are closed, and a key must have its `:` on the same line.
fn last_scalar(
    text: &str,
    composer: &Composer,
    event: Event<'_>,
    span: &Span,
    found: &mut Prefix,
) -> Result<(), Flaw> {
    let Event::Scalar(content, style, _, tag) = event else { return Ok(()) };
    let is_flow_scalar =
        matches!(style, ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    if !is_flow_scalar || span.is_empty() || !line_is_ended(text, span) {
        return Ok(());
    }
    let Some(field) = composer.awaited_field().map(str::to_owned) else {
        return if composer.is_at_root() { Err(not_a_mapping(&span.start)) } else { Ok(()) };
    };
    // What is wrong with it (an integer that is too long) a continuation line may still mend.
    if let Ok(value) = scalar(&content, style, tag.as_deref(), span) {
        found.complete.insert(field, value);
    }
    Ok(())
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
