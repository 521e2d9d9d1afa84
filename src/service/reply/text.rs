//! What texts of results have in common: times, sizes and reasons, as people read them.

use crate::refusal::TextPlace;

/// Bytes as people read them.
pub(in crate::service) fn size(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} bytes"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// A ledger's time without its fraction.
pub(in crate::service) fn seconds(at: &str) -> String {
    match at.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => at.to_owned(),
    }
}

/// A reason with its place in the text.
pub(in crate::service) fn placed(reason: &str, place: Option<TextPlace>) -> String {
    match place {
        Some(TextPlace { line, column }) => format!("line {line}, column {column}: {reason}"),
        None => reason.to_owned(),
    }
}
