//! Finding fields by the parser's events, however the mapping is written: those of the record, and those
//! of a mapping in it.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};

use super::super::flaw::Flaw;
use super::super::scalar::{self, Plain, Style};
use super::super::source::parser_options;
use super::{Edit, NEIGHBOURS, Splice, line_end, new_line, unpatchable};

/// So far is a mapping in a block indented.
const STEP: usize = 2;

/// A mapping as it is written: the record, or one that is a value of it.
struct Written {
    is_flow: bool,
    /// Where its first token is: the `{`, or the first key.
    start: Range<usize>,
    column: usize,
    entries: Vec<Entry>,
    aliased: Vec<usize>,
    /// Where the document ends: with the text, or at the line `...`.
    end: usize,
}

struct Entry {
    key: String,
    key_span: Range<usize>,
    key_is_double_quoted: bool,
    value: Range<usize>,
    /// Where the last that is written in the value ends. Of a block, `value` goes on to what follows it.
    value_end: usize,
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
    let written = read(text, None).ok_or_else(|| unpatchable(edits))?;
    let mut splices = Vec::new();
    for edit in edits {
        if let Some(entry) = written.entries.iter().find(|entry| entry.key == edit.field) {
            let made = written.replace(text, entry, edit.value)?;
            splices.extend(made.ok_or_else(|| unpatchable(&[*edit]))?);
        }
    }
    let is_absent = |edit: &&Edit<'_>| written.entries.iter().all(|entry| entry.key != edit.field);
    let mut absent = edits.iter().filter(is_absent).peekable();
    while let Some(edit) = absent.next() {
        let mut splice = written.add(text, edit)?;
        // In empty braces no other entry follows but the next one that is added.
        if written.is_flow && written.entries.is_empty() && absent.peek().is_some() {
            splice.text.push_str(", ");
        }
        splices.push(splice);
    }
    Ok(splices)
}

/// The splices by which `child` of the mapping `parent` is `value`, where the places for it are found; the
/// caller reads the result again. The value gets quotes, since it may be any text.
pub(super) fn nested(text: &str, parent: &str, child: &str, value: &str) -> Option<Vec<Splice>> {
    let top = read(text, None)?;
    let value = scalar::write(value, Style::Double).ok()?;
    let Some(entry) = top.entries.iter().find(|entry| entry.key == parent) else {
        return top.add_mapping(text, parent, child, &value);
    };
    match entry.shape {
        Shape::Collection => {
            let inner = read(text, Some(entry.value.start))?;
            let json = inner.is_json() && (top.is_json() || !inner.entries.is_empty());
            match inner.entries.iter().find(|entry| entry.key == child) {
                Some(entry) => inner.replace_any(text, entry, value),
                None => inner.add_first(text, &pair(child, &value, json)?),
            }
        }
        Shape::Scalar(ScalarStyle::Plain) if entry.properties.is_empty() => {
            top.fill(text, entry, child, &value)
        }
        _ => None,
    }
}

/// `key: value`, the key as the mapping writes its own.
fn pair(key: &str, value: &str, json: bool) -> Option<String> {
    let key = scalar::write(key, if json { Style::Double } else { Style::Plain }).ok()?;
    Some(format!("{key}: {value}"))
}

/// Reads the record's mapping, or the one in it that begins at `from`.
fn read(text: &str, from: Option<usize>) -> Option<Written> {
    let mut options = parser_options();
    options.emit_anchor_events = true;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { from, ..Reader::default() };
    while let Some(next) = parser.next_event() {
        let (event, span) = next.ok()?;
        reader.hear(text, &event, &span)?;
    }
    reader.written
}

/// What was heard so far of a mapping, which it looks for.
#[derive(Default)]
struct Reader {
    from: Option<usize>,
    written: Option<Written>,
    depth: usize,
    /// Of the mapping itself: its entries lie one deeper.
    base: usize,
    is_over: bool,
    /// A key whose value comes next.
    key: Option<Entry>,
    /// Anchor events follow their node; this tells whether the node was a value of the mapping.
    after_value: bool,
}

impl Reader {
    fn hear(&mut self, text: &str, event: &Event<'_>, span: &Span) -> Option<()> {
        let range = span.byte_range()?;
        if let Some(written) = &mut self.written {
            match event {
                Event::Alias(anchor) => written.aliased.push(*anchor),
                Event::DocumentEnd if is_marked_end(text, &range) => written.end = range.start,
                _ => {}
            }
        }
        match event {
            _ if self.is_over => {}
            Event::MappingStart(style, ..)
                if self.written.is_none() && self.from.is_none_or(|from| from == range.start) =>
            {
                self.written = Some(Written {
                    is_flow: *style == StructureStyle::Flow,
                    start: range,
                    column: span.start.col(),
                    entries: Vec::new(),
                    aliased: Vec::new(),
                    end: text.len(),
                });
                self.base = self.depth;
                self.depth += 1;
            }
            Event::MappingEnd | Event::SequenceEnd => self.hear_end(text, &range)?,
            Event::Anchor(_, _) if self.after_value => {
                self.after_value = false;
                self.written.as_mut()?.entries.last_mut()?.properties.push(range);
            }
            node if node.is_node() => self.hear_node(node, span, range)?,
            _ => {}
        }
        Some(())
    }

    /// The end of a collection: of the mapping, or of something in a value.
    fn hear_end(&mut self, text: &str, range: &Range<usize>) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        self.is_over = self.written.is_some() && self.depth == self.base;
        let last = self.written.as_mut().and_then(|written| written.entries.last_mut());
        if let Some(last) = last.filter(|_| !self.is_over) {
            if self.depth == self.base + 1 {
                last.value.end = range.end;
            }
            if is_closed(text, range) {
                last.value_end = last.value_end.max(range.end);
            }
        }
        Some(())
    }

    /// A key, a value, or something in one of both.
    fn hear_node(&mut self, node: &Event<'_>, span: &Span, range: Range<usize>) -> Option<()> {
        self.after_value = false;
        if self.written.is_some() && self.depth == self.base + 1 {
            match self.key.take() {
                None => self.key = Some(key_of(node, range)?),
                Some(entry) => {
                    let entry = with_value(entry, node, span, range);
                    self.written.as_mut()?.entries.push(entry);
                    self.after_value = true;
                }
            }
        } else if let (None, Some(written)) = (&self.key, &mut self.written) {
            let last = written.entries.last_mut()?;
            last.value_end = last.value_end.max(range.end);
        }
        if matches!(node, Event::MappingStart(..) | Event::SequenceStart(..)) {
            self.depth += 1;
        }
        Some(())
    }
}

/// Whether a document ends with a line `...`, and not with the text.
fn is_marked_end(text: &str, end: &Range<usize>) -> bool {
    text.get(end.start..).is_some_and(|rest| rest.starts_with("..."))
}

/// Whether a collection ends with a bracket, and not with what follows it.
fn is_closed(text: &str, end: &Range<usize>) -> bool {
    text.get(end.clone()).is_some_and(|end| matches!(end, "}" | "]"))
}

fn key_of(node: &Event<'_>, key_span: Range<usize>) -> Option<Entry> {
    let (key, style) = node.scalar()?;
    Some(Entry {
        key: key.to_owned(),
        key_is_double_quoted: style == ScalarStyle::DoubleQuoted,
        value: key_span.clone(),
        value_end: key_span.end,
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
    Entry { value_end: value.end, value, shape, properties, anchor, ..entry }
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
        if entry.shape == Shape::Collection {
            return Ok(None);
        }
        Ok(self.replace_any(text, entry, new))
    }

    /// The same with a value as it is to be written, and of a list or mapping, too.
    fn replace_any(&self, text: &str, entry: &Entry, new: String) -> Option<Vec<Splice>> {
        if entry.anchor != 0 && self.aliased.contains(&entry.anchor) {
            return None;
        }
        if entry.shape == Shape::Collection {
            let Behind::Colon(at) = self.behind_key(text, entry)? else { return None };
            return Some(vec![Splice { start: at, end: entry.value_end, text: format!(" {new}") }]);
        }
        if let Shape::Scalar(ScalarStyle::Literal | ScalarStyle::Folded) = entry.shape {
            return block_scalar(text, entry, new);
        }
        if entry.value.is_empty() {
            // The properties of nothing are where the value has to be.
            let at = entry.properties.iter().min_by_key(|range| range.start);
            if let Some(first) = at {
                let mut splices = drop_properties(text, entry, first.start);
                splices.push(Splice { start: first.start, end: first.end, text: new });
                return Some(splices);
            }
            return self.behind_key(text, entry).map(|splice_at| match splice_at {
                Behind::Colon(at) => vec![Splice::insert(at, format!(" {new}"))],
                Behind::Key(at) => vec![Splice::insert(at, format!(": {new}"))],
            });
        }
        let mut splices = drop_properties(text, entry, usize::MAX);
        splices.push(Splice { start: entry.value.start, end: entry.value.end, text: new });
        Some(splices)
    }

    /// A field of nothing becomes a mapping of one entry.
    fn fill(&self, text: &str, entry: &Entry, child: &str, value: &str) -> Option<Vec<Splice>> {
        let is_nothing = text.get(entry.value.clone()).map(scalar::resolve) == Some(Plain::Null);
        if !is_nothing {
            return None;
        }
        let pair = pair(child, value, self.is_json())?;
        if self.is_flow {
            return self.replace_any(text, entry, format!("{{{pair}}}"));
        }
        let Behind::Colon(at) = self.behind_key(text, entry)? else { return None };
        let cut = Splice { start: at, end: entry.value.end.max(at), text: String::new() };
        let below = next_line(text, entry.value.end.max(at));
        Some(vec![cut, new_line(text.as_bytes(), below, self.column + STEP, &pair)])
    }

    /// A field that is not there yet, with a mapping of one entry; in a block at its end.
    fn add_mapping(
        &self,
        text: &str,
        field: &str,
        child: &str,
        value: &str,
    ) -> Option<Vec<Splice>> {
        let json = self.is_json() && !self.entries.is_empty();
        let pair = pair(child, value, json)?;
        if self.is_flow {
            return self.add_first(text, &self::pair(field, &format!("{{{pair}}}"), json)?);
        }
        let (bytes, end) = (text.as_bytes(), self.end);
        let field = new_line(
            bytes,
            end,
            self.column,
            &format!("{}:", scalar::write(field, Style::Plain).ok()?),
        );
        let entry = format!("{}{pair}", " ".repeat(self.column + STEP));
        let eol = line_end(bytes);
        // Where the text's last line has no end, a new line begins with one.
        let text = if field.text.ends_with(eol) {
            format!("{}{entry}{eol}", field.text)
        } else {
            format!("{}{eol}{entry}{eol}", field.text)
        };
        Some(vec![Splice { text, ..field }])
    }

    /// A new entry before the others.
    fn add_first(&self, text: &str, entry: &str) -> Option<Vec<Splice>> {
        if self.is_flow {
            let separator = if self.entries.is_empty() { "" } else { ", " };
            return Some(vec![Splice::insert(self.start.end, format!("{entry}{separator}"))]);
        }
        let at = self.line_of_first_key(text)?;
        Some(vec![new_line(text.as_bytes(), at, self.column, entry)])
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
        let unplaced = || unpatchable(std::slice::from_ref(edit));
        if self.is_flow {
            let first = self.add_first(text, &entry).and_then(|mut splices| splices.pop());
            return first.ok_or_else(unplaced);
        }
        let beside = NEIGHBOURS
            .iter()
            .filter_map(|name| self.entries.iter().find(|entry| entry.key == *name))
            .chain(&self.entries)
            .find_map(|entry| self.line_after(text, entry));
        // Above the first key is always right; below one reads better.
        let at = beside.or_else(|| self.line_of_first_key(text)).ok_or_else(unplaced)?;
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
