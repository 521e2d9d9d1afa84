//! The JSON Schema of a kind: compiled once, and its errors said in words.
//!
//! What must stay true: a message quotes at most a short scalar of an enumeration, never content.
//! No schema is fetched from anywhere: a reference to another file is refused when it is loaded.

mod examples;
pub(super) mod fields;
mod metered;
mod place;
mod reach;
mod so_far;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, JsonType, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::error::Fault;
use super::nearest::nearest;
use crate::limits::{EXPLAIN_STEPS_MAX, JUDGE_SO_FAR_STEPS_MAX, JUDGE_STEPS_MAX};
use crate::names::{printable, printable_start};
use crate::record::{push_step, steps};
use crate::refusal::Rule;
use examples::{Takes, dates, takes};
use fields::Fields;
use metered::{Counting, Meter};
use place::{broken_reference, line_at};
use reach::{Reach, Unjudged};
use so_far::{is_mended_by_more, relaxed};

/// Longest value that a message quotes, in characters.
const QUOTED_CHARS_MAX: usize = 40;

/// Longest message, in characters: a schema may list thousands of words, and each refusal and each draft keeps
/// what it was told.
const TOLD_CHARS_MAX: usize = 1000;

/// A schema that is ready to judge.
#[derive(Debug)]
pub(crate) struct Schema {
    whole: Validator<Counting>,
    /// The same for a text of which only the beginning is written.
    so_far: Validator<Counting>,
    pub(super) source: Value,
    reach: Reach,
    pub(super) fields: Fields,
}

/// What is told of a schema that names another draft than the one by which all are judged.
pub(crate) fn other_draft(text: &str) -> Option<String> {
    let source: Value = serde_json::from_str(text).ok()?;
    let named = source.get("$schema")?.as_str()?;
    if named.contains("json-schema.org/draft/2020-12/") {
        return None;
    }
    let named = printable_start(named.as_bytes());
    Some(format!(
        "`$schema` is `{named}`, and it is judged as JSON Schema 2020-12, in which some words mean something else \
         (an `items` with a list is `prefixItems`): write it as that, or leave `$schema` out"
    ))
}

impl Schema {
    /// Compiles `text`. The error is the line, where known, and the reason.
    pub(crate) fn compile(text: &str) -> Result<Schema, (Option<u32>, String)> {
        let source: Value = serde_json::from_str(text).map_err(|error| {
            let line = u32::try_from(error.line()).ok().filter(|line| *line > 0);
            (line, format!("not JSON: {error}"))
        })?;
        let Some(top) = source.as_object() else {
            return Err((None, "a schema is an object".to_owned()));
        };
        let relaxed = Value::Object(relaxed(top));
        let build = |schema: &Value| {
            build(schema).map_err(|error| {
                let pointer = match error.instance_path().as_str() {
                    "" => broken_reference(schema, &error.to_string()).unwrap_or_default(),
                    pointer => pointer.to_owned(),
                };
                let place = match &pointer[..] {
                    "" => String::new(),
                    pointer => format!("at `{}`: ", printable(pointer.as_bytes())),
                };
                let line = line_at(text, &pointer);
                (line, format!("not a JSON Schema 2020-12: {place}{error}"))
            })
        };
        let whole = build(&source)?;
        // What refers to a place that was taken out judges no beginning.
        let so_far = build(&relaxed).or_else(|_| build(&Value::Bool(true)))?;
        let reach = Reach::of(&source).max(Reach::of(&relaxed));
        Ok(Schema { whole, so_far, source, reach, fields: Fields::Whole })
    }

    pub(crate) fn judge(&self, value: &Value) -> Result<(), Fault> {
        match Meter::run((JUDGE_STEPS_MAX, self.reach), value, |value| self.whole.is_valid(value)) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(Unjudged::TooMuch) => return Err(beyond_judging()),
            Err(Unjudged::NoThread) => return Err(without_thread()),
        }
        let explained = Meter::run((EXPLAIN_STEPS_MAX, self.reach), value, |value| {
            self.whole.validate(value).map_err(|error| self.explain(&error))
        });
        explained.unwrap_or_else(|why| match why {
            Unjudged::TooMuch => Err(beyond_explaining()),
            Unjudged::NoThread => Err(without_thread()),
        })
    }

    /// Judges the beginning of a text. `last` is where its last scalar is, if that could still get longer.
    pub(crate) fn judge_so_far(&self, value: &Value, last: Option<&str>) -> Result<(), Fault> {
        let judged = Meter::run((JUDGE_SO_FAR_STEPS_MAX, self.reach), value, |value| {
            if self.so_far.is_valid(value.clone()) {
                return Ok(());
            }
            let mut errors = self.so_far.iter_errors(value);
            let lasts = |error: &ValidationError<'_>| {
                !last.is_some_and(|last| is_mended_by_more(error, last))
            };
            let lasting = errors.find(lasts);
            lasting.map_or(Ok(()), |error| Err(self.explain(&error)))
        });
        // What more may follow is judged when it is whole.
        judged.unwrap_or(Ok(()))
    }

    fn explain(&self, error: &ValidationError<'_>) -> Fault {
        let pointer = error.instance_path().as_str().to_owned();
        let field = field_name(&pointer);
        let found = error.instance().as_ref();
        if let ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } = error.kind()
            && let Some(first) = unexpected.first()
        {
            let mut pointer = pointer;
            push_step(&mut pointer, first);
            let field = field_name(&pointer);
            let reason = format!("there is no field {field}: the schema has none of that name");
            return Fault {
                rule: Rule::Schema,
                pointer,
                reason,
                remedy: format!("remove {field}"),
            };
        }
        let (reason, remedy) = match error.kind() {
            ValidationErrorKind::Enum { options } => {
                let options: Vec<&str> =
                    options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                one_of(&field, found, &options, "")
            }
            ValidationErrorKind::Pattern { pattern } => self.not_in_form(error, &field, pattern),
            ValidationErrorKind::Type { kind } => {
                let (reason, remedy) = wrong_type(&field, found, kind);
                (reason, self.examples(error).map_or(remedy, |all| like(&field, &all)))
            }
            ValidationErrorKind::Required { property } => {
                let mut lacking = self.lacking(error);
                if lacking.is_empty() {
                    lacking.extend(property.as_str());
                }
                let all = lacking.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
                let fields = if all.len() > 1 { "fields" } else { "field" };
                let all = all.join(", ");
                (format!("{field} lacks the {fields} {all}"), format!("add {all}"))
            }
            // Masked: the value itself stays out of messages and logs.
            _ => (format!("{field}: {}", error.masked()), format!("mend {field}, then save again")),
        };
        Fault { rule: Rule::Schema, pointer, reason: told(reason), remedy: told(remedy) }
    }

    /// What is said of a text that does not match this pattern, and what to do.
    fn not_in_form(
        &self,
        error: &ValidationError<'_>,
        field: &str,
        pattern: &str,
    ) -> (String, String) {
        let found = error.instance().as_ref();
        let Some(examples) = self.examples(error) else {
            let reason = format!("{field} does not match the pattern {pattern}");
            return (reason, format!("write {field} in that form"));
        };
        match takes(pattern, &examples) {
            Takes::Words => one_of(field, found, &examples, ""),
            Takes::WordsInAnyCase => one_of(field, found, &examples, " (any case)"),
            Takes::More => {
                let found = shortened(found.as_str().unwrap_or_default());
                let not = dates(&examples)
                    .map_or("which is not in its form".to_owned(), |what| format!("not {what}"));
                (format!("{field} is `{found}`, {not}"), like(field, &examples))
            }
        }
    }

    /// All that is required beside what was found to be missing, and is missing, too.
    fn lacking(&self, error: &ValidationError<'_>) -> Vec<&str> {
        let required = self.source.pointer(error.schema_path().as_str()).and_then(Value::as_array);
        let found = error.instance();
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| found.get(name).is_none()).collect()
    }

    /// The `examples` beside the keyword that failed: what a pattern stands for.
    fn examples(&self, error: &ValidationError<'_>) -> Option<Vec<&str>> {
        let (schema, _keyword) = error.schema_path().as_str().rsplit_once('/')?;
        let examples = self.source.pointer(schema)?.get("examples")?.as_array()?;
        Some(examples.iter().filter_map(Value::as_str).collect())
    }
}

fn build(schema: &Value) -> Result<Validator<Counting>, ValidationError<'static>> {
    jsonschema::options_for::<Counting>()
        .with_draft(Draft::Draft202012)
        // A linear-time engine: a pattern must not be able to stall a save.
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
}

/// Of what is not valid, where the library would say why too often.
fn beyond_explaining() -> Fault {
    Fault {
        rule: Rule::Schema,
        pointer: String::new(),
        reason: "the record does not fit the schema, in more ways than can be listed".to_owned(),
        remedy: "mend it by the schema, piece by piece: a smaller part of it shows its faults"
            .to_owned(),
    }
}

/// Of what may be valid or not.
fn beyond_judging() -> Fault {
    Fault {
        rule: Rule::Schema,
        pointer: String::new(),
        reason: format!(
            "judging the record by the schema takes more than {JUDGE_STEPS_MAX} steps, or goes too deep"
        ),
        remedy: "make it smaller or less nested; or have the schema made simpler where its \
                 alternatives refer to themselves"
            .to_owned(),
    }
}

/// Of what may be valid or not, and was not looked at: no word about what it says.
fn without_thread() -> Fault {
    Fault {
        rule: Rule::Deadline,
        pointer: String::new(),
        reason: "judging the record takes a thread of its own, and the daemon gets none".to_owned(),
        remedy: "save it again; if that helps nothing, the daemon may have too few processes"
            .to_owned(),
    }
}

/// The field that a pointer names, as people write it: `` `context.dependencies[2]` ``.
fn field_name(pointer: &str) -> String {
    if pointer.is_empty() {
        return "the record".to_owned();
    }
    let mut name = String::new();
    for part in steps(pointer) {
        if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
            name.push_str(&format!("[{part}]"));
        } else {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&part);
        }
    }
    format!("`{}`", shortened(&name))
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    printable(short.as_bytes())
}

/// A message, or its beginning.
fn told(text: String) -> String {
    match text.char_indices().nth(TOLD_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// "`status` is `X`, which is none of …" and the nearest one, for any enumeration.
pub(super) fn one_of(field: &str, found: &Value, allowed: &[&str], note: &str) -> (String, String) {
    let list = told(allowed.join(", "));
    let Some(word) = found.as_str() else {
        let reason = format!("{field} is {}, not one of {list}{note}", described(found));
        return (reason, format!("set {field} to one of {list}{note}"));
    };
    let reason = format!("{field} is `{}`, not one of {list}{note}", shortened(word));
    let remedy = match nearest(word, allowed.iter().copied()) {
        Some(near) => format!("set {field} to `{near}`, or another of {list}{note}"),
        None => format!("set {field} to one of {list}{note}"),
    };
    (reason, remedy)
}

fn like(field: &str, examples: &[&str]) -> String {
    match dates(examples) {
        Some(what) => format!("write {field} as {what}, such as {}", examples.join(" or ")),
        None => format!("write {field} like one of {}", examples.join(", ")),
    }
}

fn wrong_type(field: &str, found: &Value, wanted: &TypeKind) -> (String, String) {
    let types: Vec<JsonType> = match wanted {
        TypeKind::Single(one) => vec![*one],
        TypeKind::Multiple(several) => several.iter().collect(),
    };
    let takes_text = types.contains(&JsonType::String);
    let wanted: Vec<&str> =
        types.iter().filter(|one| **one != JsonType::Null).map(|one| in_yaml(*one)).collect();
    let wanted = wanted.join(" or ");
    let reason = format!("{field} is {}, not {wanted}", described(found));
    let remedy = match found {
        Value::Number(_) | Value::Bool(_) if takes_text => {
            format!("put the value of {field} in quotes")
        }
        _ => format!("make {field} {wanted}"),
    };
    (reason, remedy)
}

fn in_yaml(json: JsonType) -> &'static str {
    match json {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "a mapping",
        JsonType::String => "text",
    }
}

fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(text: &Value) -> Schema {
        Schema::compile(&text.to_string()).unwrap()
    }

    #[test]
    fn bad_schemas_are_refused() {
        let (line, reason) = Schema::compile("{\n  \"type\": \n}").unwrap_err();
        assert_eq!(line, Some(3), "{reason}");
        assert!(Schema::compile("[]").is_err());
        assert!(Schema::compile(r#"{"type": "text"}"#).is_err());
        let (_, reason) =
            Schema::compile(r#"{"properties": {"a": {"pattern": "("}}}"#).unwrap_err();
        assert!(reason.contains("at `/properties/a/pattern`: "), "{reason}");
        assert!(Schema::compile(r##"{"$ref": "#/$defs/nowhere"}"##).is_err());
        assert!(Schema::compile(r#"{"$ref": "http://localhost/x.json"}"#).is_err());
    }

    #[test]
    fn an_enumeration_lists_its_values_and_the_nearest() {
        let schema = schema(&json!({"properties": {"s": {"enum": ["new", "done"]}}}));
        let fault = schema.judge(&json!({"s": "doen"})).unwrap_err();
        assert_eq!(fault.pointer, "/s");
        assert_eq!(fault.reason, "`s` is `doen`, not one of new, done");
        assert_eq!(fault.remedy, "set `s` to `done`, or another of new, done");
        let fault = schema.judge(&json!({"s": 3})).unwrap_err();
        assert_eq!(fault.reason, "`s` is a number, not one of new, done");
        let fault = schema.judge(&json!({"s": "x".repeat(99) + "\u{1b}"})).unwrap_err();
        assert!(fault.reason.len() < 100, "{}", fault.reason);
    }

    #[test]
    fn a_wrong_type_says_what_is_wanted() {
        let schema = schema(&json!({"properties": {
            "id": {"type": "string"},
            "list": {"type": ["array", "null"], "items": {"type": "string"}},
        }}));
        let fault = schema.judge(&json!({"id": 7})).unwrap_err();
        assert_eq!(fault.reason, "`id` is a number, not text");
        assert_eq!(fault.remedy, "put the value of `id` in quotes");
        let fault = schema.judge(&json!({"list": ["a", {}]})).unwrap_err();
        assert_eq!(fault.pointer, "/list/1");
        assert_eq!(fault.reason, "`list[1]` is a mapping, not text");
        let fault = schema.judge(&json!({"list": "secret"})).unwrap_err();
        assert_eq!(fault.reason, "`list` is text, not a list");
    }

    #[test]
    fn all_that_is_missing_is_told_at_once() {
        let schema = schema(&json!({
            "required": ["a"],
            "properties": {"b": {"required": ["c", "d", "e"]}},
        }));
        let fault = schema.judge(&json!({"b": {"c": 1, "d": 2, "e": 3}})).unwrap_err();
        assert_eq!(fault.reason, "the record lacks the field `a`");
        let fault = schema.judge(&json!({"a": 1, "b": {"d": null}})).unwrap_err();
        assert_eq!((fault.pointer.as_str(), fault.remedy.as_str()), ("/b", "add `c`, `e`"));
        assert_eq!(fault.reason, "`b` lacks the fields `c`, `e`");
    }

    #[test]
    fn other_keywords_do_not_show_the_value() {
        let schema = schema(&json!({"properties": {"key": {"maxLength": 3}}}));
        let fault = schema.judge(&json!({"key": "secret"})).unwrap_err();
        assert!(!fault.reason.contains("secret"), "{}", fault.reason);
        assert!(fault.reason.starts_with("`key`: "), "{}", fault.reason);
    }

    #[test]
    fn however_much_a_schema_lists_little_of_it_is_told() {
        let words: Vec<String> = (0..9000).map(|nth| format!("wörd-{nth}")).collect();
        let schema = json!({"properties": {"a": {"enum": words}, "b": {"const": words}},
                            "required": ["a"]});
        let schema = Schema::compile(&schema.to_string()).unwrap();
        for value in [json!({"a": "wörd-8"}), json!({"a": "x"}), json!({"a": 7})] {
            let Err(Fault { reason, remedy, .. }) = schema.judge(&value) else { continue };
            assert!(reason.contains("not one of wörd-0, wörd-1"), "{reason}");
            assert!(reason.ends_with('…') && reason.len() < 1300, "{reason}");
            assert!(remedy.ends_with('…') && remedy.len() < 1300, "{remedy}");
        }
        assert!(schema.judge(&json!({"a": "wörd-8"})).is_ok());
        let Fault { reason, .. } = schema.judge(&json!({"a": "wörd-8", "b": 1})).unwrap_err();
        assert!(reason.len() < 1300, "{reason}");
    }
}
