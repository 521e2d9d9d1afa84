//! Why a text was refused, as it is stored.

use super::columns::damaged;
use crate::store::RefusedText;

/// A refusal's reason as it is stored: JSON, since only people read it.
pub(super) fn why_text(why: &RefusedText) -> String {
    serde_json::json!({
        "rule": why.rule, "reason": why.reason, "remedy": why.remedy, "place": why.place,
    })
    .to_string()
}

pub(in crate::store::sqlite) fn why(text: &str) -> rusqlite::Result<RefusedText> {
    #[derive(serde::Deserialize)]
    struct Stored {
        rule: crate::refusal::Rule,
        reason: String,
        remedy: String,
        place: Option<crate::refusal::TextPlace>,
    }
    let stored: Stored = serde_json::from_str(text).map_err(damaged)?;
    Ok(RefusedText {
        rule: stored.rule,
        reason: stored.reason,
        remedy: stored.remedy,
        place: stored.place,
    })
}
