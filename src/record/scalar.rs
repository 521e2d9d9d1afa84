//! Scalars of YAML 1.2's core schema: what a plain one means, and how a text is written as one.

use super::flaw::Flaw;
use super::source::{control, is_refused_control};

/// What a plain scalar means.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plain {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A finite number.
    Float(f64),
    /// Anything else: time stamps, `yes` and `1_000` among it.
    Text,
    /// An integer that 64 bits do not hold.
    TooBig,
    /// `.inf`, `.nan`, or a number that is as good as infinite.
    NotFinite,
}

/// Reads a plain scalar.
pub(super) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Plain::NotFinite,
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned.as_bytes() {
        [b'0', b'o', ..] => return radix(text, 8),
        [b'0', b'x', ..] => return radix(text, 16),
        [b'0'..=b'9' | b'.', ..] => {}
        _ => return Plain::Text,
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        // Rust's reader takes `+7` and `007` as YAML 1.2 does.
        return text.parse().map_or(Plain::TooBig, Plain::Int);
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Plain::NotFinite;
    }
    if !is_float(unsigned) {
        return Plain::Text;
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Plain::Float(number),
        Ok(_) => Plain::NotFinite,
        Err(_) => Plain::Text,
    }
}

fn radix(text: &str, radix: u32) -> Plain {
    // YAML gives these no sign: `-0x1` is a text.
    let Some(digits) = text.get(2..).filter(|_| text.starts_with('0')) else {
        return Plain::Text;
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Plain::Text;
    }
    i64::from_str_radix(digits, radix).map_or(Plain::TooBig, Plain::Int)
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
        }
        None => (text, None),
    };
    if exponent.is_some_and(|e| e.is_empty() || !digits(e)) {
        return false;
    }
    match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    }
}

/// How a scalar is or shall be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Without quotes, where it can be.
    Plain,
    /// Without quotes where a time stamp stood without them.
    PlainTime,
    /// `'…'`
    Single,
    /// `"…"`
    Double,
}

impl Style {
    /// The style in which what replaces the plain scalar `old` is to be written.
    pub(super) fn of_plain(old: &str) -> Style {
        if is_time(old) { Style::PlainTime } else { Style::Plain }
    }
}

/// Writes `value` on one line so that every reader, of YAML 1.1 too, takes it for this text.
pub(super) fn write(value: &str, style: Style) -> Result<String, Flaw> {
    if let Some(c) = value.chars().find(|&c| is_refused_control(c)) {
        return Err(control(c));
    }
    let is_plain = match style {
        Style::Plain => is_plain_anywhere(value),
        Style::PlainTime => is_plain_anywhere(value) || is_time(value),
        Style::Single | Style::Double => false,
    };
    if is_plain {
        return Ok(value.to_owned());
    }
    if style == Style::Double || value.contains(needs_escape) {
        return Ok(double_quoted(value));
    }
    Ok(format!("'{}'", value.replace('\'', "''")))
}

/// What stands in double quotes by an escape only: what YAML calls not printable, and what would end or
/// begin a line, also of YAML 1.1.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Any text on one line in double quotes, which every reader reads back as this text.
#[must_use]
pub fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c if needs_escape(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// As it is where it can only be read as a text, by the eye too; else in double quotes.
#[must_use]
pub fn word_or_quoted(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'.');
    let word = text.bytes().all(plain)
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if word { text.to_owned() } else { double_quoted(text) }
}

/// Whether `text` can stand without quotes in block and flow, in YAML 1.1 and 1.2, as a text.
/// Narrower than YAML: what is doubtful gets quotes.
fn is_plain_anywhere(text: &str) -> bool {
    is_plain_shape(text)
        && resolve(text) == Plain::Text
        && !is_word_of_yaml_1_1(text)
        && !is_number_like(text)
}

/// Only characters that mean nothing to YAML wherever they stand.
pub(super) fn is_plain_shape(text: &str) -> bool {
    let inner = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b'+' | b'@' | b':')
    };
    let bytes = text.as_bytes();
    let starts_well =
        bytes.first().is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'/'));
    let ends_well = bytes.last().is_some_and(|&b| b != b' ' && b != b':');
    starts_well && ends_well && bytes.iter().all(|&b| inner(b) || b == b' ') && !text.contains(": ")
}

fn is_word_of_yaml_1_1(text: &str) -> bool {
    ["y", "n", "yes", "no", "on", "off"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Time stamps, `1_000`, `12:30`, `0777`, `1e3`: YAML 1.1 makes numbers and dates of them.
fn is_number_like(text: &str) -> bool {
    let odd = |b: u8| matches!(b, b'_' | b':' | b'.' | b'+' | b'-' | b' ' | b'T' | b't' | b'Z');
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_hexdigit() || odd(b) || matches!(b, b'x' | b'o'))
}

/// A date, or date and time, as YAML 1.1 reads them.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let date = bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(at, b)| match at {
            4 | 7 => *b == b'-',
            _ => b.is_ascii_digit(),
        });
    let time = |b: &u8| b.is_ascii_digit() || matches!(b, b'T' | b':' | b'.' | b'+' | b'-' | b'Z');
    date && bytes[10..].iter().all(time) && !text.ends_with(':')
}
