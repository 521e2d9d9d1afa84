//! Where in the text of a schema something is wrong.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::yaml::{self, Ordered, line};

/// The place of the reference that an error says nothing leads on from, as a JSON pointer.
pub(super) fn broken_reference(schema: &Value, said: &str) -> Option<String> {
    let mut longest = None;
    references(schema, &mut String::new(), &mut |pointer, to| {
        let named = to.trim_start_matches('#');
        let is_it = !named.is_empty() && said.contains(named);
        // `#/$defs/no` is the beginning of `#/$defs/nowhere`.
        if is_it && longest.as_ref().is_none_or(|(length, _)| *length < named.len()) {
            longest = Some((named.len(), pointer.to_owned()));
        }
    });
    longest.map(|(_, pointer)| pointer)
}

fn references(value: &Value, pointer: &mut String, each: &mut dyn FnMut(&str, &str)) {
    let mut below = |key: &str, value: &Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        match (key, value) {
            ("$ref" | "$dynamicRef", Value::String(to)) => each(pointer, to),
            _ => references(value, pointer, each),
        }
        pointer.truncate(length);
    };
    match value {
        Value::Object(all) => all.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(nth, value)| below(&nth.to_string(), value));
        }
        _ => {}
    }
}

/// The line of the last key on the way of a JSON pointer, where that can be told.
pub(super) fn line_at(schema: &str, pointer: &str) -> Option<u32> {
    // Each JSON text is YAML, of which the reader knows the places.
    let mut at: Tree = yaml::read(schema).ok()?;
    let mut found = None;
    for key in pointer.split('/').skip(1) {
        at = match at {
            Tree::Mapping(all) => {
                let key = key.replace("~1", "/").replace("~0", "~");
                let (name, value) = all.0.into_iter().find(|(name, _)| name.value == key)?;
                found = line(&name);
                value
            }
            Tree::List(all) => all.into_iter().nth(key.parse().ok()?)?,
            Tree::Other => return None,
        };
    }
    found
}

/// A value of which only the keys matter.
enum Tree {
    Mapping(Ordered<Tree>),
    List(Vec<Tree>),
    Other,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Seen)
    }
}

struct Seen;

impl<'de> Visitor<'de> for Seen {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element()? {
            all.push(one);
        }
        Ok(Tree::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tree, A::Error> {
        let map = serde::de::value::MapAccessDeserializer::new(map);
        Ordered::deserialize(map).map(Tree::Mapping)
    }
}

#[cfg(test)]
mod tests {
    use super::super::load_test::{SCHEMA, SOUND};
    use crate::kind::{Kind, Schema};

    #[test]
    fn what_is_wrong_with_a_schema_is_told_with_its_place() {
        let schema = |a: &str, b: &str| {
            format!(
                "{{\n  \"properties\": {{\n    \"a\": {{ \"allOf\": [ true,\n\t{a} ] }},\n    \
                 \"b/c\": {b},\n    \"n\": {{ \"enum\": [null, 1, -1.5, 1e3, true, \"x\"] }}\n  }},\n  \
                 \"$defs\": {{ \"n\": {{}}, \"no\": {{}} }}\n}}"
            )
        };
        let (good, end) = ("{ \"$ref\": \"#/$defs/no\" }", "\"$ref\": ");
        for (a, b, line, at) in [
            ("{ \"$ref\": \"#/$defs/nowhere\" }", good, 4, "at `/properties/a/allOf/1/$ref`: "),
            (good, "{ \"$ref\": \"#/$defs/nowhere\" }", 5, "at `/properties/b~1c/$ref`: "),
            (good, "{ \"$ref\": \"other.json\" }", 5, "at `/properties/b~1c/$ref`: "),
            (good, "{ \"type\": \"text\" }", 5, "at `/properties/b~1c/type`: "),
        ] {
            let (found, reason) = Schema::compile(&schema(a, b)).unwrap_err();
            assert_eq!(found, Some(line), "{reason}");
            assert!(reason.contains(at) && !reason.contains(end), "{reason}");
        }
        Schema::compile(&schema(good, good)).unwrap();
        let broken = SCHEMA.replace("\"at\": {}", "\"at\": {\"$ref\": \"#/$defs/nowhere\"}");
        let error = Kind::load("errand.kind.yaml", SOUND, &broken).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("errand.v1.json", Some(4)), "{error}");
    }
}
