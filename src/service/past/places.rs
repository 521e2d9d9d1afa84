//! Which places an event is about: where a thing lies after it or went, and where it lay before.
//!
//! What must stay true: whoever follows what happens at a place hears also of what leaves it.
//! Deliberately not here: what else lies at the place, and who may hear of it.

use serde_json::Value;

use crate::service::Failure;
use crate::store::{EventRow, Read, earlier};

/// Whether `is_here` says so of a path that the event is about, as the ledger writes it.
///
/// # Errors
/// A failure of the store.
pub(in crate::service) fn is_about(
    read: &dyn Read,
    row: &EventRow,
    event: &Value,
    is_here: impl Fn(&str) -> bool,
) -> Result<bool, Failure> {
    let is_at = |event: &Value, at| event.pointer(at).and_then(Value::as_str).is_some_and(&is_here);
    if ["/payload/path", "/payload/to", "/payload/from_path"].iter().any(|at| is_at(event, at)) {
        return Ok(true);
    }
    // A record's transition says from which state it came; from where, the event before.
    if event.pointer("/payload/from").is_none() {
        return Ok(false);
    }
    let before = read.event(earlier(row.g, row.before_g)?)?;
    let before = before.map(|row| row.said());
    Ok(before.is_some_and(|before| is_at(&before, "/payload/path")))
}

/// Whether a directory came or went with all that lies in it, of which no other event tells.
pub(in crate::service) fn moves_directory(event: &Value) -> bool {
    let says = |at| event.pointer(at).is_some();
    event.pointer("/payload/type").is_some_and(|of| of == "directory")
        && (says("/payload/via") || says("/payload/to"))
}
