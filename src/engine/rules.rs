//! From when on the present rules have held: the configuration, its kinds, and this program.
//!
//! A record's row has noted what its text said by the rules of that time, and is left as it is when they
//! change. What must stay true: whoever compares rows with texts asks here which rows the present rules
//! made. Deliberately not here: the rules.

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::ledger::Hash;
use crate::numbers::G;
use crate::store::{Read, Result, Txn};

/// The setting of the store that keeps it.
const KEY: &str = "rules";

/// Counted up where a program of the same version reads the same text otherwise. 2: times before 1677 and
/// after 2262 are times.
const READING: u32 = 2;

#[derive(Serialize, Deserialize)]
struct Kept {
    /// Which rules, as a hash.
    rules: String,
    /// The last event before they held.
    since: u64,
    /// The same of those before them.
    before: Option<(String, u64)>,
}

/// The rules that a configuration means to this program.
fn fingerprint(config: &Config) -> String {
    let mut text = format!("{} {READING}\n", env!("CARGO_PKG_VERSION"));
    text.push_str(&config.to_yaml());
    for binding in config.bindings() {
        let source = binding.kind.source();
        text.extend([&source.definition, &source.schema].map(String::as_str));
    }
    Hash::of(&text).to_string()
}

fn kept(read: &dyn Read) -> Result<Option<Kept>> {
    // What cannot be understood counts as other rules.
    Ok(read.meta(KEY)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Notes which rules hold from the event after `last` on, where others did until now; whether they did.
pub(super) fn note_rules(txn: &mut dyn Txn, config: &Config, last: G) -> Result<bool> {
    let (rules, kept) = (fingerprint(config), kept(txn)?);
    if kept.as_ref().is_some_and(|kept| kept.rules == rules) {
        return Ok(false);
    }
    // A layout that was tried and refused held for no event.
    let back =
        kept.as_ref().filter(|kept| kept.since == last.0).and_then(|kept| kept.before.as_ref());
    let since = back.filter(|(before, _)| *before == rules).map_or(last.0, |(_, since)| *since);
    let before = kept.map(|kept| (kept.rules, kept.since));
    let text = serde_json::to_string(&Kept { rules, since, before });
    // Texts and numbers: writing them as JSON cannot fail.
    txn.put_meta(KEY, &text.unwrap_or_default())?;
    Ok(true)
}

/// The last event before the rules of `config` held; `None`: they never did, as far as is known.
///
/// # Errors
/// A failure of the store.
pub fn rules_since(read: &dyn Read, config: &Config) -> Result<Option<G>> {
    let kept = kept(read)?.filter(|kept| kept.rules == fingerprint(config));
    Ok(kept.map(|kept| G(kept.since)))
}
