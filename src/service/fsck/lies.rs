//! What lies at a path is what was saved there last.
//!
//! What must stay true: nothing is told of that anybody may have done. A write is told when its handle is closed,
//! which may never be; so a file is compared only where its own times say that nothing was done to it since its
//! last event, and where no directory above it can have brought another. Deliberately not here: what is told of the
//! past (`files`).

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::engine::{node_at, read_plain};
use crate::ledger::Hash;
use crate::limits::HASHED_IN_TURN_BYTES_MAX;
use crate::names::TreePath;
use crate::numbers::{G, UnixNanos};
use crate::store::{self, FileVersion, History, Node, Read, StoreError};

use super::super::Failure;
use super::ledger::Ledger;
use super::{Check, Rules};

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Compares what lies at the path of `history` with what its last event, and the newest version, say was saved.
pub(super) fn check(
    read: &dyn Read,
    (history, event, newest): (&History, &Value, Option<&FileVersion>),
    (ledger, rules): (&Ledger, &Rules<'_>),
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    let (g, path) = (history.last_g, history.path.to_string());
    let said = |at: &str| event.pointer(at).and_then(Value::as_str);
    let at = said("/at").and_then(UnixNanos::parse_rfc3339);
    let (Some(sha256), Some(at)) = (said("/payload/content_sha256"), at) else { return Ok(()) };
    // A rename is an event of the path that was left, too; and other rules told otherwise, or nothing.
    let is_of_here = said("/payload/path") == Some(path.as_str()) && rules.hold_since(g);
    if !is_of_here || !ledger.is_datable(g, at) || is_brought(&history.path, g, ledger) {
        return Ok(());
    }
    let thing = || format!("file {path}");
    let node = check.got(thing, node_at(read, &history.path))?.flatten();
    let node = node.filter(|node| node.is_plain_file() && is_untouched(node, at));
    let Some(node) = node else { return Ok(()) };
    let is_kept = newest.is_some_and(|newest| newest.sha256.to_string() == sha256);
    // Of larger ones nothing is read by any check: there may be terabytes.
    if !is_kept && node.size > HASHED_IN_TURN_BYTES_MAX {
        return Ok(());
    }
    let what = format!("is not what event {g} says was saved");
    // First, since a size may be anything in a damaged row.
    if event.pointer("/payload/size").and_then(Value::as_u64) != Some(node.size) {
        check.problem(thing(), what);
        return Ok(());
    }
    match hash(read, &node) {
        Ok(found) if found.to_string() == sha256 => {}
        // Content that is not flushed with the tables.
        Ok(_) if node.size > HASHED_IN_TURN_BYTES_MAX => {
            check.lost(thing(), what + ", as after power loss: write it anew, or remove it");
        }
        Ok(_) => check.problem(thing(), what),
        // Which of its chunks are lost, and which pages are damaged, is told of elsewhere.
        Err(StoreError::Impossible(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Whether nothing was done to a file after the event of this time. All changes of one commit have one time: what has
/// that of the event may have come after it, but where the content is older.
fn is_untouched(node: &Node, at: UnixNanos) -> bool {
    node.ctime < at || (node.ctime == at && node.mtime < at)
}

/// Whether a directory above may have come, with what lies in it, after event `g`: that is the event of its own path
/// alone.
fn is_brought(path: &TreePath, g: G, ledger: &Ledger) -> bool {
    let mut above = path.split_last().map(|(above, _)| above);
    while let Some(dir) = above.filter(|dir| !dir.names().is_empty()) {
        if ledger.of_file(&dir.to_string()).is_some_and(|last| last > g) {
            return true;
        }
        above = dir.split_last().map(|(above, _)| above);
    }
    false
}

fn hash(read: &dyn Read, node: &Node) -> store::Result<Hash> {
    let (mut hash, mut at) = (Sha256::new(), 0);
    while at < node.size {
        let piece = read_plain(read, node, at, PIECE_BYTES)?;
        hash.update(&piece);
        at += piece.len() as u64;
    }
    Ok(Hash::from_bytes(hash.finalize().into()))
}
