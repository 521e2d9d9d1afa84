//! Texts of checked plain files: read as strictly as records are, with anything at the top.

use std::cell::Cell;

use granit_parser::Parser;
use serde_json::Value;

use super::PREFIX_BYTES_MAX;
use super::compose::Composer;
use super::flaw::Flaw;
use super::source;
use super::watched::Watched;

/// What one YAML document says; nothing is null.
///
/// # Errors
/// The first flaw in it.
pub fn parse_any(bytes: &[u8]) -> Result<Value, Flaw> {
    let text = source::text(bytes)?;
    let mut parser = Parser::new_from_str_with_options(text, source::parser_options());
    let mut composer = Composer::of_anything();
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| Flaw::scan(&error, text))?;
        composer.take(event, &span)?;
    }
    Ok(composer.finish_anything())
}

/// Judges the text written so far.
///
/// # Errors
/// A flaw that no further byte can mend.
pub fn prefix_any(bytes: &[u8]) -> Result<(), Flaw> {
    let (text, _) = source::text_so_far(bytes)?;
    if text.len() > PREFIX_BYTES_MAX {
        return Ok(());
    }
    let ended = Cell::new(false);
    let mut parser = Parser::with_options(Watched::new(text, &ended), source::parser_options());
    let mut composer = Composer::of_anything();
    while let Some(next) = parser.next_event() {
        match next {
            // What the parser did after it looked at the end may come out otherwise with more.
            _ if ended.get() => break,
            Err(error) => return Err(Flaw { at_end: false, ..Flaw::scan(&error, text) }),
            Ok((event, span)) => composer.take(event, &span)?,
        }
    }
    Ok(())
}
