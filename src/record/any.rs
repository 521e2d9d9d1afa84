//! Texts of checked plain files: read as strictly as records are, with anything at the top.

use granit_parser::Parser;
use serde_json::Value;

use super::PREFIX_BYTES_MAX;
use super::compose::Composer;
use super::flaw::Flaw;
use super::prefix::read_so_far;
use super::source;

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

/// What is said of one YAML document in the text written so far, if anything is yet; and where its last
/// scalar is, as a JSON pointer, if that could still get longer.
///
/// # Errors
/// A flaw that no further byte can mend.
pub fn prefix_any(bytes: &[u8]) -> Result<(Option<Value>, Option<String>), Flaw> {
    let (text, _) = source::text_so_far(bytes)?;
    if text.len() > PREFIX_BYTES_MAX {
        return Ok((None, None));
    }
    if text.starts_with(['{', '['])
        && text.ends_with('\n')
        && let Ok(whole) = parse_any(bytes)
    {
        return Ok((Some(whole), None));
    }
    let (said, last) = read_so_far(text, Composer::of_anything())?;
    let said = match said {
        Some(Value::Array(mut list)) => list.pop(),
        _ => None,
    };
    // It stands in a list of one.
    Ok((said, last.and_then(|last| Some(last.strip_prefix("/0")?.to_owned()))))
}
