//! Finding fields in a block mapping line by line.
//!
//! What must stay true: on a text that [`super::super::Document`] takes, a line that begins at
//! column 0 with `key:` is a field of the top level whenever this module says so. Inside a value
//! the parser takes text at column 0 in two cases only: brackets that are still open, and a
//! double-quoted text whose line ends in a backslash. At either, and at every shape of line that
//! is not listed here, the answer is `None` and the parser's events decide.

use super::super::scalar::{self, Style, is_plain_shape};
use super::{Edit, NEIGHBOURS, Splice, new_line};

/// A top-level field that is edited or next to which one may be added.
struct Field<'a> {
    name: &'a str,
    /// Just behind the colon.
    colon_end: usize,
    next_line: usize,
    value: Option<Written>,
}

/// A value that is one scalar on the key's line.
struct Written {
    start: usize,
    end: usize,
    /// `None`: there is nothing behind the colon.
    style: Option<Style>,
}

/// The splices that make the edits, if this module is sure of them.
pub(super) fn splices(bytes: &[u8], edits: &[Edit<'_>]) -> Option<Vec<Splice>> {
    let fields = read(bytes, |name| {
        NEIGHBOURS.contains(&name) || edits.iter().any(|edit| edit.field == name)
    })?;
    let named = |name: &str| fields.iter().find(|field| field.name == name);
    let mut splices = Vec::with_capacity(edits.len());
    for edit in edits {
        if let Some(field) = named(edit.field) {
            let value = field.value.as_ref()?;
            let text = scalar::write(edit.value, value.style.unwrap_or(Style::Plain)).ok()?;
            splices.push(match value.style {
                None => Splice::insert(field.colon_end, format!(" {text}")),
                Some(_) => Splice { start: value.start, end: value.end, text },
            });
        }
    }
    for edit in edits.iter().filter(|edit| named(edit.field).is_none()) {
        let beside =
            NEIGHBOURS.iter().filter_map(|name| named(name)).find(|field| field.value.is_some())?;
        if !is_plain_key(edit.field) {
            return None;
        }
        let text = scalar::write(edit.value, Style::Plain).ok()?;
        splices.push(new_line(bytes, beside.next_line, 0, &format!("{}: {text}", edit.field)));
    }
    Some(splices)
}

fn is_plain_key(name: &str) -> bool {
    scalar::write(name, Style::Plain).is_ok_and(|written| written == name)
        && key_length(name.as_bytes()) == Some(name.len())
}

/// The wanted fields, in the order of the text.
fn read(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Option<Vec<Field<'_>>> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    // Whether a key was read, and whether the last one read is the last of `fields`.
    let (mut has_key, mut is_last) = (false, false);
    let mut in_block_scalar = false;
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut is_first_line = true;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = rest.iter().position(|&b| b == b'\n');
        let next_line = at + length.map_or(rest.len(), |length| length + 1);
        let line = &rest[..length.unwrap_or(rest.len())];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // At column 0 nothing is open, so `#` begins a comment; and below a top-level `key: |`
        // what is indented is content. What they say cannot open anything.
        let is_inert = match line.first() {
            Some(b'#') => true,
            Some(b' ') => in_block_scalar,
            _ => false,
        };
        let gives_up = if is_inert { line.contains(&b'\r') } else { is_doubtful(line) };
        if gives_up {
            return None;
        }
        match line.first() {
            None => {}
            Some(b'#') => {}
            Some(b' ') => {
                // A value that goes on. An indented comment counts as one, too: it might be the
                // content of a block scalar.
                let is_blank = line.iter().all(|&b| b == b' ');
                fields.last_mut().filter(|_| is_last && !is_blank).map(|field| field.value.take());
            }
            Some(b'-') if line == b"---" && is_first_line => {}
            Some(b'-') if line == b"-" || line.starts_with(b"- ") => {
                if !has_key {
                    return None;
                }
                if is_last {
                    fields.last_mut()?.value = None;
                }
            }
            Some(_) => {
                let length = key_length(line)?;
                let name = std::str::from_utf8(line.get(..length)?).ok()?;
                has_key = true;
                in_block_scalar = is_block_scalar(line.get(length + 1..)?);
                is_last = is_wanted(name);
                if is_last {
                    let colon_end = at + length + 1;
                    let value = written(line.get(length + 1..)?, colon_end);
                    fields.push(Field { name, colon_end, next_line, value });
                }
            }
        }
        is_first_line = false;
        at = next_line;
    }
    if has_key { Some(fields) } else { None }
}

/// Whether behind a colon there is the header of a block scalar.
fn is_block_scalar(behind: &[u8]) -> bool {
    match behind {
        [b' ', b'|' | b'>', rest @ ..] => {
            rest.iter().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-'))
        }
        _ => false,
    }
}

/// The length of a plain key at the start of `line`, which is the line's or is followed by a
/// colon and a blank.
fn key_length(line: &[u8]) -> Option<usize> {
    let is_key = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' ');
    if !line.first().is_some_and(|&b| b.is_ascii_alphabetic() || b == b'_') {
        return None;
    }
    let length = line.iter().position(|&b| !is_key(b)).unwrap_or(line.len());
    let is_trimmed = line[..length].last() != Some(&b' ');
    let is_closed = matches!(line.get(length..)?, [] | [b':'] | [b':', b' ', ..]);
    if is_trimmed && is_closed { Some(length) } else { None }
}

/// What stands behind the colon, if it is nothing or one simple scalar.
fn written(behind: &[u8], colon_end: usize) -> Option<Written> {
    let blanks = behind.iter().take_while(|&&b| b == b' ').count();
    let text = std::str::from_utf8(&behind[blanks..]).ok()?;
    let start = colon_end + blanks;
    if text.is_empty() || (text.starts_with('#') && blanks > 0) {
        return Some(Written { start, end: start, style: None });
    }
    let (length, style) = match text.as_bytes()[0] {
        b'\'' => (text[1..].find('\'')? + 2, Style::Single),
        b'"' => (text[1..].find(['"', '\\'])? + 2, Style::Double),
        _ => {
            let plain = text.find(" #").map_or(text, |end| &text[..end]).trim_end_matches(' ');
            if !is_plain_shape(plain) {
                return None;
            }
            (plain.len(), Style::of_plain(plain))
        }
    };
    let is_closed = match style {
        Style::Double => text.as_bytes()[length - 1] == b'"',
        _ => true,
    };
    let after = &text[length..];
    let rest = after.trim_start_matches(' ');
    let ends = rest.is_empty() || (rest.starts_with('#') && rest.len() < after.len());
    if !is_closed || !ends {
        return None;
    }
    Some(Written { start, end: start + length, style: Some(style) })
}

/// Whether after `line` a value may go on at column 0, or the line holds a line end that this
/// module does not know (a lone CR).
fn is_doubtful(line: &[u8]) -> bool {
    if line.last() == Some(&b'\\') || line.first() == Some(&b'\t') {
        return true;
    }
    let mut at = 0;
    while let Some(found) = line[at..].iter().position(|&b| matches!(b, b'[' | b'{' | b'\r')) {
        at += found;
        if line[at] == b'\r' {
            return true;
        }
        // A value begins behind a blank or at the start of a line, nowhere else.
        let begins = at == 0 || matches!(line[at - 1], b' ' | b'\t');
        at = if begins {
            match closed_flow(line, at) {
                Some(end) => end,
                None => return true,
            }
        } else {
            at + 1
        };
    }
    false
}

/// Where the brackets that open at `start` are closed, if that is certain on this line.
fn closed_flow(line: &[u8], start: usize) -> Option<usize> {
    let mut open: Vec<u8> = Vec::new();
    // The last byte that is not a blank, and whether blanks followed it.
    let (mut before, mut blank) = (0u8, false);
    let mut at = start;
    while at < line.len() {
        let byte = line[at];
        match byte {
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            b']' | b'}' => {
                if open.pop() != Some(byte) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at + 1);
                }
            }
            // A quote opens a text only where an entry begins; elsewhere it may be an apostrophe.
            b'"' | b'\'' => {
                let begins = matches!(before, b'[' | b'{' | b',') || (before == b':' && blank);
                let length = line[at + 1..].iter().position(|&b| b == byte || b == b'\\')?;
                if !begins || line[at + 1 + length] != byte {
                    return None;
                }
                at += length + 1;
            }
            b'#' | b'\r' | b'&' | b'*' | b'!' | b'\t' => return None,
            _ => {}
        }
        blank = byte == b' ';
        if !blank {
            before = byte;
        }
        at += 1;
    }
    None
}
