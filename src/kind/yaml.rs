//! Reading the YAML that defines things (kinds, configurations): strictly, with the line of what
//! is wrong and the nearest known key. Records are not read here.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Spanned};

use super::nearest::nearest;

/// Longest definition or schema. The largest built-in one has 3 KB.
pub(crate) const DEFINITION_BYTES_MAX: usize = 256 * 1024;

/// What is wrong, before it is known in which file: the line, where that is known, and why.
pub(crate) type Wrong = (Option<u32>, String);

/// Why a text could not be read.
#[derive(Debug)]
pub(crate) struct ReadError {
    pub line: Option<u32>,
    pub reason: String,
    /// The key that is missing, where that is what is wrong; the line is then the last of those that
    /// are there beside it.
    pub missing: Option<&'static str>,
}

/// Reads one definition; what the form does not know is refused.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    read_within(text, DEFINITION_BYTES_MAX)
}

/// Reads one document of at most so many bytes; what the form does not know is refused.
pub(crate) fn read_within<T: DeserializeOwned>(
    text: &str,
    bytes_max: usize,
) -> Result<T, ReadError> {
    if text.len() > bytes_max {
        let reason = format!("{} bytes are over the limit of {bytes_max}", text.len());
        return Err(ReadError { line: None, reason, missing: None });
    }
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| explain(&error))
}

fn explain(error: &Error) -> ReadError {
    let error = error.without_snippet();
    let line = error.location().and_then(line_of);
    let reason = match error {
        Error::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => unknown("value", variant, expected),
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        Error::DuplicateMappingKey { key, .. } => twice(key.as_deref().unwrap_or("?")),
        Error::MultipleDocuments { .. } => "a second document begins: one is read".to_owned(),
        Error::Message { msg, .. } => msg.clone(),
        other => wanted(other).unwrap_or_else(|| within_line(other)),
    };
    let missing = match error {
        Error::SerdeMissingField { field, .. } => Some(*field),
        _ => None,
    };
    ReadError { line, reason, missing }
}

/// What the parser says, without the line, which is told beside it.
fn within_line(error: &Error) -> String {
    let said = error.render();
    let Some(place) = error.location() else { return said };
    let (line, column) = (place.line(), place.column());
    said.replace(&format!(" at line {line}, column {column}"), &format!(" at column {column}"))
}

/// What should stand where something else does, in the words of YAML and not of a program.
fn wanted(error: &Error) -> Option<String> {
    let wanted = match error {
        Error::InvalidScalar { ty, .. } => match ty.strip_prefix('u').map(str::parse::<u32>) {
            Some(Ok(bits @ 1..=64)) => {
                let most = u64::MAX >> (64 - bits);
                return Some(format!("a whole number from 0 on (at most {most}) must stand here"));
            }
            Some(_) => "a whole number from 0 on",
            None => return None,
        },
        Error::InvalidBooleanStrict { .. } => "`true` or `false`",
        Error::NullIntoString { .. } => "a text",
        Error::Unexpected { expected, .. } => match *expected {
            "sequence start" => "a list",
            "mapping start" => "a mapping",
            "string scalar" => "a text",
            _ => return None,
        },
        _ => return None,
    };
    Some(format!("{wanted} must stand here"))
}

fn twice(key: &str) -> String {
    format!("the key `{}` is there twice", crate::names::printable_start(key.as_bytes()))
}

/// The line of a place, where the parser knew it.
pub(crate) fn line_of(place: serde_saphyr::Location) -> Option<u32> {
    u32::try_from(place.line()).ok().filter(|line| *line > 0)
}

/// The line where a value stands.
pub(crate) fn line<T>(value: &Spanned<T>) -> Option<u32> {
    line_of(value.referenced)
}

/// "unknown key `x`: did you mean `y`? Known are …".
pub(crate) fn unknown<S: AsRef<str>>(what: &str, word: &str, known: &[S]) -> String {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let word_shown = crate::names::printable_start(word.as_bytes());
    let meant = match nearest(word, known.iter().copied()) {
        Some(near) => format!(": did you mean `{near}`?"),
        None => ".".to_owned(),
    };
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("unknown {what} `{word_shown}`{meant} Known are: {known}")
}

/// One value or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany(Vec::new())
    }
}

impl<'de, T: From<String> + Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Seen<T>(PhantomData<T>);
        impl<'de, T: From<String> + Deserialize<'de>> Visitor<'de> for Seen<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(OneOrMany(vec![T::from(text.to_owned())]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = list.next_element()? {
                    all.push(one);
                }
                Ok(OneOrMany(all))
            }
        }
        from.deserialize_any(Seen(PhantomData))
    }
}

/// A mapping in the order of its keys, each key with its line.
#[derive(Clone, Debug)]
pub(crate) struct Ordered<V>(pub Vec<(Spanned<String>, V)>);

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Ordered(Vec::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Seen<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Seen<V> {
            type Value = Ordered<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all: Vec<(Spanned<String>, V)> = Vec::new();
                let mut seen = HashSet::new();
                while let Some(key) = map.next_key::<Spanned<String>>()? {
                    if !seen.insert(key.value.clone()) {
                        map.next_value::<IgnoredAny>()?;
                        return Err(de::Error::custom(twice(&key.value)));
                    }
                    all.push((key, map.next_value()?));
                }
                Ok(Ordered(all))
            }
        }
        from.deserialize_map(Seen(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(default)]
        names: Ordered<u32>,
        #[serde(default)]
        dirs: OneOrMany<String>,
    }

    #[test]
    fn keys_keep_their_order_and_their_lines() {
        let sample: Sample = read("# head\nnames:\n  b: 1\n  a: 2\ndirs: x\n").unwrap();
        let seen: Vec<_> =
            sample.names.0.iter().map(|(k, v)| (k.value.as_str(), line(k), *v)).collect();
        assert_eq!(seen, [("b", Some(3), 1), ("a", Some(4), 2)]);
        assert_eq!(sample.dirs.0, ["x"]);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_its_nearest() {
        let error = read::<Sample>("names: {}\ndir: [a, b]\n").unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(error.reason.contains("unknown key `dir`: did you mean `dirs`?"), "{error:?}");
    }

    #[test]
    fn what_must_stand_somewhere_is_said_in_words() {
        #[derive(Debug, Deserialize)]
        struct Form {
            _number: Option<u32>,
            _list: Option<Vec<String>>,
            _flag: Option<bool>,
            _text: Option<String>,
            _map: Option<std::collections::BTreeMap<String, String>>,
        }
        for (text, said) in [
            ("_number: -1", "a whole number from 0 on (at most 4294967295)"),
            ("_number: 99999999999", "a whole number from 0 on (at most 4294967295)"),
            ("_number: 5.5", "a whole number from 0 on (at most 4294967295)"),
            ("_list: a", "a list"),
            ("_flag: yes", "`true` or `false`"),
            ("_text: [a]", "a text"),
            ("_map: [a]", "a mapping"),
        ] {
            let error = read::<Form>(&format!("\n{text}\n")).unwrap_err();
            assert_eq!(error.reason, format!("{said} must stand here"), "{text}");
            assert_eq!(error.line, Some(2), "{text}");
        }
    }

    #[test]
    fn the_line_is_told_once() {
        let error = read::<Sample>("names: {}\ndirs: [a, b\n").unwrap_err();
        assert_eq!(error.line, Some(2), "{error:?}");
        assert!(error.reason.ends_with(" at column 7"), "{error:?}");
    }

    #[test]
    fn doubled_keys_and_oversize_are_refused() {
        let error = read::<Sample>("names:\n  a: 1\n  a: 2\n").unwrap_err();
        assert!(error.reason.contains("twice"), "{error:?}");
        let error = read::<Sample>("dirs: a\ndirs: b\n").unwrap_err();
        assert!(error.reason.contains("twice"), "{error:?}");
        // Also by a key that would steer a terminal.
        let error = read::<Sample>("names: { \"\\e[2J\": 1, \"\\e[2J\": 2 }\n").unwrap_err();
        assert_eq!(error.reason, "the key `\\u{1b}[2J` is there twice");
        let error = read::<Sample>(&"#".repeat(DEFINITION_BYTES_MAX + 1)).unwrap_err();
        assert!(error.reason.contains("over the limit"), "{error:?}");
    }
}
