//! Writing a new record's text, from what it says. Only for texts that the daemon itself makes: one
//! that somebody wrote is never written anew.

use serde_json::Value;

use super::scalar::word_or_quoted;

/// Longest key, as it is written, that stands before its colon on one line. YAML allows 1,024 characters
/// there; a longer key is one only behind a question mark.
const PLAIN_KEY_BYTES_MAX: usize = 1000;

/// The text: block style, as people write it.
#[must_use]
pub fn write(said: &Value) -> Vec<u8> {
    let mut out = String::new();
    match said {
        Value::Object(map) => {
            for (key, value) in map {
                entry(&mut out, 0, key, value);
            }
        }
        other => {
            scalar(&mut out, other);
            out.push('\n');
        }
    }
    out.into_bytes()
}

fn entry(out: &mut String, depth: usize, key: &str, value: &Value) {
    indent(out, depth);
    let key = word_or_quoted(key);
    if key.len() > PLAIN_KEY_BYTES_MAX {
        out.push_str("? ");
        out.push_str(&key);
        out.push('\n');
        indent(out, depth);
    } else {
        out.push_str(&key);
    }
    out.push(':');
    below(out, depth + 1, value);
}

/// A value after its key or dash.
fn below(out: &mut String, depth: usize, value: &Value) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            map.iter().for_each(|(key, value)| entry(out, depth, key, value));
        }
        Value::Array(list) if !list.is_empty() => {
            out.push('\n');
            for value in list {
                indent(out, depth);
                out.push('-');
                below(out, depth + 1, value);
            }
        }
        value => {
            out.push(' ');
            scalar(out, value);
            out.push('\n');
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    (0..depth).for_each(|_| out.push_str("  "));
}

fn scalar(out: &mut String, value: &Value) {
    match value {
        Value::String(said) => out.push_str(&word_or_quoted(said)),
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Document;
    use serde_json::json;

    #[test]
    fn keys_of_any_length_are_read_as_they_were() {
        for length in [999, 1000, 1001, 1022, 1023, 1024, 1025, 5000] {
            for letter in ["k", "é", "\""] {
                let key = letter.repeat(length);
                for value in [json!(1), json!({key.clone(): [1, {key.clone(): []}]}), json!([2])] {
                    let said = json!({"id": "t-1", key.clone(): value, "z": "last"});
                    let read = Document::parse(&write(&said));
                    let read = read.unwrap_or_else(|flaw| panic!("{letter} {length}: {flaw:?}"));
                    assert_eq!(*read.value(), said, "{letter} {length}");
                }
            }
        }
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let said = json!({
            "id": "t-1", "title": "a: b # c", "n": 7, "none": null, "yes": "no", "empty": {},
            "list": ["x", 3, ["y", []], {"k": "v: w", "l": {"m": "-"}}],
            "odd": "tab\tline\nbell\u{85}\u{2028}\u{fffe}\"\\ é 漢 😀", "date": "2026-11-22", "f": "1.5",
        });
        let text = write(&said);
        let read = Document::parse(&text).unwrap_or_else(|flaw| {
            panic!("{flaw:?} in {}", String::from_utf8_lossy(&text));
        });
        assert_eq!(*read.value(), said, "{}", String::from_utf8_lossy(&text));
        assert!(text.starts_with(b"id: t-1\ntitle: \"a: b # c\"\n"));
    }
}
