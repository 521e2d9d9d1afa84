//! Content of plain files: chunks that are written, cut and freed.
//!
//! What must stay true: a missing chunk is a hole of zeros; bytes after a file's end are zero, so
//! that growing it shows zeros. A write survives the daemon's death when it is answered, and power
//! loss after `fsync`.

use crate::engine::actors::privileges::drop_privileges;
use crate::engine::change::stop::gone;
use crate::engine::{About, Command, Effect, Stop, Terms, Turn, WriteAt};
use crate::limits::{CHUNK_BYTES, CHUNK_INDEX_MAX, FILE_BYTES_MAX};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Node, NodeType, Read, StoreError};

/// Writes bytes into a plain file.
#[derive(Clone, Debug)]
pub struct Write {
    /// The file.
    pub ino: Ino,
    /// Where.
    pub at: WriteAt,
    /// What.
    pub data: Vec<u8>,
}

/// Reserves, zeroes or frees a range of a plain file.
#[derive(Clone, Copy, Debug)]
pub struct Allocate {
    /// The file.
    pub ino: Ino,
    /// Where the range starts.
    pub offset: u64,
    /// Its length.
    pub length: u64,
    /// The file's size stays as it is.
    pub keep_size: bool,
    /// The range reads as zeros afterwards.
    pub zero: bool,
}

fn too_large(bytes: u64) -> Refusal {
    Refusal::new(
        Rule::TooLarge,
        format!("a file of {bytes} bytes is over the limit of {FILE_BYTES_MAX}"),
        "split it",
    )
}

/// A plain file that still exists.
pub(super) fn file(turn: &Turn<'_>, ino: Ino) -> Result<Node, Stop> {
    match turn.txn.node(ino)? {
        Some(node) if node.is_plain_file() => Ok(node),
        // Its text is judged as a whole, and not by a handle that knows nothing of that.
        Some(node) if node.node_type == NodeType::File => {
            let reason =
                "this handle is of a plain file, which was renamed to a record's name since";
            let refusal =
                Refusal::new(Rule::Gone, reason, "open it by that name, and save it there");
            Err(About::Node(ino).kept(turn.txn, refusal))
        }
        _ => Err(gone().into()),
    }
}

impl Command for Write {
    type Out = Node;

    fn operation(&self) -> &'static str {
        "write"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Node, Stop> {
        let mut node = file(turn, self.ino)?;
        let offset = match self.at {
            WriteAt::Offset(offset) => offset,
            WriteAt::End => node.size,
        };
        put(turn, &mut node, offset, &self.data)?;
        turn.require_still_valid(&node)?;
        node.mtime = turn.now;
        changed(turn, &mut node)?;
        Ok(node)
    }
}

impl Command for Allocate {
    type Out = ();

    fn operation(&self) -> &'static str {
        "fallocate"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let mut node = file(turn, self.ino)?;
        let end = self.offset.saturating_add(self.length);
        if end > FILE_BYTES_MAX {
            return Err(too_large(end).into());
        }
        if self.zero {
            let stop = end.min(node.size);
            if self.offset < stop {
                clear(turn, &mut node, self.offset, stop)?;
            }
        }
        if !self.keep_size && end > node.size {
            resize(turn, &mut node, end)?;
        }
        turn.require_still_valid(&node)?;
        node.mtime = turn.now;
        changed(turn, &mut node)?;
        turn.effect(Effect::Attr { ino: node.ino, also_origin: true });
        Ok(())
    }
}

/// Writes `data` at `offset` and lets the node grow; the caller stores the node.
pub(in crate::engine) fn put(
    turn: &mut Turn<'_>,
    node: &mut Node,
    offset: u64,
    data: &[u8],
) -> Result<(), Stop> {
    let end = offset.saturating_add(data.len() as u64);
    if end > FILE_BYTES_MAX {
        return Err(too_large(end).into());
    }
    drop_remains(turn, node)?;
    let mut at = offset;
    let mut rest = data;
    while !rest.is_empty() {
        let (index, within) = split(at);
        let whole = rest.len() / CHUNK_BYTES;
        let take = match within {
            0 if whole > 0 => whole * CHUNK_BYTES,
            _ => rest.len().min(CHUNK_BYTES - within),
        };
        let (now, later) = rest.split_at(take);
        if take >= CHUNK_BYTES {
            let last = split(at + take as u64 - 1).0;
            // After the end there are no chunks.
            let gone =
                if at < node.size { turn.txn.delete_chunks(node.ino, index, last)? } else { 0 };
            node.chunks = (node.chunks + whole as u64).saturating_sub(gone);
            turn.txn.insert_whole_chunks(node.ino, index, now)?;
        } else {
            let old = turn.txn.chunk(node.ino, index)?;
            node.chunks += u64::from(old.is_none());
            let mut chunk = old.unwrap_or_default();
            if chunk.len() < within + take {
                chunk.resize(within + take, 0);
            }
            chunk[within..within + take].copy_from_slice(now);
            turn.txn.put_chunk(node.ino, index, &chunk)?;
        }
        at += take as u64;
        rest = later;
    }
    node.size = node.size.max(end);
    Ok(())
}

/// Fills a new file; chunks of zeros only are left out, so that holes that were read stay holes.
pub(in crate::engine) fn put_sparse(
    turn: &mut Turn<'_>,
    node: &mut Node,
    data: &[u8],
) -> Result<(), Stop> {
    let mut at = 0;
    for chunk in data.chunks(CHUNK_BYTES) {
        if chunk.iter().any(|&byte| byte != 0) {
            put(turn, node, at, chunk)?;
        }
        at += chunk.len() as u64;
    }
    resize(turn, node, at)
}

/// A nameless file goes in pieces, and counts as empty after the first (`desk/reclaim`). Whoever has come upon it
/// since and makes it longer must not find the others in it.
fn drop_remains(turn: &mut Turn<'_>, node: &mut Node) -> Result<(), StoreError> {
    if node.nlink == 0 && node.size == 0 && node.chunks > 0 {
        turn.txn.delete_chunks(node.ino, 0, CHUNK_INDEX_MAX)?;
        node.chunks = 0;
    }
    Ok(())
}

/// Sets a file's size: what is cut off is gone, what is added reads as zeros.
pub(in crate::engine) fn resize(
    turn: &mut Turn<'_>,
    node: &mut Node,
    size: u64,
) -> Result<(), Stop> {
    if size > FILE_BYTES_MAX {
        return Err(too_large(size).into());
    }
    drop_remains(turn, node)?;
    if size < node.size {
        let (index, within) = split(size);
        let first_gone = if within == 0 { index } else { index + 1 };
        // Not the index of the end itself: a full file's would be one that no chunk can have.
        let last = split(node.size - 1).0;
        let gone = turn.txn.delete_chunks(node.ino, first_gone, last)?;
        node.chunks = node.chunks.saturating_sub(gone);
        if within > 0
            && let Some(mut chunk) = turn.txn.chunk(node.ino, index)?
            && chunk.len() > within
        {
            chunk.truncate(within);
            turn.txn.put_chunk(node.ino, index, &chunk)?;
        }
    }
    node.size = size;
    Ok(())
}

/// Makes `start..end` read as zeros; whole chunks are freed, holes are skipped.
fn clear(turn: &mut Turn<'_>, node: &mut Node, start: u64, end: u64) -> Result<(), StoreError> {
    let mut index = split(start).0;
    while let Some(found) = turn.txn.next_chunk(node.ino, index)? {
        let base = u64::from(found) * CHUNK_BYTES as u64;
        if base >= end {
            break;
        }
        let from = start.saturating_sub(base) as usize;
        let to = (end - base).min(CHUNK_BYTES as u64) as usize;
        if from == 0 && to == CHUNK_BYTES {
            let gone = turn.txn.delete_chunks(node.ino, found, found)?;
            node.chunks = node.chunks.saturating_sub(gone);
        } else if let Some(mut chunk) = turn.txn.chunk(node.ino, found)? {
            let to = to.min(chunk.len());
            if from < to {
                chunk[from..to].fill(0);
                turn.txn.put_chunk(node.ino, found, &chunk)?;
            }
        }
        index = found + 1;
    }
    Ok(())
}

/// Reads `size` bytes at `offset`, fewer only at the end; holes read as zeros.
///
/// # Errors
/// A failure of the store.
pub fn read(read: &dyn Read, node: &Node, offset: u64, size: usize) -> Result<Vec<u8>, StoreError> {
    let end = node.size.min(offset.saturating_add(size as u64));
    let mut out = Vec::with_capacity(end.saturating_sub(offset) as usize);
    let mut at = offset;
    while at < end {
        let (index, within) = split(at);
        let take = ((end - at) as usize).min(CHUNK_BYTES - within);
        let chunk = read.chunk(node.ino, index)?.unwrap_or_default();
        let there = chunk.get(within..chunk.len().min(within + take)).unwrap_or_default();
        out.extend_from_slice(there);
        out.resize(out.len() + take - there.len(), 0);
        at += take as u64;
    }
    Ok(out)
}

/// A chunk's index and the place in it. FILE_BYTES_MAX keeps the index within 24 bits.
fn split(at: u64) -> (u32, usize) {
    ((at / CHUNK_BYTES as u64) as u32, (at % CHUNK_BYTES as u64) as usize)
}

/// Stores a plain file whose content the caller has changed, with what follows from that, whichever
/// way it came: it is nobody's with more rights any more, and a lock's lease begins anew.
pub(super) fn changed(turn: &mut Turn<'_>, node: &mut Node) -> Result<(), Stop> {
    node.ctime = turn.now;
    drop_privileges(turn, node);
    turn.txn.update_node(node)?;
    turn.renew_own_lock(node)?;
    turn.effect(Effect::Data(node.ino));
    Ok(())
}

/// Makes `data` the whole content of a plain file, if each of its names takes that.
pub(in crate::engine) fn save(
    turn: &mut Turn<'_>,
    node: &mut Node,
    data: &[u8],
) -> Result<(), Stop> {
    for at in turn.names_of_file(node)? {
        turn.require_content(at.as_ref(), data)?;
    }
    replace(turn, node, data)?;
    changed(turn, node)
}

/// Replaces a plain file's content; the caller stores the node.
pub(super) fn replace(turn: &mut Turn<'_>, node: &mut Node, data: &[u8]) -> Result<(), Stop> {
    resize(turn, node, 0)?;
    put(turn, node, 0, data)?;
    Ok(())
}
