//! The texts that are written, and a reader of the little YAML that they (and their pieces) use.
//!
//! What must stay true: nothing here is the program's own parser. A text that this reader is not
//! sure of is [`Reading::Unknown`]; what the program makes of it is then believed.

use std::collections::BTreeMap;

/// A text for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    New,
    Titled,
    NoId,
    Crlf,
    Assigned,
    Started,
    StartedWithResult,
    Blocked,
    Error,
    ErrorWithMessage,
    Done,
    DoneWithResult,
    Nonsense,
    WrongId,
    Unclosed,
    Colons,
    Twice,
    Words,
    Empty,
    /// One that is right where it is written.
    Fitting,
}

use Text::*;

/// All of them; the first are the simplest.
pub const TEXTS: &[Text] = &[
    New,
    StartedWithResult,
    Assigned,
    Started,
    DoneWithResult,
    Titled,
    NoId,
    Crlf,
    Blocked,
    ErrorWithMessage,
    Error,
    Done,
    Nonsense,
    WrongId,
    Unclosed,
    Colons,
    Twice,
    Words,
    Empty,
];

impl Text {
    /// The text in a file of the record `id`.
    pub fn of(self, id: &str) -> String {
        let with = |rest: &str| format!("id: {id}\n{rest}");
        match self {
            New => with("status: new\ntitle: a task\n"),
            Titled => with("title: no status\n"),
            NoId => "status: new # the first\n".to_owned(),
            Crlf => with("# a comment\nstatus: new # here\n").replace('\n', "\r\n"),
            Assigned => with("agent: \"a\"\nstatus: assigned\n"),
            Started => with("agent: a # me\nstatus: in_progress\n"),
            StartedWithResult => with("status: in_progress\nresult:\n  summary: well\n"),
            Blocked => with("status: blocked\n"),
            Error => with("status: error\n"),
            ErrorWithMessage => with("status: error\nerror:\n  message: broke\n"),
            Done => with("status: done\n"),
            DoneWithResult => with("status: done\nresult:\n  summary: well\n"),
            Nonsense => with("status: nonsense\ntitle: x\n"),
            WrongId => "id: another\nstatus: new\n".to_owned(),
            Unclosed => with("title: [a, b\n"),
            Colons => with("title: a: b: c\nstatus: new\n"),
            Twice => with("status: new\nstatus: new\ntitle: x\n"),
            Words => "just words\n".to_owned(),
            Empty | Fitting => String::new(),
        }
    }

    /// Whether a write of this text alone must be refused at once: no further byte can mend it.
    pub fn is_hopeless(text: &[u8], id: &str) -> bool {
        [Nonsense, Unclosed, Colons, Twice].iter().any(|one| one.of(id).as_bytes() == text)
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Null,
    Text(String),
    Map(BTreeMap<String, Value>),
    Other,
}

pub type Fields = BTreeMap<String, Value>;

/// What a text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    Fields(Fields),
    Broken,
    Unknown,
}

/// Reads a text of `key: value` lines, of which one level may be nested.
pub fn read(bytes: &[u8]) -> Reading {
    let Ok(text) = std::str::from_utf8(bytes) else { return Reading::Broken };
    if text.contains('\0') {
        return Reading::Broken;
    }
    let mut fields = Fields::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = entry(line) else {
            return if known_broken(line, &fields) { Reading::Broken } else { Reading::Unknown };
        };
        let Some(mut value) = value else {
            return if known_broken(line, &fields) { Reading::Broken } else { Reading::Unknown };
        };
        if value == Value::Null {
            let mut inner = Fields::new();
            while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                match entry(&line[2..]) {
                    Some((key, Some(value))) if !line.starts_with("   ") => {
                        inner.insert(key.to_owned(), value);
                    }
                    _ => return Reading::Unknown,
                }
            }
            if !inner.is_empty() {
                value = Value::Map(inner);
            }
        }
        if lines.peek().is_some_and(|line| line.starts_with(' ')) {
            return Reading::Unknown;
        }
        if fields.insert(key.to_owned(), value).is_some() {
            return Reading::Broken;
        }
    }
    if fields.is_empty() { Reading::Broken } else { Reading::Fields(fields) }
}

/// A line as its key and its value; no value where that is none this reader knows.
fn entry(line: &str) -> Option<(&str, Option<Value>)> {
    let (key, rest) = line.split_once(':')?;
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
        return None;
    }
    if rest.is_empty() {
        return Some((key, Some(Value::Null)));
    }
    let rest = rest.strip_prefix(' ')?;
    let (value, _) = without_comment(rest);
    Some((key, scalar(value)))
}

/// A value and the comment behind it, with the blanks before that.
pub fn without_comment(rest: &str) -> (&str, &str) {
    match rest.find(" #") {
        Some(at) => rest.split_at(at),
        None => (rest.trim_end(), &rest[rest.trim_end().len()..]),
    }
}

fn scalar(text: &str) -> Option<Value> {
    let text = text.trim();
    let quoted = |quote| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if quoted('"') || quoted('\'') {
        return Some(Value::Text(text[1..text.len() - 1].to_owned()));
    }
    if text.is_empty() {
        return Some(Value::Null);
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'-' | b'.' | b':');
    if !text.bytes().all(plain) || text.contains(": ") || text.ends_with(':') {
        return None;
    }
    if matches!(text, "null" | "true" | "false") || text.bytes().next()?.is_ascii_digit() {
        // A time stamp is a text; a piece of one may be a number.
        let stamp = text.len() == 20 && text.ends_with('Z');
        return Some(if stamp { Value::Text(text.to_owned()) } else { Value::Other });
    }
    (!text.starts_with(['-', ':', '.'])).then(|| Value::Text(text.to_owned()))
}

/// Lines that are wrong whatever stands around them.
fn known_broken(line: &str, before: &Fields) -> bool {
    let words = line.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_'));
    let words = words && !line.starts_with(' ');
    let unclosed = line.starts_with("title: [") && !line.contains(']');
    // A line of words is a continuation of nothing in a mapping; alone it is no mapping.
    words && (!before.is_empty() || line == "just words") || unclosed || line.contains(": a: b")
}

/// What the daemon was to change in a text: the field and its value; no value is a time stamp.
pub type Edits = Vec<(&'static str, Option<String>)>;

/// Whether `after` is `before` with these edits and nothing else: lines, comments, line ends.
pub fn check_patch(before: &[u8], after: &[u8], edits: &Edits) -> Result<(), String> {
    let texts = (std::str::from_utf8(before), std::str::from_utf8(after));
    let (Ok(before), Ok(after)) = texts else { return Err("not UTF-8".into()) };
    let fault = |what: &str| Err(format!("{what}\nbefore: {before:?}\nafter: {after:?}"));
    let key =
        |line: &str| entry(line.trim_end_matches(['\r', '\n'])).map(|(key, _)| key.to_owned());
    let is_edited = |line: &str| key(line).is_some_and(|key| edits.iter().any(|e| e.0 == key));
    // The last line may have got an end because one was added behind it.
    let others = |text: &str| -> Vec<String> {
        let lines = text.split_inclusive('\n').filter(|line| !is_edited(line));
        lines.map(|line| line.trim_end_matches(['\r', '\n']).to_owned()).collect()
    };
    if others(before) != others(after) {
        return fault("other lines changed");
    }
    let all_crlf = |text: &str| !text.replace("\r\n", "").contains('\n');
    if before.contains('\n') && all_crlf(before) && !all_crlf(after) {
        return fault("line ends changed");
    }
    let comment = |text: &str, field: &str| -> Option<String> {
        let line = text.lines().find(|line| key(line).as_deref() == Some(field))?;
        Some(without_comment(line).1.trim().to_owned())
    };
    for (field, _) in edits {
        let had = comment(before, field);
        if had.is_some() && had != comment(after, field) {
            return fault("a comment changed");
        }
    }
    let (Reading::Fields(mut wanted), Reading::Fields(found)) =
        (read(before.as_bytes()), read(after.as_bytes()))
    else {
        return Ok(());
    };
    for (field, value) in edits {
        let value = match value {
            Some(value) => Value::Text(value.clone()),
            None => match found.get(*field) {
                Some(Value::Text(stamp)) if stamp.len() == 20 && stamp.ends_with('Z') => {
                    Value::Text(stamp.clone())
                }
                _ => return fault("a time stamp is none"),
            },
        };
        wanted.insert((*field).to_owned(), value);
    }
    if wanted == found { Ok(()) } else { fault("the fields are not those wanted") }
}
