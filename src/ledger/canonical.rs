//! Canonical JSON: one text for one value, so that a hash of the text is a hash of the value.
//!
//! UTF-8 in NFC, keys sorted by code point, nulls left out of objects and kept in arrays, integers
//! within i64, no other numbers, no white space; strings escape only what JSON demands.
//!
//! What must stay true: the text parses back to a value whose canonical text is the same bytes.
//! Deliberately not here: reading JSON (serde_json does that, and keeps the order of keys).

use std::borrow::Cow;

use serde_json::{Number, Value};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Deepest nesting. serde_json reads 128 levels, and a payload stands inside an event; a record's
/// own limit is far below it.
const DEPTH_MAX: usize = 100;

/// Largest whole number that a float can stand for alone: from 2^53 on two integers share one
/// float, and a literal below `i64::MIN` arrives as the float of `i64::MIN`.
const FLOAT_WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Why a value has no canonical text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// A number with a fraction, or a float too large to stand for one integer.
    #[error("{number} is not an integer")]
    NotInteger {
        /// The number as serde_json writes it.
        number: String,
    },
    /// An integer that does not fit 64 bits with a sign.
    #[error("{number} does not fit a signed integer of 64 bits")]
    OutOfRange {
        /// The number as serde_json writes it.
        number: String,
    },
    /// Two keys of one object are the same text in NFC.
    #[error("the key {key:?} stands twice in one object")]
    DuplicateKey {
        /// The key, in NFC.
        key: String,
    },
    /// Nested too deep.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The most that is allowed.
        limit: usize,
    },
}

/// The canonical text of `value`, as bytes.
///
/// # Errors
/// What in `value` has no canonical text.
pub fn canonical(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let mut out = String::with_capacity(256);
    push_value_at(&mut out, value, 0)?;
    Ok(out.into_bytes())
}

fn push_value_at(out: &mut String, value: &Value, depth: usize) -> Result<(), CanonicalError> {
    if depth > DEPTH_MAX {
        return Err(CanonicalError::TooDeep { limit: DEPTH_MAX });
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => push_integer(out, integer(number)?),
        Value::String(text) => push_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (nth, item) in items.iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                push_value_at(out, item, depth + 1)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<(Cow<'_, str>, &Value)> =
                members.iter().map(|(key, value)| (nfc(key), value)).collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(CanonicalError::DuplicateKey { key: pair[0].0.to_string() });
            }
            sorted.retain(|(_, value)| !value.is_null());
            out.push('{');
            for (nth, (key, value)) in sorted.iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                push_quoted(out, key);
                out.push(':');
                push_value_at(out, value, depth + 1)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn integer(number: &Number) -> Result<i64, CanonicalError> {
    if let Some(integer) = number.as_i64() {
        return Ok(integer);
    }
    if number.is_u64() {
        return Err(CanonicalError::OutOfRange { number: number.to_string() });
    }
    match number.as_f64() {
        // The cast is exact: whole, and within 2^53.
        Some(float) if float.fract() == 0.0 && float.abs() <= FLOAT_WHOLE_MAX => Ok(float as i64),
        _ => Err(CanonicalError::NotInteger { number: number.to_string() }),
    }
}

/// Appends an integer.
pub(super) fn push_integer(out: &mut String, integer: i64) {
    if integer < 0 {
        out.push('-');
    }
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = integer.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend(digits[start..].iter().map(|&digit| char::from(digit)));
}

/// Appends `text` in NFC and in quotes.
pub(super) fn push_text(out: &mut String, text: &str) {
    push_quoted(out, &nfc(text));
}

fn nfc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

/// Appends `text` in quotes. Everything that must be escaped is ASCII, so bytes will do.
fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut clean_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[clean_from..at]);
        clean_from = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            other => {
                out.push_str("\\u00");
                super::hash::push_hex(out, &[other]);
            }
        }
    }
    out.push_str(&text[clean_from..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn text(value: &Value) -> Result<String, CanonicalError> {
        canonical(value).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn parsed(json: &str) -> Result<String, CanonicalError> {
        text(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn the_ten_golden_vectors() {
        let shared = std::env::var_os("WORKFS_SHARED").map_or_else(
            || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
            std::path::PathBuf::from,
        );
        let vectors = shared.join("vectors/canonical-json");
        if !vectors.is_dir() {
            assert!(std::env::var_os("CI").is_none(), "CI has no {}", vectors.display());
            println!("left out: no {} (set WORKFS_SHARED)", vectors.display());
            return;
        }
        let mut checked = 0;
        for entry in std::fs::read_dir(&vectors).unwrap() {
            let json = entry.unwrap().path();
            if json.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
            let bytes = canonical(&value).unwrap();
            let wanted = std::fs::read(json.with_extension("canonical")).unwrap();
            assert_eq!(bytes, wanted, "{}", json.display());
            let sha256 = std::fs::read_to_string(json.with_extension("sha256")).unwrap();
            let hash = super::super::Hash::of(&bytes).to_string();
            assert_eq!(hash, sha256.trim(), "{}", json.display());
            checked += 1;
        }
        assert_eq!(checked, 10, "golden vectors in {}", vectors.display());
    }

    #[test]
    fn numbers() {
        assert_eq!(parsed("[1.0, -0.0, 1e3, -7.0e0]").unwrap(), "[1,0,1000,-7]");
        assert_eq!(parsed("[9223372036854775807, -9223372036854775808]").unwrap().len(), 42);
        for refused in ["1.5", "-0.1", "1e20", "1e300", "9007199254740993.0", "5e-324"] {
            assert!(
                matches!(parsed(refused), Err(CanonicalError::NotInteger { .. })),
                "{refused} was not refused"
            );
        }
        for refused in ["9223372036854775808", "18446744073709551615"] {
            assert!(
                matches!(parsed(refused), Err(CanonicalError::OutOfRange { .. })),
                "{refused} was not refused"
            );
        }
        // Both reach us as floats; -9223372036854775809 as exactly the float of i64::MIN.
        assert!(parsed("-9223372036854775809").is_err());
        assert!(parsed("99999999999999999999").is_err());
    }

    #[test]
    fn keys_that_are_one_key_in_nfc() {
        let twice = json!({"\u{e9}": 1, "e\u{301}": 2});
        assert_eq!(text(&twice), Err(CanonicalError::DuplicateKey { key: "\u{e9}".to_owned() }));
        // Also where one of them would be left out as null: which one was meant cannot be told.
        let twice = json!({"\u{e9}": null, "e\u{301}": 2});
        assert!(text(&twice).is_err());
    }

    #[test]
    fn keys_sort_after_normalization_and_by_code_point() {
        // U+FB33 is two code points in NFC; U+10000 sorts before U+FFFD in UTF-16 but not here.
        let value = json!({"\u{10000}": 1, "\u{fffd}": 2, "e\u{301}": 3, "f": 4, "Z": 5});
        let wanted = "{\"Z\":5,\"f\":4,\"\u{e9}\":3,\"\u{fffd}\":2,\"\u{10000}\":1}";
        assert_eq!(text(&value).unwrap(), wanted);
    }

    #[test]
    fn escapes() {
        let value = json!("\"\\\u{8}\u{c}\n\r\t\u{0}\u{1b}\u{7f}\u{2028}/é");
        let wanted = "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001b\u{7f}\u{2028}/é\"";
        assert_eq!(text(&value).unwrap(), wanted);
    }

    #[test]
    fn nulls() {
        assert_eq!(parsed(r#"{"a":null,"b":[null,{"c":null}]}"#).unwrap(), r#"{"b":[null,{}]}"#);
        assert_eq!(parsed("null").unwrap(), "null");
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(text(&nested(DEPTH_MAX)).is_ok());
        assert!(matches!(text(&nested(DEPTH_MAX + 1)), Err(CanonicalError::TooDeep { .. })));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((".{0,3}", inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_is_its_own_canonical_text(value in any_value()) {
            if let Ok(bytes) = canonical(&value) {
                let again: Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert_eq!(canonical(&again).unwrap(), bytes);
            }
        }
    }
}
