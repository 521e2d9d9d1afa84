//! When events happened, and which was the last at a time.

use crate::numbers::{G, UnixNanos};
use crate::store::{Read, StoreError};

/// When an event happened.
///
/// # Errors
/// A failure of the store; its line is damaged, or says no time.
pub fn time_of(read: &dyn Read, g: G) -> Result<UnixNanos, StoreError> {
    let said = read.event(g)?.map(|row| row.parsed()).transpose()?;
    let at = said.as_ref().and_then(|said| UnixNanos::parse_rfc3339(said["at"].as_str()?));
    at.ok_or_else(|| StoreError::Impossible(format!("event {g} has no time")))
}

/// The last event that had happened at `time`, 0 if none had. Where the wall clock was set back, events that are
/// numbered later may have happened before; then it is one of those about that time.
///
/// # Errors
/// As of [`time_of`].
pub fn last_before(read: &dyn Read, time: UnixNanos) -> Result<G, StoreError> {
    let (mut low, mut high) = (0, read.last_event()?.map_or(0, |last| last.g.0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if time_of(read, G(middle))? <= time { low = middle } else { high = middle - 1 }
    }
    Ok(G(low))
}
