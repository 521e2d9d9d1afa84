//! `.workfs/events`: all events as one NDJSON file, read at any offset without a copy of it.

use crate::numbers::G;
use crate::store::{Read, Result, StoreError};

/// The file's size in bytes.
pub(in crate::tree) fn size(read: &dyn Read) -> Result<u64> {
    Ok(read.last_event()?.map_or(0, |event| event.end))
}

/// Up to `size` bytes at `offset`.
pub(in crate::tree) fn at(read: &dyn Read, offset: u64, size: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let Some(last) = read.last_event()? else { return Ok(out) };
    if offset >= last.end {
        return Ok(out);
    }
    // `end` grows with g, and g is dense: the line is found by halving.
    let (mut low, mut high) = (1, last.g.0);
    while low < high {
        let middle = low + (high - low) / 2;
        match read.event(G(middle))? {
            Some(event) if event.end <= offset => low = middle + 1,
            _ => high = middle,
        }
    }
    let mut g = G(low);
    while out.len() < size
        && let Some(event) = read.event(g)?
    {
        let line = event.line.as_bytes();
        let at = offset + out.len() as u64;
        // What is missing between two of them would be read as an endless file of nothing.
        let start = event.end.checked_sub(line.len() as u64 + 1).filter(|start| *start <= at);
        let Some(line) = start.and_then(|start| line.get((at - start) as usize..)) else {
            let what = format!("event {g} does not end where its row says");
            return Err(StoreError::Impossible(what));
        };
        out.extend_from_slice(line);
        out.push(b'\n');
        g = g.next();
    }
    out.truncate(size);
    Ok(out)
}
