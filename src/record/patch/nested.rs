//! Setting one field, or a field of a field as `result.summary`, with as little change of the text
//! as can be.
//!
//! What must stay true: the result is read again, and counts only if it says what it said before
//! but for that one field. So the ways to write it may be simple, and where none fits the caller
//! is told to write it by hand.

use serde_json::{Map, Value};

use super::super::document::Document;
use super::super::flaw::Flaw;
use super::{Edit, patch};
use crate::refusal::Rule;

/// Sets the field at `path`, given by its keys, to the text `value`.
///
/// # Errors
/// A text that is no record, or one in which that field cannot be set in place; a path of more than
/// two keys never can.
pub fn patch_at(bytes: &[u8], path: &[impl AsRef<str>], value: &str) -> Result<Vec<u8>, Flaw> {
    let keys: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
    match keys[..] {
        [field] => patch(bytes, &[Edit { field, value }]),
        [parent, child] => patch_nested(bytes, parent, child, value),
        _ => Err(by_hand(&keys)),
    }
}

fn by_hand(keys: &[&str]) -> Flaw {
    let path = keys.join(".");
    Flaw::new(
        Rule::Syntax,
        format!("the text is written so that `{path}` cannot be set in place"),
        format!("write `{path}` into the file itself, then try again"),
    )
}

fn patch_nested(bytes: &[u8], parent: &str, child: &str, value: &str) -> Result<Vec<u8>, Flaw> {
    let by_hand = || by_hand(&[parent, child]);
    let document = Document::parse(bytes)?;
    let mut wanted = document.value().clone();
    let there = wanted.get(parent).cloned().unwrap_or(Value::Null);
    let mut fields = match &there {
        Value::Null => Map::new(),
        Value::Object(fields) => fields.clone(),
        _ => return Err(by_hand()),
    };
    if fields.get(child).and_then(Value::as_str) == Some(value) {
        return Ok(bytes.to_vec());
    }
    fields.insert(child.to_owned(), Value::from(value));
    let top = wanted.as_object_mut().ok_or_else(by_hand)?;
    top.insert(parent.to_owned(), Value::Object(fields));
    let text = std::str::from_utf8(bytes).map_err(|_| by_hand())?;
    let entry = format!("{child}: {}", quoted(value));
    let edited = match &there {
        Value::Object(fields) => {
            let place = document.place_of(bytes, &format!("/{parent}")).ok_or_else(by_hand)?;
            let (line, column) = (place.line as usize - 1, place.column as usize - 1);
            into_mapping(text, line, column, child, &entry, fields)
        }
        _ => into_nothing(text, parent, &entry),
    };
    let edited = edited.ok_or_else(by_hand)?.into_bytes();
    match Document::parse(&edited) {
        Ok(document) if *document.value() == wanted => Ok(edited),
        _ => Err(by_hand()),
    }
}

/// JSON's quotes are YAML's; what ends a line or is not seen is escaped.
fn quoted(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    for c in Value::from(value).to_string().chars() {
        let hidden = matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
        if hidden {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The field is not there, or is null: it becomes a mapping of one entry.
fn into_nothing(text: &str, parent: &str, entry: &str) -> Option<String> {
    let eol = line_end(text);
    let mut out = String::with_capacity(text.len() + entry.len() + 64);
    let mut set = false;
    for line in text.split_inclusive('\n') {
        let rest = line.strip_prefix(parent).and_then(|rest| rest.strip_prefix(':'));
        let Some(rest) = rest.filter(|_| !set) else {
            out.push_str(line);
            continue;
        };
        let (value, comment) = match rest.split_once('#') {
            Some((value, comment)) => (value, format!(" #{}", comment.trim_end())),
            None => (rest, String::new()),
        };
        if !matches!(value.trim(), "" | "null" | "~" | "Null" | "NULL") {
            return None;
        }
        out.push_str(&format!("{parent}:{comment}{eol}  {entry}{eol}"));
        set = true;
    }
    if !set {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push_str(eol);
        }
        out.push_str(&format!("{parent}:{eol}  {entry}{eol}"));
    }
    Some(out)
}

/// The field is a mapping that begins at this line and column, both from 0.
fn into_mapping(
    text: &str,
    first: usize,
    column: usize,
    child: &str,
    entry: &str,
    fields: &Map<String, Value>,
) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let begin = lines.get(first)?;
    let at = begin.char_indices().nth(column).map_or(begin.len(), |(at, _)| at);
    let (before, after) = begin.split_at(at);
    let mut out: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    if let Some(rest) = after.strip_prefix('{') {
        let comma = if fields.is_empty() { "" } else { ", " };
        out[first] = format!("{before}{{{entry}{comma}{rest}");
        return Some(out.concat());
    }
    if !before.chars().all(|c| c == ' ') {
        return None;
    }
    let new = format!("{before}{entry}{}", line_end(text));
    if !fields.contains_key(child) {
        out.insert(first, new);
        return Some(out.concat());
    }
    let here = |line: &str| line.strip_prefix(before).map(str::to_owned);
    let starts = |line: &&str| {
        here(line)
            .is_some_and(|rest| rest.strip_prefix(child).is_some_and(|rest| rest.starts_with(':')))
    };
    let start = first + lines[first..].iter().position(starts)?;
    let inside = |line: &&str| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let blank = line.trim().is_empty();
        blank
            || indent > before.len()
            || (indent == before.len() && line[indent..].starts_with("- "))
    };
    let mut end = start + 1 + lines[start + 1..].iter().take_while(|line| inside(line)).count();
    while end > start + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    out.splice(start..end, [new]);
    Some(out.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, value: &str) -> Option<String> {
        let edited = patch_at(text.as_bytes(), &["result", "summary"], value).ok()?;
        Some(String::from_utf8(edited).unwrap())
    }

    #[test]
    fn every_form_of_the_field_gets_its_entry_and_nothing_else_changes() {
        for (before, after) in [
            ("id: a\n", "id: a\nresult:\n  summary: \"ok\"\n"),
            ("id: a", "id: a\nresult:\n  summary: \"ok\"\n"),
            ("id: a\r\n", "id: a\r\nresult:\r\n  summary: \"ok\"\r\n"),
            ("result: null # later\nid: a\n", "result: # later\n  summary: \"ok\"\nid: a\n"),
            ("result:\nid: a\n", "result:\n  summary: \"ok\"\nid: a\n"),
            ("result: {}\n", "result: {summary: \"ok\"}\n"),
            ("result: { a: 1 }\n", "result: {summary: \"ok\",  a: 1 }\n"),
            ("result:\n    a: 1 # c\n", "result:\n    summary: \"ok\"\n    a: 1 # c\n"),
            ("result:\n  summary: old\n  b: 2\n", "result:\n  summary: \"ok\"\n  b: 2\n"),
            (
                "result:\n  a: 1\n  summary: |\n    x\n\n    y\n\n# c\nid: a\n",
                "result:\n  a: 1\n  summary: \"ok\"\n\n# c\nid: a\n",
            ),
            ("result:\n  summary: ok\n", "result:\n  summary: ok\n"),
        ] {
            assert_eq!(set(before, "ok").as_deref(), Some(after), "{before:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_writer() {
        assert_eq!(set("result: done\n", "ok"), None);
        assert_eq!(set("{ id: a }\n", "ok"), None);
        assert_eq!(set("result: { summary: old }\n", "ok"), None);
        assert_eq!(set("a: [", "ok"), None);
    }

    #[test]
    fn any_text_comes_back() {
        for value in ["", "a: b # c", "two\nlines\t\"q\" \\", "\u{85}\u{2028}\u{feff}ü€😀", "- x"]
        {
            let edited = set("id: a\n", value).unwrap_or_else(|| panic!("{value:?}"));
            let document = Document::parse(edited.as_bytes()).unwrap();
            assert_eq!(document.pointer("/result/summary").unwrap(), value, "{edited}");
        }
    }
}
