//! Which fields a schema has, and what it says of them outright: what a definition names must be one.

use serde_json::{Map, Value};

use super::Schema;
use crate::kind::yaml::unknown;

/// How far a path that a definition names is looked for in its kind's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kind) enum Fields {
    /// Its first key.
    First,
    /// All of its keys.
    Whole,
}

impl Schema {
    /// With another measure for [`Schema::expect_field`].
    pub(in crate::kind) fn looking_for(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// Fails unless it has the field at this way, as far as it says which fields there are.
    ///
    /// # Errors
    /// What it has there, in words.
    pub(in crate::kind) fn expect_field(&self, way: &[String]) -> Result<(), String> {
        let mut at = &self.source;
        let keys = match self.fields {
            Fields::First => 1,
            Fields::Whole => way.len(),
        };
        for (nth, key) in way.iter().enumerate().take(keys) {
            let is_top = nth == 0;
            if !is_top && takes_no_mapping(at) {
                let (field, above) = (way.join("."), way[..nth].join("."));
                return Err(format!("`{field}`: the schema takes no mapping as `{above}`"));
            }
            let known = at.get("properties").and_then(Value::as_object);
            match known.and_then(|known| known.get(key)) {
                Some(field) => at = field,
                None if !is_top && (known.is_none() || says_more(at)) => break,
                None => {
                    let name =
                        |key: &String| [&way[..nth], std::slice::from_ref(key)].concat().join(".");
                    let known = known.into_iter().flat_map(Map::keys);
                    return Err(unknown("field", &name(key), &known.map(name).collect::<Vec<_>>()));
                }
            }
        }
        Ok(())
    }

    /// The fields that each record must have, in whatever state.
    pub(in crate::kind) fn required(&self) -> impl Iterator<Item = &str> {
        let required = self.source.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Whether a text may stand at this way, as far as it is said outright.
    pub(in crate::kind) fn takes_text_at(&self, way: &[String]) -> bool {
        let mut way = way.iter();
        let found = way.try_fold(&self.source, |at, key| at.get("properties")?.get(key));
        found.is_none_or(|schema| !takes_no("string", Value::is_string, schema))
    }

    /// The values that a top-level field may have, if the schema lists them.
    pub(in crate::kind) fn enumeration(&self, field: &str) -> Option<Vec<&str>> {
        let listed = self.source.get("properties")?.get(field)?.get("enum")?.as_array()?;
        Some(listed.iter().filter_map(Value::as_str).collect())
    }
}

/// Whether a field of this schema has no fields.
fn takes_no_mapping(schema: &Value) -> bool {
    takes_no("object", Value::is_object, schema)
}

/// Whether nothing of this type fits it.
fn takes_no(wanted: &str, is_one: fn(&Value) -> bool, schema: &Value) -> bool {
    let types = schema.get("type").map(|types| match types.as_array() {
        Some(types) => types.iter().all(|one| one != wanted),
        None => types != wanted,
    });
    let values = schema.get("enum").and_then(Value::as_array);
    types == Some(true) || values.is_some_and(|values| !values.iter().any(is_one))
}

/// Whether fields may be named elsewhere than in its `properties`.
fn says_more(schema: &Value) -> bool {
    const ELSEWHERE: [&str; 8] = [
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "dependentSchemas",
        "patternProperties",
    ];
    let others = ["additionalProperties", "unevaluatedProperties"];
    ELSEWHERE.iter().any(|key| schema.get(key).is_some())
        || others.iter().any(|key| schema.get(key).is_some_and(|others| *others != false))
}
