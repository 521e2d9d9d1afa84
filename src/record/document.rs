//! A whole text as one strict mapping.

use granit_parser::{Event, Parser};
use serde_json::{Map, Value};

use super::compose::Composer;
use super::flaw::{Flaw, text_place};
use super::pointer::steps;
use super::source;
use crate::refusal::TextPlace;

/// A parsed, strict record: one YAML document, a mapping with string keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    value: Value,
}

impl Document {
    /// Parses a whole text.
    ///
    /// # Errors
    /// The first flaw in it.
    pub fn parse(bytes: &[u8]) -> Result<Document, Flaw> {
        let text = source::text(bytes)?;
        let mut parser = Parser::new_from_str_with_options(text, source::parser_options());
        let mut composer = Composer::of_record(text);
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| Flaw::scan(&error, text))?;
            let is_end = matches!(event, Event::DocumentEnd);
            composer.take(event, &span)?;
            // The parser takes a megabyte of `...` slowly; it is needed only if more follows.
            if is_end && span.end.byte_offset().is_some_and(|end| is_nothing(&text[end..])) {
                break;
            }
        }
        Ok(Document { value: Value::Object(composer.finish()?) })
    }

    /// The mapping as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The mapping as JSON, its fields in the order of the text.
    #[must_use]
    pub fn into_fields(self) -> Map<String, Value> {
        match self.value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// A nested field by its JSON pointer (`/result/summary`).
    #[must_use]
    pub fn pointer(&self, json_pointer: &str) -> Option<&Value> {
        self.value.pointer(json_pointer)
    }

    /// Where in `bytes`, from which this was parsed, the value at a JSON pointer begins; where it
    /// was reached through an alias, the alias's place. Reads the text again: for errors.
    #[must_use]
    pub fn place_of(&self, bytes: &[u8], json_pointer: &str) -> Option<TextPlace> {
        let text = source::text(bytes).ok()?;
        self.pointer(json_pointer)?;
        locate(text, &steps(json_pointer).collect::<Vec<_>>())
    }
}

/// Where in a text that is still being written the value at a JSON pointer begins.
#[must_use]
pub fn place_in(bytes: &[u8], json_pointer: &str) -> Option<TextPlace> {
    let (text, _) = source::text_so_far(bytes).ok()?;
    locate(text, &steps(json_pointer).collect::<Vec<_>>())
}

/// Whether behind a document only blanks, comments and further ends follow.
fn is_nothing(rest: &str) -> bool {
    rest.split(['\n', '\r']).enumerate().all(|(at, line)| {
        let is_end = at > 0 && line.trim_end_matches(' ') == "...";
        line.trim_matches(' ').is_empty() || is_end || (at > 0 && line.starts_with('#'))
    })
}

/// One collection on the way to the wanted value.
struct Step {
    is_mapping: bool,
    /// In a mapping: the key is read, its value comes next.
    has_key: bool,
    /// Whether the next child is on the way; in a list, its index decides.
    on_way: bool,
    index: usize,
}

fn locate(text: &str, wanted: &[String]) -> Option<TextPlace> {
    let mut parser = Parser::new_from_str_with_options(text, source::parser_options());
    // Only collections on the way are kept; `skipped` counts the open ones that are not.
    let mut way: Vec<Step> = Vec::new();
    let mut skipped = 0usize;
    while let Some(Ok((event, span))) = parser.next_event() {
        if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
            if skipped == 0 {
                return None;
            }
            skipped -= 1;
            continue;
        }
        if !event.is_node() {
            continue;
        }
        let opens = matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        let depth = way.len();
        let on_way = match way.last_mut() {
            _ if skipped > 0 => false,
            None => true,
            Some(step) if step.is_mapping && !step.has_key => {
                let key = event.scalar().map(|(key, _)| key);
                step.on_way = key == wanted.get(depth - 1).map(String::as_str);
                step.has_key = true;
                continue;
            }
            Some(step) => {
                step.has_key = false;
                step.index += 1;
                let is_index = || wanted.get(depth - 1)?.parse().ok();
                if step.is_mapping { step.on_way } else { is_index() == Some(step.index - 1) }
            }
        };
        if on_way && (depth == wanted.len() || event.is_alias()) {
            return Some(text_place(&span.start));
        }
        if opens && on_way {
            let is_mapping = matches!(event, Event::MappingStart(..));
            way.push(Step { is_mapping, has_key: false, on_way: false, index: 0 });
        } else if opens {
            skipped += 1;
        }
    }
    None
}
