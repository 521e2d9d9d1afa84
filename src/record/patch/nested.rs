//! Setting one field, or a field of a field as `result.summary`, with as little change of the text
//! as can be.
//!
//! What must stay true: the result is read again, and counts only if it says what it said before
//! but for that one field. So the ways to write it may be simple, and where none fits the caller
//! is told to write it by hand.

use serde_json::{Map, Value};

use super::super::document::Document;
use super::super::flaw::Flaw;
use super::super::source;
use super::{Edit, apply, entries, patch};
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
    let splices =
        entries::nested(source::text(bytes)?, parent, child, value).ok_or_else(by_hand)?;
    let edited = apply(bytes, splices);
    source::check_size(&edited)?;
    match Document::parse(&edited) {
        Ok(document) if *document.value() == wanted => Ok(edited),
        _ => Err(by_hand()),
    }
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
            ("---\nid: a\n...\n", "---\nid: a\nresult:\n  summary: \"ok\"\n...\n"),
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
            // As JSON, and as a mapping in braces.
            (r#"{"id": "a"}"#, r#"{"result": {"summary": "ok"}, "id": "a"}"#),
            (r#"{"result": null, "id": 1}"#, r#"{"result": {"summary": "ok"}, "id": 1}"#),
            (r#"{"result": {}}"#, r#"{"result": {"summary": "ok"}}"#),
            (r#"{"result": {"summary": 7}}"#, r#"{"result": {"summary": "ok"}}"#),
            (r#"{"result": {"summary":[{}, 1]}}"#, r#"{"result": {"summary": "ok"}}"#),
            (
                "{\n  \"id\": \"a\",\n  \"result\": {\n    \"b\": [1]\n  }\n}\n",
                "{\n  \"id\": \"a\",\n  \"result\": {\"summary\": \"ok\", \n    \"b\": [1]\n  }\n}\n",
            ),
            ("{id: a}", "{result: {summary: \"ok\"}, id: a}"),
            ("{ result: , id: a }\n", "{ result: {summary: \"ok\"} , id: a }\n"),
            ("{result, id: a}", "{result: {summary: \"ok\"}, id: a}"),
            ("result: { summary: old }\n", "result: { summary: \"ok\" }\n"),
            ("result: { a: {b: 1}, summary }\n", "result: { a: {b: 1}, summary: \"ok\" }\n"),
            ("result: {\"a\": 1}\n", "result: {\"summary\": \"ok\", \"a\": 1}\n"),
            // With quoted keys, and further in.
            ("\"result\": null # c\nid: a\n", "\"result\": # c\n  summary: \"ok\"\nid: a\n"),
            (
                "'result':\n  \"summary\": 'old' # c\n  b: 2\n",
                "'result':\n  \"summary\": \"ok\" # c\n  b: 2\n",
            ),
            ("  id: a\n  result:\n", "  id: a\n  result:\n    summary: \"ok\"\n"),
            ("  id: a\n", "  id: a\n  result:\n    summary: \"ok\"\n"),
            (
                "result:\n  a: {summary: 1}\nx: {result: {summary: 2}}\n",
                "result:\n  summary: \"ok\"\n  a: {summary: 1}\nx: {result: {summary: 2}}\n",
            ),
            // Lists and mappings give way, and nothing behind them.
            (
                "result:\n  summary:\n    - a: 1\n      b: [2, 3]\n    # c\n  # d\n  z: 1\n",
                "result:\n  summary: \"ok\"\n    # c\n  # d\n  z: 1\n",
            ),
            ("result:\n  summary: [a, {b: c}] # d\n", "result:\n  summary: \"ok\" # d\n"),
        ] {
            assert_eq!(set(before, "ok").as_deref(), Some(after), "{before:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_writer() {
        assert_eq!(set("result: done\n", "ok"), None);
        assert_eq!(set("{result: [a]}\n", "ok"), None);
        assert_eq!(set("a: [", "ok"), None);
        // What others refer to would change with it.
        assert_eq!(set("result: &r {a: 1}\nb: *r\n", "ok"), None);
        assert_eq!(set("b: &r {a: 1}\nresult: *r\n", "ok"), None);
        assert_eq!(set("result: {summary: &s x}\nb: *s\n", "ok"), None);
    }

    #[test]
    fn any_text_comes_back() {
        for value in ["", "a: b # c", "two\nlines\t\"q\" \\", "\u{85}\u{2028}\u{feff}ü€😀", "- x"]
        {
            for text in ["id: a\n", "{\"id\": \"a\"}", "result: {summary: old}\n"] {
                let edited = set(text, value).unwrap_or_else(|| panic!("{value:?}"));
                let document = Document::parse(edited.as_bytes()).unwrap();
                assert_eq!(document.pointer("/result/summary").unwrap(), value, "{edited}");
            }
        }
    }
}
