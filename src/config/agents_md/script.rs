//! All of an agent's steps as one script for `sh`, which works as it is printed.
//!
//! What must stay true: it ends with 0 only if the record is finished; what it writes is valid in the
//! kind's schema. Where no text can be told that is, or in which form the record is written, a comment
//! says what is to be done there.

use serde_json::{Map, Value, json};

use super::{Guide, ready_of, state_dir};
use crate::kind::FieldPath;
use crate::names::shell_quoted;

/// What is written into a field that holds text.
const SAID: &str = "Added the retry; 41 tests pass.";

/// How the records of a kind are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Yaml,
    Json,
    /// Some so, some so.
    Either,
}

impl Guide<'_> {
    pub(super) fn script(&self, out: &mut String, is_whole: bool) {
        let dir = |state| {
            let dir =
                shell_quoted(&state_dir(self.path, state, "<agent>")).replace("<agent>", "$me");
            dir.replace("<yyyy-mm>", "$(date -u +%Y-%m)")
        };
        out.push_str(&format!(
            "\n## All of it, in sh\n```sh\n\
             me={}; ready={}; lane={}; finished={}\n\
             why() {{ cat \"$f.why\"; exit 1; }}\n\
             mkdir -p \"$lane\" \"$finished\" && mv \"$ready/.next\" \"$lane/\" || exit 1\n\
             f=\"$lane/$(readlink \"$lane/.next\")\"; cat \"$f\"\n",
            self.me.unwrap_or("YOU"),
            shell_quoted(&ready_of(self.path, self.kind)),
            dir(self.lane),
            dir(self.done),
        ));
        let form = self.form();
        if let (Some((field, from, to)), false) = (self.first_move(), form == Form::Either) {
            let change = match form {
                Form::Json => format!("s/\"{field}\": *\"{from}\"/\"{field}\": \"{to}\"/"),
                Form::Yaml | Form::Either => format!("s/^{field}:.*/{field}: {to}/"),
            };
            out.push_str(&format!("sed -i '{change}' \"$f\" || why\n"));
        }
        out.push_str("# ... the work itself ...\n");
        let required = self.required_at_the_end();
        match (self.example_of(&required), form) {
            (Some(example), Form::Yaml) => out.push_str(&appended(&example)),
            (Some(example), Form::Json) => out.push_str(&put_first(&example)),
            (Some(example), Form::Either) if example.is_empty() => {}
            _ => {
                let all: Vec<String> = required.iter().map(|path| path.to_string()).collect();
                let place = if is_whole { "; of which form: .workfs/kinds/" } else { "" };
                out.push_str(&format!("# Here save {} in \"$f\"{place}\n", all.join(", ")));
            }
        }
        out.push_str("mv \"$f\" \"$finished/\" || why\n```\n");
    }

    fn form(&self) -> Form {
        let extensions = self.kind.extensions();
        match extensions.iter().filter(|one| *one == "json").count() {
            0 => Form::Yaml,
            all if all == extensions.len() => Form::Json,
            _ => Form::Either,
        }
    }

    /// The move of the status that an agent makes when it begins, where the kind has one for that:
    /// the field, from what and to what.
    fn first_move(&self) -> Option<(&str, &str, &str)> {
        let field = self.kind.fields().status.as_deref()?;
        let from = self.status_kept().or(self.lane.status.first())?;
        let first = self.lane.moves.as_ref()?.iter().find(|one| {
            one.from == from
                && one.to != from
                && one.by.contains(&self.role)
                && !self.kind.is_setback(self.claim.to, &one.to)
        })?;
        let all = [field, from, &*first.to];
        all.into_iter().all(is_plain).then_some((field, from, &first.to))
    }

    /// Values of these fields that the kind takes; `None` if none of those tried is.
    fn example_of(&self, required: &[&FieldPath]) -> Option<Map<String, Value>> {
        let values = [json!(SAID), json!([SAID]), json!(41), json!(true), json!([])];
        let mut example = Map::new();
        for path in required {
            let way = path.first_way();
            let fits = |value: &Value| {
                let mut with = example.clone();
                put(&mut with, way, value);
                self.kind.takes(&with).then_some(with)
            };
            if !way.iter().all(|key| is_plain(key)) {
                return None;
            }
            example = values.iter().find_map(fits)?;
        }
        Some(example)
    }
}

/// Sets the value at the end of the way, below mappings.
fn put(at: &mut Map<String, Value>, way: &[String], value: &Value) {
    let Some((key, rest)) = way.split_first() else { return };
    if rest.is_empty() {
        at.insert(key.clone(), value.clone());
        return;
    }
    let below = at.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(below) = below {
        put(below, rest, value);
    }
}

/// Adds the fields at the end in one write; where one is already, a second one would be refused.
fn appended(example: &Map<String, Value>) -> String {
    if example.is_empty() {
        return String::new();
    }
    let keys: Vec<&str> = example.keys().map(String::as_str).collect();
    let (any, all) = match keys[..] {
        [one] => (one.to_owned(), one.to_owned()),
        _ => (format!("\\({}\\)", keys.join("\\|")), keys.join(", ")),
    };
    // The empty line first: the file may not end in one.
    format!(
        "if grep -q '^{any}:' \"$f\"; then echo \"edit the {all}: that is in $f\"; exit 1; fi\n\
         cat >> \"$f\" <<'END' || why\n\n{}END\n",
        block(example, 0)
    )
}

/// Puts the fields before all others of an object.
fn put_first(example: &Map<String, Value>) -> String {
    let fields: String =
        example.iter().map(|(key, value)| format!("{}: {value}, ", json!(key))).collect();
    if fields.is_empty() { fields } else { format!("sed -i '1s/{{/{{{fields}/' \"$f\" || why\n") }
}

fn block(fields: &Map<String, Value>, depth: usize) -> String {
    let line = |(key, value): (&String, &Value)| {
        let indent = "  ".repeat(depth);
        match value {
            Value::Object(below) => format!("{indent}{key}:\n{}", block(below, depth + 1)),
            Value::String(text) => format!("{indent}{key}: {text}\n"),
            value => format!("{indent}{key}: {value}\n"),
        }
    };
    fields.iter().map(line).collect()
}

/// Whether it means itself in YAML, in JSON, in a pattern of `sed` and between a shell's quotes.
fn is_plain(word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(is_letter)
}
