//! What a JSON Schema says of a text of which only the beginning is written.
//!
//! What must stay true: whatever this refuses, the schema refuses whatever follows. So what more could
//! mend is taken out (a key that is required, a list that is too short), and what is left speaks of what
//! is there: lists and mappings only grow, and a scalar stays as it is.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value};

/// Keywords that more could fulfil, and those whose fulfilment more could undo.
const TAKEN_OUT: [&str; 15] = [
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "minItems",
    "minProperties",
    "not",
    "required",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords with names of the user's own, each with a schema.
const OF_NAMES: [&str; 4] = ["$defs", "definitions", "patternProperties", "properties"];

/// The schema of a beginning.
pub(super) fn relaxed(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    let mut all_of = Vec::new();
    for (keyword, value) in schema {
        match keyword.as_str() {
            taken if TAKEN_OUT.contains(&taken) => {}
            // A list or mapping may become what it has to be.
            "enum" if value.as_array().is_some_and(|all| all.iter().any(grows)) => {}
            "const" if grows(value) => {}
            // Of several that it fits now it may come to fit one.
            "oneOf" => {
                all_of.push(Value::Object(Map::from_iter([("anyOf".to_owned(), each(value))])));
            }
            "allOf" => all_of.extend(each(value).as_array().cloned().unwrap_or_default()),
            names if OF_NAMES.contains(&names) => {
                let named = value.as_object().into_iter().flatten();
                let named = named.map(|(name, schema)| (name.clone(), one(schema)));
                kept.insert(keyword.clone(), Value::Object(named.collect()));
            }
            "enum" | "const" => {
                kept.insert(keyword.clone(), value.clone());
            }
            _ => {
                kept.insert(keyword.clone(), each(value));
            }
        }
    }
    if !all_of.is_empty() {
        kept.insert("allOf".to_owned(), Value::Array(all_of));
    }
    kept
}

fn one(value: &Value) -> Value {
    match value {
        Value::Object(schema) => Value::Object(relaxed(schema)),
        other => other.clone(),
    }
}

/// A schema, or each of a list.
fn each(value: &Value) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.iter().map(one).collect()),
        value => one(value),
    }
}

fn grows(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Whether what is wrong with a scalar without quotes could be mended by a further line of it, which
/// makes it a longer text.
pub(super) fn is_mended_by_more(error: &ValidationError<'_>) -> bool {
    let found = error.instance();
    match error.kind() {
        ValidationErrorKind::Type { kind } => match kind {
            TypeKind::Single(one) => *one == JsonType::String,
            TypeKind::Multiple(several) => several.contains(JsonType::String),
        },
        ValidationErrorKind::Enum { options } => {
            let mut options = options.as_array().into_iter().flatten().filter_map(Value::as_str);
            // As what a number or a date was written is not known here.
            options.any(|option| match found.as_str() {
                Some(text) => option
                    .strip_prefix(text)
                    .is_some_and(|rest| rest.starts_with(char::is_whitespace)),
                None => option.contains(char::is_whitespace),
            })
        }
        _ => true,
    }
}
