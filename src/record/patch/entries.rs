//! Finding fields by the parser's events, however the mapping is written.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};

use super::super::flaw::Flaw;
use super::super::scalar::{self, Style};
use super::super::source::parser_options;
use super::{Edit, NEIGHBOURS, Splice, new_line, unpatchable};

/// The top-level mapping as it is written.
struct Written {
    is_flow: bool,
    /// Where its first token is: the `{`, or the first key.
    start: Range<usize>,
    column: usize,
    entries: Vec<Entry>,
    aliased: Vec<usize>,
}

struct Entry {
    key: String,
    key_span: Range<usize>,
    key_is_double_quoted: bool,
    value: Range<usize>,
    shape: Shape,
    /// Tag and anchor before the value.
    properties: Vec<Range<usize>>,
    anchor: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Scalar(ScalarStyle),
    Alias,
    Collection,
}

/// The splices that make the edits; the caller reads the result again.
pub(super) fn splices(text: &str, edits: &[Edit<'_>]) -> Result<Vec<Splice>, Flaw> {
    let written = read(text).ok_or_else(|| unpatchable(edits))?;
    let mut splices = Vec::new();
    for edit in edits {
        if let Some(entry) = written.entries.iter().find(|entry| entry.key == edit.field) {
            let made = written.replace(text, entry, edit.value)?;
            splices.extend(made.ok_or_else(|| unpatchable(&[*edit]))?);
        }
    }
    for edit in edits {
        if written.entries.iter().all(|entry| entry.key != edit.field) {
            splices.push(written.add(text, edit)?);
        }
    }
    Ok(splices)
}

fn read(text: &str) -> Option<Written> {
    let mut options = parser_options();
    options.emit_anchor_events = true;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut written: Option<Written> = None;
    let mut depth = 0usize;
    let mut key: Option<Entry> = None;
    // Anchor events follow their node; this tells whether the node was a value of the top level.
    let mut after_value = false;
    while let Some(next) = parser.next_event() {
        let (event, span) = next.ok()?;
        let range = span.byte_range()?;
        if let Event::Alias(anchor) = event {
            written.as_mut()?.aliased.push(anchor);
        }
        match event {
            Event::MappingStart(style, ..) if depth == 0 => {
                written = Some(Written {
                    is_flow: style == StructureStyle::Flow,
                    start: range,
                    column: span.start.col(),
                    entries: Vec::new(),
                    aliased: Vec::new(),
                });
                depth = 1;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                depth = depth.checked_sub(1)?;
                if depth == 1 {
                    written.as_mut()?.entries.last_mut()?.value.end = range.end;
                }
            }
            Event::Anchor(_, _) => {
                if after_value {
                    written.as_mut()?.entries.last_mut()?.properties.push(range);
                }
                after_value = false;
                continue;
            }
            ref node if node.is_node() => {
                after_value = false;
                if depth == 1 {
                    match key.take() {
                        None => key = Some(key_of(node, range)?),
                        Some(entry) => {
                            let entry = with_value(entry, node, &span, range);
                            written.as_mut()?.entries.push(entry);
                            after_value = true;
                        }
                    }
                }
                if matches!(node, Event::MappingStart(..) | Event::SequenceStart(..)) {
                    depth += 1;
                }
            }
            _ => {}
        }
    }
    written
}

fn key_of(node: &Event<'_>, key_span: Range<usize>) -> Option<Entry> {
    let (key, style) = node.scalar()?;
    Some(Entry {
        key: key.to_owned(),
        key_is_double_quoted: style == ScalarStyle::DoubleQuoted,
        value: key_span.clone(),
        key_span,
        shape: Shape::Collection,
        properties: Vec::new(),
        anchor: 0,
    })
}

fn with_value(entry: Entry, node: &Event<'_>, span: &Span, value: Range<usize>) -> Entry {
    let shape = match node {
        Event::Scalar(_, style, ..) => Shape::Scalar(*style),
        Event::Alias(_) => Shape::Alias,
        _ => Shape::Collection,
    };
    let properties = span.tag_span().and_then(|tag| tag.byte_range()).into_iter().collect();
    let anchor = if shape == Shape::Alias { 0 } else { node.anchor_id().unwrap_or(0) };
    Entry { value, shape, properties, anchor, ..entry }
}

impl Written {
    /// Where one writes keys as in JSON, values are written so, too.
    fn is_json(&self) -> bool {
        self.is_flow && self.entries.iter().all(|entry| entry.key_is_double_quoted)
    }

    fn style_of(&self, text: &str, entry: &Entry) -> Style {
        match entry.shape {
            Shape::Scalar(ScalarStyle::SingleQuoted) => Style::Single,
            Shape::Scalar(ScalarStyle::DoubleQuoted) => Style::Double,
            _ if self.is_json() => Style::Double,
            Shape::Scalar(ScalarStyle::Plain) => {
                Style::of_plain(text.get(entry.value.clone()).unwrap_or_default())
            }
            _ => Style::Plain,
        }
    }

    /// `Ok(None)` where the value cannot be replaced.
    fn replace(&self, text: &str, entry: &Entry, value: &str) -> Result<Option<Vec<Splice>>, Flaw> {
        let new = scalar::write(value, self.style_of(text, entry))?;
        let is_used = entry.anchor != 0 && self.aliased.contains(&entry.anchor);
        if is_used || entry.shape == Shape::Collection {
            return Ok(None);
        }
        if let Shape::Scalar(ScalarStyle::Literal | ScalarStyle::Folded) = entry.shape {
            return Ok(block_scalar(text, entry, new));
        }
        if entry.value.is_empty() {
            // The properties of nothing are where the value has to be.
            let at = entry.properties.iter().min_by_key(|range| range.start);
            if let Some(first) = at {
                let mut splices = drop_properties(text, entry, first.start);
                splices.push(Splice { start: first.start, end: first.end, text: new });
                return Ok(Some(splices));
            }
            return Ok(self.behind_key(text, entry).map(|splice_at| match splice_at {
                Behind::Colon(at) => vec![Splice::insert(at, format!(" {new}"))],
                Behind::Key(at) => vec![Splice::insert(at, format!(": {new}"))],
            }));
        }
        let mut splices = drop_properties(text, entry, usize::MAX);
        splices.push(Splice { start: entry.value.start, end: entry.value.end, text: new });
        Ok(Some(splices))
    }

    /// Where the value of a key without one goes.
    fn behind_key(&self, text: &str, entry: &Entry) -> Option<Behind> {
        let rest = text.get(entry.key_span.end..)?;
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if rest[blanks..].starts_with(':') {
            return Some(Behind::Colon(entry.key_span.end + blanks + 1));
        }
        if self.is_flow { Some(Behind::Key(entry.key_span.end)) } else { None }
    }

    /// A field that is not there yet.
    fn add(&self, text: &str, edit: &Edit<'_>) -> Result<Splice, Flaw> {
        let style =
            if self.is_json() && !self.entries.is_empty() { Style::Double } else { Style::Plain };
        let key = scalar::write(edit.field, style)?;
        let entry = format!("{key}: {}", scalar::write(edit.value, style)?);
        if self.is_flow {
            let separator = if self.entries.is_empty() { "" } else { ", " };
            return Ok(Splice::insert(self.start.end, format!("{entry}{separator}")));
        }
        let beside = NEIGHBOURS
            .iter()
            .filter_map(|name| self.entries.iter().find(|entry| entry.key == *name))
            .chain(&self.entries)
            .find_map(|entry| self.line_after(text, entry));
        // Above the first key is always right; below one reads better.
        let at = beside
            .or_else(|| self.line_of_first_key(text))
            .ok_or_else(|| unpatchable(std::slice::from_ref(edit)))?;
        Ok(new_line(text.as_bytes(), at, self.column, &entry))
    }

    /// The start of the line after an entry whose value ends on a line.
    fn line_after(&self, text: &str, entry: &Entry) -> Option<usize> {
        match entry.shape {
            Shape::Collection | Shape::Scalar(ScalarStyle::Literal | ScalarStyle::Folded) => {
                return None;
            }
            Shape::Scalar(_) | Shape::Alias => {}
        }
        let ends = entry.properties.iter().map(|range| range.end);
        let end = ends.chain([entry.value.end, entry.key_span.end]).max()?;
        Some(next_line(text, end))
    }

    fn line_of_first_key(&self, text: &str) -> Option<usize> {
        let before = text.get(..self.start.start)?;
        let line = before
            .rfind(['\n', '\r', '\u{feff}'])
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        before[line..].bytes().all(|b| b == b' ').then_some(line)
    }
}

enum Behind {
    Colon(usize),
    Key(usize),
}

/// Takes tag and anchor out, with the blanks behind them; `kept` is where one is replaced.
fn drop_properties(text: &str, entry: &Entry, kept: usize) -> Vec<Splice> {
    let others = entry.properties.iter().filter(|range| range.start != kept);
    others
        .map(|range| {
            let rest = text.get(range.end..).unwrap_or_default();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            Splice { start: range.start, end: range.end + blanks, text: String::new() }
        })
        .collect()
}

/// The header `|` becomes the value; the lines of the content go.
fn block_scalar(text: &str, entry: &Entry, new: String) -> Option<Vec<Splice>> {
    let from = entry.properties.iter().map(|range| range.end).max().unwrap_or(entry.key_span.end);
    let header = from + text.get(from..)?.find(['|', '>'])?;
    let length = text[header..].find(|c: char| c.is_whitespace()).unwrap_or(text.len() - header);
    let mut splices = drop_properties(text, entry, usize::MAX);
    splices.push(Splice { start: header, end: header + length, text: new });
    let header_end = header + text[header..].find(['\n', '\r']).unwrap_or(text.len() - header);
    let content = text.get(entry.value.clone())?.trim_end_matches([' ', '\t', '\n', '\r']);
    let content_end = entry.value.start + content.len();
    if !content.is_empty() && content_end > header_end {
        splices.push(Splice { start: header_end, end: content_end, text: String::new() });
    }
    Some(splices)
}

fn next_line(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    match rest.find(['\n', '\r']) {
        Some(at) if rest[at..].starts_with("\r\n") => from + at + 2,
        Some(at) => from + at + 1,
        None => text.len(),
    }
}
