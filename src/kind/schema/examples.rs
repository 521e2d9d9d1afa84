//! What the `examples` of a schema say about a pattern: all texts that it takes, or what they are
//! like.
//!
//! What must stay true: examples are told as all that there is only where the pattern spells out
//! each of them and nothing else. Deliberately not here: how a fault is told (`schema`).

use std::collections::BTreeSet;

use crate::numbers::UnixNanos;

/// What texts a pattern takes, as far as it can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// The examples, and nothing else.
    Words,
    /// The examples in upper and lower case, and nothing else.
    WordsInAnyCase,
    /// Others, too.
    More,
}

/// Looks at how a pattern is written: `^(high|low)$`, the same behind `(?i)`, or with `[Ll][Oo][Ww]`.
pub(in crate::kind) fn takes(pattern: &str, examples: &[&str]) -> Takes {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    if examples.is_empty() || !examples.iter().all(|word| word.chars().all(is_plain)) {
        return Takes::More;
    }
    let (in_any_case, rest) = match pattern.strip_prefix("(?i)") {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let Some(inner) = rest.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else {
        return Takes::More;
    };
    let Some(inner) = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) else {
        return Takes::More;
    };
    let inner = inner.strip_prefix("?:").unwrap_or(inner);
    let folded = if in_any_case { Some(inner.to_ascii_lowercase()) } else { one_case(inner) };
    let taken = if folded.is_some() { Takes::WordsInAnyCase } else { Takes::Words };
    let word = |example: &&str| match &folded {
        Some(_) => example.to_ascii_lowercase(),
        None => (*example).to_owned(),
    };
    let words: BTreeSet<String> = examples.iter().map(word).collect();
    let spelt = folded.as_deref().unwrap_or(inner).split('|').map(str::to_owned);
    if spelt.collect::<BTreeSet<_>>() == words { taken } else { Takes::More }
}

/// `[Ll][Oo][Ww]` as `low`; nothing where a letter stands in one case only, or none does.
fn one_case(pattern: &str) -> Option<String> {
    let mut letters = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c.is_ascii_alphabetic() {
            return None;
        }
        if c != '[' {
            letters.push(c);
            continue;
        }
        let (upper, lower) = (rest.next()?, rest.next()?);
        let is_pair = upper != lower && upper.to_ascii_lowercase() == lower;
        if !is_pair || rest.next()? != ']' {
            return None;
        }
        letters.push(lower);
    }
    letters.contains(|c: char| c.is_ascii_alphabetic()).then_some(letters)
}

/// "a date or a time", where the examples are such.
pub(super) fn dates(examples: &[&str]) -> Option<&'static str> {
    let (mut days, mut times) = (false, false);
    for example in examples {
        match (UnixNanos::parse_day(example), UnixNanos::parse_rfc3339(example)) {
            (None, None) => return None,
            (day, time) => {
                days |= day.is_some();
                times |= time.is_some();
            }
        }
    }
    match (days, times) {
        (true, true) => Some("a date or a time"),
        (true, false) => Some("a date"),
        (false, true) => Some("a time"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pattern_that_spells_its_examples_takes_nothing_else() {
        let words = ["high", "low"];
        for (pattern, taken) in [
            ("^(high|low)$", Takes::Words),
            ("(?i)^(?:low|HIGH)$", Takes::WordsInAnyCase),
            ("^([Hh][Ii][Gg][Hh]|[Ll][Oo][Ww])$", Takes::WordsInAnyCase),
            ("^(high|[Ll]ow)$", Takes::More),
            ("^(high|low|normal)$", Takes::More),
            ("^[a-zA-Z]+$", Takes::More),
            ("high|low", Takes::More),
        ] {
            assert_eq!(takes(pattern, &words), taken, "{pattern}");
        }
        assert_eq!(takes("^(a.c)$", &["a.c"]), Takes::More);
    }

    #[test]
    fn dates_are_told_by_what_they_are() {
        let both = ["2026-11-21", "2026-11-21T10:30:00Z"];
        assert_eq!(dates(&both), Some("a date or a time"));
        assert_eq!((dates(&both[..1]), dates(&both[1..])), (Some("a date"), Some("a time")));
        assert_eq!((dates(&["2026-11-21", "4h"]), dates(&[])), (None, None));
    }
}
