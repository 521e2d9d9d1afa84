//! From the parser's events to one strict mapping.
//!
//! What must stay true: a flaw found at an event is a flaw whatever follows, so that the same
//! code judges whole texts and the beginnings of texts. No recursion: the stack is a list.

use std::collections::HashMap;

use granit_parser::{Event, Marker, ScalarStyle, Span, StructureStyle, Tag};
use serde_json::{Map, Value};

use super::flaw::{Flaw, shown, text_place};
use super::indentation::Indentation;
use super::pointer::push_step;
use super::scalar::{Plain, resolve};
use super::source::{control, is_refused_control};
use super::{RECORD_ANCHORS_MAX, RECORD_NODES_MAX};
use crate::limits::{RECORD_BYTES_MAX, RECORD_DEPTH_MAX};
use crate::refusal::Rule;

/// Builds a mapping from events.
#[derive(Default)]
pub(super) struct Composer {
    open: Vec<Open>,
    root: Option<Map<String, Value>>,
    /// Finished anchored values, by the parser's number of the anchor.
    anchored: HashMap<usize, Value>,
    documents: usize,
    nodes: usize,
    copied_bytes: usize,
    indentation: Indentation,
}

struct Open {
    anchor: usize,
    part: Part,
}

enum Part {
    Mapping { map: Map<String, Value>, key: Option<String> },
    List(Vec<Value>),
}

impl Composer {
    /// For a record's text, or its beginning.
    pub(super) fn of_record(text: &str) -> Composer {
        Composer { indentation: Indentation::of(text), ..Composer::default() }
    }

    /// For a text that may have anything at its top, which is composed as the one item of a list.
    pub(super) fn of_anything() -> Composer {
        let list = Open { anchor: 0, part: Part::List(Vec::new()) };
        Composer { open: vec![list], ..Composer::default() }
    }

    /// What that text says, once the events have ended; nothing is null.
    pub(super) fn finish_anything(mut self) -> Value {
        match self.open.pop() {
            Some(Open { part: Part::List(mut list), .. }) => list.pop().unwrap_or(Value::Null),
            _ => Value::Null,
        }
    }

    /// Where the value that comes next will be, as a JSON pointer; `None` if no value comes next.
    pub(super) fn awaited(&self) -> Option<String> {
        let mut pointer = String::new();
        for Open { part, .. } in &self.open {
            match part {
                Part::Mapping { key, .. } => push_step(&mut pointer, key.as_ref()?),
                Part::List(list) => push_step(&mut pointer, &list.len().to_string()),
            }
        }
        (!pointer.is_empty()).then_some(pointer)
    }

    /// What is said so far: lists and mappings as far as they are written. Of a text that may have
    /// anything at its top the one list that it stands in.
    pub(super) fn so_far(mut self, last: Option<Value>) -> Option<Value> {
        let mut inner = last;
        while let Some(Open { part, .. }) = self.open.pop() {
            inner = Some(match (part, inner) {
                (Part::Mapping { mut map, key: Some(key) }, Some(inner)) => {
                    map.insert(key, inner);
                    Value::Object(map)
                }
                (Part::Mapping { map, .. }, _) => Value::Object(map),
                (Part::List(mut list), inner) => {
                    list.extend(inner);
                    Value::Array(list)
                }
            });
        }
        inner.or(self.root.map(Value::Object))
    }

    /// Nothing of the document has come yet.
    pub(super) fn is_at_root(&self) -> bool {
        self.open.is_empty() && self.root.is_none()
    }

    /// The mapping, once the events have ended.
    pub(super) fn finish(self) -> Result<Map<String, Value>, Flaw> {
        self.root.ok_or_else(|| {
            let remedy = "write the record's fields, one `key: value` a line";
            Flaw { at_end: true, ..Flaw::new(Rule::Syntax, "the text is empty", remedy) }
        })
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Flaw> {
        let at = &span.start;
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let remedy = "keep one document: take out the line `---` and what follows it";
                    return Err(Flaw::syntax(at, "a second document begins", remedy));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                if style == ScalarStyle::DoubleQuoted
                    && let Some(c) = text.chars().find(|&c| is_refused_control(c))
                {
                    return Err(Flaw { place: Some(text_place(at)), ..control(c) });
                }
                let value = scalar(&text, style, tag.as_deref(), span)?;
                if self.awaits_key() {
                    return self.take_key(value, &text, style, anchor, at);
                }
                self.count_node(at, 1)?;
                self.keep_anchored(anchor, &value, at)?;
                self.attach(value, at)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.check_indentation(style, at)?;
                check_tag(tag.as_deref(), "seq", span)?;
                self.begin(anchor, Part::List(Vec::new()), at)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.check_indentation(style, at)?;
                check_tag(tag.as_deref(), "map", span)?;
                self.begin(anchor, Part::Mapping { map: Map::new(), key: None }, at)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(done) = self.open.pop() else { return Ok(()) };
                let value = match done.part {
                    Part::Mapping { map, .. } => Value::Object(map),
                    Part::List(list) => Value::Array(list),
                };
                self.keep_anchored(done.anchor, &value, at)?;
                self.attach(value, at)
            }
            Event::Alias(anchor) => self.take_alias(anchor, at),
            _ => Ok(()),
        }
    }

    /// No tab stands before what begins a block, or is the whole record.
    fn check_indentation(&self, style: StructureStyle, at: &Marker) -> Result<(), Flaw> {
        if style == StructureStyle::Block || self.is_at_root() {
            self.indentation.check(at)?;
        }
        Ok(())
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { part: Part::Mapping { key: None, .. }, .. }))
    }

    fn take_key(
        &mut self,
        key: Value,
        source: &str,
        style: ScalarStyle,
        anchor: usize,
        at: &Marker,
    ) -> Result<(), Flaw> {
        let Value::String(name) = key else {
            return Err(not_a_text_key(at));
        };
        if style == ScalarStyle::Plain && source == "<<" {
            let remedy = "write the merged fields out";
            return Err(Flaw::syntax(at, "`<<` merges are not taken", remedy));
        }
        if anchor != 0 {
            self.keep_anchored(anchor, &Value::String(name.clone()), at)?;
        }
        if let Some(Open { part: Part::Mapping { map, key }, .. }) = self.open.last_mut() {
            if map.contains_key(&name) {
                let reason = format!("the key {} is there twice", shown(&name));
                return Err(Flaw::syntax(at, reason, "keep one of the two"));
            }
            *key = Some(name);
        }
        Ok(())
    }

    fn begin(&mut self, anchor: usize, part: Part, at: &Marker) -> Result<(), Flaw> {
        if self.awaits_key() {
            return Err(not_a_text_key(at));
        }
        if self.open.is_empty() && matches!(part, Part::List(_)) {
            return Err(not_a_mapping(at));
        }
        self.check_depth(1, at)?;
        self.count_node(at, 1)?;
        self.open.push(Open { anchor, part });
        Ok(())
    }

    fn attach(&mut self, value: Value, at: &Marker) -> Result<(), Flaw> {
        match self.open.last_mut() {
            Some(Open { part: Part::List(list), .. }) => list.push(value),
            Some(Open { part: Part::Mapping { map, key }, .. }) => {
                if let Some(key) = key.take() {
                    map.insert(key, value);
                }
            }
            None => match value {
                Value::Object(map) => self.root = Some(map),
                _ => return Err(not_a_mapping(at)),
            },
        }
        Ok(())
    }

    fn take_alias(&mut self, anchor: usize, at: &Marker) -> Result<(), Flaw> {
        if self.awaits_key() {
            return Err(not_a_text_key(at));
        }
        let Some(value) = self.anchored.get(&anchor) else {
            let remedy = "write the content out instead of the alias";
            return Err(Flaw::syntax(at, "an alias stands inside what it names", remedy));
        };
        let value = value.clone();
        let size = Size::of(&value);
        self.check_depth(size.depth, at)?;
        self.count_node(at, size.nodes)?;
        self.count_copy(size.bytes, at)?;
        self.attach(value, at)
    }

    /// Copies count, because a text of a few hundred bytes can stand for gigabytes.
    fn keep_anchored(&mut self, anchor: usize, value: &Value, at: &Marker) -> Result<(), Flaw> {
        if anchor != 0 {
            self.count_copy(Size::of(value).bytes, at)?;
            if self.anchored.len() >= RECORD_ANCHORS_MAX {
                let reason = format!("the record holds more than {RECORD_ANCHORS_MAX} anchors");
                return Err(too_large(at, reason));
            }
            self.anchored.insert(anchor, value.clone());
        }
        Ok(())
    }

    fn check_depth(&self, more: usize, at: &Marker) -> Result<(), Flaw> {
        if self.open.len() + more <= RECORD_DEPTH_MAX {
            return Ok(());
        }
        Err(Flaw::too_deep(at))
    }

    fn count_node(&mut self, at: &Marker, more: usize) -> Result<(), Flaw> {
        self.nodes = self.nodes.saturating_add(more);
        let reason = || format!("the record holds more than {RECORD_NODES_MAX} values");
        if self.nodes > RECORD_NODES_MAX { Err(too_large(at, reason())) } else { Ok(()) }
    }

    fn count_copy(&mut self, bytes: usize, at: &Marker) -> Result<(), Flaw> {
        self.copied_bytes = self.copied_bytes.saturating_add(bytes);
        let reason = || format!("anchors and aliases stand for over {RECORD_BYTES_MAX} bytes");
        if self.copied_bytes > RECORD_BYTES_MAX { Err(too_large(at, reason())) } else { Ok(()) }
    }
}

/// The flaw of a top level that is a list or a text.
pub(super) fn not_a_mapping(at: &Marker) -> Flaw {
    let remedy = "write the record's fields as `key: value`, one a line";
    Flaw::syntax(at, "the text is not a mapping of fields", remedy)
}

fn not_a_text_key(at: &Marker) -> Flaw {
    Flaw::syntax(at, "a key is not a text", "put the key in quotes")
}

fn too_large(at: &Marker, reason: String) -> Flaw {
    let remedy = "put large content into a file of its own and name that file in the record";
    Flaw { rule: Rule::TooLarge, ..Flaw::syntax(at, reason, remedy) }
}

/// What a copy of a value costs.
struct Size {
    bytes: usize,
    nodes: usize,
    depth: usize,
}

impl Size {
    // Recursive, but on a value whose depth was checked when it was built.
    fn of(value: &Value) -> Size {
        let mut size = Size { bytes: 16, nodes: 1, depth: 0 };
        let mut add = |key_bytes: usize, inner: &Value| {
            let inner = Size::of(inner);
            size.bytes += key_bytes + inner.bytes;
            size.nodes += inner.nodes;
            size.depth = size.depth.max(inner.depth);
        };
        match value {
            Value::Object(map) => map.iter().for_each(|(key, inner)| add(key.len(), inner)),
            Value::Array(list) => list.iter().for_each(|inner| add(0, inner)),
            Value::String(text) => size.bytes += text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if value.is_object() || value.is_array() {
            size.depth += 1;
        }
        size
    }
}

/// `!`, `!!str` and the like are taken where they say what YAML would have said or ask for a text.
fn check_tag(tag: Option<&Tag>, wanted: &str, span: &Span) -> Result<(), Flaw> {
    match tag {
        None => Ok(()),
        Some(tag) if is_unspecific(tag) || tag.core_suffix() == Some(wanted) => Ok(()),
        Some(_) => Err(bad_tag(span)),
    }
}

pub(super) fn is_unspecific(tag: &Tag) -> bool {
    matches!(tag.parts(), ("!", "") | ("", "!"))
}

fn bad_tag(span: &Span) -> Flaw {
    let at = span.tag_start().unwrap_or(span.start);
    let reason = "a tag (`!…`) is unknown here or does not fit its value";
    Flaw::syntax(&at, reason, "take the tag out, or quote the value if the `!` is meant as text")
}

/// The value of a scalar.
pub(super) fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    span: &Span,
) -> Result<Value, Flaw> {
    let as_text = || Value::String(text.to_owned());
    let plain = match tag {
        None if style != ScalarStyle::Plain => return Ok(as_text()),
        None => resolve(text),
        Some(tag) if is_unspecific(tag) => return Ok(as_text()),
        Some(tag) => {
            let plain = resolve(text);
            match (tag.core_suffix(), &plain) {
                (Some("str"), _) => return Ok(as_text()),
                (Some("null"), Plain::Null)
                | (Some("bool"), Plain::Bool(_))
                | (Some("int"), Plain::Int(_) | Plain::TooBig)
                | (Some("float"), Plain::Float(_) | Plain::NotFinite) => plain,
                (Some("float"), &Plain::Int(number)) => Plain::Float(number as f64),
                _ => return Err(bad_tag(span)),
            }
        }
    };
    Ok(match plain {
        Plain::Null => Value::Null,
        Plain::Bool(truth) => Value::Bool(truth),
        Plain::Int(number) => Value::from(number),
        Plain::Float(number) => Value::from(number),
        Plain::Text => as_text(),
        Plain::TooBig => {
            let remedy = "put it in quotes if it is a name or an id";
            return Err(Flaw::syntax(&span.start, "an integer is longer than 64 bits", remedy));
        }
        Plain::NotFinite => {
            let remedy = "put it in quotes if it is meant as text";
            return Err(Flaw::syntax(&span.start, "a number is infinite or not a number", remedy));
        }
    })
}
