//! JSON as checked files and schemas have it: whatever is JSON, except that no object has a key twice, since some
//! readers see the first of them and some the last.
//!
//! What must stay true: a number of any size and half a surrogate pair are JSON, though
//! `serde_json` has no value for them. Deliberately not here: texts that a schema judges, which
//! needs values.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::names::printable;

/// Reads a whole text and says nothing of what is in it.
///
/// # Errors
/// What is wrong with it first.
pub(crate) fn read(bytes: &[u8]) -> Result<(), serde_json::Error> {
    let plain = without_values(bytes);
    let mut reader = serde_json::Deserializer::from_slice(&plain);
    Strict.deserialize(&mut reader)?;
    reader.end()
}

/// The text with values in it that every reader has, each as long as what it stands for, so that all
/// places stay: numbers are zeros, and half a surrogate pair is a character of private use.
fn without_values(bytes: &[u8]) -> Vec<u8> {
    let mut text = bytes.to_vec();
    let mut at = 0;
    let mut in_string = false;
    while at < bytes.len() {
        at += match (in_string, bytes[at]) {
            (_, b'"') => {
                in_string = !in_string;
                1
            }
            (true, b'\\') => match unit(&bytes[at..]) {
                Some(0xD800..0xDC00)
                    if unit(&bytes[at + 6..])
                        .is_some_and(|low| (0xDC00..0xE000).contains(&low)) =>
                {
                    12
                }
                Some(half @ 0xD800..0xE000) => {
                    // `\ud800` becomes `\ue000`, and so on: keys that differ still do.
                    text[at + 2..at + 6]
                        .copy_from_slice(format!("{:04x}", half + 0x800).as_bytes());
                    6
                }
                _ => 2,
            },
            (false, b'-' | b'0'..=b'9') => {
                let is_part =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = &mut text[at..at + length];
                if length > 2 && is_number(number) {
                    number.fill(b'0');
                    number[1] = b'.';
                }
                length
            }
            _ => 1,
        };
    }
    text
}

/// The unit of UTF-16 for which an escape at the beginning of `bytes` stands.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let mut digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
    digits.try_fold(0, |unit, digit| Some(unit * 16 + digit? as u16))
}

/// Whether these bytes are a number as JSON has it.
fn is_number(bytes: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        _ => false,
    }
}

/// A value that is only looked at.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Strict)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if let Some(twice) = keys.replace(key) {
                let short: String = twice.chars().take(60).collect();
                let shown = printable(short.as_bytes());
                return Err(A::Error::custom(format_args!("the key `{shown}` is there twice")));
            }
            map.next_value_seed(Strict)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_and_halves_of_pairs_are_json() {
        let digits = "9".repeat(400);
        for text in [
            "1e400",
            "[-1E+400, 1e-400, 0.5e9999, -0, 10, 1.25]",
            &digits,
            &format!("[{digits}.{digits}e{digits}]"),
            r#""\ud800""#,
            r#"["\uDFFF\ud800x", "\ud800\ud800\udc00", "\\ud800", "\ud83d\ude00", "\"\ud800"]"#,
            r#"{"\ud800": 1, "\ud801": 2, "1e400": 3}"#,
        ] {
            read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn what_is_no_json_is_refused_where_it_is_wrong() {
        for (text, column) in [
            ("01234", 2),
            ("[1.e5]", 4),
            ("[1e400e]", 0),
            ("[1e+]", 5),
            ("[-]", 3),
            ("[--1]", 3),
            ("[1-2]", 3),
            ("[12.5.3]", 6),
            (r#"["\ud80g"]"#, 0),
            (r#"["\ud800]"#, 0),
            (r#"["\x"]"#, 4),
            (r#"{"\ud800": 1, "\uD800": 2}"#, 0),
            ("[1e400, ]", 9),
        ] {
            let error = read(text.as_bytes()).expect_err(text);
            assert!(column == 0 || error.column() == column, "{text}: {error}");
        }
    }
}
