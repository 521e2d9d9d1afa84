//! From bytes to text: the checks that need no parser, and so come before it.

use granit_parser::Options;

use super::flaw::{Flaw, shown};
use crate::limits::{RECORD_BYTES_MAX, RECORD_DEPTH_MAX};
use crate::refusal::Rule;

/// The parser's settings. Its own limits on depth are what stops `[[[[…` before any event comes.
pub(super) fn parser_options() -> Options {
    granit_parser::options! {
        emit_comments: false,
        // `%YAML 1.1` and `%TAG` would change what the text means.
        disallow_directives: true,
        flow_nesting_limit: RECORD_DEPTH_MAX,
        block_nesting_limit: RECORD_DEPTH_MAX,
    }
}

/// The whole of `bytes` as text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Flaw> {
    let (text, cut) = text_so_far(bytes)?;
    if cut > 0 {
        return Err(Flaw { at_end: true, ..not_utf8(bytes, text.len()) });
    }
    Ok(text)
}

/// What is text in `bytes` if more may follow, and how many bytes of a cut character end it.
pub(super) fn text_so_far(bytes: &[u8]) -> Result<(&str, usize), Flaw> {
    check_size(bytes)?;
    let (text, cut) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, 0),
        Err(error) if error.error_len().is_some() => {
            return Err(not_utf8(bytes, error.valid_up_to()));
        }
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            (std::str::from_utf8(valid).unwrap_or_default(), bytes.len() - valid.len())
        }
    };
    check_controls(text)?;
    Ok((text, cut))
}

/// Not over the limit.
pub(super) fn check_size(bytes: &[u8]) -> Result<(), Flaw> {
    if bytes.len() <= RECORD_BYTES_MAX {
        return Ok(());
    }
    Err(Flaw::new(
        Rule::TooLarge,
        format!("the text is over {RECORD_BYTES_MAX} bytes"),
        "put large content into a file of its own and name that file in the record",
    ))
}

fn not_utf8(bytes: &[u8], at: usize) -> Flaw {
    let reason = "the text is not UTF-8";
    Flaw::new(Rule::Syntax, reason, "save it as UTF-8").at_byte(bytes, at)
}

/// No control character but tab and line ends, raw.
fn check_controls(text: &str) -> Result<(), Flaw> {
    let bytes = text.as_bytes();
    // Cheap for all, exact for the few: 0xc2 starts the C1 controls and some printable characters.
    if !bytes.iter().any(|&b| (b < 0x20 && !matches!(b, 9 | 10 | 13)) || b == 0x7f || b == 0xc2) {
        return Ok(());
    }
    match text.char_indices().find(|&(_, c)| is_refused_control(c)) {
        Some((at, c)) => Err(control(c).at_byte(bytes, at)),
        None => Ok(()),
    }
}

/// What YAML calls not printable; NEL counts as printable there.
pub(super) fn is_refused_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')
}

/// The flaw of a control character.
pub(super) fn control(c: char) -> Flaw {
    let reason = format!("the text holds the control character {}", shown(&c.to_string()));
    Flaw::new(Rule::Syntax, reason, "leave control characters out")
}
