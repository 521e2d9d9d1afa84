//! Making the rows of all records anew where another layout made them.
//!
//! What must stay true: it may be broken off at any moment, and whoever opens the store next goes on with it.
//! Deliberately not here: what a row is (`engine::MakeRows`).

use crate::engine::{Engine, MakeRows, RowsMade, has_old_rows};
use crate::limits::ROWS_AT_ONCE;
use crate::numbers::RecordKey;
use crate::service::import::{Listed, Unreadable};
use crate::service::{Caller, Failure};

/// Makes them, if that is needed; `progress` hears how many are done, and of how many. Records that would wait
/// for themselves by what they say now are `left` as they were.
///
/// # Errors
/// A failure of the store.
pub fn make_rows(
    engine: &Engine,
    caller: &Caller,
    left: &mut Listed<Unreadable>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Failure> {
    let config = engine.config();
    let all = crate::store::read(&**engine.readers(), |read| {
        if !has_old_rows(read, &config)? {
            return Ok(None);
        }
        let mut all: Vec<RecordKey> = Vec::new();
        for workspace in read.workspaces()? {
            read.records(workspace.key, &mut |record| {
                all.push(record.key);
                true
            })?;
        }
        Ok(Some(all))
    })?;
    let Some(all) = all.filter(|_| engine.refuses().is_none()) else { return Ok(()) };
    let mut done = 0;
    let mut circles = Vec::new();
    for records in all.chunks(ROWS_AT_ONCE) {
        circles.extend(engine.run(caller.context(), MakeRows { records: records.to_vec() })?);
        done += records.len() as u64;
        progress(done, all.len() as u64);
    }
    // What one made later waited for by the rules before may have closed a circle that is none now.
    let mut before = all.len();
    while !circles.is_empty() && circles.len() < before {
        before = circles.len();
        // The other way round each time: a chain that was turned round comes to its end at once then.
        let again: Vec<RecordKey> = circles.drain(..).rev().map(|(record, _)| record).collect();
        for records in again.chunks(ROWS_AT_ONCE) {
            circles.extend(engine.run(caller.context(), MakeRows { records: records.to_vec() })?);
        }
    }
    for (_, (path, refusal)) in circles {
        let remedy = &refusal.remedy;
        let why = format!("{refusal}: {remedy}; until then it waits for what it waited for");
        left.push(Unreadable { path: (&path).into(), why });
    }
    Ok(engine.run(caller.context(), RowsMade)?)
}
