//! Names as people and programs are shown them, and read back from that.
//!
//! What must stay true: two different names have two different texts, and no text steers a terminal
//! or breaks a line. Deliberately not here: what a name is.

use std::ffi::OsStr;
use std::fmt;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, is_nfc, is_nfc_quick};

use super::{FileName, TreePath};

/// `bytes` for logs and messages: control characters, direction overrides and what is not UTF-8
/// come out as escapes, so that a name can neither break a line nor steer a terminal.
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    escaped(bytes, steers)
}

/// A path or name of the operating system in a message.
pub trait Shown {
    /// It as [`printable`] has it. For programs, and to compare it, it is itself instead.
    fn shown(&self) -> String;
}

impl<T: AsRef<OsStr> + ?Sized> Shown for T {
    fn shown(&self) -> String {
        printable(self.as_ref().as_encoded_bytes())
    }
}

/// The same of what may be far longer than any name.
#[must_use]
pub fn printable_start(bytes: &[u8]) -> String {
    match bytes.get(..crate::limits::NAME_BYTES_MAX) {
        Some(start) if start.len() < bytes.len() => printable(start) + "…",
        _ => printable(bytes),
    }
}

/// A message of several lines, some of which somebody else may have worded: what breaks lines stays, what
/// steers a terminal comes out as escapes. What is printable already stays as it is.
#[must_use]
pub fn unsteering(text: &str) -> String {
    escaped(text.as_bytes(), |c| steers(c) && !matches!(c, '\n' | '\t'))
}

/// A noun in a sentence: `an agent`, `a task`.
#[must_use]
pub fn with_article(noun: &str) -> String {
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {noun}", if vowel { "an" } else { "a" })
}

/// A word for a shell, in double quotes, in which a variable can be put afterwards.
#[must_use]
pub fn shell_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '`' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// A word for a shell that stands for these bytes and no others, wherever it is typed in; printable. It is as it is
/// where that is enough.
#[must_use]
pub fn shell_word(bytes: &[u8]) -> String {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+,@%:=".contains(b);
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && bytes.iter().all(is_plain) => text.to_owned(),
        Ok(text) if !text.contains(steers) => format!("'{}'", text.replace('\'', "'\\''")),
        // What no quotes keep printable is written by its number.
        _ => {
            let mut out = String::from("$'");
            for chunk in bytes.utf8_chunks() {
                for c in chunk.valid().chars() {
                    match c {
                        '\'' | '\\' => out.extend(['\\', c]),
                        c if steers(c) => {
                            push_octal(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        c => out.push(c),
                    }
                }
                push_octal(&mut out, chunk.invalid());
            }
            out.push('\'');
            out
        }
    }
}

fn push_octal(out: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| out.push_str(&format!("\\{byte:03o}")));
}

/// A path for a shell, which no program takes for an option.
fn shell_path(path: &[u8]) -> String {
    match path.first() {
        None => ".".to_owned(),
        Some(b'-') => shell_word(&[&b"./"[..], path].concat()),
        Some(_) => shell_word(path),
    }
}

/// The text of a name or path, printable and for one name only: two that differ have texts that
/// differ, also where a text is normalized (the ledger's are in NFC). Backslashes are doubled, and in
/// a name that is not NFC the marks that normalization would join or move are escaped.
#[must_use]
pub fn path_text(bytes: &[u8]) -> String {
    let text = escaped(bytes, |c| c == '\\' || steers(c));
    if is_nfc(&text) {
        return text;
    }
    // What is left has no character that another one changes, so that it is NFC (UAX 15, 9.1).
    escaped(bytes, |c| {
        let alone = is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes;
        c == '\\' || steers(c) || !alone || canonical_combining_class(c) != 0
    })
}

/// The bytes whose [`path_text`] this is; `None` if it is no such text.
#[must_use]
pub fn path_of_text(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        bytes.extend(before.as_bytes());
        let kind = escape.chars().next()?;
        rest = &escape[kind.len_utf8()..];
        let c = match kind {
            'x' => {
                bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                rest = &rest[2..];
                continue;
            }
            'u' => {
                let (digits, after) = rest.strip_prefix('{')?.split_once('}')?;
                rest = after;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            't' => '\t',
            'r' => '\r',
            'n' => '\n',
            '\\' => '\\',
            _ => return None,
        };
        bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    bytes.extend(rest.as_bytes());
    Some(bytes)
}

/// A path or name as a text that JSON carries: itself. One that is not UTF-8, which JSON cannot say,
/// is there as its [`path_text`], and so is one that reads like such a text.
#[must_use]
pub fn json_path(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if named_by_escapes(text).is_none() => text.to_owned(),
        _ => path_text(bytes),
    }
}

/// The bytes whose [`json_path`] this is: each text is that of one path.
#[must_use]
pub fn path_of_json(text: &str) -> Vec<u8> {
    named_by_escapes(text).unwrap_or_else(|| text.as_bytes().to_vec())
}

/// What a text in JSON stands for other than itself.
fn named_by_escapes(text: &str) -> Option<Vec<u8>> {
    if !text.contains('\\') {
        return None;
    }
    // A name that reads like an escaped one has more backslashes when escaped itself, so this ends.
    let bytes = path_of_text(text).filter(|bytes| path_text(bytes) == text)?;
    match std::str::from_utf8(&bytes) {
        Ok(plain) => named_by_escapes(plain).is_some().then_some(bytes),
        Err(_) => Some(bytes),
    }
}

/// A path in a report: for people its [`path_text`], in JSON its [`json_path`].
#[derive(Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ShownPath(Box<[u8]>);

impl ShownPath {
    /// One of these bytes.
    #[must_use]
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        ShownPath(bytes.as_ref().into())
    }

    /// The path itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ShownPath {
    /// It as a word of a command that somebody is told to give.
    #[must_use]
    pub fn in_shell(&self) -> String {
        shell_path(&self.0)
    }
}

impl TreePath {
    /// It, from the root of the mount, as a word of a command that somebody is told to give.
    #[must_use]
    pub fn in_shell(&self) -> String {
        shell_path(&self.to_bytes())
    }
}

impl From<&TreePath> for ShownPath {
    /// The root is a dot: to no command an empty path is one.
    fn from(path: &TreePath) -> Self {
        if path.names().is_empty() {
            ShownPath::new(".")
        } else {
            ShownPath(path.to_bytes().into())
        }
    }
}

impl From<&FileName> for ShownPath {
    fn from(name: &FileName) -> Self {
        ShownPath(name.0.clone())
    }
}

impl From<String> for ShownPath {
    fn from(json: String) -> Self {
        ShownPath(path_of_json(&json).into())
    }
}

impl From<ShownPath> for String {
    fn from(path: ShownPath) -> String {
        json_path(&path.0)
    }
}

impl fmt::Display for ShownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&path_text(&self.0))
    }
}

impl fmt::Debug for ShownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShownPath({self})")
    }
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn escaped(bytes: &[u8], is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_escaped(c) {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// The first of some names, for a message that has no room for all.
pub fn first_few(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = if names.len() > most { ", …" } else { "" };
    let named: Vec<String> = names.take(most).collect();
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_a_name_as_it_is_and_each_text_names_one() {
        let as_they_are = ["cafe\u{301}", "a\nb", "a\\b", "a\\u{301}", "\u{202e}x", "a\\xfg", ""];
        for name in as_they_are {
            assert_eq!(json_path(name.as_bytes()), name);
            assert_eq!(path_of_json(name), name.as_bytes(), "{name:?}");
        }
        let mut escaped: Vec<Vec<u8>> = vec![b"a\xff".to_vec(), b"d\n/\xff\\".to_vec()];
        for nth in 0..6 {
            escaped.push(path_text(&escaped[nth]).into_bytes());
        }
        let mut texts: Vec<String> = escaped.iter().map(|name| json_path(name)).collect();
        assert_eq!(texts[..3], ["a\\xff", "d\\n/\\xff\\\\", "a\\\\xff"]);
        for (text, name) in texts.iter().zip(&escaped) {
            assert_eq!(path_of_json(text), *name, "{text:?}");
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), escaped.len(), "two names have one text");
    }

    #[test]
    fn a_shell_reads_a_word_as_what_it_stands_for() {
        let words: [&[u8]; 12] = [
            b"work/inbox/a-1.yaml",
            b"my work/x",
            b"q'u\"o $HOME `id` \\ !",
            b"~",
            b"",
            b"*?[a]{b,c}#&|;<>()",
            "caf\u{e9}/cafe\u{301}".as_bytes(),
            b"two\nlines\t'\\n",
            b"not\xffUTF-8\x017",
            "\u{202e}x\u{85}".as_bytes(),
            b"trail ",
            b"a\\",
        ];
        for word in words {
            let text = shell_word(word);
            assert_eq!(printable(text.as_bytes()), text);
            let printed = std::process::Command::new("bash")
                .args(["-c", &format!("printf %s {text}x{text}")])
                .output()
                .unwrap();
            assert_eq!(printed.stdout, [word, b"x", word].concat(), "{text}");
        }
        assert_eq!(shell_word(words[0]), "work/inbox/a-1.yaml");
        assert_eq!(shell_word(words[1]), "'my work/x'");
        let path = |text: &str| TreePath::parse(text).unwrap().in_shell();
        assert_eq!((path("-a/b"), path("")), ("./-a/b".to_owned(), ".".to_owned()));
    }

    #[test]
    fn two_names_never_have_one_text() {
        let names: [&[u8]; 16] = [
            "caf\u{e9}".as_bytes(),
            "cafe\u{301}".as_bytes(),
            b"a\x01",
            b"a\\u{1}",
            b"a\\\\u{1}",
            b"a\xff",
            b"a\\xff",
            "a\u{212b}".as_bytes(),
            "a\u{c5}".as_bytes(),
            // After the escape of the byte its `f` must not take the dot.
            b"a\xff\xcc\x87",
            "a\u{328}\u{301}".as_bytes(),
            "a\u{301}\u{328}".as_bytes(),
            // Backslashes beside what normalization changes, too.
            "\\cafe\u{301}".as_bytes(),
            "\\cafe\\u{301}".as_bytes(),
            // Marks that it joins with nothing, and puts in order.
            "\u{5d0}\u{5b8}\u{5b0}".as_bytes(),
            "\u{5d0}\u{5b0}\u{5b8}".as_bytes(),
        ];
        let texts: Vec<String> = names.iter().map(|name| path_text(name)).collect();
        for (nth, text) in texts.iter().enumerate() {
            assert!(is_nfc(text), "{text:?}");
            assert!(!texts[..nth].contains(text), "{text:?} stands for two");
            assert_eq!(path_of_text(text).as_deref(), Some(names[nth]), "{text:?}");
        }
        assert_eq!(texts[0], "caf\u{e9}", "what is well known stays as it is");
        assert_eq!(texts[1], "cafe\\u{301}");
        assert_eq!(texts[3], "a\\\\u{1}");
        for none in ["a\\", "a\\q", "\\u{110000}", "\\xg1", "\\u{1"] {
            assert_eq!(path_of_text(none), None, "{none:?}");
        }
    }
}
