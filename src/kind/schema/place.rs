//! Where in the text of a schema something is wrong.

use serde_json::Value;

use crate::record::{place_in, push_step};

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
        push_step(pointer, key);
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

/// The line of what a JSON pointer names, where that can be told.
pub(super) fn line_at(schema: &str, pointer: &str) -> Option<u32> {
    // Each JSON text is YAML, of which the reader knows the places. The whole has none.
    place_in(schema.as_bytes(), pointer).filter(|_| !pointer.is_empty()).map(|place| place.line)
}

#[cfg(test)]
mod tests {
    use crate::kind::load::load_test::{SCHEMA, SOUND};
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
