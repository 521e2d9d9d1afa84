//! Since when the present rules have held: the configuration, its kinds, and this program.
//!
//! A record's row notes what its text said by the rules of the time. When a layout changes, all
//! rows are made anew (`anew`); until that is done it is noted here that it is not. What must stay
//! true: whoever compares rows with texts asks here which rows the present rules made. Deliberately
//! not here: the rules.

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::ledger::Hash;
use crate::numbers::G;
use crate::store::{Read, Result, Txn};

/// The setting of the store that keeps it.
const KEY: &str = "rules";

/// Counted up where a program of the same version reads the same text otherwise. 2: times before 1677 and
/// after 2262 are times. 3: a claim asks for what the status requires that it gives. 4: times without a zone are
/// times. 5: `inbox/X` names X.
const READING: u32 = 5;

#[derive(Serialize, Deserialize)]
struct Kept {
    /// Which rules, as a hash.
    rules: String,
    /// The last event before they held.
    since: u64,
    /// The same of those before them.
    before: Option<(String, u64)>,
    /// The layout by which all rows were made, as a hash; older programs did not say.
    #[serde(default)]
    rows: Option<String>,
    /// The last event when it was noted that they hold, also where they had held before; older programs did not say.
    #[serde(default)]
    noted: Option<u64>,
}

/// The rules that a configuration means to this program.
fn fingerprint(config: &Config) -> String {
    Hash::of(format!("{} {}", env!("CARGO_PKG_VERSION"), layout(config))).to_string()
}

/// What of them rows are made by. Another version of the program is no reason to make all anew.
fn layout(config: &Config) -> String {
    let mut text = format!("{READING}\n");
    text.push_str(&config.to_yaml());
    for binding in config.bindings() {
        let source = binding.kind.source();
        text.extend([&source.definition, &source.schema].map(String::as_str));
    }
    text
}

fn layout_hash(config: &Config) -> String {
    Hash::of(layout(config)).to_string()
}

fn kept(read: &dyn Read) -> Result<Option<Kept>> {
    // What cannot be understood counts as other rules.
    Ok(read.meta(KEY)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Notes which rules hold from the event after `last` on, where others did until now.
pub(in crate::engine) fn note_rules(txn: &mut dyn Txn, config: &Config, last: G) -> Result<()> {
    let (rules, kept) = (fingerprint(config), kept(txn)?);
    if kept.as_ref().is_some_and(|kept| kept.rules == rules) {
        return Ok(());
    }
    // A layout that was tried and refused held for no event.
    let back =
        kept.as_ref().filter(|kept| kept.since == last.0).and_then(|kept| kept.before.as_ref());
    let since = back.filter(|(before, _)| *before == rules).map_or(last.0, |(_, since)| *since);
    // Of those that an older program made it is known only that it was by others.
    let made_by = |kept: &Kept| kept.rows.clone().unwrap_or_default();
    let rows = Some(kept.as_ref().map_or_else(|| layout_hash(config), made_by));
    let before = kept.map(|kept| (kept.rules, kept.since));
    put(txn, &Kept { rules, since, before, rows, noted: Some(last.0) })
}

fn put(txn: &mut dyn Txn, kept: &Kept) -> Result<()> {
    // Texts and numbers: writing them as JSON cannot fail.
    txn.put_meta(KEY, &serde_json::to_string(kept).unwrap_or_default())
}

/// Notes that the rows of all records are those of the present layout.
pub(super) fn note_rows(txn: &mut dyn Txn, config: &Config) -> Result<()> {
    match kept(txn)? {
        Some(kept) if kept.rules == fingerprint(config) => {
            put(txn, &Kept { rows: Some(layout_hash(config)), ..kept })
        }
        _ => Ok(()),
    }
}

/// The last event after which other rules may have held, also if nothing was told of what happened by them: what they
/// do not count is not. `None`: those of `config` never held, as far as is known.
///
/// # Errors
/// A failure of the store.
pub fn rules_noted(read: &dyn Read, config: &Config) -> Result<Option<G>> {
    let kept = kept(read)?.filter(|kept| kept.rules == fingerprint(config));
    Ok(kept.map(|kept| G(kept.noted.unwrap_or(kept.since))))
}

/// Whether there may be rows that another layout than that of `config` has made.
///
/// # Errors
/// A failure of the store.
pub fn has_old_rows(read: &dyn Read, config: &Config) -> Result<bool> {
    let made_by = kept(read)?.and_then(|kept| kept.rows);
    Ok(made_by.is_some_and(|made_by| made_by != layout_hash(config)))
}

/// The last event before the rules of `config` held; `None`: they never did, as far as is known.
///
/// # Errors
/// A failure of the store.
pub fn rules_since(read: &dyn Read, config: &Config) -> Result<Option<G>> {
    let kept = kept(read)?.filter(|kept| kept.rules == fingerprint(config));
    Ok(kept.map(|kept| G(kept.since)))
}
