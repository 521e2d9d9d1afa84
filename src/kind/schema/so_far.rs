//! What a JSON Schema says of a text of which only the beginning is written.
//!
//! What must stay true: whatever this refuses, the schema refuses whatever follows. So what more could
//! mend is taken out (a key that is required, a list that is too short), and what is left speaks of what
//! is there: lists and mappings only grow, and a scalar stays as it is.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value};

/// Keywords that more could fulfil, and those whose fulfilment more could undo. Of two items that are the
/// same the last may still grow.
const TAKEN_OUT: [&str; 16] = [
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
    "uniqueItems",
];

/// Keywords with names of the user's own, each with a schema.
const OF_NAMES: [&str; 4] = ["$defs", "definitions", "patternProperties", "properties"];

/// The schema of a beginning.
pub(super) fn relaxed(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    let (mut all_of, mut any_of) = (Vec::new(), None);
    for (keyword, value) in schema {
        match keyword.as_str() {
            taken if TAKEN_OUT.contains(&taken) => {}
            // A list or mapping may become what it has to be.
            "enum" if value.as_array().is_some_and(|all| all.iter().any(grows)) => {}
            "const" if grows(value) => {}
            // Of several that it fits now it may come to fit one.
            "oneOf" => {
                any_of = Some(Value::Object(Map::from_iter([("anyOf".to_owned(), each(value))])));
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
    // Behind those that are there: what refers to one of them goes by its number.
    all_of.extend(any_of);
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

/// Whether what is wrong could be mended by a further line of the last scalar, which is at `last`, has no
/// quotes, and becomes a longer text by it.
pub(super) fn is_mended_by_more(error: &ValidationError<'_>, last: &str) -> bool {
    let found = error.instance();
    match error.kind() {
        // It is told of what holds the scalar; one of the alternatives may come to fit.
        ValidationErrorKind::AnyOf { context } => {
            let mut context = context.iter();
            context.any(|errors| errors.iter().all(|error| is_mended_by_more(error, last)))
        }
        _ if error.instance_path().as_str() != last => false,
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::kind::schema::Schema;

    fn schema(text: &Value) -> Schema {
        Schema::compile(&text.to_string()).unwrap()
    }

    #[test]
    fn of_a_beginning_nothing_is_demanded_but_what_is_there_is_judged() {
        let schema = schema(&json!({
            "required": ["id"], "minProperties": 3,
            "properties": {
                "s": {"$ref": "#/$defs/s"},
                "list": {"minItems": 2, "contains": {"const": 1}, "items": {"type": "integer"}},
                "map": {"type": "object", "required": ["a"], "additionalProperties": false,
                        "properties": {"required": {"type": "string"}, "a": {}}},
                "one": {"oneOf": [{"type": "array", "minItems": 1}, {"type": "string"}]},
                "of": {"enum": ["a", ["a"]]},
                "whole": {"const": {"a": 1}},
                "not": {"not": {"maxItems": 1}},
            },
            "if": {"required": ["s"]}, "then": {"required": ["list"]},
            "$defs": {"s": {"enum": ["a", "in progress"]}},
        }));
        assert!(schema.judge(&json!({})).is_err());
        for fits in [
            json!({}),
            json!({"s": "a"}),
            json!({"list": []}),
            json!({"map": {"required": "x"}}),
            json!({"one": []}),
            json!({"of": []}),
            json!({"whole": {}, "not": []}),
        ] {
            assert_eq!(schema.judge_so_far(&fits, None), Ok(()), "{fits}");
        }
        for not in [
            json!({"s": "b"}),
            json!({"s": []}),
            json!({"list": ["x"]}),
            json!({"map": []}),
            json!({"map": {"required": []}}),
            json!({"map": {"b": 1}}),
            json!({"one": {}}),
        ] {
            assert!(schema.judge_so_far(&not, None).is_err(), "{not}");
        }
    }

    #[test]
    fn what_a_longer_last_line_could_mend_is_no_fault_yet() {
        let schema = schema(&json!({"properties": {
            "s": {"enum": ["new", "in progress"]},
            "name": {"type": "string", "pattern": "^[a-z]+ [a-z]+$"},
            "n": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "string"}},
        }}));
        let judge = |value: Value, last: &str| schema.judge_so_far(&value, Some(last)).is_ok();
        for (mended, value, last) in [
            (true, json!({"s": "in"}), "/s"),
            (false, json!({"s": "ne"}), "/s"),
            (false, json!({"s": "in"}), "/name"),
            (true, json!({"name": "ada"}), "/name"),
            (true, json!({"name": 7}), "/name"),
            (false, json!({"name": 7, "s": "new"}), "/s"),
            (false, json!({"n": "x"}), "/n"),
            (false, json!({"list": "x"}), "/list"),
            (true, json!({"list": ["a", 1]}), "/list/1"),
            (false, json!({"list": [1, "a"]}), "/list/1"),
        ] {
            assert_eq!(judge(value.clone(), last), mended, "{value} {last}");
        }
    }

    #[test]
    fn of_alternatives_one_may_come_to_fit_by_a_longer_last_line() {
        let one_of = json!([
            {"properties": {"s": {"const": "in progress"}}, "required": ["s"]},
            {"properties": {"s": {"enum": ["done"]}, "n": {"type": "integer"}}},
        ]);
        for keyword in ["anyOf", "oneOf"] {
            let schema = schema(&json!({"properties": {"x": {keyword: one_of.clone()}}}));
            let judge = |value, last| schema.judge_so_far(&value, last).is_ok();
            assert!(judge(json!({"x": {"s": "in"}}), Some("/x/s")));
            assert!(!judge(json!({"x": {"s": "in"}}), None));
            assert!(!judge(json!({"x": {"s": "in", "n": "y"}}), Some("/x/n")));
        }
    }

    #[test]
    fn items_that_are_the_same_so_far_may_differ_in_the_end() {
        let schema = schema(&json!({"properties": {"a": {"uniqueItems": true}}}));
        assert_eq!(schema.judge_so_far(&json!({"a": [{"b": 1}, {"b": 1}]}), None), Ok(()));
        assert!(schema.judge(&json!({"a": [{"b": 1}, {"b": 1}]})).is_err());
    }

    #[test]
    fn what_refers_to_one_of_all_finds_the_same_in_a_beginning() {
        // Whichever comes first.
        for text in [
            r#"{"oneOf": [{"type": "integer"}, {"type": "string"}], "allOf": [{"minimum": 0}]}"#,
            r#"{"allOf": [{"minimum": 0}], "oneOf": [{"type": "integer"}, {"type": "string"}]}"#,
        ] {
            let refers = r##"{"$ref": "#/properties/a/allOf/0"}"##;
            let text = format!(r#"{{"properties": {{"a": {text}, "b": {refers}}}}}"#);
            let schema = Schema::compile(&text).unwrap();
            assert_eq!(schema.judge_so_far(&json!({"a": "x", "b": [1]}), None), Ok(()), "{text}");
            assert!(schema.judge_so_far(&json!({"b": -1}), None).is_err(), "{text}");
            assert!(schema.judge_so_far(&json!({"a": []}), None).is_err(), "{text}");
        }
    }
}
