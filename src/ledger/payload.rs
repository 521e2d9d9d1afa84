//! What an event says beyond its fixed fields, already in canonical text.

use super::canonical::{push_integer, push_text};
use super::hash::Hash;
use crate::names::AgentName;

/// Canonical JSON that an event carries as its payload. Being one proves that sealing cannot fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(String);

/// One value of a flat payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// Left out, as canonical JSON does with null.
    Absent,
    /// Text, in any Unicode normalization.
    Text(&'a str),
    /// An integer.
    Integer(i64),
    /// A truth value.
    Flag(bool),
    /// A hash, as hexadecimal digits.
    Hash(Hash),
}

impl<'a> From<Option<&'a AgentName>> for Field<'a> {
    fn from(owner: Option<&'a AgentName>) -> Self {
        owner.map_or(Field::Absent, |owner| Field::Text(owner.as_str()))
    }
}

impl Payload {
    /// A flat payload, written without a JSON value in between: the way of hot paths. Keys are
    /// plain words (ASCII, nothing to escape), each once; the order does not matter.
    #[must_use]
    pub fn of(fields: &[(&'static str, Field<'_>)]) -> Self {
        let mut text = String::with_capacity(384);
        if fields.is_sorted_by(|a, b| a.0 < b.0) {
            push_fields(&mut text, fields.iter());
        } else {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            debug_assert!(sorted.windows(2).all(|pair| pair[0].0 != pair[1].0), "a key twice");
            sorted.dedup_by_key(|(key, _)| *key);
            push_fields(&mut text, sorted.into_iter());
        }
        Payload(text)
    }

    /// Its canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash that stands beside it in the event.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(&self.0)
    }
}

impl Default for Payload {
    /// The empty object.
    fn default() -> Self {
        Payload("{}".to_owned())
    }
}

fn push_fields<'a>(out: &mut String, fields: impl Iterator<Item = &'a (&'static str, Field<'a>)>) {
    out.push('{');
    for (key, field) in fields {
        if *field == Field::Absent {
            continue;
        }
        if !out.ends_with('{') {
            out.push(',');
        }
        push_text(out, key);
        out.push(':');
        match field {
            Field::Absent => {}
            Field::Text(text) => push_text(out, text),
            Field::Integer(integer) => push_integer(out, *integer),
            Field::Flag(true) => out.push_str("true"),
            Field::Flag(false) => out.push_str("false"),
            Field::Hash(hash) => {
                out.push('"');
                super::hash::push_hex(out, hash.as_bytes());
                out.push('"');
            }
        }
    }
    out.push('}');
}

impl<'a> From<&'a str> for Field<'a> {
    fn from(text: &'a str) -> Self {
        Field::Text(text)
    }
}

impl From<i64> for Field<'_> {
    fn from(integer: i64) -> Self {
        Field::Integer(integer)
    }
}

impl From<u64> for Field<'_> {
    /// The store's integers are i64, so a count above it cannot come; it would be cut to the
    /// largest.
    fn from(count: u64) -> Self {
        Field::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Field<'_> {
    fn from(flag: bool) -> Self {
        Field::Flag(flag)
    }
}

impl From<Hash> for Field<'_> {
    fn from(hash: Hash) -> Self {
        Field::Hash(hash)
    }
}

impl<'a, T: Into<Field<'a>>> From<Option<T>> for Field<'a> {
    fn from(field: Option<T>) -> Self {
        field.map_or(Field::Absent, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::super::canonical::canonical;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flat_payload_is_what_the_value_gives() {
        let flat = Payload::of(&[
            ("to", "assigned".into()),
            ("from", "inbox".into()),
            ("note", "cafe\u{301} \"\n".into()),
            ("owner", None::<&str>.into()),
            ("size", 1397_u64.into()),
            ("delta", (-5_i64).into()),
            ("forced", false.into()),
            ("content_sha256", Hash::ZERO.into()),
        ]);
        let value = json!({
            "to": "assigned", "from": "inbox", "note": "caf\u{e9} \"\n", "size": 1397, "delta": -5,
            "forced": false, "content_sha256": "0".repeat(64), "owner": null,
        });
        assert_eq!(flat.as_str().as_bytes(), canonical(&value).unwrap());
        assert_eq!(Payload::of(&[]), Payload::default());
        assert_eq!(
            Payload::of(&[("a", Field::Absent), ("b", true.into())]).as_str(),
            "{\"b\":true}"
        );
    }
}
