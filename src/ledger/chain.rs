//! Checks lines against each other: dense `g`, each line's hash in the next, each payload's hash
//! beside it, each line canonical.
//!
//! What the chain cannot show: that its last lines were cut off or written anew. Whoever wants to
//! know that compares [`Checked::last_hash`] with one noted elsewhere, such as a backup's.

use serde_json::Value;

use crate::numbers::G;

use super::canonical::canonical;
use super::event::SCHEMA;
use super::hash::Hash;

/// How far a chain holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Lines that were checked.
    pub events: u64,
    /// The last line's number; the starting point where there was no line.
    pub last_g: G,
    /// The last line's hash; the starting point's where there was no line.
    pub last_hash: Hash,
}

/// Where a chain breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {g}: {what}")]
pub struct ChainError {
    /// The event that should have stood there.
    pub g: G,
    /// What is wrong with what stands there.
    pub what: ChainBreak,
}

/// What breaks a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainBreak {
    /// The line is not an event.
    #[error("the line is not an event of the form {SCHEMA}: {0}")]
    NotAnEvent(&'static str),
    /// The line has another text than its own values give.
    #[error("the line is not canonical JSON")]
    NotCanonical,
    /// A line is missing, doubled or out of order.
    #[error("its place is taken by event {found}")]
    Misplaced {
        /// The number that stands in the line.
        found: u64,
    },
    /// The payload was changed.
    #[error("payload_hash is not the hash of the payload")]
    Payload,
    /// The line before was changed, or this line was.
    #[error("prev_event_hash is {found}, but the event before it hashes to {wanted}")]
    Previous {
        /// What stands in the line.
        found: String,
        /// The hash of the line before.
        wanted: Hash,
    },
}

/// Checks a chain line by line.
#[derive(Clone, Debug)]
pub struct Verifier(Checked);

impl Verifier {
    /// From the ledger's beginning.
    #[must_use]
    pub fn new() -> Self {
        Verifier::after(G(0), Hash::ZERO)
    }

    /// From a known event on: its number and its hash.
    #[must_use]
    pub fn after(g: G, hash: Hash) -> Self {
        Verifier(Checked { events: 0, last_g: g, last_hash: hash })
    }

    /// Checks the next line, given without its newline.
    ///
    /// # Errors
    /// What is wrong; the verifier stays where it was.
    pub fn push(&mut self, line: &str) -> Result<(), ChainError> {
        let g = self.0.last_g.next();
        check(line, g, &self.0.last_hash).map_err(|what| ChainError { g, what })?;
        self.0 = Checked { events: self.0.events + 1, last_g: g, last_hash: Hash::of(line) };
        Ok(())
    }

    /// How far the chain holds.
    #[must_use]
    pub fn checked(&self) -> Checked {
        self.0
    }
}

impl Default for Verifier {
    fn default() -> Self {
        Verifier::new()
    }
}

/// Checks a whole ledger from its beginning, given as lines without newlines.
///
/// # Errors
/// Where it breaks first.
#[cfg(test)]
pub(crate) fn verify<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Checked, ChainError> {
    let mut verifier = Verifier::new();
    for line in lines {
        verifier.push(line)?;
    }
    Ok(verifier.checked())
}

fn check(line: &str, g: G, prev: &Hash) -> Result<(), ChainBreak> {
    let value: Value = serde_json::from_str(line).map_err(|_| ChainBreak::NotAnEvent("no JSON"))?;
    let text = |key| value.get(key).and_then(Value::as_str);
    if text("schema") != Some(SCHEMA) {
        return Err(ChainBreak::NotAnEvent("another schema"));
    }
    let found = value.get("g").and_then(Value::as_u64).ok_or(ChainBreak::NotAnEvent("no g"))?;
    if found != g.0 {
        return Err(ChainBreak::Misplaced { found });
    }
    // Also what shows a key that stands twice, of which the parser keeps only one.
    if canonical(&value).ok().as_deref() != Some(line.as_bytes()) {
        return Err(ChainBreak::NotCanonical);
    }
    let found = text("prev_event_hash").ok_or(ChainBreak::NotAnEvent("no prev_event_hash"))?;
    if found.parse() != Ok(*prev) {
        return Err(ChainBreak::Previous { found: found.to_owned(), wanted: *prev });
    }
    let payload = value.get("payload").ok_or(ChainBreak::NotAnEvent("no payload"))?;
    let payload = canonical(payload).map_err(|_| ChainBreak::NotCanonical)?;
    let found = text("payload_hash").ok_or(ChainBreak::NotAnEvent("no payload_hash"))?;
    if found.parse() != Ok(Hash::of(payload)) {
        return Err(ChainBreak::Payload);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::event::seal;
    use super::super::event::tests::claim;
    use super::super::payload::Payload;
    use super::*;
    use crate::numbers::UnixNanos;

    fn chain(events: u64) -> Vec<String> {
        let mut event = claim();
        let mut prev = Hash::ZERO;
        let mut lines = Vec::new();
        for g in 1..=events {
            event.payload = Payload::of(&[("nth", g.into()), ("é", "e\u{301}\n".into())]);
            let sealed = seal(&event, G(g), UnixNanos(g as i64), &prev);
            prev = sealed.hash;
            lines.push(sealed.line);
        }
        lines
    }

    fn broken(lines: &[String]) -> (u64, ChainBreak) {
        let error = verify(lines.iter().map(String::as_str)).unwrap_err();
        (error.g.0, error.what)
    }

    #[test]
    fn a_chain_holds() {
        let lines = chain(5);
        let checked = verify(lines.iter().map(String::as_str)).unwrap();
        let last_hash = Hash::of(&lines[4]);
        assert_eq!(checked, Checked { events: 5, last_g: G(5), last_hash });
        assert_eq!(verify([]).unwrap().last_hash, Hash::ZERO);
    }

    #[test]
    fn a_chain_holds_from_a_known_event_on() {
        let lines = chain(5);
        let mut verifier = Verifier::after(G(2), Hash::of(&lines[1]));
        for line in &lines[2..] {
            verifier.push(line).unwrap();
        }
        assert_eq!(verifier.checked().events, 3);
    }

    #[test]
    fn a_changed_field_shows_in_the_next_line() {
        let mut lines = chain(5);
        lines[2] = lines[2].replace("\"bob\"", "\"eve\"");
        assert!(matches!(broken(&lines), (4, ChainBreak::Previous { .. })));
    }

    #[test]
    fn a_changed_payload_shows_at_once() {
        let mut lines = chain(5);
        lines[2] = lines[2].replace("\"nth\":3", "\"nth\":4");
        assert_eq!(broken(&lines), (3, ChainBreak::Payload));
    }

    #[test]
    fn a_missing_a_doubled_and_a_reordered_line() {
        let lines = chain(5);
        let mut missing = lines.clone();
        missing.remove(2);
        assert_eq!(broken(&missing), (3, ChainBreak::Misplaced { found: 4 }));
        let mut doubled = lines.clone();
        doubled.insert(2, lines[1].clone());
        assert_eq!(broken(&doubled), (3, ChainBreak::Misplaced { found: 2 }));
        let mut reordered = lines.clone();
        reordered.swap(1, 2);
        assert_eq!(broken(&reordered), (2, ChainBreak::Misplaced { found: 3 }));
    }

    #[test]
    fn the_first_line_cannot_be_cut_off() {
        let lines = chain(3);
        assert!(verify(lines[1..].iter().map(String::as_str)).is_err());
    }

    #[test]
    fn the_same_values_in_another_text() {
        let lines = chain(2);
        let spaced = lines[1].replacen(':', ": ", 1);
        assert_eq!(broken(&[lines[0].clone(), spaced]), (2, ChainBreak::NotCanonical));
        let twice = lines[1].replacen("{\"actor\":", "{\"actor\":\"eve\",\"actor\":", 1);
        assert_eq!(broken(&[lines[0].clone(), twice]), (2, ChainBreak::NotCanonical));
    }

    #[test]
    fn what_is_no_event() {
        let mut verifier = Verifier::new();
        for line in ["", "{}", "[1]", "{\"g\":1}", "{\"schema\":\"workfs.event.v9\"}", "{\"a\""] {
            let error = verifier.push(line).unwrap_err();
            assert!(matches!(error.what, ChainBreak::NotAnEvent(_)), "{line}");
        }
        assert_eq!(verifier.checked().events, 0);
    }
}
